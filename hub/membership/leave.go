package membership

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// ErrPlaced is returned by Leave for a member on which CacheClusters are placed.
var ErrPlaced = errors.New("still runs")

// LeaveOptions of Leave. The zero value removes the objects of the hub only.
type LeaveOptions struct {
	// Namespace of the inventory on the hub; v1alpha1.InventoryNamespace if empty.
	Namespace string
	// Member is admin access to the member, to delete what Join created there. The
	// credential of the hub has no right to do so. Nothing is deleted there if nil.
	Member *rest.Config
	// Abandon leaves although MemberCaches are placed on the member. Their children are
	// orphaned.
	Abandon bool
	// Report is called with each step, and with what remains in the member, if set.
	Report func(step string)
}

// Leave ends a membership: first on the hub, so that nothing uses the credential any more,
// then in the member. An unreachable member is no error; what remains there is reported.
func Leave(ctx context.Context, hub *rest.Config, name string, o LeaveOptions) error {
	if o.Namespace == "" {
		o.Namespace = v1alpha1.InventoryNamespace
	}
	if o.Report == nil {
		o.Report = func(string) {}
	}
	if err := ValidateName(name); err != nil {
		return err
	}
	h, err := connect(ctx, hub)
	if err != nil {
		return fmt.Errorf("hub: %w", err)
	}
	placed, err := h.memberCaches(ctx, name)
	if err != nil {
		return fmt.Errorf("hub: %w", err)
	}
	if len(placed) > 0 && !o.Abandon {
		return h.placedError(ctx, name, placed)
	}

	m, err := connectMember(ctx, h, name, o)
	if err != nil {
		return err
	}
	if err := h.checkProfileOwner(ctx, o.Namespace, name); err != nil {
		return fmt.Errorf("hub: %w", err)
	}
	if len(placed) > 0 {
		if err := h.disconnect(ctx, o.Namespace, name); err != nil {
			return fmt.Errorf("hub: %w", err)
		}
	}
	found, err := h.removeFromHub(ctx, o.Namespace, name)
	if err != nil {
		return fmt.Errorf("hub: %w", err)
	}
	if len(placed) > 0 {
		abandoned, err := h.abandon(ctx, name)
		if err != nil {
			return fmt.Errorf("hub: %w", err)
		}
		for i := range abandoned {
			o.Report(orphanedChildren(&abandoned[i]))
		}
		if err := h.recordAbandoned(ctx, abandoned, time.Now()); err != nil {
			o.Report(fmt.Sprintf("no event was created on the hub: %v", err))
		}
	}
	if !found && m == nil && len(placed) == 0 {
		return fmt.Errorf("there is no member %s in namespace %s of the hub; list the members: kubectl get clusterprofiles -n %s", name, o.Namespace, o.Namespace)
	}
	if m == nil {
		o.Report("remaining in the member: " + manualCleanup(h.uid))
		return nil
	}
	o.Report("removing the service account and its rights from the member")
	if err := m.revoke(ctx, h.uid, o.Report); err != nil {
		o.Report(fmt.Sprintf("remaining in the member (%v): %s", err, manualCleanup(h.uid)))
	}
	return nil
}

// connectMember connects to the member, or returns nil and reports that it is unreachable.
// It refuses another cluster before anything is deleted: the right one would keep the
// ServiceAccount and its rights, and no text would name them.
func connectMember(ctx context.Context, h *cluster, name string, o LeaveOptions) (*cluster, error) {
	if o.Member == nil {
		return nil, nil
	}
	m, err := connect(ctx, o.Member)
	if err == nil {
		var known string
		if known, err = m.memberName(ctx, h.uid); err == nil && known != "" && known != name {
			return nil, fmt.Errorf("the kubeconfig is of member %s, not of %s; nothing was removed", known, name)
		}
	}
	if err == nil {
		former, err := h.knownMember(ctx, o.Namespace, name)
		if err != nil {
			return nil, fmt.Errorf("hub: %w", err)
		}
		if former.differsFrom(m) {
			return nil, fmt.Errorf("%w; nothing was removed; pass the kubeconfig or --context of member %s, or --keep-member to end the membership on the hub only",
				former.otherClusterError(m, name, o.Member.Host), name)
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		o.Report(fmt.Sprintf("member %s is unreachable: %v", name, err))
		return nil, nil
	}
	return m, nil
}

// checkProfileOwner returns an error if the ClusterProfile belongs to another cluster
// manager. It is called before anything is deleted.
func (c *cluster) checkProfileOwner(ctx context.Context, namespace, name string) error {
	var p inventoryv1alpha1.ClusterProfile
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &p)
	if err == nil && p.Spec.ClusterManager.Name != ClusterManager {
		return fmt.Errorf("ClusterProfile %s/%s belongs to the cluster manager %q, which must delete it", namespace, name, p.Spec.ClusterManager.Name)
	}
	if meta.IsNoMatchError(err) {
		return nil
	}
	return client.IgnoreNotFound(err)
}

