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

// startAPIServer gives a server that no other test uses.
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

func TestMembership(t *testing.T) {
	hub := startAPIServer(t, crds)
	member, other := startAPIServer(t), startAPIServer(t)
	issueTokens(t, member)
	issueTokens(t, other)
	ctx := t.Context()
	labels := map[string]string{v1alpha1.LabelRegion: "eu", "tier": "lab"}
	join := func(name string, o membership.Options) error {
		return membership.Join(ctx, hub.Config, member.Config, name, o)
	}
	key := types.NamespacedName{Namespace: v1alpha1.InventoryNamespace, Name: "eu-1"}

	t.Run("a name that another cluster manager uses is refused before anything is written", func(t *testing.T) {
		mustCreate(t, hub, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fleet"}})
		foreign := &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "eu-1"}}
		foreign.Spec.ClusterManager.Name = "ocm"
		foreign.Status.Conditions = []metav1.Condition{}
		mustCreate(t, hub, foreign)
		wantError(t, join("eu-1", membership.Options{Namespace: "fleet"}), `belongs to the cluster manager "ocm"`)
		if left := versions(t, hub, member); len(left) > 0 {
			t.Errorf("written all the same: %v", left)
		}
	})

	t.Run("a member that does not answer leaves nothing on the hub", func(t *testing.T) {
		dead := rest.CopyConfig(member.Config)
		dead.Host = "https://127.0.0.1:1"
		wantError(t, membership.Join(ctx, hub.Config, dead, "eu-1", membership.Options{}), "member eu-1:")
		if left := versions(t, hub, member); len(left) > 0 {
			t.Errorf("written all the same: %v", left)
		}
	})

	t.Run("join makes an inventory entry with a credential that has the rights of a member and no others", func(t *testing.T) {
		if err := join("eu-1", membership.Options{Labels: labels}); err != nil {
			t.Fatal(err)
		}
		var profile inventoryv1alpha1.ClusterProfile
		if err := hub.Client.Get(ctx, key, &profile); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"x-k8s.io/cluster-manager": "reconcile-lab"}
		maps.Copy(want, labels)
		if profile.Spec.ClusterManager.Name != "reconcile-lab" || !maps.Equal(profile.Labels, want) {
			t.Errorf("ClusterProfile of manager %q with labels %v, want %v", profile.Spec.ClusterManager.Name, profile.Labels, want)
		}
		user := credentialUser(t, hub, "eu-1")
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
			if got := may(t, member, user, tc.resource, tc.verb); got != tc.want {
				t.Errorf("%s %s: allowed %t, want %t", tc.verb, tc.resource, got, tc.want)
			}
		}
	})

	t.Run("a second join writes nothing", func(t *testing.T) {
		before := versions(t, hub, member)
		if len(before) < 8 {
			t.Fatalf("there should be four objects on the hub's side and five on the member's: %v", before)
		}
		if err := join("eu-1", membership.Options{Labels: labels}); err != nil {
			t.Fatal(err)
		}
		if after := versions(t, hub, member); !maps.Equal(before, after) {
			t.Errorf("resource versions\n were %v\n  are %v", before, after)
		}
	})

	t.Run("a join with other labels replaces those of the first and keeps foreign ones", func(t *testing.T) {
		if err := hub.Client.Patch(ctx, profileNamed(key), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"owner":"me"}}}`))); err != nil {
			t.Fatal(err)
		}
		if err := join("eu-1", membership.Options{Labels: map[string]string{"tier": "prod"}}); err != nil {
			t.Fatal(err)
		}
		profile := profileNamed(key)
		if err := hub.Client.Get(ctx, key, profile); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"x-k8s.io/cluster-manager": "reconcile-lab", "tier": "prod", "owner": "me"}
		if !maps.Equal(profile.Labels, want) {
			t.Errorf("labels %v, want %v", profile.Labels, want)
		}
	})

	t.Run("a join without labels repairs the membership and moves no cache", func(t *testing.T) {
		before := versions(t, hub, member)
		if err := join("eu-1", membership.Options{}); err != nil {
			t.Fatal(err)
		}
		if after := versions(t, hub, member); !maps.Equal(before, after) {
			t.Errorf("it changed something: %v, then %v", before, after)
		}
	})

	t.Run("the same cluster is refused under a second name", func(t *testing.T) {
		wantError(t, join("eu-2", membership.Options{}), "a member already, as eu-1")
	})

	joinOther := func(name string) error {
		return membership.Join(ctx, hub.Config, other.Config, name, membership.Options{})
	}
	// refusesOther also wants that nothing was written anywhere.
	refusesOther := func(t *testing.T, why string) {
		t.Helper()
		before := versions(t, hub, member)
		err := joinOther("eu-1")
		if !errors.Is(err, membership.ErrOther) {
			t.Errorf("%s: error %v, want one that is ErrOther", why, err)
		}
		if after := versions(t, hub, member); !maps.Equal(before, after) {
			t.Errorf("%s: it changed something: %v, then %v", why, before, after)
		}
		if left := onMember(versions(t, hub, other)); len(left) > 0 {
			t.Errorf("%s: written to the other cluster all the same: %v", why, left)
		}
	}

	t.Run("another cluster is refused under a member's name before anything is written, with what to do", func(t *testing.T) {
		refusesOther(t, "a whole membership")
		err := joinOther("eu-1")
		for _, part := range []string{
			member.Config.Host, uidOf(t, member), other.Config.Host, uidOf(t, other),
			"--context", "another name", "reconcile-lab leave eu-1 --kubeconfig FILE", "reconcile-lab leave eu-1 --abandon --keep-member",
		} {
			wantError(t, err, part)
		}
	})

	t.Run("half of a membership is not repaired with another cluster, but with its own", func(t *testing.T) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "eu-1-kubeconfig"}}
		for what, half := range map[string]client.Object{"without the credential": secret, "without the ClusterProfile": profileNamed(key)} {
			if err := hub.Client.Delete(ctx, half); err != nil {
				t.Fatal(err)
			}
			refusesOther(t, what)
			if err := join("eu-1", membership.Options{}); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	})

	t.Run("the same cluster may join again with a new token and at another address", func(t *testing.T) {
		address, err := url.Parse(member.Config.Host)
		if err != nil {
			t.Fatal(err)
		}
		gate, err := harness.NewGate(ctx, address.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer gate.Close()
		if err := gate.Forward(ctx); err != nil {
			t.Fatal(err)
		}
		before := credential(t, hub, "eu-1")
		token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.InventoryNamespace, Name: "reconcile-lab-" + uidOf(t, hub)}}
		if err := member.Client.Delete(ctx, token); err != nil {
			t.Fatal(err)
		}
		moved := rest.CopyConfig(member.Config)
		moved.Host = "https://" + gate.Address()
		if err := membership.Join(ctx, hub.Config, moved, "eu-1", membership.Options{}); err != nil {
			t.Fatal(err)
		}
		after := credential(t, hub, "eu-1")
		if after.Host != moved.Host || after.BearerToken == before.BearerToken {
			t.Errorf("the hub has %s, want %s; a new token: %t", after.Host, moved.Host, after.BearerToken != before.BearerToken)
		}
		if err := join("eu-1", membership.Options{}); err != nil {
			t.Errorf("back at its first address: %v", err)
		}
	})

	t.Run("leave refuses the kubeconfig of a cluster that is not the member", func(t *testing.T) {
		before := versions(t, hub, member)
		err := membership.Leave(ctx, hub.Config, "eu-1", membership.LeaveOptions{Member: other.Config})
		wantError(t, err, "nothing was removed")
		if !errors.Is(err, membership.ErrOther) {
			t.Errorf("error %v, want one that is ErrOther", err)
		}
		if after := versions(t, hub, member); !maps.Equal(before, after) {
			t.Errorf("it changed something: %v, then %v", before, after)
		}
	})

	t.Run("leave refuses while a cache is placed there, and names it", func(t *testing.T) {
		mc := &v1alpha1.MemberCache{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sessions.eu-1", Labels: map[string]string{v1alpha1.LabelCluster: "eu-1"}}}
		mc.Spec.CacheCluster, mc.Spec.Cluster, mc.Spec.Revision = "sessions", "eu-1", "r1"
		mustCreate(t, hub, mc)
		before := versions(t, hub, member)
		err := membership.Leave(ctx, hub.Config, "eu-1", membership.LeaveOptions{Member: member.Config})
		wantError(t, err, "default/sessions")
		if after := versions(t, hub, member); !maps.Equal(before, after) {
			t.Errorf("it changed something: %v, then %v", before, after)
		}
		if err := hub.Client.Delete(ctx, mc); err != nil {
			t.Fatal(err)
		}
	})

	t.Run("leave refuses the kubeconfig of another member", func(t *testing.T) {
		err := membership.Leave(ctx, hub.Config, "us-1", membership.LeaveOptions{Member: member.Config})
		wantError(t, err, "is of member eu-1, not of us-1")
	})

	t.Run("leave without access to the member says what stays there", func(t *testing.T) {
		var told []string
		err := membership.Leave(ctx, hub.Config, "eu-1", membership.LeaveOptions{Report: func(s string) { told = append(told, s) }})
		if err != nil {
			t.Fatal(err)
		}
		if all := strings.Join(told, "\n"); !strings.Contains(all, "kubectl delete clusterrolebinding/reconcile-lab-member") {
			t.Errorf("it told %q", all)
		}
		for _, k := range slices.Sorted(maps.Keys(versions(t, hub, member))) {
			if k != "hub *v1.Namespace reconcile-lab-system" && strings.HasPrefix(k, "hub") {
				t.Errorf("still there: %s", k)
			}
		}
		wantError(t, membership.Leave(ctx, hub.Config, "eu-1", membership.LeaveOptions{}), "there is no member eu-1")
	})

	t.Run("a forced leave lets go of what a member left that is gone already", func(t *testing.T) {
		mc := &v1alpha1.MemberCache{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sessions.eu-1",
			Labels: map[string]string{v1alpha1.LabelCluster: "eu-1"}, Finalizers: []string{v1alpha1.Finalizer}}}
		mc.Spec.CacheCluster, mc.Spec.Cluster, mc.Spec.Revision = "sessions", "eu-1", "r1"
		mustCreate(t, hub, mc)
		if err := membership.Leave(ctx, hub.Config, "eu-1", membership.LeaveOptions{Abandon: true}); err != nil {
			t.Error(err)
		}
		if err := hub.Client.Get(ctx, client.ObjectKeyFromObject(mc), mc); !apierrors.IsNotFound(err) {
			t.Errorf("the MemberCache: %v, want that it is gone", err)
		}
	})

	t.Run("a name may go to another cluster after leave, and back after a forced one", func(t *testing.T) {
		if err := joinOther("eu-1"); err != nil {
			t.Fatal(err)
		}
		if err := membership.Leave(ctx, hub.Config, "eu-1", membership.LeaveOptions{Abandon: true}); err != nil {
			t.Fatal(err)
		}
		if err := join("eu-1", membership.Options{}); err != nil {
			t.Fatal(err)
		}
		wantError(t, joinOther("eu-1"), uidOf(t, member))
	})

	t.Run("a membership of an earlier version takes the cluster that joins next, and remembers it", func(t *testing.T) {
		forget := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":null}}`))
		for _, o := range []client.Object{profileNamed(key), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "eu-1-kubeconfig"}}} {
			if err := hub.Client.Patch(ctx, o, forget); err != nil {
				t.Fatal(err)
			}
		}
		if err := joinOther("eu-1"); err != nil {
			t.Fatal(err)
		}
		wantError(t, join("eu-1", membership.Options{}), "member eu-1 is another cluster")
		if err := membership.Leave(ctx, hub.Config, "eu-1", membership.LeaveOptions{Member: other.Config}); err != nil {
			t.Fatal(err)
		}
	})

	t.Run("a cluster whose former name is gone may join under another, and leaves without a trace", func(t *testing.T) {
		if err := join("eu-2", membership.Options{}); err != nil {
			t.Fatal(err)
		}
		if err := membership.Leave(ctx, hub.Config, "eu-2", membership.LeaveOptions{Member: member.Config}); err != nil {
			t.Fatal(err)
		}
		for k := range versions(t, hub, member) {
			// Without its controller, a deleted namespace stays.
			if !strings.Contains(k, "Namespace") {
				t.Errorf("still there: %s", k)
			}
		}
		var ns corev1.Namespace
		if err := member.Client.Get(ctx, types.NamespacedName{Name: v1alpha1.InventoryNamespace}, &ns); err != nil || ns.DeletionTimestamp == nil {
			t.Errorf("the member's namespace was not deleted: %v", err)
		}
	})
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
	l, err := labs.Open("anew")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	up := func(member *harness.Server) {
		t.Helper()
		told = nil
		var mu sync.Mutex
		p := rented{clusters: map[string]*harness.Server{labs.Hub: hub, "member-1": member}}
		if err := labs.Up(t.Context(), l, p, labs.Options{Members: 1, Report: func(_, step string) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, step)
		}}); err != nil {
			t.Fatal(err)
		}
	}
	const ending = "ending the membership of the cluster that it had before"
	up(first)
	held := &v1alpha1.MemberCache{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sessions.member-1", Finalizers: []string{v1alpha1.Finalizer}}}
	held.Spec.CacheCluster, held.Spec.Cluster, held.Spec.Revision = "sessions", "member-1", "r1"
	mustCreate(t, hub, held)

	up(first)
	if slices.Contains(told, ending) {
		t.Errorf("an up of a lab that is whole told %q", told)
	}
	if err := hub.Client.Get(t.Context(), client.ObjectKeyFromObject(held), held); err != nil {
		t.Fatalf("the MemberCache, after an up of a lab that is whole: %v", err)
	}

	up(second)
	if !slices.Contains(told, ending) {
		t.Errorf("it told %q, not that it ended a membership", told)
	}
	if host := credential(t, hub, "member-1").Host; host != second.Config.Host {
		t.Errorf("the hub has a credential for %s, want %s", host, second.Config.Host)
	}
	if err := hub.Client.Get(t.Context(), client.ObjectKeyFromObject(held), held); !apierrors.IsNotFound(err) {
		t.Errorf("the MemberCache of the lost cluster: %v, want that it is gone", err)
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

// uidOf is what tells a cluster from all others.
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

// may says whether user has a right in the member, by the member's own account.
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
