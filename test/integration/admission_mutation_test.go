package integration

import (
	"context"
	"errors"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// An admission policy that changes what is applied leaves no trace in the record of who
// owns what.
func TestAdmissionMutation_ReportsReplicasAsNotApplied(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "capped")
	cc := create(t, cache(ns, "sessions", one))
	isReady(t, cc)
	server := lab.Members[one].Client
	set, _, _ := childrenOf(ns, "sessions")
	inMember(t, one, &admissionv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: ns},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionv1.MatchResources{NamespaceSelector: inNamespace(ns),
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}, Rule: statefulSets.Rule}}}},
			Mutations: []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: "Object{spec: Object.spec{replicas: 1}}"}}},
		}})
	binding := &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: ns},
		Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: ns}}
	inMember(t, one, binding)
	eventually(t, "the policy is at work", func(ctx context.Context) error {
		reload(t, server, set)
		three := set.DeepCopy()
		three.Spec.Replicas = ptr.To[int32](3)
		if err := server.Patch(ctx, three, client.MergeFrom(set), client.DryRunAll); err != nil || *three.Spec.Replicas != 1 {
			return errors.New("not yet")
		}
		return nil
	})

	change(t, cc, func(cc *v1alpha1.CacheCluster) { cc.Spec.Replicas = ptr.To[int32](3) })

	entry := inState(t, cc, one, v1alpha1.MemberBlocked, v1alpha1.ReasonRejectedByPolicy)
	contains(t, "the message", entry.Message, "spec.replicas is 1 after 3 was applied", "admission webhook or policy")
	opens(t, cc, one, "StatefulSet/sessions spec.replicas 3→1 by unknown")
	if entry.LastDrift != nil {
		t.Errorf("the status reports a correction: %+v", entry.LastDrift)
	}

	if err := server.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	// Nothing announces that, so it is retried.
	becomes(t, cc, "has three pods", func(cc *v1alpha1.CacheCluster) error {
		if reload(t, server, set); *set.Spec.Replicas != 3 {
			return errors.New("not three")
		}
		return nil
	})
	opens(t, cc, one)
	isReady(t, cc)
}
