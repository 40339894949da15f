package inventory

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clusterinventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

const patience = time.Minute

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, patience, true, func(context.Context) (bool, error) { return is(), nil })
	if err != nil {
		t.Fatalf("%s: not within %s", what, patience)
	}
}

// apiServer answers probes as its fields say.
type apiServer struct {
	*httptest.Server
	probes atomic.Int64
	// failing is the number of probes that are to fail; all of them if negative.
	failing atomic.Int64
	hang    atomic.Bool
	// denyLists refuses every list; open watches stay. denyNextLists is the number of
	// lists that are to be refused, and deniedLists counts them.
	denyLists                  atomic.Bool
	denyNextLists, deniedLists atomic.Int64
	// waiting counts the requests with the token "stuck", which get no answer.
	waiting atomic.Int64
	mu      sync.Mutex
	tokens  map[string]bool
	end     chan struct{}
}

func startServer(t *testing.T) *apiServer {
	t.Helper()
	s := &apiServer{tokens: map[string]bool{"good": true}, end: make(chan struct{})}
	s.Server = httptest.NewTLSServer(s)
	t.Cleanup(func() { close(s.end); s.Close() })
	return s
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.hang.Load() {
		select {
		case <-r.Context().Done():
		case <-s.end:
		}
		return
	}
	if r.Header.Get("Authorization") == "Bearer stuck" {
		s.waiting.Add(1)
		defer s.waiting.Add(-1)
		select {
		case <-r.Context().Done():
		case <-s.end:
		}
		return
	}
	s.mu.Lock()
	known := s.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	s.mu.Unlock()
	switch {
	case !known:
		http.Error(w, "no", http.StatusUnauthorized)
	case r.URL.Path == "/version":
		fmt.Fprint(w, `{"gitVersion":"v1.36.3"}`)
	case r.URL.Path == "/readyz":
		s.probes.Add(1)
		if n := s.failing.Load(); n != 0 {
			s.failing.Add(-1)
			http.Error(w, "not ready", http.StatusInternalServerError)
		}
	default:
		http.Error(w, "forbidden", http.StatusForbidden)
	}
}

func (s *apiServer) accept(token string, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[token] = is
}

func (s *apiServer) kubeconfig(token string) []byte {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return fmt.Appendf(nil, "%sclusters: [{name: c, cluster: {server: '%s', certificate-authority-data: %s}}]\nusers: [{name: u, user: {token: %s}}]\n",
		kubeconfigHead, s.URL, base64.StdEncoding.EncodeToString(authority), token)
}

// hub has the ClusterProfiles that a member reads and writes.
type hub struct {
	cluster.Cluster
	client client.Client
}

func (h hub) GetClient() client.Client { return h.client }
func (h hub) GetCache() cache.Cache    { return uncached{reader: h.client} }

type uncached struct {
	cache.Cache
	reader client.Reader
}

func (u uncached) Get(ctx context.Context, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
	return u.reader.Get(ctx, key, object, o...)
}

// engagements records which members were engaged.
type engagements struct {
	mu       sync.Mutex
	contexts map[multicluster.ClusterName][]context.Context
}

func (e *engagements) Engage(ctx context.Context, name multicluster.ClusterName, _ cluster.Cluster) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.contexts[name] = append(e.contexts[name], ctx)
	return nil
}

// of returns how often a member was engaged, and whether it is engaged.
func (e *engagements) of(name string) (times int, now bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := e.contexts[multicluster.ClusterName(name)]
	return len(all), len(all) > 0 && all[len(all)-1].Err() == nil
}

// rig is an Inventory with a fake hub.
type rig struct {
	t         *testing.T
	hub       hub
	inventory *Inventory
	engaged   *engagements
}

// newRig returns a rig with short intervals, and a deadline that holds on a busy machine.
func newRig(t *testing.T, change ...func(*Options)) *rig {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, clusterinventory.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	r := &rig{t: t, engaged: &engagements{contexts: map[multicluster.ClusterName][]context.Context{}},
		hub: hub{client: fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&clusterinventory.ClusterProfile{}).Build()}}
	o := Options{Hub: func() cluster.Cluster { return r.hub }, Namespace: "fleet", Scheme: scheme, Timing: Timing{
		Interval: 20 * time.Millisecond, Recheck: 10 * time.Millisecond, Deadline: 3 * time.Second,
		Retry: 10 * time.Millisecond, MaxRetry: 50 * time.Millisecond, Sync: 500 * time.Millisecond}}
	for _, c := range change {
		c(&o)
	}
	var err error
	if r.inventory, err = New(o); err != nil {
		t.Fatal(err)
	}
	return r
}

