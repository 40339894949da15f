package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/hub/status"
	"github.com/reconcile-lab/reconcile-lab/internal/events"
)

// write is one write of a plan.
type write struct {
	// action and cause are for the log.
	action, cause string
	memberCache   *v1alpha1.MemberCache
	do            func(context.Context) error
	// done records the result. It runs after all writes, so that it needs no lock.
	done func(error) error
}

// apply carries out the plan. The failure of one write does not stop the others. The
// errors are joined in the order of the MemberCaches' names, so that the same failures
// give the same error.
func (r *Reconciler) apply(ctx context.Context, s *snapshot, p *plan) error {
	var finalizerErr error
	if s.cacheCluster.DeletionTimestamp == nil && (len(p.create) > 0 || s.ownsMemberCaches()) {
		finalizerErr = r.ensureFinalizer(ctx, s.cacheCluster)
		if finalizerErr != nil && len(p.create) > 0 {
			// Without the finalizer nothing new is created, since a deletion would orphan it.
			return finalizerErr
		}
	}
	// Children are removed in one member only after others could be created elsewhere: a
	// manager that ends in between must not leave a cache without a member.
	placed := r.runWrites(ctx, r.placementWrites(s, p))
	return errors.Join(finalizerErr, placed, r.runWrites(ctx, r.removalWrites(s, p)))
}

// runWrites runs writes concurrently, at most concurrentWrites at a time.
func (r *Reconciler) runWrites(ctx context.Context, writes []write) error {
	slices.SortStableFunc(writes, func(a, b write) int { return cmp.Compare(a.memberCache.Name, b.memberCache.Name) })
	errs := make([]error, len(writes))
	var group errgroup.Group
	group.SetLimit(r.concurrentWrites)
	for i := range writes {
		group.Go(func() error {
			w, started := &writes[i], r.clock.Now()
			if errs[i] = w.do(ctx); errs[i] == nil {
				r.logWrite(ctx, 0, w.action, w.memberCache, w.cause, started)
			}
			// The error is kept in errs: returning it would hide all but the first.
			return nil
		})
	}
	_ = group.Wait()
	for i := range writes {
		errs[i] = writes[i].done(errs[i])
	}
	return errors.Join(errs...)
}

// placementWrites returns the writes for members that the plan places the cache in, and for
// changed MemberCaches.
func (r *Reconciler) placementWrites(s *snapshot, p *plan) []write {
	cc := s.cacheCluster
	var writes []write
	for _, mc := range p.create {
		writes = append(writes, write{"create", "spec.placement selects the member", mc,
			func(ctx context.Context) error { return r.create(ctx, cc, mc, p) },
			func(err error) error { return recordResult(mc, p, err) }})
	}
	for _, mc := range p.update {
		before := s.memberCache(mc.Name)
		writes = append(writes, write{"update", updateCause(before, mc), mc,
			func(ctx context.Context) error {
				return r.client.Patch(ctx, mc, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
			},
			func(err error) error { return recordResult(mc, p, err) }})
	}
	return writes
}

// removalWrites returns the writes that remove MemberCaches.
func (r *Reconciler) removalWrites(s *snapshot, p *plan) []write {
	cc := s.cacheCluster
	var writes []write
	for _, mc := range r.states.pendingDeletions(cc, p.remove) {
		writes = append(writes, write{"delete", removeCause(p), mc,
			func(ctx context.Context) error { return r.delete(ctx, cc, mc) },
			func(err error) error { return err }})
	}
	for _, mc := range p.abandon {
		writes = append(writes, write{"abandon", "annotation " + v1alpha1.AnnotationAbandon + " names the unreachable member", mc,
			func(ctx context.Context) error { return r.abandon(ctx, cc, mc) },
			func(err error) error { return err }})
	}
	return writes
}

func updateCause(before, after *v1alpha1.MemberCache) string {
	switch {
	case before.Spec.Revision != after.Spec.Revision:
		return fmt.Sprintf("the template changed from revision %s to %s", before.Spec.Revision, after.Spec.Revision)
	case len(before.Finalizers) != len(after.Finalizers):
		return "the finalizer was missing"
	default:
		return "the spec or the labels differ from the CacheCluster"
	}
}

func removeCause(p *plan) string {
	if p.summary.Deleting {
		return "the CacheCluster is being deleted"
	}
	return "spec.placement no longer selects the member"
}

// ensureFinalizer adds the finalizer to a CacheCluster before it has MemberCaches,
// and again if it was removed while there are some.
func (r *Reconciler) ensureFinalizer(ctx context.Context, cc *v1alpha1.CacheCluster) error {
	before := cc.DeepCopy()
	if !controllerutil.AddFinalizer(cc, v1alpha1.Finalizer) {
		return nil
	}
	started := r.clock.Now()
	if err := r.client.Patch(ctx, cc, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("add finalizer to CacheCluster %s/%s: %w", cc.Namespace, cc.Name, err)
	}
	r.states.wrote(cc)
	r.logWrite(ctx, 0, "add finalizer", cc, "MemberCaches must be deleted before the CacheCluster", started)
	return nil
}

// removeFinalizer removes the finalizer from a CacheCluster that is being deleted
// once it has no MemberCache. It asks the API server, because the cache may not show
// the latest MemberCache yet. done reports that the CacheCluster is gone.
func (r *Reconciler) removeFinalizer(ctx context.Context, s *snapshot, p *plan) (done bool, err error) {
	if !p.summary.Deleting || len(p.summary.Members) > 0 {
		return false, nil
	}
	cc := s.cacheCluster
	var list v1alpha1.MemberCacheList
	if err := r.apiReader.List(ctx, &list, client.InNamespace(cc.Namespace)); err != nil {
		return false, fmt.Errorf("list MemberCaches in %s: %w", cc.Namespace, err)
	}
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], cc) {
			return false, nil
		}
	}
	released := cc.DeepCopy()
	if !controllerutil.RemoveFinalizer(released, v1alpha1.Finalizer) {
		return true, nil
	}
	started := r.clock.Now()
	err = r.client.Patch(ctx, released, client.MergeFromWithOptions(cc, client.MergeFromWithOptimisticLock{}))
	if err == nil {
		r.logWrite(ctx, 0, "remove finalizer", cc, "all MemberCaches are gone", started)
	}
	return true, client.IgnoreNotFound(err)
}

