package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

// edit changes an object of a member as kubectl edit does.
func edit(t *testing.T, member string, object client.Object, how func()) {
	t.Helper()
	server := lab.Members[member].Client
	reload(t, server, object)
	before, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		t.Fatalf("%T is no object", object)
	}
	how()
	if err := server.Patch(t.Context(), object, client.MergeFrom(before), client.FieldOwner("kubectl-edit")); err != nil {
		t.Fatal(err)
	}
}

func TestDrift_IsCorrectedInItsMemberOnly(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "drift")
	cc := create(t, cache(ns, "sessions", one, two))
	isReady(t, cc)

	at := metav1.ObjectMeta{Namespace: ns, Name: "sessions"}
	set, service, budget := &appsv1.StatefulSet{ObjectMeta: at}, &corev1.Service{ObjectMeta: at}, &policyv1.PodDisruptionBudget{ObjectMeta: at}
	removed := func(object client.Object) func(*testing.T, string) {
		return func(t *testing.T, member string) {
			t.Helper()
			if err := lab.Members[member].Client.Delete(t.Context(), object.DeepCopyObject().(client.Object), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
				t.Fatal(err)
			}
		}
	}
	unlabelled := func(object client.Object, label string) func(*testing.T, string) {
		return func(t *testing.T, member string) {
			t.Helper()
			edit(t, member, object, func() {
				labels := maps.Clone(object.GetLabels())
				delete(labels, label)
				object.SetLabels(labels)
			})
		}
	}
	relabelled := func(object client.Object, label string) func(*testing.T, string) {
		return func(t *testing.T, member string) {
			t.Helper()
			edit(t, member, object, func() {
				labels := maps.Clone(object.GetLabels())
				labels[label] = "mine"
				object.SetLabels(labels)
			})
		}
	}
	unmarked := func(object client.Object, annotation string) func(*testing.T, string) {
		return func(t *testing.T, member string) {
			t.Helper()
			edit(t, member, object, func() {
				annotations := maps.Clone(object.GetAnnotations())
				delete(annotations, annotation)
				object.SetAnnotations(annotations)
			})
		}
	}
	for _, c := range []struct {
		name    string
		do      func(t *testing.T, member string)
		object  string
		fields  []string
		manager string
		deleted bool
	}{
		{"replicas through /scale", func(t *testing.T, member string) {
			scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 5}}
			reload(t, lab.Members[member].Client, set)
			if err := lab.Members[member].Client.SubResource("scale").Update(t.Context(), set, client.WithSubResourceBody(scale), client.FieldOwner("kubectl-scale")); err != nil {
				t.Fatal(err)
			}
		}, "StatefulSet/sessions", []string{"spec.replicas"}, "kubectl-scale", false},
		{"replicas by an edit", func(t *testing.T, member string) {
			edit(t, member, set, func() { set.Spec.Replicas = ptr.To[int32](1) })
		}, "StatefulSet/sessions", []string{"spec.replicas"}, "kubectl-edit", false},
		{"the image", func(t *testing.T, member string) {
			edit(t, member, set, func() { set.Spec.Template.Spec.Containers[0].Image = "memcached:evil" })
		}, "StatefulSet/sessions", []string{`spec.template.spec.containers[name="memcached"].image`}, "kubectl-edit", false},
		{"a StatefulSet's label changed", relabelled(set, v1alpha1.LabelInstance), "StatefulSet/sessions", []string{"metadata.labels." + v1alpha1.LabelInstance}, "kubectl-edit", false},
		{"a StatefulSet's label removed", unlabelled(set, v1alpha1.LabelName), "StatefulSet/sessions", []string{"metadata.labels." + v1alpha1.LabelName}, drift.Unknown, false},
		{"the label that it is watched by, changed", relabelled(set, v1alpha1.LabelCacheCluster), "StatefulSet/sessions", []string{"metadata.labels." + v1alpha1.LabelCacheCluster}, "kubectl-edit", false},
		{"the label that it is watched by, removed", unlabelled(set, v1alpha1.LabelCacheCluster), "StatefulSet/sessions", []string{"metadata.labels." + v1alpha1.LabelCacheCluster}, drift.Unknown, false},
		{"the mark of its owner", unmarked(set, v1alpha1.AnnotationOwner), "StatefulSet/sessions", []string{"metadata.annotations." + v1alpha1.AnnotationOwner}, drift.Unknown, false},
		{"the mark of its intent", unmarked(set, v1alpha1.AnnotationIntent), "StatefulSet/sessions", []string{"metadata.annotations." + v1alpha1.AnnotationIntent}, drift.Unknown, false},
		{"a StatefulSet deleted", removed(set), "StatefulSet/sessions", nil, drift.Unknown, true},
		{"a Service's selector", func(t *testing.T, member string) {
			edit(t, member, service, func() { service.Spec.Selector = map[string]string{"app": "mine"} })
		}, "Service/sessions", []string{"spec.selector"}, "", false},
		{"a Service's port", func(t *testing.T, member string) {
			edit(t, member, service, func() { service.Spec.Ports[0].TargetPort = intstr.FromInt32(80) })
		}, "Service/sessions", []string{`spec.ports[port=11211,protocol="TCP"].targetPort`}, "kubectl-edit", false},
		{"the label that a Service is watched by, removed", unlabelled(service, v1alpha1.LabelCacheCluster), "Service/sessions", []string{"metadata.labels." + v1alpha1.LabelCacheCluster}, drift.Unknown, false},
		{"a Service deleted", removed(service), "Service/sessions", nil, drift.Unknown, true},
		{"a budget", func(t *testing.T, member string) {
			edit(t, member, budget, func() { budget.Spec.MaxUnavailable = ptr.To(intstr.FromString("100%")) })
		}, "PodDisruptionBudget/sessions", []string{"spec.maxUnavailable"}, "kubectl-edit", false},
		{"the label that a budget is watched by, removed", unlabelled(budget, v1alpha1.LabelCacheCluster), "PodDisruptionBudget/sessions", []string{"metadata.labels." + v1alpha1.LabelCacheCluster}, drift.Unknown, false},
		{"a budget deleted", removed(budget), "PodDisruptionBudget/sessions", nil, drift.Unknown, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for member, other := range map[string]string{one: two, two: one} {
				isReady(t, cc)
				untouched := versionsOf(t, other, ns, "sessions")
				wanted := wishes(t, member, ns, "sessions")
				before := countOf(t, cc, member)
				c.do(t, member)

				becomes(t, cc, "reports the correction in "+member, func(cc *v1alpha1.CacheCluster) error {
					if n := countOf(t, cc, member); n != before+1 {
						return fmt.Errorf("%d drifts were corrected, want %d", n, before+1)
					}
					return nil
				})
				entry, err := statusOf(cc, member)
				if err != nil {
					t.Fatal(err)
				}
				last := entry.LastDrift
				if last.Object != c.object || last.Deleted != c.deleted || c.manager != "" && last.Manager != c.manager {
					t.Errorf("reported %s (deleted %t) by %q, want %s (deleted %t) by %q", last.Object, last.Deleted, last.Manager, c.object, c.deleted, c.manager)
				}
				if c.manager != "" {
					if diff := cmp.Diff(c.fields, last.Fields); diff != "" {
						t.Errorf("fields (-want +reported):\n%s", diff)
					}
				}
				if c.manager == drift.Unknown && last.Operation != "" || c.manager != "" && c.manager != drift.Unknown && (!strings.HasPrefix(last.Operation, "Update") || last.Operation == "Update" && last.ChangedAt == nil) {
					// The API server keeps no time of a change through /scale.
					t.Errorf("%s: operation %q at %s", last.Manager, last.Operation, last.ChangedAt)
				}
				if len(last.Changes) != len(last.Fields) || slices.ContainsFunc(last.Changes, func(f v1alpha1.FieldChange) bool { return f.Was == "" || f.Was == f.Is }) {
					t.Errorf("changes of %d fields: %+v", len(last.Fields), last.Changes)
				}
				if last.RepairedIn.Duration <= 0 || last.At.IsZero() {
					t.Errorf("repaired at %s in %s", last.At, last.RepairedIn.Duration)
				}
				isReady(t, cc)
				if diff := cmp.Diff(wanted, wishes(t, member, ns, "sessions")); diff != "" {
					t.Errorf("not as before (-before +after):\n%s", diff)
				}
				if diff := cmp.Diff(untouched, versionsOf(t, other, ns, "sessions")); diff != "" {
					t.Errorf("%s was touched:\n%s", other, diff)
				}
			}
		})
	}
}

