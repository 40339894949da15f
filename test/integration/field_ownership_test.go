package integration

import (
	"bytes"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
	"github.com/reconcile-lab/reconcile-lab/test/harness"
)

// full sets every field of a template.
func full() v1alpha1.CacheTemplate {
	return v1alpha1.CacheTemplate{
		Engine: v1alpha1.EngineMemcached, Version: "1.6.39", Replicas: ptr.To[int32](3), Memory: ptr.To(resource.MustParse("1Gi")),
		Memcached: &v1alpha1.MemcachedSpec{MaxItemSize: ptr.To(resource.MustParse("2Mi")), MaxConnections: ptr.To[int32](2048),
			Threads: ptr.To[int32](8), Extended: []string{"modern"}, Args: []string{"-v"}},
		Resources: &v1alpha1.Resources{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("0.5")},
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2048Mi")}},
		Exporter: &v1alpha1.ExporterSpec{Enabled: true},
		Service:  &v1alpha1.ServiceSpec{Type: v1alpha1.ServiceClusterIP, Annotations: map[string]string{"example.org/team": "checkout"}},
		Storage:  &v1alpha1.StorageSpec{Size: resource.MustParse("10240Mi"), StorageClassName: ptr.To("fast"), WhenScaled: v1alpha1.ClaimDelete},
		Pod: &v1alpha1.PodSpec{MinReadySeconds: 5, Management: v1alpha1.PodManagementOrderedReady, PriorityClassName: "system-cluster-critical",
			NodeSelector: map[string]string{"disk": "none"},
			Tolerations: []corev1.Toleration{{Key: "cache", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
				{Key: "spot", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](60)}},
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](11211), SupplementalGroups: []int64{1, 2},
				Sysctls: []corev1.Sysctl{{Name: "net.core.somaxconn", Value: "1024"}}},
			Labels: map[string]string{"team": "checkout"}, Annotations: map[string]string{"example.org/scrape": "true"}},
	}
}

// Drift is the difference between what we compute that we own and what the API
// server reports that we own; were they not equal straight after an apply, there
// would be drift for ever or drift that is never seen.
func TestFieldOwnership_OfAPIServerEqualsDrift(t *testing.T) {
	t.Parallel()
	typer := applyconfigurations.NewTypeConverter(harness.Scheme())
	server := lab.Members[one].Client
	// A status that is written in between would be another version.
	lab.Members[one].StandIn.Hold("owned-fields")
	mustCreate(t, &harness.Server{Client: server}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "owned-fields"}})
	exporter := v1alpha1.CacheTemplate{Exporter: &v1alpha1.ExporterSpec{Enabled: true}}
	for name, template := range map[string]v1alpha1.CacheTemplate{"defaults": {}, "full": full(), "exporter": exporter} {
		children, problems := render.Render(&v1alpha1.MemberCache{
			ObjectMeta: metav1.ObjectMeta{Name: name + ".nowhere", Namespace: "owned-fields", UID: "uid"},
			Spec:       v1alpha1.MemberCacheSpec{CacheCluster: name, Cluster: "nowhere", Template: template},
		})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		for _, child := range children {
			t.Run(fmt.Sprintf("%s %s %s", name, child.Intent.GetKind(), child.Intent.GetName()), func(t *testing.T) {
				wanted, err := drift.IntentFields(typer, child.Intent)
				if err != nil {
					t.Fatal(err)
				}
				first := applyAs(t, server, child.Intent)
				owned := &drift.Fields{}
				for _, e := range first.GetManagedFields() {
					if e.Manager == v1alpha1.FieldManager && e.Operation == metav1.ManagedFieldsOperationApply {
						if err := owned.FromJSON(bytes.NewReader(e.FieldsV1.GetRawBytes())); err != nil {
							t.Fatal(err)
						}
					}
				}
				if !owned.Equals(wanted) {
					t.Errorf("only the API server has %s\nonly drift wants %s", owned.Difference(wanted), wanted.Difference(owned))
				}
				if finding := drift.Diff(wanted, child.Hash, first, nil); !finding.Clean() {
					t.Errorf("drift straight after the apply: %v", finding.Fields)
				}
				if second := applyAs(t, server, child.Intent); second.GetResourceVersion() != first.GetResourceVersion() {
					t.Error("a second apply of the same intent was a write")
				}
			})
		}
	}
}

func applyAs(t *testing.T, c client.Client, intent *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	u := intent.DeepCopy()
	if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	return u
}
