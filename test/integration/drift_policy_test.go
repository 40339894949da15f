package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// childrenOf a headless cache, to be loaded and changed.
func childrenOf(ns, name string) (*appsv1.StatefulSet, *corev1.Service, *policyv1.PodDisruptionBudget) {
	at := metav1.ObjectMeta{Namespace: ns, Name: name}
	return &appsv1.StatefulSet{ObjectMeta: at}, &corev1.Service{ObjectMeta: at}, &policyv1.PodDisruptionBudget{ObjectMeta: at}
}

// driftsOf returns the remaining drifts of a member in short, such as
// "StatefulSet/sessions spec.replicas 2→5 by kubectl-edit".
func driftsOf(open []v1alpha1.DriftFinding) []string {
	short := []string{}
	for i := range open {
		f := &open[i]
		s := f.Object
		if f.Deleted {
			s += " deleted"
		}
		if f.Foreign {
			s += " foreign"
		}
		for _, c := range f.Changes {
			s += fmt.Sprintf(" %s %s→%s", c.Path, c.Was, c.Is)
		}
		short = append(short, s+" by "+f.Manager)
	}
	return short
}

// opens waits until these drifts of a member remain. It returns the reason of the
// condition Drifted, or "" without one.
func opens(t *testing.T, cc *v1alpha1.CacheCluster, member string, want ...string) string {
	t.Helper()
	becomes(t, cc, fmt.Sprintf("has the remaining drifts %q", want), func(cc *v1alpha1.CacheCluster) error {
		entry, err := statusOf(cc, member)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(append([]string{}, want...), driftsOf(entry.OpenDrifts)); diff != "" {
			return fmt.Errorf("(-want +reported):\n%s", diff)
		}
		if drifted := meta.IsStatusConditionTrue(cc.Status.Conditions, v1alpha1.ConditionDrifted); drifted != (len(want) > 0) {
			return fmt.Errorf("the condition Drifted is there: %t", drifted)
		}
		return nil
	})
	if c := meta.FindStatusCondition(cc.Status.Conditions, v1alpha1.ConditionDrifted); c != nil {
		return c.Reason
	}
	return ""
}

// memberCacheOf loads a MemberCache.
func memberCacheOf(t *testing.T, cc *v1alpha1.CacheCluster, member string) *v1alpha1.MemberCache {
	t.Helper()
	mc := &v1alpha1.MemberCache{ObjectMeta: metav1.ObjectMeta{Namespace: cc.Namespace, Name: cc.Name + "." + member}}
	reload(t, lab.Hub.Client, mc)
	return mc
}

func withDrift(cc *v1alpha1.CacheCluster, p v1alpha1.DriftPolicy) *v1alpha1.CacheCluster {
	cc.Spec.Drift = &p
	return cc
}

