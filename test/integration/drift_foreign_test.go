package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// inject adds a sidecar, a volume and an env var as another controller does, and an
// annotation, a restart and a policy as people do.
func inject(t *testing.T, member, ns string) {
	t.Helper()
	injected := appsv1ac.StatefulSet("sessions", ns).
		WithSpec(appsv1ac.StatefulSetSpec().WithTemplate(corev1ac.PodTemplateSpec().
			WithSpec(corev1ac.PodSpec().
				WithVolumes(corev1ac.Volume().WithName("scratch").WithEmptyDir(corev1ac.EmptyDirVolumeSource())).
				WithContainers(
					corev1ac.Container().WithName("memcached").WithEnv(corev1ac.EnvVar().WithName("DEBUG").WithValue("1")),
					corev1ac.Container().WithName("sidecar").WithImage("sidecar:1")))))
	if err := lab.Members[member].Client.Apply(t.Context(), injected, client.FieldOwner("injector")); err != nil {
		t.Fatal(err)
	}
	set, _, _ := childrenOf(ns, "sessions")
	edit(t, member, set, func() {
		set.Labels["team"] = "search"
		set.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "2026-11-30T00:00:00Z", "example.org/note": "x"}
		set.Spec.Template.Spec.DNSPolicy = corev1.DNSDefault
		set.Spec.Template.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways
	})
}

func TestForeignFields_AreReportedAndKept(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "foreign-report")
	cc := create(t, withDrift(cache(ns, "sessions", one), v1alpha1.DriftPolicy{Foreign: v1alpha1.ForeignReport,
		Ignore: []v1alpha1.DriftIgnore{{Path: "spec.template.metadata.annotations.example.org/note"}}}))
	isReady(t, cc)
	inject(t, one, ns)
	becomes(t, cc, "reports foreign fields", func(cc *v1alpha1.CacheCluster) error {
		entry, err := statusOf(cc, one)
		if err != nil {
			return err
		}
		want := []string{`spec.template.spec.containers[name="memcached"].env[name="DEBUG"]`, `spec.template.spec.containers[name="memcached"].imagePullPolicy`,
			`spec.template.spec.containers[name="sidecar"]`, "spec.template.spec.dnsPolicy", `spec.template.spec.volumes[name="scratch"]`}
		if len(entry.OpenDrifts) != 1 || !entry.OpenDrifts[0].Foreign || !slices.Equal(entry.OpenDrifts[0].Fields, want) {
			return fmt.Errorf("open drifts %+v", entry.OpenDrifts)
		}
		if c := meta.FindStatusCondition(cc.Status.Conditions, v1alpha1.ConditionDrifted); c == nil || c.Reason != v1alpha1.ReasonForeignFields {
			return fmt.Errorf("Drifted is %+v", c)
		}
		return nil
	})
	// The children are what the spec asks, with something besides.
	isReady(t, cc)
	if c := meta.FindStatusCondition(memberCacheOf(t, cc, one).Status.Conditions, v1alpha1.ConditionApplied); c == nil || c.Status != metav1.ConditionTrue {
		t.Errorf("Applied is %+v", c)
	}
	change(t, cc, func(cc *v1alpha1.CacheCluster) { cc.Spec.Drift.Foreign = v1alpha1.ForeignKeep })
	opens(t, cc, one)
	set, _, _ := childrenOf(ns, "sessions")
	reload(t, lab.Members[one].Client, set)
	if len(set.Spec.Template.Spec.Containers) != 2 || countOf(t, cc, one) != 0 {
		t.Errorf("%d containers, %d drifts corrected", len(set.Spec.Template.Spec.Containers), countOf(t, cc, one))
	}
}

