package cli

import (
	"context"
)

// awaitReady watches until every cache is ready or stalled, and shows the progress.
// It returns the error of ctx if that ends first.
func (a *app) awaitReady(ctx context.Context, h *hub, caches []*appliedCache) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	byName := map[string]*appliedCache{}
	namespace := caches[0].latest.Namespace
	for _, ac := range caches {
		byName[ac.name] = ac
		if ac.latest.Namespace != namespace {
			namespace = ""
		}
	}
	progress := a.out
	if a.structured() {
		progress = a.err
	}
	view := newProgressView(progress)
	defer view.clear()
	updates, lost, err := h.watch(ctx, namespace)
	if err != nil {
		return err
	}
	for {
		view.update(progressRows(caches))
		if allSettled(caches) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-lost:
			view.clear()
			a.noteConnectionLost(err)
		case u := <-updates:
			ac := byName[u.cache.Namespace+"/"+u.cache.Name]
			switch {
			case ac == nil || ac.latest == nil || ac.latest.UID != u.cache.UID:
			case u.deleted:
				ac.latest = nil
			default:
				ac.latest = u.cache
			}
		}
	}
}

func allSettled(caches []*appliedCache) bool {
	for _, ac := range caches {
		if ac.readiness() == readinessProgressing {
			return false
		}
	}
	return true
}

// progressRows returns one row per member of each cache.
func progressRows(caches []*appliedCache) []progressRow {
	var rows []progressRow
	for _, ac := range caches {
		switch {
		case ac.latest == nil:
			text := "deleted by another client"
			if len(caches) > 1 {
				text = ac.name + " " + text
			}
			rows = append(rows, progressRow{subject: ac.name + "/", text: text})
		case ac.latest.Status.ObservedGeneration < ac.generation:
			// The status of the members is of an older spec.
			rows = append(rows, progressRow{subject: ac.name + "/", text: ac.name + " waiting for the hub manager"})
		default:
			for i := range ac.latest.Status.Clusters {
				m := &ac.latest.Status.Clusters[i]
				text := memberLine(m)
				if len(caches) > 1 {
					text = ac.name + " " + text
				}
				rows = append(rows, progressRow{subject: ac.name + "/" + m.Name, text: text})
			}
		}
	}
	return rows
}