func TestDriftReport_ReportsAndDoesNotCorrect(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "drift-report")
	cc := create(t, withDrift(cache(ns, "sessions", one), v1alpha1.DriftPolicy{Policy: v1alpha1.DriftReport}))
	isReady(t, cc)
	server := lab.Members[one].Client
	set, service, budget := childrenOf(ns, "sessions")

	edit(t, one, set, func() { set.Spec.Replicas = ptr.To[int32](5) })
	ofSet := "StatefulSet/sessions spec.replicas 2→5 by kubectl-edit"
	opens(t, cc, one, ofSet)
	edit(t, one, service, func() { service.Spec.Ports[0].TargetPort = intstr.FromInt32(80) })
	ofService := `Service/sessions spec.ports[port=11211,protocol="TCP"].targetPort "client"→80 by kubectl-edit`
	opens(t, cc, one, ofService, ofSet)
	edit(t, one, budget, func() { budget.Spec.MaxUnavailable = ptr.To(intstr.FromString("100%")) })
	reason := opens(t, cc, one, `PodDisruptionBudget/sessions spec.maxUnavailable 1→"100%" by kubectl-edit`, ofService, ofSet)
	if reason != v1alpha1.ReasonDriftReported {
		t.Errorf("Drifted because of %q", reason)
	}
	if err := server.Delete(t.Context(), budget); err != nil {
		t.Fatal(err)
	}
	ofBudget := "PodDisruptionBudget/sessions deleted by unknown"
	opens(t, cc, one, ofBudget, ofService, ofSet)
	if n := countOf(t, cc, one); n != 0 {
		t.Errorf("%d drifts were corrected", n)
	}

	// All five pods that another client asked for are ready, and the children are not as the
	// spec asks.
	becomes(t, cc, "is ready, with five pods", func(cc *v1alpha1.CacheCluster) error {
		if entry, err := statusOf(cc, one); err != nil || entry.ReadyReplicas != 5 {
			return fmt.Errorf("%d ready, %v", entry.ReadyReplicas, err)
		}
		return has(cc, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonAllMembersReady)
	})
	mc := memberCacheOf(t, cc, one)
	for kind, want := range map[string]metav1.ConditionStatus{v1alpha1.ConditionReady: metav1.ConditionTrue, v1alpha1.ConditionApplied: metav1.ConditionFalse, v1alpha1.ConditionDrifted: metav1.ConditionTrue} {
		c := meta.FindStatusCondition(mc.Status.Conditions, kind)
		if c == nil || c.Status != want || kind != v1alpha1.ConditionReady && c.Reason != v1alpha1.ReasonDriftReported {
			t.Errorf("%s is %+v, want %s", kind, c, want)
		}
	}
	if c := meta.FindStatusCondition(mc.Status.Conditions, v1alpha1.ConditionDrifted); c != nil {
		contains(t, "Drifted", c.Message, "PodDisruptionBudget/sessions: was deleted", "Service/sessions: spec.ports", "StatefulSet/sessions: spec.replicas changed by kubectl-edit")
	}
	reload(t, server, set)
	reload(t, server, service)
	if *set.Spec.Replicas != 5 || service.Spec.Ports[0].TargetPort.IntValue() != 80 {
		t.Errorf("replicas %d, port %s: something was put back", *set.Spec.Replicas, service.Spec.Ports[0].TargetPort.String())
	}

	// A field that is changed back by hand is no drift any more, and is not written.
	edit(t, one, service, func() { service.Spec.Ports[0].TargetPort = intstr.FromString("client") })
	opens(t, cc, one, ofBudget, ofSet)
	edit(t, one, service, func() { service.Spec.Ports[0].TargetPort = intstr.FromInt32(80) })
	opens(t, cc, one, ofBudget, ofService, ofSet)

	// A changed spec is applied in full to the live objects.
	change(t, cc, func(cc *v1alpha1.CacheCluster) { cc.Spec.Version = "1.6.39" })
	eventually(t, "the new image", func(ctx context.Context) error {
		if err := server.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		if got := set.Spec.Template.Spec.Containers[0].Image; got != "memcached:1.6.39" || *set.Spec.Replicas != 2 {
			return fmt.Errorf("image %q, %d replicas", got, *set.Spec.Replicas)
		}
		return nil
	})
	opens(t, cc, one, ofBudget, ofService)
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(budget), budget); !apierrors.IsNotFound(err) {
		t.Errorf("the deleted budget: %v", err)
	}

	// The policy Correct corrects all remaining drift.
	change(t, cc, func(cc *v1alpha1.CacheCluster) { cc.Spec.Drift.Policy = v1alpha1.DriftCorrect })
	opens(t, cc, one)
	isReady(t, cc)
	reload(t, server, budget)
	reload(t, server, service)
	if service.Spec.Ports[0].TargetPort.String() != "client" {
		t.Errorf("port %s", service.Spec.Ports[0].TargetPort.String())
	}
	if c := meta.FindStatusCondition(memberCacheOf(t, cc, one).Status.Conditions, v1alpha1.ConditionApplied); c == nil || c.Status != metav1.ConditionTrue {
		t.Errorf("Applied is %+v", c)
	}
}

// Without the mark, a changed spec cannot be distinguished from a changed object.
func TestDriftReport_AppliesChangedSpecToChildWithoutOwnerMark(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "drift-report-mark")
	cc := create(t, withDrift(cache(ns, "sessions", one), v1alpha1.DriftPolicy{Policy: v1alpha1.DriftReport}))
	isReady(t, cc)
	set, _, _ := childrenOf(ns, "sessions")
	edit(t, one, set, func() { delete(set.Annotations, v1alpha1.AnnotationIntent) })
	becomes(t, cc, "reports the lost mark", func(cc *v1alpha1.CacheCluster) error {
		entry, err := statusOf(cc, one)
		if err != nil {
			return err
		}
		if len(entry.OpenDrifts) != 1 || !slices.Equal(entry.OpenDrifts[0].Fields, []string{"metadata.annotations." + v1alpha1.AnnotationIntent}) {
			return fmt.Errorf("open drifts %q", driftsOf(entry.OpenDrifts))
		}
		return nil
	})
	change(t, cc, func(cc *v1alpha1.CacheCluster) { cc.Spec.Version = "1.6.39" })
	opens(t, cc, one)
	reload(t, lab.Members[one].Client, set)
	if got := set.Spec.Template.Spec.Containers[0].Image; got != "memcached:1.6.39" || set.Annotations[v1alpha1.AnnotationIntent] == "" {
		t.Errorf("image %q, annotations %v", got, set.Annotations)
	}
}