// join starts a member. The returned function stops it and waits for that.
func (r *rig) join(name string, kubeconfig []byte) (m *member, leave func()) {
	r.t.Helper()
	profile := &clusterinventory.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name}}
	if err := r.hub.client.Create(r.t.Context(), profile); err != nil {
		r.t.Fatal(err)
	}
	m = newMember(context.Background(), r.inventory, name)
	m.setCredential(kubeconfig)
	done := make(chan struct{})
	go func() { defer close(done); m.run(r.engaged) }()
	stop := sync.OnceFunc(func() {
		m.stop()
		<-done
		if err := r.hub.client.Delete(context.Background(), profile); err != nil {
			r.t.Error(err)
		}
	})
	r.t.Cleanup(stop)
	return m, stop
}

func (r *rig) profile(name string) *clusterinventory.ClusterProfile {
	profile := &clusterinventory.ClusterProfile{}
	if err := r.hub.client.Get(r.t.Context(), client.ObjectKey{Namespace: "fleet", Name: name}, profile); err != nil {
		r.t.Fatal(err)
	}
	return profile
}

// waitForReachable waits until the condition Reachable has a status, a reason and a text.
func (r *rig) waitForReachable(name string, status metav1.ConditionStatus, reason, text string) {
	r.t.Helper()
	var last *metav1.Condition
	defer func() {
		if r.t.Failed() {
			r.t.Logf("last condition: %+v", last)
		}
	}()
	eventually(r.t, fmt.Sprintf("%s is %s (%s) %q", name, status, reason, text), func() bool {
		last = meta.FindStatusCondition(r.profile(name).Status.Conditions, v1alpha1.ConditionReachable)
		return last != nil && last.Status == status && last.Reason == reason && strings.Contains(last.Message, text)
	})
}

func TestNew_ValidatesItsOptionsAndSetsDefaults(t *testing.T) {
	here, scheme := func() cluster.Cluster { return nil }, runtime.NewScheme()
	for name, o := range map[string]Options{
		"Hub": {Scheme: scheme}, "Scheme": {Hub: here}, "Timing": {Hub: here, Scheme: scheme, Timing: Timing{Interval: time.Second}},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s is not validated", name)
		}
	}
	i, err := New(Options{Hub: here, Scheme: scheme})
	if err != nil || i.options.Timing != DefaultTiming || i.options.Namespace != v1alpha1.InventoryNamespace || i.options.Clock == nil {
		t.Errorf("error %v, options %+v", err, i)
	}
}