// create creates a MemberCache, or adopts the one of its name that the cache did not
// show yet.
func (r *Reconciler) create(ctx context.Context, cc *v1alpha1.CacheCluster, mc *v1alpha1.MemberCache, p *plan) error {
	err := r.client.Create(ctx, mc)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	existing := &v1alpha1.MemberCache{}
	if err := r.apiReader.Get(ctx, client.ObjectKeyFromObject(mc), existing); err != nil {
		return fmt.Errorf("read MemberCache %s/%s: %w", mc.Namespace, mc.Name, err)
	}
	if !metav1.IsControlledBy(existing, cc) {
		return &nameTakenError{existing}
	}
	*mc = *existing
	return nil
}

// nameTakenError reports that another owner's MemberCache has the name.
type nameTakenError struct{ existing *v1alpha1.MemberCache }

func (e *nameTakenError) Error() string { return nameConflict(e.existing).Message }

// delete deletes a MemberCache, unless it was replaced by another one of its name.
func (r *Reconciler) delete(ctx context.Context, cc *v1alpha1.CacheCluster, mc *v1alpha1.MemberCache) error {
	err := r.client.Delete(ctx, mc, client.Preconditions{UID: &mc.UID})
	if err == nil {
		r.states.deleted(cc, mc)
	}
	return client.IgnoreNotFound(err)
}

// abandon removes the finalizer from a MemberCache whose member is unreachable. Its
// children are orphaned.
func (r *Reconciler) abandon(ctx context.Context, cc *v1alpha1.CacheCluster, mc *v1alpha1.MemberCache) error {
	released := mc.DeepCopy()
	if !controllerutil.RemoveFinalizer(released, v1alpha1.Finalizer) {
		return nil
	}
	err := r.client.Patch(ctx, released, client.MergeFromWithOptions(mc, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("abandon MemberCache %s/%s: %w", mc.Namespace, mc.Name, err)
	}
	if err == nil {
		note := status.OrphanedChildren(v1alpha1.AbandonedMember{Name: mc.Spec.Cluster, Children: childrenOf(mc)})
		r.events.Record(r.clock.Now(), objectReference(cc), events.Event{Warning: true, Reason: v1alpha1.ReasonAbandoned, Action: "Abandon", Note: note})
	}
	return nil
}

// recordResult enters the API server's answer about a MemberCache into the input of the
// summary. It returns the error if the write is to be retried.
func recordResult(mc *v1alpha1.MemberCache, p *plan, err error) error {
	entry := p.entry(mc.Spec.Cluster)
	var taken *nameTakenError
	switch {
	case entry == nil:
	case err == nil:
		entry.Cache = mc
	case errors.As(err, &taken):
		// No event announces that the other MemberCache is gone: retry with backoff.
		entry.Problem = nameConflict(taken.existing)
	case apierrors.IsInvalid(err):
		// A retry gets the same answer: wait for the next generation.
		entry.Problem = rejected(mc, err)
		return nil
	case apierrors.IsForbidden(err):
		// No event announces that a quota was raised or a right granted: retry with backoff.
		entry.Problem = rejected(mc, err)
	}
	return err
}

// rejected returns the problem of a MemberCache that the API server of the hub refused.
func rejected(mc *v1alpha1.MemberCache, err error) *v1alpha1.Outcome {
	class := v1alpha1.ClassInvalid
	hint := fmt.Sprintf("correct the field that the message names: kubectl edit cc -n %s %s", mc.Namespace, mc.Spec.CacheCluster)
	if apierrors.IsForbidden(err) {
		class = v1alpha1.ClassBlocked
		hint = fmt.Sprintf("check the quota on the hub and the rights of the hub manager: kubectl describe resourcequota -n %s", mc.Namespace)
	}
	message := err.Error()
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		message = answer.Status().Message
	}
	return &v1alpha1.Outcome{Class: class, Reason: v1alpha1.ReasonRejected, Message: message, Hint: hint}
}