// desired fields are labels, marks and spec of each child: all that drift can be about.
func wishes(t *testing.T, member, namespace, name string) map[string]any {
	t.Helper()
	found := map[string]any{}
	for _, object := range childKinds(namespace, name) {
		reload(t, lab.Members[member].Client, object)
		kind := fmt.Sprintf("%T", object)
		found[kind+" labels"], found[kind+" annotations"] = object.GetLabels(), object.GetAnnotations()
		switch o := object.(type) {
		case *corev1.Service:
			found[kind] = []any{o.Spec.Selector, o.Spec.Ports, o.Spec.ClusterIP}
		case *appsv1.StatefulSet:
			found[kind] = o.Spec
		case *policyv1.PodDisruptionBudget:
			found[kind] = o.Spec
		}
	}
	return found
}

func countOf(t *testing.T, cc *v1alpha1.CacheCluster, member string) int64 {
	t.Helper()
	entry, err := statusOf(cc, member)
	if err != nil {
		t.Fatal(err)
	}
	if entry.LastDrift == nil {
		return 0
	}
	return entry.LastDrift.Count
}

func TestDrift_KeepsFieldsOfOtherManagers(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "foreign-fields")
	cc := create(t, cache(ns, "sessions", one))
	isReady(t, cc)
	server := lab.Members[one].Client
	injected := appsv1ac.StatefulSet("sessions", ns).
		WithLabels(map[string]string{"team": "search"}).WithAnnotations(map[string]string{"example.org/note": "x"}).
		WithSpec(appsv1ac.StatefulSetSpec().WithTemplate(corev1ac.PodTemplateSpec().
			WithAnnotations(map[string]string{"kubectl.kubernetes.io/restartedAt": "2026-11-30T00:00:00Z"}).
			WithSpec(corev1ac.PodSpec().WithContainers(
				corev1ac.Container().WithName("memcached").WithEnv(corev1ac.EnvVar().WithName("DEBUG").WithValue("1")),
				corev1ac.Container().WithName("sidecar").WithImage("sidecar:1")))))
	if err := server.Apply(t.Context(), injected, client.FieldOwner("injector")); err != nil {
		t.Fatal(err)
	}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sessions"}}
	edit(t, one, set, func() { set.Spec.Template.Spec.Containers[0].Image = "memcached:evil" })
	becomes(t, cc, "reports one correction", func(cc *v1alpha1.CacheCluster) error {
		if n := countOf(t, cc, one); n != 1 {
			return fmt.Errorf("%d drifts were corrected", n)
		}
		return nil
	})
	reload(t, server, set)
	containers := set.Spec.Template.Spec.Containers
	if containers[0].Image != "memcached:1.6" {
		t.Errorf("image %q", containers[0].Image)
	}
	if len(containers) != 2 || len(containers[0].Env) != 1 || containers[0].Env[0].Name != "DEBUG" || set.Labels["team"] != "search" ||
		set.Annotations["example.org/note"] != "x" || set.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] == "" {
		t.Errorf("something of another manager was removed: %v, labels %v", containers, set.Labels)
	}
	// A changed spec of ours keeps it too.
	change(t, cc, func(cc *v1alpha1.CacheCluster) { cc.Spec.Version = "1.6.39" })
	eventually(t, "the new image", func(ctx context.Context) error {
		if err := server.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		if got := set.Spec.Template.Spec.Containers[0].Image; got != "memcached:1.6.39" {
			return fmt.Errorf("image %q", got)
		}
		return nil
	})
	if len(set.Spec.Template.Spec.Containers) != 2 || set.Labels["team"] != "search" {
		t.Error("an update removed what another manager had added")
	}
}

func TestDrift_RecreatesTerminatingChildOnceItIsGone(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "slow-deletion")
	cc := create(t, cache(ns, "sessions", one))
	isReady(t, cc)
	server := lab.Members[one].Client
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sessions"}}
	patch := func(finalizers string) {
		t.Helper()
		if err := server.Patch(t.Context(), service, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":`+finalizers+`}}`))); err != nil {
			t.Fatal(err)
		}
	}
	patch(`["example.org/hold"]`)
	if err := server.Delete(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	old := service.UID
	becomes(t, cc, "reports what it waits for", func(cc *v1alpha1.CacheCluster) error {
		entry, err := statusOf(cc, one)
		if err != nil {
			return err
		}
		if entry.State == v1alpha1.MemberReady || entry.Reason != v1alpha1.ReasonChildrenTerminating {
			return fmt.Errorf("%s (%s)", entry.State, entry.Reason)
		}
		return nil
	})
	patch(`null`)
	eventually(t, "another Service", func(ctx context.Context) error {
		if err := server.Get(ctx, client.ObjectKeyFromObject(service), service); err != nil {
			return err
		}
		if service.UID == old {
			return fmt.Errorf("it is the old one still")
		}
		return nil
	})
	isReady(t, cc)
}