func TestDriftIgnore_AllowsFieldToItsManager(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "drift-ignore")
	cc := create(t, withDrift(cache(ns, "sessions", one), v1alpha1.DriftPolicy{Ignore: []v1alpha1.DriftIgnore{
		{Kind: "StatefulSet", Path: "spec.replicas", Manager: "autoscaler"},
		{Kind: "Service", Path: "spec.ports"},
		{Kind: "PodDisruptionBudget", Path: "spec.maxUnavailable"},
	}}))
	isReady(t, cc)
	server := lab.Members[one].Client
	set, service, budget := childrenOf(ns, "sessions")
	byAutoscaler := func(replicas *int32) {
		t.Helper()
		intent := appsv1ac.StatefulSet("sessions", ns).WithSpec(appsv1ac.StatefulSetSpec())
		intent.Spec.Replicas = replicas
		if err := server.Apply(t.Context(), intent, client.FieldOwner("autoscaler"), client.ForceOwnership); err != nil {
			t.Fatal(err)
		}
	}
	replicasAre := func(want int32) {
		t.Helper()
		eventually(t, fmt.Sprintf("%d replicas", want), func(ctx context.Context) error {
			if err := server.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil || *set.Spec.Replicas != want {
				return fmt.Errorf("%d replicas, %v", ptr.Deref(set.Spec.Replicas, -1), err)
			}
			return nil
		})
	}
	byAutoscaler(ptr.To[int32](4))
	edit(t, one, service, func() { service.Spec.Ports[0].TargetPort = intstr.FromInt32(80) })
	edit(t, one, budget, func() { budget.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(2)) })

	// Something else drifts and is corrected; a changed spec is applied. Neither takes
	// back what is ignored.
	edit(t, one, set, func() { set.Spec.Template.Spec.Containers[0].Image = "memcached:evil" })
	edit(t, one, service, func() { service.Labels[v1alpha1.LabelName] = "mine" })
	edit(t, one, budget, func() { budget.Labels[v1alpha1.LabelName] = "mine" })
	becomes(t, cc, "puts the rest right", func(cc *v1alpha1.CacheCluster) error {
		if n := countOf(t, cc, one); n != 3 {
			return fmt.Errorf("%d drifts were corrected, want 3", n)
		}
		return nil
	})
	change(t, cc, func(cc *v1alpha1.CacheCluster) { cc.Spec.Version, cc.Spec.Replicas = "1.6.39", ptr.To[int32](3) })
	eventually(t, "the new image", func(ctx context.Context) error {
		if err := server.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		if got := set.Spec.Template.Spec.Containers[0].Image; got != "memcached:1.6.39" {
			return fmt.Errorf("image %q", got)
		}
		return nil
	})
	isReady(t, cc)
	reload(t, server, set)
	reload(t, server, service)
	reload(t, server, budget)
	if *set.Spec.Replicas != 4 || service.Spec.Ports[0].TargetPort.IntValue() != 80 || budget.Spec.MaxUnavailable.IntValue() != 2 {
		t.Errorf("replicas %d, port %s, maxUnavailable %s", *set.Spec.Replicas, service.Spec.Ports[0].TargetPort.String(), budget.Spec.MaxUnavailable.String())
	}
	opens(t, cc, one)
	if n := countOf(t, cc, one); n != 3 {
		t.Errorf("%d drifts were corrected, want 3", n)
	}

	// The rule is about one manager.
	edit(t, one, set, func() { set.Spec.Replicas = ptr.To[int32](7) })
	replicasAre(3)
	byAutoscaler(ptr.To[int32](4))
	// Its ownership goes, and so does its right.
	byAutoscaler(nil)
	replicasAre(3)
	// The rules go.
	byAutoscaler(ptr.To[int32](4))
	isReady(t, cc)
	change(t, cc, func(cc *v1alpha1.CacheCluster) { cc.Spec.Drift = nil })
	replicasAre(3)
	eventually(t, "everything is right", func(ctx context.Context) error {
		reload(t, server, service)
		reload(t, server, budget)
		if service.Spec.Ports[0].TargetPort.String() != "client" || budget.Spec.MaxUnavailable.IntValue() != 1 {
			return fmt.Errorf("port %s, maxUnavailable %s", service.Spec.Ports[0].TargetPort.String(), budget.Spec.MaxUnavailable.String())
		}
		return nil
	})
}

func TestDriftIgnore_RefusesInvalidRule(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "drift-ignore-unreadable")
	cc := create(t, withDrift(cache(ns, "sessions", one), v1alpha1.DriftPolicy{Ignore: []v1alpha1.DriftIgnore{
		{Path: "spec.replicas"}, {Path: "spec.template.spec.containers[name=memcached].image"}}}))
	entry := inState(t, cc, one, v1alpha1.MemberBlocked, v1alpha1.ReasonInvalidSpec)
	contains(t, "the message", entry.Message, "spec.drift.ignore[1].path", "containers[name=memcached]", "double quotes")
	set, _, _ := childrenOf(ns, "sessions")
	if err := lab.Members[one].Client.Get(t.Context(), client.ObjectKeyFromObject(set), set); !apierrors.IsNotFound(err) {
		t.Errorf("something was applied: %v", err)
	}
	change(t, cc, func(cc *v1alpha1.CacheCluster) {
		cc.Spec.Drift.Ignore[1].Path = strings.Replace(cc.Spec.Drift.Ignore[1].Path, "memcached", `"memcached"`, 1)
	})
	isReady(t, cc)
}
