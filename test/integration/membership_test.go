package integration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/hub/membership"
	labs "github.com/reconcile-lab/reconcile-lab/internal/lab"
	"github.com/reconcile-lab/reconcile-lab/test/harness"
)

// startAPIServer returns a server that no other test uses.
func startAPIServer(t *testing.T, crds ...string) *harness.Server {
	t.Helper()
	s, err := harness.Start(t.Context(), crds...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("stopping an API server: %v", err)
		}
	})
	return s
}

// issueTokens does the token controller's work until the test ends: it fills
// the token Secrets that Join makes.
func issueTokens(t *testing.T, s *harness.Server) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		if err := harness.NewStandIn(s).Run(ctx); err != nil {
			t.Error(err)
		}
	}()
}

// versions of everything that Join writes, by kind and name.
func versions(t *testing.T, servers ...*harness.Server) map[string]string {
	t.Helper()
	found := map[string]string{}
	for i, s := range servers {
		for _, list := range []client.ObjectList{
			&corev1.SecretList{}, &corev1.ServiceAccountList{}, &corev1.NamespaceList{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}, &inventoryv1alpha1.ClusterProfileList{},
		} {
			err := s.Client.List(t.Context(), list)
			if _, noInventory := list.(*inventoryv1alpha1.ClusterProfileList); noInventory && i > 0 {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			err = meta.EachListItem(list, func(item runtime.Object) error {
				o := item.(client.Object)
				if strings.Contains(o.GetName(), "reconcile-lab") || o.GetNamespace() == v1alpha1.InventoryNamespace {
					found[fmt.Sprintf("%s %T %s", []string{"hub", "member"}[i], o, o.GetName())] = o.GetResourceVersion()
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return found
}

// party are API servers of membership tests: a hub and two clusters that can become its
// members. Tests share them and begin with none of the objects that Join writes.
type party struct {
	hub, member, other *harness.Server
	stop               func() error
}

var sharedParty = sync.OnceValues(func() (*party, error) {
	ctx, cancel := context.WithCancel(context.Background())
	p := &party{}
	partyStarted = p
	var working sync.WaitGroup
	var tokens error
	var mu sync.Mutex
	p.stop = func() error {
		cancel()
		working.Wait()
		err := tokens
		for _, s := range []*harness.Server{p.hub, p.member, p.other} {
			if s != nil {
				err = errors.Join(err, s.Stop())
			}
		}
		return err
	}
	for _, to := range []struct {
		server **harness.Server
		crds   []string
	}{{&p.hub, []string{crds}}, {&p.member, nil}, {&p.other, nil}} {
		s, err := harness.Start(ctx, to.crds...)
		if err != nil {
			return p, err
		}
		*to.server = s
		if to.crds == nil {
			working.Go(func() {
				err := harness.NewStandIn(s).Run(ctx)
				mu.Lock()
				defer mu.Unlock()
				tokens = errors.Join(tokens, err)
			})
		}
	}
	return p, nil
})

// partyStarted is the party that TestMain stops, or nil.
var partyStarted *party

// key is the ClusterProfile of the member that these tests join.
var key = types.NamespacedName{Namespace: v1alpha1.InventoryNamespace, Name: "eu-1"}

var euLabels = map[string]string{v1alpha1.LabelRegion: "eu", "tier": "lab"}

// membershipOf returns the shared API servers without any membership. Its tests are not
// parallel.
func membershipOf(t *testing.T) *party {
	t.Helper()
	p, err := sharedParty()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*harness.Server{p.hub, p.member, p.other} {
		forgetMembership(t, s)
	}
	if left := versions(t, p.hub, p.member); len(left) > 0 {
		t.Fatalf("the hub and the member are not empty: %v", left)
	}
	if left := onMember(versions(t, p.hub, p.other)); len(left) > 0 {
		t.Fatalf("the other cluster is not empty: %v", left)
	}
	return p
}

// forgetMembership deletes everything that Join writes, and every MemberCache.
func forgetMembership(t *testing.T, s *harness.Server) {
	t.Helper()
	lists := []client.ObjectList{&corev1.SecretList{}, &corev1.ServiceAccountList{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}}
	if s == partyStarted.hub {
		lists = append(lists, &inventoryv1alpha1.ClusterProfileList{}, &v1alpha1.MemberCacheList{})
	}
	for _, list := range lists {
		if err := s.Client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			o := item.(client.Object)
			_, isCache := o.(*v1alpha1.MemberCache)
			_, isProfile := o.(*inventoryv1alpha1.ClusterProfile)
			if !isCache && !isProfile && !strings.Contains(o.GetName(), "reconcile-lab") && o.GetNamespace() != v1alpha1.InventoryNamespace {
				return nil
			}
			if isCache {
				if err := s.Client.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); client.IgnoreNotFound(err) != nil {
					return err
				}
			}
			return client.IgnoreNotFound(s.Client.Delete(t.Context(), o))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	// An API server without the namespace controller keeps a deleted namespace.
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.InventoryNamespace}}
	if err := s.Client.Delete(t.Context(), ns); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		t.Fatal(err)
	}
	err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(ns), ns)
	if err == nil {
		ns.Spec.Finalizers = nil
		err = s.Client.SubResource("finalize").Update(t.Context(), ns)
	}
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace of memberships is deleted", func(ctx context.Context) error { return notThere(ctx, s.Client, ns) })
}

func (p *party) join(t *testing.T, name string, o membership.Options) error {
	t.Helper()
	return membership.Join(t.Context(), p.hub.Config, p.member.Config, name, o)
}

func (p *party) joinOther(t *testing.T, name string) error {
	t.Helper()
	return membership.Join(t.Context(), p.hub.Config, p.other.Config, name, membership.Options{})
}

func (p *party) leave(t *testing.T, name string, o membership.LeaveOptions) error {
	t.Helper()
	return membership.Leave(t.Context(), p.hub.Config, name, o)
}

// joined returns the shared API servers with the member joined as eu-1.
func joined(t *testing.T) *party {
	t.Helper()
	p := membershipOf(t)
	if err := p.join(t, "eu-1", membership.Options{Labels: euLabels}); err != nil {
		t.Fatal(err)
	}
	return p
}

// unchanged fails the test if the work writes to the hub or the member.
func (p *party) unchanged(t *testing.T, what string, work func()) {
	t.Helper()
	before := versions(t, p.hub, p.member)
	work()
	if after := versions(t, p.hub, p.member); !maps.Equal(before, after) {
		t.Errorf("%s: resource versions\n were %v\n  are %v", what, before, after)
	}
}

// refusesOther fails the test unless the other cluster is refused as eu-1 before anything
// is written.
func (p *party) refusesOther(t *testing.T, what string) {
	t.Helper()
	p.unchanged(t, what, func() {
		if err := p.joinOther(t, "eu-1"); !errors.Is(err, membership.ErrOther) {
			t.Errorf("%s: error %v, want ErrOther", what, err)
		}
	})
	if left := onMember(versions(t, p.hub, p.other)); len(left) > 0 {
		t.Errorf("%s: written to the other cluster: %v", what, left)
	}
}

func TestJoin_RefusesNameOfAnotherClusterManager(t *testing.T) {
	p := membershipOf(t)
	// An earlier run of this test in the process may have created it.
	fleet := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fleet"}}
	if err := p.hub.Client.Create(t.Context(), fleet); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	foreign := &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "eu-1"}}
	foreign.Spec.ClusterManager.Name = "ocm"
	foreign.Status.Conditions = []metav1.Condition{}
	mustCreate(t, p.hub, foreign)
	wantError(t, p.join(t, "eu-1", membership.Options{Namespace: "fleet"}), `belongs to the cluster manager "ocm"`)
	if left := versions(t, p.hub, p.member); len(left) > 0 {
		t.Errorf("written all the same: %v", left)
	}
}

