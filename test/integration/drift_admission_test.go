package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// injectOnAdmission makes a member's API server add a sidecar to each write of a StatefulSet
// of a namespace, if it is missing. The webhook of a service mesh does the same.
func injectOnAdmission(t *testing.T, member, ns string) {
	t.Helper()
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: ns},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": ns}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"statefulsets"}}}}},
			},
			Mutations: []admissionregistrationv1.Mutation{{PatchType: admissionregistrationv1.PatchTypeJSONPatch, JSONPatch: &admissionregistrationv1.JSONPatch{
				Expression: `object.spec.template.spec.containers.exists(c, c.name == "mesh") ? [] :
					[JSONPatch{op: "add", path: "/spec/template/spec/containers/-", value: Object.spec.template.spec.containers{name: "mesh", image: "mesh:1"}}]`}}},
		}}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: ns},
		Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: ns}}
	mustCreate(t, lab.Members[member].Server, policy)
	mustCreate(t, lab.Members[member].Server, binding)
}

// admits waits until the policy is at work, which takes an API server a moment.
func admits(t *testing.T, member, ns string) {
	t.Helper()
	labels := map[string]string{"app": "probe"}
	eventually(t, "the policy adds a sidecar", func(ctx context.Context) error {
		probe := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "probe"}, Spec: appsv1.StatefulSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "main"}}}}}}
		if err := lab.Members[member].Client.Create(ctx, probe, client.DryRunAll); err != nil {
			return err
		}
		if len(probe.Spec.Template.Spec.Containers) != 2 {
			return errors.New("not yet")
		}
		return nil
	})
}

// A field that admission adds to a write has no owner, so it is no foreign field. If
// admission restores a field that the hub removed, the hub does not remove it endlessly.
func TestDrift_DoesNotRemoveSidecarOfAdmissionEndlessly(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "mesh")
	server := lab.Members[one]
	mustCreate(t, server.Server, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
	cc := create(t, cache(ns, "sessions", one))
	owned := create(t, cache(ns, "owned", one))
	isReady(t, cc)
	isReady(t, owned)
	sidecar := appsv1ac.StatefulSet("owned", ns).WithSpec(appsv1ac.StatefulSetSpec().WithTemplate(corev1ac.PodTemplateSpec().
		WithSpec(corev1ac.PodSpec().WithContainers(corev1ac.Container().WithName("mesh").WithImage("mesh:1")))))
	if err := server.Client.Apply(t.Context(), sidecar, client.FieldOwner("injector")); err != nil {
		t.Fatal(err)
	}
	injectOnAdmission(t, one, ns)
	admits(t, one, ns)
	for _, name := range []string{"sessions", "owned"} {
		change(t, &v1alpha1.CacheCluster{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}, func(cc *v1alpha1.CacheCluster) {
			cc.Spec.Version, cc.Spec.Drift = "1.6.39", &v1alpha1.DriftPolicy{Foreign: v1alpha1.ForeignRemove}
		})
	}
	for _, name := range []string{"sessions", "owned"} {
		set, _, _ := childrenOf(ns, name)
		eventually(t, name+" has the new image, and the sidecar", func(ctx context.Context) error {
			if err := server.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
				return err
			}
			containers := set.Spec.Template.Spec.Containers
			if len(containers) != 2 || !slices.ContainsFunc(containers, func(c corev1.Container) bool { return c.Image == "memcached:1.6.39" }) {
				return fmt.Errorf("containers %v", containers)
			}
			return nil
		})
	}
	// Each event is a reconcile; what each could not remove is not tried without end.
	for i := range 8 {
		for _, name := range []string{"sessions", "owned"} {
			set, _, _ := childrenOf(ns, name)
			edit(t, one, set, func() { set.Labels["round"] = fmt.Sprint(i) })
		}
	}
	isReady(t, cc)
	if n := countOf(t, cc, one); n != 0 {
		t.Errorf("a field without an owner was removed %d times", n)
	}
	becomes(t, owned, "has come to rest", func(owned *v1alpha1.CacheCluster) error {
		entry, err := statusOf(owned, one)
		if err != nil {
			return err
		}
		if entry.State != v1alpha1.MemberReady && entry.Reason != v1alpha1.ReasonDriftFight {
			return fmt.Errorf("%s (%s)", entry.State, entry.Reason)
		}
		return nil
	})
	t.Logf("owned: %s, %d times corrected", owned.Status.Clusters[0].Reason, countOf(t, owned, one))
	if n := countOf(t, owned, one); n > 6 {
		t.Errorf("the sidecar was removed %d times", n)
	}
}
