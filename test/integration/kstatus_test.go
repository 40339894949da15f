package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// reads waits until kstatus, by which Flux, Argo CD and kubectl wait read objects,
// returns the wanted word for a CacheCluster and its MemberCaches.
func reads(t *testing.T, namespace string, want status.Status) {
	t.Helper()
	eventually(t, fmt.Sprintf("kstatus reads %s", want), func(ctx context.Context) error {
		for _, kind := range []string{"CacheCluster", "MemberCache"} {
			list := &unstructured.UnstructuredList{}
			list.SetAPIVersion(v1alpha1.GroupVersion.String())
			list.SetKind(kind + "List")
			if err := lab.Hub.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
				return err
			}
			if len(list.Items) != 1 {
				return fmt.Errorf("%d objects of kind %s", len(list.Items), kind)
			}
			got, err := status.Compute(&list.Items[0])
			if err != nil {
				return err
			}
			if got.Status != want {
				return fmt.Errorf("%s is %s: %s", kind, got.Status, got.Message)
			}
		}
		return nil
	})
}

func TestKstatus_MatchesOurConditions(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "kstatus")
	standIn := lab.Members[one].StandIn
	standIn.Hold(ns)
	cc := create(t, cache(ns, "sessions", one))
	inState(t, cc, one, v1alpha1.MemberProgressing, v1alpha1.ReasonPodsStarting)
	reads(t, ns, status.InProgressStatus)
	standIn.Release(ns)
	isReady(t, cc)
	reads(t, ns, status.CurrentStatus)

	change(t, cc, func(cc *v1alpha1.CacheCluster) {
		cc.Spec.Pod = &v1alpha1.PodSpec{Management: v1alpha1.PodManagementOrderedReady}
	})
	inState(t, cc, one, v1alpha1.MemberBlocked, v1alpha1.ReasonImmutableField)
	reads(t, ns, status.FailedStatus)
	change(t, cc, func(cc *v1alpha1.CacheCluster) { cc.Spec.Pod = nil })
	reads(t, ns, status.CurrentStatus)

	// Deleting waits for the member: a finalizer of another owner has the Service.
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sessions"}}
	edit(t, one, service, func() { service.Finalizers = []string{"example.org/hold"} })
	if err := lab.Hub.Client.Delete(t.Context(), cc); err != nil {
		t.Fatal(err)
	}
	reads(t, ns, status.TerminatingStatus)
	becomes(t, cc, "names what it waits for", func(cc *v1alpha1.CacheCluster) error {
		entry, err := statusOf(cc, one)
		if err != nil {
			return err
		}
		if entry.State != v1alpha1.MemberDeleting || !strings.Contains(entry.Message, "Service/sessions") {
			return fmt.Errorf("%s: %s", entry.State, entry.Message)
		}
		return nil
	})
	edit(t, one, service, func() { service.Finalizers = nil })
	gone(t, one, ns, "sessions")
}
