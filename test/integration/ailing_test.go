package integration

import (
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/hub/membership"
)

func TestAMemberWhoseEtcdStoppedIsLikeOneThatIsAway(t *testing.T) {
	ailing := startAPIServer(t)
	issueTokens(t, ailing)
	if err := membership.Join(t.Context(), lab.hub.Config, ailing.Config, "ailing", membership.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := membership.Leave(context.Background(), lab.hub.Config, "ailing", membership.LeaveOptions{Abandon: true}); err != nil {
			t.Error(err)
		}
	})
	ns := namespace(t, "ailing")
	cc := create(t, cache(ns, "sessions", "ailing", one))
	isReady(t, cc)
	if err := ailing.StopEtcd(); err != nil {
		t.Fatal(err)
	}
	inState(t, cc, "ailing", v1alpha1.MemberUnreachable, v1alpha1.ReasonMemberUnreachable)
	reachable(t, "ailing", metav1.ConditionFalse, v1alpha1.ReasonProbeFailed)
	change(t, cc, func(cc *v1alpha1.CacheCluster) { cc.Spec.Version = "1.6.39" })
	inState(t, cc, one, v1alpha1.MemberReady, v1alpha1.ReasonPodsReady)

	if err := lab.hub.Client.Delete(t.Context(), cc); err != nil {
		t.Fatal(err)
	}
	gone(t, one, ns, "sessions")
	abandon(t, cc, "ailing")
	eventually(t, "the CacheCluster is gone", func(ctx context.Context) error {
		if err := lab.hub.Client.Get(ctx, client.ObjectKeyFromObject(cc), cc); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}
