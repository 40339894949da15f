package fault

import (
	"context"
	"fmt"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	defaultEvery = time.Second
	minEvery     = 10 * time.Millisecond
)

// conflict sets a field in regular intervals, as a second controller does.
type conflict struct{}

// conflictTask is the task of the background process of a conflict.
type conflictTask struct {
	Kubeconfig string        `json:"kubeconfig"`
	Member     string        `json:"member"`
	Manager    string        `json:"manager"`
	Object     *object       `json:"object"`
	Every      time.Duration `json:"every"`
	// Until is the end of the task; it has no end if Until is zero.
	Until time.Time `json:"until,omitzero"`
}

func (conflict) prepare(ctx context.Context, i *Injector, f *Fault) error {
	r := &f.Request
	if r.Every == 0 {
		r.Every = defaultEvery
	}
	if r.Every < minEvery {
		return badInput("--every: %s: must be at least %s", r.Every, minEvery)
	}
	if r.For < 0 {
		return badInput("--for: %s: must not be negative; use 0 for a fault that lasts until its undo", r.For)
	}
	if err := i.findField(ctx, f); err != nil {
		return err
	}
	f.Description += fmt.Sprintf(", every %s", r.Every)
	if r.For > 0 {
		f.Description += fmt.Sprintf(" for %s", r.For)
	}
	return nil
}

func (conflict) inject(ctx context.Context, i *Injector, f *Fault) error {
	t := conflictTask{Kubeconfig: i.lab.Kubeconfig(), Member: f.Request.Member, Manager: f.Request.Manager, Object: f.Object, Every: f.Request.Every}
	if f.Request.For > 0 {
		t.Until = time.Now().Add(f.Request.For)
	}
	// This process makes the first change, so that the user sees its error.
	if err := (drift{}).inject(ctx, i, f); err != nil {
		return err
	}
	_, err := i.start(f.ID, task{Conflict: &t})
	return err
}

func (conflict) undo(ctx context.Context, i *Injector, f *Fault) (string, error) {
	if err := i.stop(ctx, f.ID); err != nil {
		return "", err
	}
	return drift{}.undo(ctx, i, f)
}

// run sets the field until the end of the task. It continues while the member is
// unreachable.
func (t *conflictTask) run(ctx context.Context) error {
	if !t.Until.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, t.Until)
		defer cancel()
	}
	member, err := newClient(t.Kubeconfig, t.Member)
	if err != nil {
		return err
	}
	ticker := time.NewTicker(t.Every)
	defer ticker.Stop()
	changes, lastError := 0, ""
	for {
		select {
		case <-ctx.Done():
			fmt.Fprintf(os.Stderr, "%d changes\n", changes)
			return nil
		case <-ticker.C:
		}
		changed, err := t.Object.setField(ctx, member, t.Manager)
		if changed {
			changes++
		}
		// The hub recreates a deleted child. An error is logged once, not at each tick.
		if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && err.Error() != lastError {
			lastError = err.Error()
			fmt.Fprintln(os.Stderr, lastError)
		}
	}
}