func TestJoin_UnreachableMemberLeavesNothingOnHub(t *testing.T) {
	p := membershipOf(t)
	dead := rest.CopyConfig(p.member.Config)
	dead.Host = "https://127.0.0.1:1"
	wantError(t, membership.Join(t.Context(), p.hub.Config, dead, "eu-1", membership.Options{}), "member eu-1:")
	if left := versions(t, p.hub, p.member); len(left) > 0 {
		t.Errorf("written all the same: %v", left)
	}
}

func TestJoin_CreatesInventoryAndLeastCredential(t *testing.T) {
	p := membershipOf(t)
	if err := p.join(t, "eu-1", membership.Options{Labels: euLabels}); err != nil {
		t.Fatal(err)
	}
	var profile inventoryv1alpha1.ClusterProfile
	if err := p.hub.Client.Get(t.Context(), key, &profile); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"x-k8s.io/cluster-manager": "reconcile-lab"}
	maps.Copy(want, euLabels)
	if profile.Spec.ClusterManager.Name != "reconcile-lab" || !maps.Equal(profile.Labels, want) {
		t.Errorf("ClusterProfile of manager %q with labels %v, want %v", profile.Spec.ClusterManager.Name, profile.Labels, want)
	}
	user := credentialUser(t, p.hub, "eu-1")
	for _, tc := range []struct {
		resource, verb string
		want           bool
	}{
		{"apps/statefulsets", "patch", true}, {"/services", "delete", true}, {"/services", "watch", true},
		{"policy/poddisruptionbudgets", "create", true}, {"/pods", "list", true}, {"/namespaces", "create", true},
		{"autoscaling/horizontalpodautoscalers", "watch", true}, {"autoscaling/horizontalpodautoscalers", "update", false},
		{"/secrets", "get", false}, {"/configmaps", "get", false}, {"/namespaces", "get", false}, {"/pods", "delete", false}, {"/namespaces", "delete", false}, {"/nodes", "list", false},
		{"apps/deployments", "get", false}, {"rbac.authorization.k8s.io/clusterroles", "get", false}, {"/services", "update", false},
	} {
		if got := may(t, p.member, user, tc.resource, tc.verb); got != tc.want {
			t.Errorf("%s %s: allowed %t, want %t", tc.verb, tc.resource, got, tc.want)
		}
	}
}