func TestMember_EngagesAReachableMemberAndPublishesItsVersion(t *testing.T) {
	r, server := newRig(t), startServer(t)
	r.join("a", server.kubeconfig("good"))
	r.waitForReachable("a", metav1.ConditionTrue, v1alpha1.ReasonReachable, "answers")
	if times, now := r.engaged.of("a"); times != 1 || !now {
		t.Errorf("engaged %d times, now %t", times, now)
	}
	if got := r.profile("a").Status.Version.Kubernetes; got != "v1.36.3" {
		t.Errorf("version %q", got)
	}
	if _, err := r.inventory.Get(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}

func TestMember_DisengagesAfterTwoFailedProbesInARow(t *testing.T) {
	r, server := newRig(t), startServer(t)
	r.join("a", server.kubeconfig("good"))
	r.waitForReachable("a", metav1.ConditionTrue, v1alpha1.ReasonReachable, "")

	server.failing.Store(1)
	eventually(t, "the one failure is over", func() bool { return server.failing.Load() == 0 })
	seen := server.probes.Load()
	eventually(t, "probes go on", func() bool { return server.probes.Load() > seen+5 })
	if times, now := r.engaged.of("a"); times != 1 || !now {
		t.Fatalf("after one failure: engaged %d times, now %t", times, now)
	}

	server.failing.Store(-1)
	r.waitForReachable("a", metav1.ConditionFalse, v1alpha1.ReasonProbeFailed, "")
	if _, now := r.engaged.of("a"); now {
		t.Error("the context of an unreachable member has not ended")
	}
	if _, err := r.inventory.Get(t.Context(), "a"); err == nil {
		t.Error("Get returns an unreachable member")
	}

	server.failing.Store(0)
	r.waitForReachable("a", metav1.ConditionTrue, v1alpha1.ReasonReachable, "")
	if times, now := r.engaged.of("a"); times != 2 || !now {
		t.Errorf("after its return: engaged %d times, now %t", times, now)
	}
}

// A cluster manager that writes a heartbeat into the profile triggers an event each time.
func TestMember_IsProbedAlthoughEventsAreFrequent(t *testing.T) {
	r, server := newRig(t, func(o *Options) { o.Timing.Interval = 100 * time.Millisecond }), startServer(t)
	m, _ := r.join("a", server.kubeconfig("good"))
	r.waitForReachable("a", metav1.ConditionTrue, v1alpha1.ReasonReachable, "")
	seen := server.probes.Load()
	eventually(t, "probes go on", func() bool {
		m.setCredential(server.kubeconfig("good"))
		return server.probes.Load() > seen+2
	})
}

func TestMember_ReplacesTheCredentialOnlyIfTheNewOneWorks(t *testing.T) {
	r, server := newRig(t), startServer(t)
	m, _ := r.join("a", server.kubeconfig("good"))
	r.waitForReachable("a", metav1.ConditionTrue, v1alpha1.ReasonReachable, "answers")

	m.setCredential(server.kubeconfig("bad"))
	r.waitForReachable("a", metav1.ConditionTrue, v1alpha1.ReasonReachable, "connected with the earlier credential")
	if times, now := r.engaged.of("a"); times != 1 || !now {
		t.Fatalf("with a bad new credential: engaged %d times, now %t", times, now)
	}

	server.accept("better", true)
	m.setCredential(server.kubeconfig("better"))
	eventually(t, "engaged again", func() bool { times, now := r.engaged.of("a"); return times == 2 && now })
	server.accept("good", false)
	seen := server.probes.Load()
	eventually(t, "probes with the new one succeed", func() bool { return server.probes.Load() > seen+3 })
	r.waitForReachable("a", metav1.ConditionTrue, v1alpha1.ReasonReachable, "answers")
}

func TestMember_PublishesWhyItIsUnreachable(t *testing.T) {
	server := startServer(t)
	closed := startServer(t)
	kubeconfigOfClosed := closed.kubeconfig("good")
	closed.Server.Close()
	otherAuthority := strings.Replace(string(server.kubeconfig("good")), "certificate-authority-data: ", "certificate-authority-data: "+
		base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))+" #", 1)
	for _, c := range []struct {
		name       string
		kubeconfig []byte
		reason     string
		says       string
	}{
		{"no-credential", nil, v1alpha1.ReasonCredentialsMissing, "credential-of"},
		{"not-a-kubeconfig", []byte("{"), v1alpha1.ReasonCredentialsInvalid, "cannot be used"},
		{"a-program", []byte(kubeconfigHead + "users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Never}}}]"), v1alpha1.ReasonCredentialsInvalid, "exec"},
		{"a-bad-authority", []byte(otherAuthority), v1alpha1.ReasonCredentialsInvalid, "cannot be used"},
		{"unauthorized", server.kubeconfig("bad"), v1alpha1.ReasonCredentialsInvalid, ""},
		{"closed", kubeconfigOfClosed, v1alpha1.ReasonProbeFailed, "refuses connections"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.join(c.name, c.kubeconfig)
			r.waitForReachable(c.name, metav1.ConditionFalse, c.reason, c.says)
			if times, _ := r.engaged.of(c.name); times > 0 {
				t.Error("it was engaged")
			}
		})
	}

	t.Run("objects that can't be watched", func(t *testing.T) {
		r := newRig(t, func(o *Options) { o.Kinds = []client.Object{&corev1.Pod{}} })
		r.join("a", server.kubeconfig("good"))
		r.waitForReachable("a", metav1.ConditionFalse, v1alpha1.ReasonSyncFailed, "forbidden")
	})
}

func TestMember_ThatHangsDoesNotDelayOthers(t *testing.T) {
	r, hung, healthy := newRig(t), startServer(t), startServer(t)
	hung.hang.Store(true)
	r.join("hung", hung.kubeconfig("good"))
	r.join("healthy", healthy.kubeconfig("good"))
	r.waitForReachable("healthy", metav1.ConditionTrue, v1alpha1.ReasonReachable, "")
	seen := healthy.probes.Load()
	r.waitForReachable("hung", metav1.ConditionFalse, v1alpha1.ReasonProbeFailed, "did not answer in time")
	if healthy.probes.Load() <= seen {
		t.Error("the healthy member was not probed while the other one hung")
	}
	hung.hang.Store(false)
	r.waitForReachable("hung", metav1.ConditionTrue, v1alpha1.ReasonReachable, "")
}

func TestMember_WritesNothingWhileNothingChanges(t *testing.T) {
	r, server := newRig(t), startServer(t)
	r.join("a", server.kubeconfig("good"))
	r.waitForReachable("a", metav1.ConditionTrue, v1alpha1.ReasonReachable, "")
	seen, version := server.probes.Load(), r.profile("a").ResourceVersion
	eventually(t, "ten more probes", func() bool { return server.probes.Load() > seen+10 })
	if got := r.profile("a").ResourceVersion; got != version {
		t.Errorf("version %s, then %s", version, got)
	}
}

// A leak at each engagement would otherwise grow as long as the hub runs.
func TestMember_LeaksNoGoroutineWhenItLeaves(t *testing.T) {
	r, server := newRig(t), startServer(t)
	before := goleak.IgnoreCurrent()
	for range 20 {
		_, leave := r.join("goes", server.kubeconfig("good"))
		eventually(t, "engaged", func() bool { _, now := r.engaged.of("goes"); return now })
		leave()
		if _, now := r.engaged.of("goes"); now {
			t.Fatal("its context has not ended after it left")
		}
	}
	goleak.VerifyNone(t, before)
}
