package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
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
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/hub/membership"
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
	member := startAPIServer(t)
	issueTokens(t, member)
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
