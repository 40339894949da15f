package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// driftedBecause is the reason of a cache's condition Drifted, "" where there is none.
func driftedBecause(cc *v1alpha1.CacheCluster) string {
	if c := meta.FindStatusCondition(cc.Status.Conditions, v1alpha1.ConditionDrifted); c != nil {
		return c.Reason
	}
	return ""
}

func TestRefusedCorrection_IsReportedUntilItSucceeds(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "refused-repair")
	cc := create(t, cache(ns, "sessions", one))
	isReady(t, cc)
	set, _, _ := childrenOf(ns, "sessions")
	server := lab.Members[one].Client
	name := "five-in-" + ns
	rule := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{NamespaceSelector: inNamespace(ns),
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: statefulSets}}},
			Validations: []admissionv1.Validation{{Expression: "object.spec.replicas == 5", Message: "five, and no other number", Reason: ptr.To(metav1.StatusReasonForbidden)}},
		}}
	inMember(t, one, rule)
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}}
	inMember(t, one, binding)
	eventually(t, "the policy holds", func(ctx context.Context) error {
		reload(t, server, set)
		three := set.DeepCopy()
		three.Spec.Replicas = ptr.To[int32](3)
		if server.Patch(ctx, three, client.MergeFrom(set), client.DryRunAll) == nil {
			return errors.New("three replicas are accepted")
		}
		return nil
	})

	edit(t, one, set, func() { set.Spec.Replicas = ptr.To[int32](5) })

	opens(t, cc, one, "StatefulSet/sessions spec.replicas 2→5 by kubectl-edit")
	if because := driftedBecause(cc); because != v1alpha1.ReasonDriftRefused {
		t.Errorf("Drifted because of %q", because)
	}
	entry := inState(t, cc, one, v1alpha1.MemberBlocked, v1alpha1.ReasonRejectedByPolicy)
	contains(t, "the message", entry.Message, "five, and no other number")
	if entry.LastDrift != nil {
		t.Errorf("the status reports a correction: %+v", entry.LastDrift)
	}

	if err := server.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the change of a label brings a try", func(ctx context.Context) error {
		edit(t, one, set, func() {
			metav1.SetMetaDataLabel(&set.ObjectMeta, "touched", fmt.Sprint(len(set.Labels["touched"]))+"x"+set.Labels["touched"])
		})
		if reload(t, server, set); *set.Spec.Replicas != 2 {
			return fmt.Errorf("%d replicas", *set.Spec.Replicas)
		}
		return nil
	})
	opens(t, cc, one)
	isReady(t, cc)
}

func TestDriftReport_DeletedStatefulSetIsNotProgressing(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "left-deleted")
	cc := create(t, withDrift(cache(ns, "sessions", one), v1alpha1.DriftPolicy{Policy: v1alpha1.DriftReport}))
	isReady(t, cc)
	set, _, _ := childrenOf(ns, "sessions")

	if err := lab.Members[one].Client.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}

	opens(t, cc, one, "StatefulSet/sessions deleted by unknown")
	entry := inState(t, cc, one, v1alpha1.MemberBlocked, v1alpha1.ReasonDriftReported)
	contains(t, "the hint", entry.Hint, "spec.drift.policy")
	becomes(t, cc, "is stalled", func(cc *v1alpha1.CacheCluster) error {
		if meta.IsStatusConditionTrue(cc.Status.Conditions, v1alpha1.ConditionReconciling) || !meta.IsStatusConditionTrue(cc.Status.Conditions, v1alpha1.ConditionStalled) {
			return fmt.Errorf("conditions %+v", cc.Status.Conditions)
		}
		return nil
	})
	change(t, cc, func(cc *v1alpha1.CacheCluster) { cc.Spec.Drift.Policy = v1alpha1.DriftCorrect })
	opens(t, cc, one)
	isReady(t, cc)
}

// Who copies a child, as with kubectl get and create, copies its marks too.
func TestOrphans_CopyOfChildIsNotManaged(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "copied")
	cc := create(t, cache(ns, "sessions", one))
	isReady(t, cc)
	server := lab.Members[one].Client
	_, service, _ := childrenOf(ns, "sessions")
	reload(t, server, service)
	copied := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "debug", Labels: service.Labels, Annotations: service.Annotations}, Spec: service.Spec}
	copied.Spec.ClusterIP, copied.Spec.ClusterIPs = "", nil
	if err := server.Create(t.Context(), copied, client.FieldOwner("kubectl-create")); err != nil {
		t.Fatal(err)
	}

	// Everything that the hub does after it has seen the copy comes after this.
	change(t, cc, func(cc *v1alpha1.CacheCluster) { cc.Spec.Replicas = ptr.To[int32](3) })
	isReady(t, cc)
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(copied), copied); err != nil || copied.DeletionTimestamp != nil {
		t.Fatalf("the copy: %v, deleted at %v", err, copied.DeletionTimestamp)
	}
	if err := lab.Hub.Client.Delete(t.Context(), cc); err != nil {
		t.Fatal(err)
	}
	gone(t, one, ns, "sessions")
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(copied), copied); err != nil || copied.DeletionTimestamp != nil {
		t.Errorf("the copy: %v, deleted at %v", err, copied.DeletionTimestamp)
	}
}

func TestOrphans_ChildWithChangedOwnerMarkIsDeletedWithItsCache(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "remarked")
	cc := create(t, cache(ns, "sessions", one))
	isReady(t, cc)
	set, service, _ := childrenOf(ns, "sessions")
	server := lab.Members[one].Client
	edit(t, one, set, func() { set.Annotations[v1alpha1.AnnotationOwner] = "oops" })
	inState(t, cc, one, v1alpha1.MemberBlocked, v1alpha1.ReasonObjectOfAnother)

	if err := lab.Hub.Client.Delete(t.Context(), cc); err != nil {
		t.Fatal(err)
	}

	eventually(t, "the StatefulSet is deleted", func(ctx context.Context) error {
		if err := server.Get(ctx, client.ObjectKeyFromObject(set), set); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	eventually(t, "the Service is deleted", func(ctx context.Context) error {
		if err := server.Get(ctx, client.ObjectKeyFromObject(service), service); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}
