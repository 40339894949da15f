package apply

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

var ownerMark = fieldpath.MakePathOrDie("metadata", "annotations", v1alpha1.AnnotationOwner)

// decideTakeover chooses the action for an object that this owner does not own. An object
// with a mark belongs to another CacheCluster: two of them must never write to one object.
// An object that is being deleted is refused, whatever takes its place.
func (s *Step) decideTakeover(owner *Owner, immutable []immutableChange) {
	_, marked := s.Live.GetAnnotations()[v1alpha1.AnnotationOwner]
	switch {
	case marked, s.Live.GetDeletionTimestamp() != nil, !owner.mayTakeOver():
		s.Action, s.Failure = Refuse, refusal(s.Key(), s.Live, owner)
	case owner.Policies.Takeover == v1alpha1.TakeoverIfMatching && len(immutable) > 0:
		s.Action, s.Failure = Refuse, mismatch(s.Key(), s.Live, strings.Join(pathsOf(immutable), ", "))
	default:
		s.Action, s.Retained = TakeOver, retainedFailure(s.Key(), s.Live.GetNamespace(), immutable)
	}
}

func (o *Owner) mayTakeOver() bool {
	return o.Policies.Takeover == v1alpha1.TakeoverIfMatching || o.Policies.Takeover == v1alpha1.TakeoverAlways
}

// match refuses a takeover whose dry run changes more than metadata. The refusal is cached
// until the object or the intent changes, so that a repeated reconcile sends no request.
func (a *Applier) match(ctx context.Context, step *Step) (Step, error) {
	refused := *step
	refused.Action = Refuse
	if refused.Failure = a.writes.mismatch(step.Key(), step.Live, step.Hash); refused.Failure != nil {
		return refused, nil
	}
	answer, _, err := a.applyIntent(ctx, step, client.DryRunAll)
	if err != nil {
		return waitFor(step, failure.Of(err, "take over", step.Key().String()))
	}
	fields, err := changedSpec(step.typer, step.Key(), step.Live, answer)
	if err != nil {
		return step.wait(failure.Of(err, "compare", step.Key().String())), nil
	}
	if fields == "" {
		return *step, nil
	}
	refused.Failure = mismatch(step.Key(), step.Live, fields)
	a.writes.storeMismatch(step.Key(), step.Live, step.Hash, refused.Failure)
	return refused, nil
}

// changedSpec returns the paths in the spec that differ between two versions of an object, as
// one text. It is empty if none differs.
func changedSpec(t drift.Typer, key Key, before metav1.Object, after client.Object) (string, error) {
	live, ok := before.(runtime.Object)
	if !ok {
		return "", fmt.Errorf("%T is not an API object", before)
	}
	// A typed answer has no kind, and the kind selects the schema. The plan owns the live
	// object, so its copy gets the kind.
	live = live.DeepCopyObject()
	live.GetObjectKind().SetGroupVersionKind(key.Kind)
	after.GetObjectKind().SetGroupVersionKind(key.Kind)
	observed, err := t.ObjectToTyped(live)
	if err != nil {
		return "", err
	}
	planned, err := t.ObjectToTyped(after)
	if err != nil {
		return "", err
	}
	comparison, err := observed.Compare(planned)
	if err != nil {
		return "", err
	}
	all := comparison.Added.Union(comparison.Modified).Union(comparison.Removed)
	spec := fieldpath.NewSet()
	all.Iterate(func(p fieldpath.Path) {
		if len(p) > 0 && p[0].FieldName != nil && *p[0].FieldName == "spec" {
			spec.Insert(p.Copy())
		}
	})
	var difference v1alpha1.DriftFinding
	difference.Fields, difference.OmittedFields = drift.Paths(spec)
	return difference.FieldList(), nil
}

