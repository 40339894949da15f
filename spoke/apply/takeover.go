package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

var ownerMark = fieldpath.MakePathOrDie("metadata", "annotations", v1alpha1.AnnotationOwner)

// meet decides about an object that is not ours. What carries a mark belongs to
// another CacheCluster, and two of them must never fight over one object; what is
// being deleted is waited for, whoever takes its place.
func (s *Step) meet(owner Owner, stuck []Stuck) {
	_, marked := s.Live.GetAnnotations()[v1alpha1.AnnotationOwner]
	switch {
	case marked, s.Live.GetDeletionTimestamp() != nil, !owner.takesOver():
		s.Action, s.Failure = Refuse, refusal(s.Key(), s.Live, owner)
	case owner.Policies.Takeover == v1alpha1.TakeoverIfMatching && len(stuck) > 0:
		s.Action, s.Failure = Refuse, differs(s.Key(), s.Live, paths(stuck))
	default:
		s.Action, s.Retained = TakeOver, immutable(s.Key(), s.Live.GetNamespace(), stuck)
	}
}

func (o Owner) takesOver() bool {
	return o.Policies.Takeover == v1alpha1.TakeoverIfMatching || o.Policies.Takeover == v1alpha1.TakeoverAlways
}

// remarked says that a person gave our child another mark. One that our own field
// manager wrote is of another hub, which works on the object too.
func (o Owner) remarked(live metav1.Object) bool {
	return o.knows(live) && !drift.Owns(live, ownerMark)
}

// knows an object by its UID.
func (o Owner) knows(live metav1.Object) bool {
	for _, e := range o.Inventory {
		if e.UID == live.GetUID() {
			return true
		}
	}
	return false
}

// match finds out, by a dry run, whether taking the object over would change more
// than its metadata; then it is refused. What it answers is remembered until object
// or intent change, so that waiting for somebody costs no request.
func (a *Applier) match(ctx context.Context, step *Step) (away *failure.Failure) {
	if known := a.Writes.refused(step.Key(), step.Live, step.Hash); known != nil {
		step.Action, step.Failure = Refuse, known
		return nil
	}
	answer, err := a.send(ctx, step, []client.PatchOption{client.DryRunAll})
	if err != nil {
		failed := failure.Of(err, "take over", step.Key().String())
		if stops(failed) {
			return failed
		}
		step.Action, step.Failure = Wait, failed
		return nil
	}
	fields, err := changed(step.typer, step.Key(), step.Live, answer)
	if err != nil {
		step.Action, step.Failure = Wait, failure.Of(err, "compare", step.Key().String())
		return nil
	}
	if fields != "" {
		step.Action, step.Failure = Refuse, differs(step.Key(), step.Live, fields)
		a.Writes.refuse(step.Key(), step.Live, step.Hash, step.Failure)
	}
	return nil
}

// changed returns the paths in the spec whose values differ between the two objects, as
// one text; it is empty when none differs.
func changed(t drift.Typer, key Key, before metav1.Object, after client.Object) (string, error) {
	object, ok := before.(client.Object)
	if !ok {
		return "", fmt.Errorf("%T is no object of an API", before)
	}
	// A typed answer comes without its kind, by which its schema is found.
	object.GetObjectKind().SetGroupVersionKind(key.Kind)
	after.GetObjectKind().SetGroupVersionKind(key.Kind)
	is, err := t.ObjectToTyped(object)
	if err != nil {
		return "", err
	}
	would, err := t.ObjectToTyped(after)
	if err != nil {
		return "", err
	}
	comparison, err := is.Compare(would)
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

func paths(stuck []Stuck) string {
	fields := make([]string, 0, len(stuck))
	for _, s := range stuck {
		fields = append(fields, s.Path)
	}
	return strings.Join(fields, ", ")
}

// refusal says whose an object is, and what can be done about it.
func refusal(key Key, live metav1.Object, owner Owner) *failure.Failure {
	f := &failure.Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonObjectOfAnother}
	namespace, object := live.GetNamespace(), strings.ToLower(key.String())
	there := fmt.Sprintf("metadata.name: %q: %s exists in the member already", key.Name, key)
	mark, marked := live.GetAnnotations()[v1alpha1.AnnotationOwner]
	uid, member, whole := strings.Cut(mark, "/")
	switch {
	case whole && strings.HasPrefix(owner.Mark, uid+"/"):
		f.Message = fmt.Sprintf("%s is there already, applied for the member %s: this cluster is a member under two names", key, member)
		f.Hint = "give up one of the two names: kubectl get clusterprofiles -A lists them, reconcile-lab leave NAME ends one"
	case marked && owner.remarked(live):
		f.Message = fmt.Sprintf("%s is ours, but somebody changed its annotation %s to %q", key, v1alpha1.AnnotationOwner, mark)
		f.Hint = fmt.Sprintf("set spec.takeover: Always, and the hub puts it back, or do so in the member: kubectl annotate --overwrite -n %s %s %s=%s", namespace, object, v1alpha1.AnnotationOwner, owner.Mark)
	case marked:
		f.Message = fmt.Sprintf("%s: it belongs to another CacheCluster or another hub: to the CacheCluster with the UID %s, applied for the member %s", there, uid, member)
		if owner.knows(live) {
			f.Message = fmt.Sprintf("%s was ours and belongs to another CacheCluster or another hub now: to the CacheCluster with the UID %s, applied for the member %s", key, uid, member)
		}
		f.Hint = fmt.Sprintf("rename one of the two, or delete the other with deletion.policy: Orphan; if no hub has a CacheCluster of this UID (kubectl get cacheclusters -A -o yaml), free the object in the member, and take it over: kubectl annotate -n %s %s %s-", namespace, object, v1alpha1.AnnotationOwner)
	case live.GetDeletionTimestamp() != nil:
		f.Message = fmt.Sprintf("%s and is being deleted: %s", there, whose(live))
		f.SelfResolving = true
		f.Hint = fmt.Sprintf("wait until it is gone, or see what holds it in the member: kubectl get -n %s %s -o jsonpath={.metadata.finalizers}", namespace, object)
	default:
		f.Message = fmt.Sprintf("%s: %s", there, whose(live))
		f.Hint = fmt.Sprintf("rename the CacheCluster, take the object over (spec.takeover: IfMatching if its spec is the same already, Always in any case), or remove it in the member: kubectl delete -n %s %s", namespace, object)
	}
	return f
}

func whose(live metav1.Object) string {
	text := "it was not made by reconcile-lab"
	if managers := live.GetManagedFields(); slices.ContainsFunc(managers, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == v1alpha1.FieldManager }) {
		text = "it carries no owner's mark: a hub released it, or somebody removed the mark"
	}
	if controller := metav1.GetControllerOf(live); controller != nil {
		text += fmt.Sprintf("; it is controlled by %s/%s", controller.Kind, controller.Name)
	}
	if managers := managersOf(live); managers != "" {
		text += "; its field managers are " + managers
	}
	return text
}

func differs(key Key, live metav1.Object, fields string) *failure.Failure {
	return &failure.Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonObjectOfAnother,
		Message: fmt.Sprintf("metadata.name: %q: %s exists in the member already, and takeover IfMatching would change its %s: %s", key.Name, key, fields, whose(live)),
		Hint:    "make the CacheCluster's spec like the object, or take it over as it is: spec.takeover: Always"}
}
