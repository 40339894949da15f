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

// startServerWithPods returns a server where only the token "good" may list and watch
// pods; there are none.
func startServerWithPods(t *testing.T) *apiServer {
	t.Helper()
	s := startServer(t)
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/pods") || r.Header.Get("Authorization") != "Bearer good" ||
			r.URL.Query().Get("watch") == "" && (s.denyLists.Load() || s.denyNextLists.Load() > 0) {
			if s.denyNextLists.Load() > 0 {
				s.denyNextLists.Add(-1)
				s.deniedLists.Add(1)
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

func TestMember_RefusesANewCredentialThatMayNotWatch(t *testing.T) {
	r, server := newRig(t, func(o *Options) { o.Kinds = []client.Object{&corev1.Pod{}} }), startServerWithPods(t)
	server.accept("no-watch", true)
	m, _ := r.join("a", server.kubeconfig("good"))
	r.waitForReachable("a", metav1.ConditionTrue, v1alpha1.ReasonReachable, answersMessage)

	m.setCredential(server.kubeconfig("no-watch"))
	r.waitForReachable("a", metav1.ConditionTrue, v1alpha1.ReasonReachable, "connected with the earlier credential")
	if times, now := r.engaged.of("a"); times != 1 || !now {
		t.Errorf("engaged %d times, now %t: the earlier credential works", times, now)
	}

	m.setCredential(server.kubeconfig("good"))
	r.waitForReachable("a", metav1.ConditionTrue, v1alpha1.ReasonReachable, answersMessage)
	if times, now := r.engaged.of("a"); times != 1 || !now {
		t.Errorf("engaged %d times, now %t: it is the credential in use", times, now)
	}
}

func TestMember_DisengagesWhenTheRightToListIsLostAlthoughWatchesStayOpen(t *testing.T) {
	r, server := newRig(t, func(o *Options) { o.Kinds = []client.Object{&corev1.Pod{}} }), startServerWithPods(t)
	r.join("a", server.kubeconfig("good"))
	r.waitForReachable("a", metav1.ConditionTrue, v1alpha1.ReasonReachable, answersMessage)

	server.denyLists.Store(true)
	r.waitForReachable("a", metav1.ConditionFalse, v1alpha1.ReasonSyncFailed, "forbidden")
	if _, now := r.engaged.of("a"); now {
		t.Error("still engaged with a stale cache")
	}

	server.denyLists.Store(false)
	r.waitForReachable("a", metav1.ConditionTrue, v1alpha1.ReasonReachable, answersMessage)
}

func TestMember_ProbesTheEngagedConnectionWhileANewCredentialIsTried(t *testing.T) {
	r, server := newRig(t), startServer(t)
	m, _ := r.join("a", server.kubeconfig("good"))
	r.waitForReachable("a", metav1.ConditionTrue, v1alpha1.ReasonReachable, answersMessage)

	m.setCredential(server.kubeconfig("stuck"))
	eventually(t, "the new credential is tried", func() bool { return server.waiting.Load() > 0 })
	seen := server.probes.Load()
	eventually(t, "the earlier one is probed meanwhile", func() bool {
		if server.waiting.Load() == 0 {
			t.Fatalf("%d probes while the new credential was tried", server.probes.Load()-seen)
		}
		return server.probes.Load() > seen+2
	})
}

func TestMember_ProbesTheConnectionOfANewCredentialAtOnce(t *testing.T) {
	r, server := newRig(t, func(o *Options) { o.Timing.Interval = time.Hour }), startServer(t)
	server.accept("new", true)
	m, _ := r.join("a", server.kubeconfig("good"))
	r.waitForReachable("a", metav1.ConditionTrue, v1alpha1.ReasonReachable, answersMessage)

	seen := server.probes.Load()
	m.setCredential(server.kubeconfig("new"))
	eventually(t, "one probe before the new credential is used and one after", func() bool { return server.probes.Load() == seen+2 })
	if times, now := r.engaged.of("a"); times != 2 || !now {
		t.Errorf("engaged %d times, now %t", times, now)
	}
}

// The old credential of an unreachable member may have expired: the newest one must not be
// dropped because it failed while nothing answered.
func TestMember_TriesTheNewestCredentialAfterItFailedWhileUnreachable(t *testing.T) {
	m := newMember(t.Context(), newRig(t).inventory, "a")
	m.credential, m.rotation.wanted = []byte("old"), []byte("newest")
	for _, tried := range []string{"new", "newest"} {
		m.finishRotation(nil, dialResult{credential: []byte(tried), err: errNoCredential})
		if string(m.rotation.wanted) != "newest" {
			t.Errorf("after %q failed, %q is wanted", tried, m.rotation.wanted)
		}
	}
	m.tick(nil)
	if string(m.credential) != "newest" {
		t.Errorf("the member is tried with %q", m.credential)
	}
}

func TestMember_ToleratesOneRefusalOfTheAuthorizer(t *testing.T) {
	r, server := newRig(t, func(o *Options) { o.Kinds = []client.Object{&corev1.Pod{}} }), startServerWithPods(t)
	r.join("a", server.kubeconfig("good"))
	r.waitForReachable("a", metav1.ConditionTrue, v1alpha1.ReasonReachable, answersMessage)

	server.denyNextLists.Store(1)
	eventually(t, "one list is refused", func() bool { return server.deniedLists.Load() == 1 })
	seen := server.probes.Load()
	eventually(t, "probes go on", func() bool { return server.probes.Load() > seen+3 })
	if times, now := r.engaged.of("a"); times != 1 || !now {
		t.Errorf("engaged %d times, now %t", times, now)
	}
}

func TestMember_RetriesARefusedCredentialWithoutAnEvent(t *testing.T) {
	for _, c := range []struct {
		name string
		// earlier reports whether the earlier credential still works.
		earlier bool
	}{
		{"the earlier credential works and is replaced", true},
		{"the earlier credential does not work any more", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, server := newRig(t), startServer(t)
			server.accept("good", true)
			m, _ := r.join("a", server.kubeconfig("good"))
			r.waitForReachable("a", metav1.ConditionTrue, v1alpha1.ReasonReachable, answersMessage)
			m.setCredential(server.kubeconfig("late"))
			r.waitForReachable("a", metav1.ConditionTrue, v1alpha1.ReasonReachable, "connected with the earlier credential")

			server.accept("good", c.earlier)
			server.accept("late", true)
			eventually(t, "engaged with the new credential", func() bool {
				times, now := r.engaged.of("a")
				return times == 2 && now
			})
			r.waitForReachable("a", metav1.ConditionTrue, v1alpha1.ReasonReachable, answersMessage)
		})
	}
}
