package inventory

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// startServerWithPods lets the token "good" list and watch pods, of which there are
// none, and no other.
func startServerWithPods(t *testing.T) *apiServer {
	t.Helper()
	s := startServer(t)
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/pods") || r.Header.Get("Authorization") != "Bearer good" ||
			r.URL.Query().Get("watch") == "" && (s.blind.Load() || s.dizzy.Load() > 0) {
			if s.dizzy.Load() > 0 {
				s.dizzy.Add(-1)
				s.refused.Add(1)
			}
			s.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		switch query := r.URL.Query(); {
		case query.Get("sendInitialEvents") != "":
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
		case query.Get("watch") != "":
			w.WriteHeader(http.StatusOK)
			select {
			case <-r.Context().Done():
			case <-s.end:
			}
		default:
			fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
		}
	})
	return s
}

func TestANewCredentialThatMayNotWatchIsNotTaken(t *testing.T) {
	r, server := newRig(t, func(o *Options) { o.Kinds = []client.Object{&corev1.Pod{}} }), startServerWithPods(t)
	server.accept("blind", true)
	m, _ := r.join("a", server.kubeconfig("good"))
	r.says("a", metav1.ConditionTrue, v1alpha1.ReasonReachable, answers)

	m.offer(server.kubeconfig("blind"))
	r.says("a", metav1.ConditionTrue, v1alpha1.ReasonReachable, "connected with the earlier credential")
	if times, now := r.engaged.of("a"); times != 1 || !now {
		t.Errorf("engaged %d times, now %t: the earlier credential works", times, now)
	}

	m.offer(server.kubeconfig("good"))
	r.says("a", metav1.ConditionTrue, v1alpha1.ReasonReachable, answers)
	if times, now := r.engaged.of("a"); times != 1 || !now {
		t.Errorf("engaged %d times, now %t: it is the credential in use", times, now)
	}
}

func TestAMemberThatTakesTheRightToWatchAwayIsLostAlthoughOpenWatchesStay(t *testing.T) {
	r, server := newRig(t, func(o *Options) { o.Kinds = []client.Object{&corev1.Pod{}} }), startServerWithPods(t)
	r.join("a", server.kubeconfig("good"))
	r.says("a", metav1.ConditionTrue, v1alpha1.ReasonReachable, answers)

	server.blind.Store(true)
	r.says("a", metav1.ConditionFalse, v1alpha1.ReasonSyncFailed, "forbidden")
	if _, now := r.engaged.of("a"); now {
		t.Error("still engaged: what its cache says may be long over")
	}

	server.blind.Store(false)
	r.says("a", metav1.ConditionTrue, v1alpha1.ReasonReachable, answers)
}

func TestTheConnectionInUseIsProbedWhileANewCredentialIsTried(t *testing.T) {
	r, server := newRig(t), startServer(t)
	m, _ := r.join("a", server.kubeconfig("good"))
	r.says("a", metav1.ConditionTrue, v1alpha1.ReasonReachable, answers)

	m.offer(server.kubeconfig("stuck"))
	eventually(t, "the new credential is tried", func() bool { return server.waiting.Load() > 0 })
	seen := server.probes.Load()
	eventually(t, "the earlier one is probed meanwhile", func() bool {
		if server.waiting.Load() == 0 {
			t.Fatalf("%d probes while the new credential was tried", server.probes.Load()-seen)
		}
		return server.probes.Load() > seen+2
	})
}

func TestTheConnectionThatTakesThePlaceOfAnotherIsProbedAtOnce(t *testing.T) {
	r, server := newRig(t, func(o *Options) { o.Timing.Interval = time.Hour }), startServer(t)
	server.accept("new", true)
	m, _ := r.join("a", server.kubeconfig("good"))
	r.says("a", metav1.ConditionTrue, v1alpha1.ReasonReachable, answers)

	seen := server.probes.Load()
	m.offer(server.kubeconfig("new"))
	eventually(t, "a probe before the new credential is taken and one after", func() bool { return server.probes.Load() == seen+2 })
	if times, now := r.engaged.of("a"); times != 2 || !now {
		t.Errorf("engaged %d times, now %t", times, now)
	}
}

// The old credential of a member that was lost may be over: the newest is not forgotten
// because it was tried while nothing answered.
func TestACredentialThatFailedWhileTheMemberWasLostIsTheNextToBeTried(t *testing.T) {
	m := newMember(t.Context(), newRig(t).inventory, "a")
	m.credential, m.wanted = []byte("old"), []byte("newest")
	for _, tried := range []string{"new", "newest"} {
		m.rotated(nil, dialed{credential: []byte(tried), err: errNoCredential})
		if string(m.wanted) != "newest" {
			t.Errorf("after %q failed, %q is wanted", tried, m.wanted)
		}
	}
	m.tick(nil)
	if string(m.credential) != "newest" {
		t.Errorf("the member is tried with %q", m.credential)
	}
}

func TestOneRefusalOfAnAuthorizerThatHadAMomentsTroubleCostsNothing(t *testing.T) {
	r, server := newRig(t, func(o *Options) { o.Kinds = []client.Object{&corev1.Pod{}} }), startServerWithPods(t)
	r.join("a", server.kubeconfig("good"))
	r.says("a", metav1.ConditionTrue, v1alpha1.ReasonReachable, answers)

	server.dizzy.Store(1)
	eventually(t, "one list is refused", func() bool { return server.refused.Load() == 1 })
	seen := server.probes.Load()
	eventually(t, "probes go on", func() bool { return server.probes.Load() > seen+3 })
	if times, now := r.engaged.of("a"); times != 1 || !now {
		t.Errorf("engaged %d times, now %t", times, now)
	}
}

func TestACredentialThatDidNotWorkIsTriedAgainWithoutAnEvent(t *testing.T) {
	for _, c := range []struct {
		name    string
		earlier bool // still works
	}{
		{"beside one that works, it takes its place", true},
		{"where the earlier one has stopped to work, it is the only one", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, server := newRig(t), startServer(t)
			server.accept("good", true)
			m, _ := r.join("a", server.kubeconfig("good"))
			r.says("a", metav1.ConditionTrue, v1alpha1.ReasonReachable, answers)
			m.offer(server.kubeconfig("late"))
			r.says("a", metav1.ConditionTrue, v1alpha1.ReasonReachable, "connected with the earlier credential")

			server.accept("good", c.earlier)
			server.accept("late", true)
			eventually(t, "engaged with the new credential", func() bool {
				times, now := r.engaged.of("a")
				return times == 2 && now
			})
			r.says("a", metav1.ConditionTrue, v1alpha1.ReasonReachable, answers)
		})
	}
}
