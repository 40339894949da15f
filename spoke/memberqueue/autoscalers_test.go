package memberqueue

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// apiCluster is a member of which only the API server is known.
type apiCluster struct {
	cluster.Cluster
	api client.Client
}

func (c apiCluster) GetAPIReader() client.Reader { return c.api }

func scalerOf(apiVersion, kind, name string) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "x"}, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: apiVersion, Kind: kind, Name: name}, MinReplicas: ptr.To[int32](2), MaxReplicas: 5}}
}

// An account of an earlier join lacks the right. The member works without it.
func TestWatchAutoscalers_EngagesWithoutRightToAutoscalers(t *testing.T) {
	resource := schema.GroupResource{Group: "autoscaling", Resource: "horizontalpodautoscalers"}
	for _, c := range []struct {
		name  string
		err   error
		fails bool
	}{
		{"forbidden", apierrors.NewForbidden(resource, "", errors.New("no right")), false},
		{"a kind that the API server does not know", apierrors.NewNotFound(resource, ""), false},
		{"a transient error", apierrors.NewInternalError(errors.New("etcd is electing")), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithScheme(memberScheme).WithInterceptorFuncs(interceptor.Funcs{
				List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return c.err },
			}).Build()
			watched, err := watchAutoscalers(t.Context(), apiCluster{api: api})
			if watched || (err != nil) != c.fails {
				t.Errorf("watched %t, error %v", watched, err)
			}
		})
	}
}

func TestScaledStatefulSet_IgnoresOtherKinds(t *testing.T) {
	for _, c := range []struct {
		of   *autoscalingv2.HorizontalPodAutoscaler
		want string
	}{
		{scalerOf("apps/v1", "StatefulSet", "sessions"), "sessions"},
		{scalerOf("apps/v1beta2", "StatefulSet", "sessions"), "sessions"},
		{scalerOf("apps/v1", "Deployment", "sessions"), ""},
		{scalerOf("example.org/v1", "StatefulSet", "sessions"), ""},
		{scalerOf("", "StatefulSet", "sessions"), ""},
	} {
		if got := ScaledStatefulSet(c.of); got != c.want {
			t.Errorf("%+v scales %q, want %q", c.of.Spec.ScaleTargetRef, got, c.want)
		}
	}
}

func TestStripAutoscaler_KeepsTargetAndRange(t *testing.T) {
	full := scalerOf("apps/v1", "StatefulSet", "sessions")
	want := full.DeepCopy()
	full.Spec.Metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType}}
	full.Status.CurrentReplicas = 3
	full.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	full.Labels = map[string]string{"a": "b"}
	got, err := stripAutoscaler(full)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}