func TestForeignFields_AreRemovedAndNothingElse(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "foreign-remove")
	cc := create(t, withDrift(cache(ns, "sessions", one), v1alpha1.DriftPolicy{Foreign: v1alpha1.ForeignRemove}))
	isReady(t, cc)
	server := lab.Members[one].Client
	set, _, _ := childrenOf(ns, "sessions")
	reload(t, server, set)
	before := set.Spec.DeepCopy()
	inject(t, one, ns)

	stripped := func(ctx context.Context) error {
		if err := server.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		spec := set.Spec.Template.Spec
		if len(spec.Containers) != 1 || len(spec.Containers[0].Env) > 0 || len(spec.Volumes) > 0 || spec.DNSPolicy != before.Template.Spec.DNSPolicy ||
			spec.Containers[0].ImagePullPolicy != before.Template.Spec.Containers[0].ImagePullPolicy || set.Spec.Template.Annotations["example.org/note"] != "" {
			return fmt.Errorf("template %+v", set.Spec.Template)
		}
		return nil
	}
	eventually(t, "the foreign fields are gone", stripped)
	if set.Labels["team"] != "search" || set.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] == "" {
		t.Errorf("labels %v, annotations of pods %v: something else is gone too", set.Labels, set.Spec.Template.Annotations)
	}
	becomes(t, cc, "counts repairs and has nothing open", func(cc *v1alpha1.CacheCluster) error {
		entry, err := statusOf(cc, one)
		if err != nil {
			return err
		}
		if entry.LastDrift == nil || !entry.LastDrift.Foreign || len(entry.OpenDrifts) > 0 {
			return fmt.Errorf("last drift %+v, open %+v", entry.LastDrift, entry.OpenDrifts)
		}
		return has(cc, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonAllMembersReady)
	})
	// A default that the API server set for a removed field has no owner: a later reconcile
	// writes nothing.
	update := func(version string) {
		t.Helper()
		change(t, cc, func(cc *v1alpha1.CacheCluster) { cc.Spec.Version = version })
		eventually(t, "the new image", func(ctx context.Context) error {
			if err := stripped(ctx); err != nil {
				return err
			}
			if got := set.Spec.Template.Spec.Containers[0].Image; got != "memcached:"+version {
				return errors.New(got)
			}
			return nil
		})
		isReady(t, cc)
	}
	update("1.6.38")
	settled := countOf(t, cc, one)
	edit(t, one, set, func() { set.Labels["team"] = "checkout" })
	update("1.6.39")
	if n := countOf(t, cc, one); n != settled {
		t.Errorf("%d drifts were corrected, before %d", n, settled)
	}
	// What is put back by another client is removed again.
	inject(t, one, ns)
	eventually(t, "the foreign fields are gone again", stripped)
}

// autoscaler for the StatefulSet of a cache.
func autoscaler(ns string, least, most int32) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sessions"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MinReplicas: &least, MaxReplicas: most,
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "sessions"}}}
}

// scale sets replicas as the autoscaler's controller does.
func scale(t *testing.T, member, ns string, replicas int32) {
	t.Helper()
	set, _, _ := childrenOf(ns, "sessions")
	body := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	reload(t, lab.Members[member].Client, set)
	if err := lab.Members[member].Client.SubResource("scale").Update(t.Context(), set, client.WithSubResourceBody(body), client.FieldOwner("kube-controller-manager")); err != nil {
		t.Fatal(err)
	}
}

func TestAutoscaler_OwnsReplicasWithinItsRange(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "autoscaler")
	cc := create(t, cache(ns, "sessions", one))
	isReady(t, cc)
	server := lab.Members[one].Client
	hpa := autoscaler(ns, 2, 6)
	mustCreate(t, lab.Members[one].Server, hpa)
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sessions"}}
	replicasAre := func(want int32) {
		t.Helper()
		eventually(t, fmt.Sprintf("%d replicas", want), func(ctx context.Context) error {
			if err := server.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil || ptr.Deref(set.Spec.Replicas, -1) != want {
				return fmt.Errorf("%d replicas, %v", ptr.Deref(set.Spec.Replicas, -1), err)
			}
			return nil
		})
	}
	ready := func(want int32) {
		t.Helper()
		becomes(t, cc, fmt.Sprintf("has %d ready", want), func(cc *v1alpha1.CacheCluster) error {
			if entry, err := statusOf(cc, one); err != nil || entry.ReadyReplicas != want {
				return fmt.Errorf("%d ready, %v", entry.ReadyReplicas, err)
			}
			return has(cc, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonAllMembersReady)
		})
	}
	scale(t, one, ns, 5)
	ready(5)
	// A repair and a changed spec leave the replicas alone, also a spec for others.
	edit(t, one, set, func() { set.Spec.Template.Spec.Containers[0].Image = "memcached:evil" })
	becomes(t, cc, "corrects the image", func(cc *v1alpha1.CacheCluster) error {
		if n := countOf(t, cc, one); n != 1 {
			return fmt.Errorf("%d drifts were corrected", n)
		}
		return nil
	})
	change(t, cc, func(cc *v1alpha1.CacheCluster) { cc.Spec.Version, cc.Spec.Replicas = "1.6.39", ptr.To[int32](3) })
	eventually(t, "the new image", func(ctx context.Context) error {
		if err := server.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		if got := set.Spec.Template.Spec.Containers[0].Image; got != "memcached:1.6.39" {
			return errors.New(got)
		}
		return nil
	})
	ready(5)
	if *set.Spec.Replicas != 5 || countOf(t, cc, one) != 1 {
		t.Errorf("%d replicas, %d drifts corrected", *set.Spec.Replicas, countOf(t, cc, one))
	}
	// Replicas out of its range are drift.
	scale(t, one, ns, 7)
	replicasAre(3)
	scale(t, one, ns, 6)
	ready(6)
	// A smaller range, and none at all, are events of the autoscaler only.
	reload(t, server, hpa)
	hpa.Spec.MaxReplicas = 4
	if err := server.Update(t.Context(), hpa); err != nil {
		t.Fatal(err)
	}
	replicasAre(3)
	scale(t, one, ns, 4)
	ready(4)
	if err := server.Delete(t.Context(), hpa); err != nil {
		t.Fatal(err)
	}
	replicasAre(3)
	isReady(t, cc)
}
