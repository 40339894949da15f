package drift_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

func typedSet(t *testing.T, u *unstructured.Unstructured) *appsv1.StatefulSet {
	t.Helper()
	set := &appsv1.StatefulSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, set); err != nil {
		t.Fatal(err)
	}
	return set
}

func TestDescribe_ReportsManagersAndValues(t *testing.T) {
	intent, _, _ := statefulSet(t)
	args := path("spec", "template", "spec", "containers", named("memcached"), "args")
	drifted := typedSet(t, intent)
	drifted.Spec.Replicas = ptr.To[int32](5)
	drifted.Spec.Template.Spec.Containers[0].Image = "memcached:evil"
	drifted.Spec.Template.Spec.Containers[0].Args = []string{strings.Repeat("ö", 200)}
	delete(drifted.Labels, v1alpha1.LabelInstance)
	drifted.ManagedFields = []metav1.ManagedFieldsEntry{
		entry("updater", metav1.ManagedFieldsOperationUpdate, "", noon.Add(-time.Minute), drift.NewFields(image)),
		entry("kubectl", metav1.ManagedFieldsOperationUpdate, "scale", noon, drift.NewFields(replicas)),
	}
	at := metav1.NewTime(noon)
	asUnstructured, err := runtime.DefaultUnstructuredConverter.ToUnstructured(drifted)
	if err != nil {
		t.Fatal(err)
	}
	for kind, live := range map[string]metav1.Object{"typed": drifted, "unstructured": &unstructured.Unstructured{Object: asUnstructured}} {
		t.Run(kind, func(t *testing.T) {
			got := drift.Describe("StatefulSet/sessions", intent, live, drift.NewFields(replicas, image, label))
			want := v1alpha1.DriftFinding{Object: "StatefulSet/sessions", Manager: "kubectl", Operation: "Update/scale", ChangedAt: &at,
				Fields: []string{"metadata.labels." + v1alpha1.LabelInstance, "spec.replicas", containerPath + ".image"},
				Changes: []v1alpha1.FieldChange{
					{Path: "metadata.labels." + v1alpha1.LabelInstance, Was: `"sessions"`, Manager: drift.Unknown},
					{Path: "spec.replicas", Was: "1", Is: "5"},
					{Path: containerPath + ".image", Was: `"memcached:1.6"`, Is: `"memcached:evil"`, Manager: "updater"},
				}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"kubectl", drift.Unknown, "updater"}, got.Managers()); diff != "" || got.ManagerOf("spec.replicas") != "kubectl" || got.ManagerOf(containerPath+".image") != "updater" {
				t.Errorf("managers (-want +got):\n%s", diff)
			}
			long := drift.Describe("StatefulSet/sessions", intent, live, drift.NewFields(args)).Changes[0]
			if n := len([]rune(long.Is)); n != 100 || !strings.HasSuffix(long.Is, "…") || json.Valid([]byte(long.Is)) {
				t.Errorf("a long value has %d characters: %s", n, long.Is)
			}
		})
	}
}

func TestDescribe_FindsListItemByKeys(t *testing.T) {
	service := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{
		{Name: "udp", Port: 11211, Protocol: corev1.ProtocolUDP}, {Name: "tcp", Port: 11211, Protocol: corev1.ProtocolTCP}}}}
	service.Finalizers = []string{"a", "b"}
	port := path("spec", "ports", fieldpath.KeyByFields("port", 11211, "protocol", "TCP"), "name")
	got := drift.Describe("Service/x", nil, service, drift.NewFields(port))
	if diff := cmp.Diff([]v1alpha1.FieldChange{{Path: `spec.ports[port=11211,protocol="TCP"].name`, Is: `"tcp"`}}, got.Changes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDescribe_WithoutObjectIsEmpty(t *testing.T) {
	got := drift.Describe("Service/x", nil, nil, nil)
	if diff := cmp.Diff(v1alpha1.DriftFinding{Object: "Service/x", Manager: drift.Unknown}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