// refusal returns the failure for an object that is not taken over: its owner, and what the
// user can do.
func refusal(key Key, live metav1.Object, owner *Owner) *failure.Failure {
	f := &failure.Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonObjectOfAnother}
	namespace, object := live.GetNamespace(), strings.ToLower(key.String())
	exists := fmt.Sprintf("metadata.name: %q: %s already exists", key.Name, key)
	mark, marked := live.GetAnnotations()[v1alpha1.AnnotationOwner]
	uid, member, complete := strings.Cut(mark, "/")
	other := fmt.Sprintf("owned by CacheCluster UID %s for member %s (another CacheCluster, another hub, or a deleted CacheCluster)", uid, member)
	switch {
	case complete && strings.HasPrefix(owner.Mark, uid+"/"):
		f.Message = fmt.Sprintf("%s and was applied for member %s: this cluster is registered as two members", exists, member)
		f.Hint = "remove one of the two members: kubectl get clusterprofiles -A lists them, reconcile-lab leave NAME removes one"
	case marked && owner.remarked(live):
		f.Message = fmt.Sprintf("%s: another client changed its annotation %s to %q", key, v1alpha1.AnnotationOwner, mark)
		f.Hint = fmt.Sprintf("set spec.takeover: Always to restore the annotation, or restore it in the member: kubectl annotate --overwrite -n %s %s %s=%s", namespace, object, v1alpha1.AnnotationOwner, owner.Mark)
	case marked:
		f.Message = exists + " and is " + other
		if owner.knows(live) {
			f.Message = fmt.Sprintf("%s was owned by this CacheCluster and is now %s", key, other)
		}
		f.Hint = fmt.Sprintf("rename one of the two CacheClusters, or delete the other one with deletion.policy: Orphan; if no hub has this CacheCluster UID (kubectl get cacheclusters -A -o yaml), remove the mark in the member and take the object over: kubectl annotate -n %s %s %s-", namespace, object, v1alpha1.AnnotationOwner)
	case live.GetDeletionTimestamp() != nil:
		f.Message = fmt.Sprintf("%s and is being deleted: %s", exists, ownership(live))
		f.SelfResolving = true
		f.Hint = fmt.Sprintf("wait until it is deleted, or read its finalizers in the member: kubectl get -n %s %s -o jsonpath={.metadata.finalizers}", namespace, object)
	default:
		f.Message = fmt.Sprintf("%s: %s", exists, ownership(live))
		f.Hint = fmt.Sprintf("rename the CacheCluster, take the object over (spec.takeover: IfMatching if its spec already matches, else Always), or delete it in the member: kubectl delete -n %s %s", namespace, object)
	}
	return f
}

// mismatch returns the failure for a takeover IfMatching that would change the spec.
func mismatch(key Key, live metav1.Object, fields string) *failure.Failure {
	return &failure.Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonObjectOfAnother,
		Message: fmt.Sprintf("metadata.name: %q: %s already exists, and takeover IfMatching would change its %s: %s", key.Name, key, fields, ownership(live)),
		Hint:    "change the CacheCluster's spec to match the object, or set spec.takeover: Always to overwrite the object"}
}

// ownership describes who created and who writes an object without a mark.
func ownership(live metav1.Object) string {
	text := "reconcile-lab did not create it"
	if managers := live.GetManagedFields(); slices.ContainsFunc(managers, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == v1alpha1.FieldManager }) {
		text = "it has no owner mark, because a hub released it or another client removed the mark"
	}
	if controller := metav1.GetControllerOf(live); controller != nil {
		text += fmt.Sprintf("; its controller is %s/%s", controller.Kind, controller.Name)
	}
	if managers := managersOf(live); managers != "" {
		text += "; its field managers are " + managers
	}
	return text
}

func managersOf(live metav1.Object) string {
	seen := map[string]bool{}
	var names []string
	for _, e := range live.GetManagedFields() {
		if e.Subresource == "" && !seen[e.Manager] {
			seen[e.Manager] = true
			names = append(names, e.Manager)
		}
	}
	sort.Strings(names)
	return strings.Join(names, ", ")
}
