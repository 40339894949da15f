package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/hub/membership"
	"github.com/reconcile-lab/reconcile-lab/test/harness"
)

// A paused API server keeps its connections and answers nothing; one whose etcd is
// paused answers with errors.
func TestPausedMember_DoesNotDelayOthersAndCatchesUp(t *testing.T) {
	ailing := startAPIServer(t)
	issueTokens(t, ailing)
	if err := membership.Join(t.Context(), lab.Hub.Config, ailing.Config, "ailing", membership.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := membership.Leave(context.Background(), lab.Hub.Config, "ailing", membership.LeaveOptions{Abandon: true}); err != nil {
			t.Error(err)
		}
	})
	ns := namespace(t, "ailing")
	cc := create(t, cache(ns, "sessions", "ailing", one))
	isReady(t, cc)
	for n, program := range []string{harness.APIServer, harness.Etcd} {
		t.Run(program, func(t *testing.T) {
			resume, err := ailing.Pause(program)
			if err != nil {
				t.Fatal(err)
			}
			paused := true
			t.Cleanup(func() {
				if paused {
					_ = resume()
				}
			})
			start := time.Now()
			inState(t, cc, "ailing", v1alpha1.MemberUnreachable, v1alpha1.ReasonMemberUnreachable)
			t.Logf("noticed after %s", time.Since(start))
			reachable(t, "ailing", metav1.ConditionFalse, v1alpha1.ReasonProbeFailed)
			version := fmt.Sprintf("1.6.%d", 30+n)
			change(t, cc, func(cc *v1alpha1.CacheCluster) { cc.Spec.Version = version })
			becomes(t, cc, "is up to date in the other member", func(cc *v1alpha1.CacheCluster) error {
				entry, err := statusOf(cc, one)
				if err != nil || entry.State != v1alpha1.MemberReady || entry.Revision != cc.Status.Revision || cc.Status.ObservedGeneration != cc.Generation {
					return fmt.Errorf("%+v: %w", entry, err)
				}
				return nil
			})
			start = time.Now()
			paused = false
			if err := resume(); err != nil {
				t.Fatal(err)
			}
			becomes(t, cc, "is up to date everywhere", func(cc *v1alpha1.CacheCluster) error {
				entry, err := statusOf(cc, "ailing")
				if err != nil || entry.Revision != cc.Status.Revision {
					return fmt.Errorf("%+v: %w", entry, err)
				}
				return has(cc, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonAllMembersReady)
			})
			t.Logf("up to date %s after its return", time.Since(start))
		})
	}
}