func TestJoin_SecondWritesNothing(t *testing.T) {
	p := joined(t)
	before := versions(t, p.hub, p.member)
	if len(before) < 8 {
		t.Fatalf("there should be four objects on the hub's side and five on the member's: %v", before)
	}
	if err := p.join(t, "eu-1", membership.Options{Labels: euLabels}); err != nil {
		t.Fatal(err)
	}
	if after := versions(t, p.hub, p.member); !maps.Equal(before, after) {
		t.Errorf("resource versions\n were %v\n  are %v", before, after)
	}
}

func TestJoin_ReplacesOwnLabelsAndKeepsForeignOnes(t *testing.T) {
	p := joined(t)
	if err := p.hub.Client.Patch(t.Context(), profileNamed(key), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"owner":"me"}}}`))); err != nil {
		t.Fatal(err)
	}
	if err := p.join(t, "eu-1", membership.Options{Labels: map[string]string{"tier": "prod"}}); err != nil {
		t.Fatal(err)
	}
	profile := profileNamed(key)
	if err := p.hub.Client.Get(t.Context(), key, profile); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"x-k8s.io/cluster-manager": "reconcile-lab", "tier": "prod", "owner": "me"}
	if !maps.Equal(profile.Labels, want) {
		t.Errorf("labels %v, want %v", profile.Labels, want)
	}
}

func TestJoin_WithoutLabelsChangesNothing(t *testing.T) {
	p := joined(t)
	before := versions(t, p.hub, p.member)
	if err := p.join(t, "eu-1", membership.Options{}); err != nil {
		t.Fatal(err)
	}
	if after := versions(t, p.hub, p.member); !maps.Equal(before, after) {
		t.Errorf("it changed something: %v, then %v", before, after)
	}
}

func TestJoin_RefusesSecondNameOfCluster(t *testing.T) {
	p := joined(t)
	wantError(t, p.join(t, "eu-2", membership.Options{}), "a member already, as eu-1")
}

func TestJoin_RefusesOtherClusterWithFix(t *testing.T) {
	p := joined(t)
	p.refusesOther(t, "a whole membership")
	err := p.joinOther(t, "eu-1")
	for _, part := range []string{
		p.member.Config.Host, uidOf(t, p.member), p.other.Config.Host, uidOf(t, p.other),
		"--context", "another name", "reconcile-lab leave eu-1 --kubeconfig FILE", "reconcile-lab leave eu-1 --abandon --keep-member",
	} {
		wantError(t, err, part)
	}
}

func TestJoin_RepairsHalfMembershipWithItsClusterOnly(t *testing.T) {
	p := joined(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "eu-1-kubeconfig"}}
	for what, half := range map[string]client.Object{"without the credential": secret, "without the ClusterProfile": profileNamed(key)} {
		if err := p.hub.Client.Delete(t.Context(), half); err != nil {
			t.Fatal(err)
		}
		p.refusesOther(t, what)
		if err := p.join(t, "eu-1", membership.Options{}); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestJoin_AcceptsNewTokenAndAddress(t *testing.T) {
	p := joined(t)
	address, err := url.Parse(p.member.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	gate, err := harness.NewGate(t.Context(), address.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer gate.Close()
	if err := gate.Forward(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := credential(t, p.hub, "eu-1")
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.InventoryNamespace, Name: "reconcile-lab-" + uidOf(t, p.hub)}}
	if err := p.member.Client.Delete(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	moved := rest.CopyConfig(p.member.Config)
	moved.Host = "https://" + gate.Address()
	if err := membership.Join(t.Context(), p.hub.Config, moved, "eu-1", membership.Options{}); err != nil {
		t.Fatal(err)
	}
	after := credential(t, p.hub, "eu-1")
	if after.Host != moved.Host || after.BearerToken == before.BearerToken {
		t.Errorf("the hub has %s, want %s; a new token: %t", after.Host, moved.Host, after.BearerToken != before.BearerToken)
	}
	if err := p.join(t, "eu-1", membership.Options{}); err != nil {
		t.Errorf("back at its first address: %v", err)
	}
}

func TestLeave_RefusesKubeconfigOfOtherCluster(t *testing.T) {
	p := joined(t)
	before := versions(t, p.hub, p.member)
	err := p.leave(t, "eu-1", membership.LeaveOptions{Member: p.other.Config})
	wantError(t, err, "nothing was removed")
	if !errors.Is(err, membership.ErrOther) {
		t.Errorf("error %v, want one that is ErrOther", err)
	}
	if after := versions(t, p.hub, p.member); !maps.Equal(before, after) {
		t.Errorf("it changed something: %v, then %v", before, after)
	}
}

func TestLeave_RefusesWhileCacheIsPlaced(t *testing.T) {
	p := joined(t)
	mc := &v1alpha1.MemberCache{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sessions.eu-1", Labels: map[string]string{v1alpha1.LabelCluster: "eu-1"}}}
	mc.Spec.CacheCluster, mc.Spec.Cluster, mc.Spec.Revision = "sessions", "eu-1", "r1"
	mustCreate(t, p.hub, mc)
	before := versions(t, p.hub, p.member)
	err := p.leave(t, "eu-1", membership.LeaveOptions{Member: p.member.Config})
	wantError(t, err, "default/sessions")
	if after := versions(t, p.hub, p.member); !maps.Equal(before, after) {
		t.Errorf("it changed something: %v, then %v", before, after)
	}
	if err := p.hub.Client.Delete(t.Context(), mc); err != nil {
		t.Fatal(err)
	}
}

func TestLeave_RefusesKubeconfigOfOtherMember(t *testing.T) {
	p := joined(t)
	err := p.leave(t, "us-1", membership.LeaveOptions{Member: p.member.Config})
	wantError(t, err, "is of member eu-1, not of us-1")
}

func TestLeave_WithoutAccessReportsWhatStays(t *testing.T) {
	p := joined(t)
	var reported []string
	err := p.leave(t, "eu-1", membership.LeaveOptions{Report: func(s string) { reported = append(reported, s) }})
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(reported, "\n"); !strings.Contains(all, "kubectl delete clusterrolebinding/reconcile-lab-member") {
		t.Errorf("it reported %q", all)
	}
	for _, k := range slices.Sorted(maps.Keys(versions(t, p.hub, p.member))) {
		if k != "hub *v1.Namespace reconcile-lab-system" && strings.HasPrefix(k, "hub") {
			t.Errorf("still there: %s", k)
		}
	}
	wantError(t, p.leave(t, "eu-1", membership.LeaveOptions{}), "there is no member eu-1")
}

func TestLeave_AbandonReleasesMemberCacheOfGoneMember(t *testing.T) {
	p := membershipOf(t)
	mc := &v1alpha1.MemberCache{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sessions.eu-1",
		Labels: map[string]string{v1alpha1.LabelCluster: "eu-1"}, Finalizers: []string{v1alpha1.Finalizer}}}
	mc.Spec.CacheCluster, mc.Spec.Cluster, mc.Spec.Revision = "sessions", "eu-1", "r1"
	mustCreate(t, p.hub, mc)
	if err := p.leave(t, "eu-1", membership.LeaveOptions{Abandon: true}); err != nil {
		t.Error(err)
	}
	if err := p.hub.Client.Get(t.Context(), client.ObjectKeyFromObject(mc), mc); !apierrors.IsNotFound(err) {
		t.Errorf("the MemberCache: %v, want that it is deleted", err)
	}
}

func TestLeave_ReleasesNameForOtherCluster(t *testing.T) {
	p := joined(t)
	// Leave has no access to the member, so its objects stay there.
	if err := p.leave(t, "eu-1", membership.LeaveOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := p.joinOther(t, "eu-1"); err != nil {
		t.Fatal(err)
	}
	if err := p.leave(t, "eu-1", membership.LeaveOptions{Abandon: true}); err != nil {
		t.Fatal(err)
	}
	if err := p.join(t, "eu-1", membership.Options{}); err != nil {
		t.Fatal(err)
	}
	wantError(t, p.joinOther(t, "eu-1"), uidOf(t, p.member))
}

func TestJoin_MembershipWithoutIdentityTakesNextCluster(t *testing.T) {
	p := joined(t)
	forget := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":null}}`))
	for _, o := range []client.Object{profileNamed(key), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "eu-1-kubeconfig"}}} {
		if err := p.hub.Client.Patch(t.Context(), o, forget); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.joinOther(t, "eu-1"); err != nil {
		t.Fatal(err)
	}
	wantError(t, p.join(t, "eu-1", membership.Options{}), "member eu-1 is another cluster")
	if err := p.leave(t, "eu-1", membership.LeaveOptions{Member: p.other.Config}); err != nil {
		t.Fatal(err)
	}
}