// removeFromHub deletes ClusterProfile and credential. It reports whether either existed.
func (c *cluster) removeFromHub(ctx context.Context, namespace, name string) (bool, error) {
	found := false
	var p inventoryv1alpha1.ClusterProfile
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &p)
	switch {
	case err == nil:
		found = true
		if err := c.remove(ctx, &p); err != nil {
			return false, err
		}
	case !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err):
		return false, err
	}
	var secret corev1.Secret
	err = c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: credentialSecret(name)}, &secret)
	if err != nil {
		return found, client.IgnoreNotFound(err)
	}
	if secret.Labels[v1alpha1.LabelCredentialOf] != name {
		return found, nil
	}
	return true, c.remove(ctx, &secret)
}

// revoke deletes what Join created in a member for the hub, and what it created for all
// hubs if this was the last one. The namespace is deleted only if it has no other objects:
// the member may itself be a hub.
func (c *cluster) revoke(ctx context.Context, hubUID string, report func(string)) error {
	namespaced := metav1.ObjectMeta{Namespace: memberNamespace}
	own := corev1.Secret{ObjectMeta: namespaced}
	own.Name = tokenSecret(hubUID)
	if err := c.remove(ctx, &own); err != nil {
		return err
	}
	var secrets corev1.SecretList
	if err := c.List(ctx, &secrets, client.InNamespace(memberNamespace)); err != nil {
		return err
	}
	for _, s := range secrets.Items {
		if s.Annotations[annotationMember] != "" && s.Name != own.Name {
			report("the service account remains in the member: another hub uses it")
			return nil
		}
	}
	account := corev1.ServiceAccount{ObjectMeta: namespaced}
	account.Name = serviceAccount
	binding := rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: clusterRole}}
	role := rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: clusterRole}}
	for _, obj := range []client.Object{&binding, &role, &account} {
		if err := c.remove(ctx, obj); err != nil {
			return err
		}
	}
	var accounts corev1.ServiceAccountList
	if err := c.List(ctx, &accounts, client.InNamespace(memberNamespace)); err != nil {
		return err
	}
	for _, a := range accounts.Items {
		if a.Name != "default" && a.Name != serviceAccount {
			return nil
		}
	}
	for _, s := range secrets.Items {
		if s.Name != own.Name && s.Type != corev1.SecretTypeServiceAccountToken {
			return nil
		}
	}
	var ns corev1.Namespace
	err := c.Get(ctx, client.ObjectKey{Name: memberNamespace}, &ns)
	if err != nil || c.uid == hubUID || ns.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedBy {
		return client.IgnoreNotFound(err)
	}
	return c.remove(ctx, &ns)
}

// manualCleanup returns the commands that delete what Leave could not.
func manualCleanup(hubUID string) string {
	return fmt.Sprintf("the service account and its rights; delete them in the member: kubectl delete -n %s secret/%s; and, if no other hub uses the member (kubectl get secrets -n %s shows one %s-UID for each): kubectl delete clusterrolebinding/%s clusterrole/%s && kubectl delete -n %s serviceaccount/%s",
		memberNamespace, tokenSecret(hubUID), memberNamespace, serviceAccount, clusterRole, clusterRole, memberNamespace, serviceAccount)
}

// sample joins at most n names and counts the others.
func sample(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}
