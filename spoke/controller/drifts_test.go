package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/children"
	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

// scaled is a StatefulSet that kubectl scaled to 5, with the intent of 2 replicas.
func scaled(name string) apply.RemainingDrift {
	replicas := fieldpath.MakePathOrDie("spec", "replicas")
	raw, err := drift.NewFields(replicas).ToJSON()
	if err != nil {
		panic(err)
	}
	set := func(n int64) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": n}}}
	}
	found := set(5)
	found.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "scale",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(raw))}})
	return apply.RemainingDrift{Key: apply.Key{Kind: children.StatefulSetKind, Name: name}, Fields: drift.NewFields(replicas), Intent: set(2), Found: found}
}

func TestSummarize_ReportedDriftIsNotAppliedButReady(t *testing.T) {
	r := result{observation: readyIs, report: apply.Report{Remaining: []apply.RemainingDrift{scaled("sessions"),
		{Key: apply.Key{Kind: children.BudgetKind, Name: "sessions"}, Deleted: true}}}}
	mc := wasReady()
	got := summarize(&snapshot{now: noon, cache: mc}, &r)
	want := []v1alpha1.DriftFinding{
		{Object: "PodDisruptionBudget/sessions", Deleted: true, Manager: drift.Unknown},
		{Object: "StatefulSet/sessions", Fields: []string{"spec.replicas"}, Changes: []v1alpha1.FieldChange{{Path: "spec.replicas", Was: "2", Is: "5"}},
			Manager: "kubectl", Operation: "Update/scale"},
	}
	if diff := cmp.Diff(want, got.OpenDrifts); diff != "" {
		t.Errorf("open drifts (-want +got):\n%s", diff)
	}
	const text = "PodDisruptionBudget/sessions: was deleted; StatefulSet/sessions: spec.replicas changed by kubectl"
	for kind, want := range map[string]string{v1alpha1.ConditionApplied: "False DriftReported " + text, v1alpha1.ConditionDrifted: "True DriftReported " + text, v1alpha1.ConditionReady: "True PodsReady "} {
		is := ""
		if c := meta.FindStatusCondition(got.Conditions, kind); c != nil {
			is = fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
		}
		if is != want {
			t.Errorf("%s is %q, want %q", kind, is, want)
		}
	}
	if got.State != v1alpha1.MemberReady || got.Revision != "new" {
		t.Errorf("%s, revision %s", got.State, got.Revision)
	}
	// The same a minute later is the same bytes.
	mc.Status = got
	if diff := cmp.Diff(got, summarize(&snapshot{now: noon.Add(time.Minute), cache: mc}, &r)); diff != "" {
		t.Errorf("a minute later:\n%s", diff)
	}
	// An unreachable member corrected nothing.
	unreachable := summarize(&snapshot{now: noon.Add(time.Minute), cache: mc}, &result{unreachable: true, failure: failureOf(v1alpha1.ClassUnreachable, v1alpha1.ReasonMemberUnreachable)})
	if diff := cmp.Diff(want, unreachable.OpenDrifts); diff != "" || !meta.IsStatusConditionTrue(unreachable.Conditions, v1alpha1.ConditionDrifted) {
		t.Errorf("unreachable, the open drifts (-want +got):\n%s, conditions %v", diff, unreachable.Conditions)
	}
	// Once corrected, no drift remains.
	mc.Status = got
	corrected := summarize(&snapshot{now: noon.Add(time.Minute), cache: mc}, &result{observation: readyIs})
	if len(corrected.OpenDrifts) > 0 || meta.FindStatusCondition(corrected.Conditions, v1alpha1.ConditionDrifted) != nil || !meta.IsStatusConditionTrue(corrected.Conditions, v1alpha1.ConditionApplied) {
		t.Errorf("corrected: %v, %v", corrected.OpenDrifts, corrected.Conditions)
	}
}

// A read that failed, or a member that asks for a later retry, corrected nothing.
func TestSummarize_KeepsDriftOfUnreadChild(t *testing.T) {
	mc := wasReady()
	open := scaled("sessions")
	mc.Status = summarize(&snapshot{now: noon, cache: mc}, &result{observation: readyIs, report: apply.Report{Remaining: []apply.RemainingDrift{open,
		{Key: apply.Key{Kind: children.BudgetKind, Name: "sessions"}, Deleted: true}}}})
	unseen := summarize(&snapshot{now: noon, cache: mc}, &result{observation: readyIs, attempt: attempt{count: 1, passing: true},
		failure: failureOf(v1alpha1.ClassTransient, v1alpha1.ReasonMemberError), report: apply.Report{Unobserved: []apply.Key{open.Key}}})
	if len(unseen.OpenDrifts) != 1 || unseen.OpenDrifts[0].Object != open.Key.String() {
		t.Errorf("open: %+v, want the one of %s, which was not read, without the budget's, which was", unseen.OpenDrifts, open.Key)
	}
	if !meta.IsStatusConditionTrue(unseen.Conditions, v1alpha1.ConditionDrifted) {
		t.Error("the condition reports no drift")
	}
	// A child may have two findings: what differs, and what others added.
	added := open
	added.Foreign, added.Intent = true, nil
	mc.Status = summarize(&snapshot{now: noon, cache: mc}, &result{observation: readyIs, report: apply.Report{Remaining: []apply.RemainingDrift{added, open}}})
	if both := summarize(&snapshot{now: noon, cache: mc}, &result{observation: readyIs, report: apply.Report{Unobserved: []apply.Key{open.Key}}}); len(both.OpenDrifts) != 2 {
		t.Errorf("open: %+v, want both", both.OpenDrifts)
	}
	// A child that was read after all counts once.
	mc.Status = summarize(&snapshot{now: noon, cache: mc}, &result{observation: readyIs, report: apply.Report{Remaining: []apply.RemainingDrift{open}}})
	again := summarize(&snapshot{now: noon, cache: mc}, &result{observation: readyIs, report: apply.Report{Remaining: []apply.RemainingDrift{open}, Unobserved: []apply.Key{open.Key}}})
	if len(again.OpenDrifts) != 1 {
		t.Errorf("open: %+v", again.OpenDrifts)
	}
}

func TestSummarize_SortsAndLimitsOpenDrifts(t *testing.T) {
	r := result{observation: readyIs}
	for i := range 12 {
		r.report.Remaining = append(r.report.Remaining, scaled(fmt.Sprintf("s%02d", 11-i)))
	}
	got := summarize(&snapshot{now: noon, cache: wasReady()}, &r)
	if len(got.OpenDrifts) != maxOpen || got.OpenDrifts[0].Object != "StatefulSet/s00" {
		t.Errorf("%d open drifts, the first of %s", len(got.OpenDrifts), got.OpenDrifts[0].Object)
	}
	if c := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionDrifted); c == nil || !strings.HasSuffix(c.Message, "; and 5 more objects") {
		t.Errorf("%+v", c)
	}
}