func TestLeave_RemovesEveryTraceOfRenamedCluster(t *testing.T) {
	p := joined(t)
	if err := p.leave(t, "eu-1", membership.LeaveOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := p.join(t, "eu-2", membership.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := p.leave(t, "eu-2", membership.LeaveOptions{Member: p.member.Config}); err != nil {
		t.Fatal(err)
	}
	for k := range versions(t, p.hub, p.member) {
		// Without its controller, a deleted namespace stays.
		if !strings.Contains(k, "Namespace") {
			t.Errorf("still there: %s", k)
		}
	}
	var ns corev1.Namespace
	if err := p.member.Client.Get(t.Context(), types.NamespacedName{Name: v1alpha1.InventoryNamespace}, &ns); err != nil || ns.DeletionTimestamp == nil {
		t.Errorf("the member's namespace was not deleted: %v", err)
	}
}

// rented is a provider of clusters that the test has started.
type rented struct {
	labs.Provider
	clusters map[string]*harness.Server
}

func (rented) Name() string { return "rented" }

func (rented) Prepare(context.Context, labs.Report) error { return nil }

func (rented) Create(context.Context, string, labs.Role, labs.Report) error { return nil }

func (r rented) List(context.Context) ([]string, error) {
	return slices.Sorted(maps.Keys(r.clusters)), nil
}

func (r rented) Kubeconfig(_ context.Context, cluster string) ([]byte, error) {
	admin := r.clusters[cluster].Config
	config := clientcmdapi.NewConfig()
	config.Clusters[cluster] = &clientcmdapi.Cluster{Server: admin.Host, CertificateAuthorityData: admin.CAData}
	config.AuthInfos[cluster] = &clientcmdapi.AuthInfo{ClientCertificateData: admin.CertData, ClientKeyData: admin.KeyData}
	config.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: cluster}
	config.CurrentContext = cluster
	return clientcmd.Write(*config)
}

func (r rented) PodKubeconfig(ctx context.Context, cluster string) ([]byte, error) {
	return r.Kubeconfig(ctx, cluster)
}

func TestUp_RepairsLabWithRecreatedMember(t *testing.T) {
	t.Setenv(labs.StateVariable, filepath.Join(t.TempDir(), "labs"))
	hub, first, second := startAPIServer(t), startAPIServer(t), startAPIServer(t)
	issueTokens(t, first)
	issueTokens(t, second)
	l, err := labs.Open("rejoin")
	if err != nil {
		t.Fatal(err)
	}
	var reported []string
	up := func(member *harness.Server) {
		t.Helper()
		reported = nil
		var mu sync.Mutex
		p := rented{clusters: map[string]*harness.Server{labs.Hub: hub, "member-1": member}}
		if err := labs.Up(t.Context(), l, p, labs.Options{Members: 1, Report: func(_, step string) {
			mu.Lock()
			defer mu.Unlock()
			reported = append(reported, step)
		}}); err != nil {
			t.Fatal(err)
		}
	}
	const ending = "removing the membership of the earlier cluster"
	up(first)
	held := &v1alpha1.MemberCache{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sessions.member-1", Finalizers: []string{v1alpha1.Finalizer}}}
	held.Spec.CacheCluster, held.Spec.Cluster, held.Spec.Revision = "sessions", "member-1", "r1"
	mustCreate(t, hub, held)

	up(first)
	if slices.Contains(reported, ending) {
		t.Errorf("an up of a complete lab reported %q", reported)
	}
	if err := hub.Client.Get(t.Context(), client.ObjectKeyFromObject(held), held); err != nil {
		t.Fatalf("the MemberCache, after an up of a lab that is whole: %v", err)
	}

	up(second)
	if !slices.Contains(reported, ending) {
		t.Errorf("reported steps %q, want one about the earlier membership", reported)
	}
	if host := credential(t, hub, "member-1").Host; host != second.Config.Host {
		t.Errorf("the hub has a credential for %s, want %s", host, second.Config.Host)
	}
	if err := hub.Client.Get(t.Context(), client.ObjectKeyFromObject(held), held); !apierrors.IsNotFound(err) {
		t.Errorf("the MemberCache of the lost cluster: %v, want that it is deleted", err)
	}
	profile := profileNamed(types.NamespacedName{Namespace: v1alpha1.InventoryNamespace, Name: "member-1"})
	if err := hub.Client.Get(t.Context(), client.ObjectKeyFromObject(profile), profile); err != nil || profile.Labels[v1alpha1.LabelRegion] != "eu" {
		t.Errorf("the ClusterProfile has the labels %v: %v", profile.Labels, err)
	}
}

// onMember keeps what versions found on the second server.
func onMember(found map[string]string) map[string]string {
	maps.DeleteFunc(found, func(k, _ string) bool { return !strings.HasPrefix(k, "member ") })
	return found
}

// uidOf returns the UID that distinguishes a cluster from all others.
func uidOf(t *testing.T, s *harness.Server) string {
	t.Helper()
	var system corev1.Namespace
	if err := s.Client.Get(t.Context(), types.NamespacedName{Name: "kube-system"}, &system); err != nil {
		t.Fatal(err)
	}
	return string(system.UID)
}

// credential is what the hub keeps to reach a member.
func credential(t *testing.T, hub *harness.Server, name string) *rest.Config {
	t.Helper()
	var secret corev1.Secret
	if err := hub.Client.Get(t.Context(), types.NamespacedName{Namespace: v1alpha1.InventoryNamespace, Name: name + "-kubeconfig"}, &secret); err != nil {
		t.Fatal(err)
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[v1alpha1.CredentialKey])
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func profileNamed(key types.NamespacedName) *inventoryv1alpha1.ClusterProfile {
	return &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
}

// credentialUser is who the hub is in the member with the credential that it keeps.
func credentialUser(t *testing.T, hub *harness.Server, name string) string {
	t.Helper()
	var secret corev1.Secret
	if err := hub.Client.Get(t.Context(), types.NamespacedName{Namespace: v1alpha1.InventoryNamespace, Name: name + "-kubeconfig"}, &secret); err != nil {
		t.Fatal(err)
	}
	if secret.Labels[v1alpha1.LabelCredentialOf] != name {
		t.Errorf("labels of the credential: %v", secret.Labels)
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[v1alpha1.CredentialKey])
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.List(t.Context(), &corev1.SecretList{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing Secrets with the member's credential: %v, want forbidden", err)
	}
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	return review.Status.UserInfo.Username
}

// may reports whether user has a right in the member, by the member's own account.
func may(t *testing.T, member *harness.Server, user, groupResource, verb string) bool {
	t.Helper()
	group, resource, _ := strings.Cut(groupResource, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Group: group, Resource: resource, Verb: verb, Namespace: "default"},
	}}
	if err := member.Client.Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

func mustCreate(t *testing.T, s *harness.Server, obj client.Object) {
	t.Helper()
	if err := s.Client.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("error %v, want one with %q", err, part)
	}
}
