package integration

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/test/harness"
)

// countWrites returns a count of the writes to the hub's objects of a cache from now on.
func countWrites(t *testing.T, cc *v1alpha1.CacheCluster) func() int {
	t.Helper()
	watching, err := client.NewWithWatch(lab.Hub.Config, client.Options{Scheme: harness.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	var n atomic.Int64
	for _, list := range []client.ObjectList{&v1alpha1.CacheClusterList{}, &v1alpha1.MemberCacheList{}} {
		if err := lab.Hub.Client.List(t.Context(), list, client.InNamespace(cc.Namespace)); err != nil {
			t.Fatal(err)
		}
		w, err := watching.Watch(t.Context(), list, client.InNamespace(cc.Namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		go func() {
			for range w.ResultChan() {
				n.Add(1)
			}
		}()
	}
	return func() int { return int(n.Load()) }
}

func TestConflict_IsRetriedWithBackoffAndFewHubWrites(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "fight")
	cc := create(t, cache(ns, "sessions", one))
	isReady(t, cc)
	server := lab.Members[one].Client
	set, _, _ := childrenOf(ns, "sessions")

	// Two flips a second for twenty seconds.
	written := countWrites(t, cc)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":5}}`))
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	_ = wait.PollUntilContextCancel(ctx, 500*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_ = server.Patch(ctx, set, patch, client.FieldOwner("other-controller"))
		return false, nil
	})
	entry := inState(t, cc, one, v1alpha1.MemberBlocked, v1alpha1.ReasonDriftFight)
	// Two for each of five quick corrections, two that report the conflict, and a few that
	// count pods.
	n := written()
	t.Logf("%d writes to the hub in forty flips", n)
	if n > 20 {
		t.Errorf("%d writes to the hub", n)
	}
	contains(t, "the message", entry.Message, "StatefulSet/sessions", "spec.replicas", "other-controller", "5 times")
	if entry.Class != v1alpha1.ClassConflict || entry.RetryAt == nil || entry.LastDrift.Count != 5 {
		t.Errorf("class %s, retry at %s, %d repairs", entry.Class, entry.RetryAt, entry.LastDrift.Count)
	}
	if reason := opens(t, cc, one, "StatefulSet/sessions spec.replicas 2→5 by other-controller"); reason != v1alpha1.ReasonDriftFight {
		t.Errorf("Drifted because of %q", reason)
	}
	reload(t, server, set)
	if *set.Spec.Replicas != 5 {
		t.Errorf("%d replicas: corrected although the conflict lasts", *set.Spec.Replicas)
	}
	// A changed spec does not wait.
	change(t, cc, func(cc *v1alpha1.CacheCluster) { cc.Spec.Version = "1.6.39" })
	eventually(t, "the new image", func(ctx context.Context) error {
		if err := server.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		if got := set.Spec.Template.Spec.Containers[0].Image; got != "memcached:1.6.39" {
			return fmt.Errorf("image %q", got)
		}
		return nil
	})
	if err := server.Patch(t.Context(), set, patch, client.FieldOwner("other-controller")); err != nil {
		t.Fatal(err)
	}
	// The correction comes at retryAt of the status. Two minutes later the conflict is over.
	eventually(t, "the deferred correction", func(ctx context.Context) error {
		if err := server.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil || ptr.Deref(set.Spec.Replicas, -1) != 2 {
			return fmt.Errorf("%d replicas, %v", ptr.Deref(set.Spec.Replicas, -1), err)
		}
		return nil
	})
	if now := time.Now(); now.Before(entry.RetryAt.Add(-time.Second)) {
		t.Errorf("corrected at %s, before %s", now, entry.RetryAt)
	}
	within(t.Context(), t, 2*patience, "the conflict is over", func(ctx context.Context) error {
		if err := lab.Hub.Client.Get(ctx, client.ObjectKeyFromObject(cc), cc); err != nil {
			return err
		}
		entry, err := statusOf(cc, one)
		if err != nil {
			return err
		}
		if entry.State != v1alpha1.MemberReady || len(entry.OpenDrifts) > 0 {
			return fmt.Errorf("%+v", cc.Status.Clusters)
		}
		return nil
	})
}
