package membership

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

var (
	// ErrMember is wrapped by every error of the member, in contrast to the hub.
	ErrMember = errors.New("member")
	// ErrOther is returned by Join and Leave for a cluster that is not the one that joined
	// under the name.
	ErrOther = errors.New("is another cluster")
)

// Options of Join. The zero value is usable.
type Options struct {
	// Namespace of the inventory on the hub; v1alpha1.InventoryNamespace if empty.
	Namespace string
	// Labels of the ClusterProfile, for the selectors of placements. They replace the
	// labels of an earlier Join; nil keeps those, so that a repair moves no cache.
	Labels map[string]string
	// Server is the https address of the member for the hub. If empty, it is that of an
	// earlier Join, or else the one in the config of the member.
	Server string
	// Report is called with a short text at each step, if set.
	Report func(step string)
}

// Join makes a cluster a member of the hub under a name. It needs admin rights on both.
// A repeated Join repairs the membership, or changes its labels or server. Join fails before
// its first write where it can. It returns ErrOther for the name of another cluster.
func Join(ctx context.Context, hub, member *rest.Config, name string, o Options) error {
	if o.Namespace == "" {
		o.Namespace = v1alpha1.InventoryNamespace
	}
	if o.Report == nil {
		o.Report = func(string) {}
	}
	if err := ValidateName(name); err != nil {
		return err
	}
	if err := ValidateLabels(o.Labels); err != nil {
		return err
	}
	if _, err := credential(member, name, o.Server, ""); err != nil {
		return err
	}

	o.Report("checking the hub")
	h, err := connect(ctx, hub)
	if err != nil {
		return fmt.Errorf("hub: %w", err)
	}
	if err := h.checkHub(ctx, o.Namespace, name); err != nil {
		return fmt.Errorf("hub: %w", err)
	}
	known, err := h.knownMember(ctx, o.Namespace, name)
	if err != nil {
		return fmt.Errorf("hub: %w", err)
	}
	if o.Server == "" && known.server != "" {
		o.Server = known.server
		o.Report("keeping the server of the earlier join, " + o.Server)
	}
	o.Report("checking the member")
	m, err := connect(ctx, member)
	if err != nil {
		return fmt.Errorf("%w %s: %w", ErrMember, name, err)
	}
	if known.differsFrom(m) {
		return fmt.Errorf("%w; pass the kubeconfig or --context of member %s, or choose another name; to reuse the name, first end the other membership: reconcile-lab leave %s --kubeconfig FILE, or, if that cluster is gone: reconcile-lab leave %s --abandon --keep-member",
			known.otherClusterError(m, name, member.Host), name, name, name)
	}
	if err := h.checkMemberName(ctx, m, o.Namespace, name); err != nil {
		return err
	}

	o.Report("applying the service account and its rights")
	token, err := m.applyOnMember(ctx, h.uid, name)
	if err != nil {
		return fmt.Errorf("%w %s: %w", ErrMember, name, err)
	}
	kubeconfig, err := credential(member, name, o.Server, token)
	if err != nil {
		return err
	}
	o.Report("testing the new credential")
	if err := tryCredential(ctx, kubeconfig, member.Host); err != nil {
		return fmt.Errorf("%w %s: %w", ErrMember, name, err)
	}

	o.Report("applying the credential and ClusterProfile on the hub")
	if err := h.applyOnHub(ctx, name, m.uid, kubeconfig, o); err != nil {
		return fmt.Errorf("hub: %w", err)
	}
	return nil
}

// checkHub returns an error unless the hub serves ClusterProfiles, and the names that Join
// writes are unused or belong to this member.
func (c *cluster) checkHub(ctx context.Context, namespace, name string) error {
	if err := c.awaitNamespaceDeletion(ctx, namespace); err != nil {
		return err
	}
	if _, err := c.profile(ctx, namespace, name); err != nil {
		return err
	}
	var secret corev1.Secret
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: credentialSecret(name)}, &secret)
	if err == nil && secret.Labels[v1alpha1.LabelCredentialOf] != name {
		return fmt.Errorf("Secret %s/%s exists and is not the credential of a member; rename it, or choose another name for the member", namespace, secret.Name)
	}
	return client.IgnoreNotFound(err)
}

// profile returns the ClusterProfile of a name, or nil if it does not exist. One of
// another cluster manager is an error.
func (c *cluster) profile(ctx context.Context, namespace, name string) (*inventoryv1alpha1.ClusterProfile, error) {
	var p inventoryv1alpha1.ClusterProfile
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &p)
	switch {
	case meta.IsNoMatchError(err):
		return nil, errors.New("ClusterProfiles (multicluster.x-k8s.io) are not served; install the CRDs first: kubectl apply -f deploy/crd; or start a lab: reconcile-lab up")
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	case p.Spec.ClusterManager.Name != ClusterManager:
		return nil, fmt.Errorf("ClusterProfile %s/%s belongs to the cluster manager %q; choose another name for the member, or have %s delete it first",
			namespace, name, p.Spec.ClusterManager.Name, p.Spec.ClusterManager.Name)
	case p.DeletionTimestamp != nil:
		return nil, fmt.Errorf("ClusterProfile %s/%s is being deleted; run the command again when it is deleted", namespace, name)
	}
	return &p, nil
}

// checkMemberName refuses a cluster that is a member under another name: two MemberCaches
// would conflict over the same children.
func (c *cluster) checkMemberName(ctx context.Context, m *cluster, namespace, name string) error {
	known, err := m.memberName(ctx, c.uid)
	if err != nil || known == "" || known == name {
		return err
	}
	if p, err := c.profile(ctx, namespace, known); err != nil || p == nil {
		return err
	}
	return fmt.Errorf("the cluster is a member already, as %s; use that name, or end that membership first: reconcile-lab leave %s", known, known)
}

// memberName returns the name of this member on a hub, or an empty one.
func (c *cluster) memberName(ctx context.Context, hubUID string) (string, error) {
	var secret corev1.Secret
	err := c.Get(ctx, client.ObjectKey{Namespace: memberNamespace, Name: tokenSecret(hubUID)}, &secret)
	return secret.Annotations[annotationMember], client.IgnoreNotFound(err)
}

// applyOnMember applies the ServiceAccount with its rights, and returns its token for this
// hub. The token does not expire; deleting its Secret revokes it.
func (c *cluster) applyOnMember(ctx context.Context, hubUID, name string) (string, error) {
	if err := c.awaitNamespaceDeletion(ctx, memberNamespace); err != nil {
		return "", err
	}
	objs, err := memberObjects()
	if err != nil {
		return "", err
	}
	secret := object("v1", "Secret", memberNamespace, tokenSecret(hubUID), map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy})
	secret.SetAnnotations(map[string]string{corev1.ServiceAccountNameKey: serviceAccount, annotationMember: name})
	secret.Object["type"] = string(corev1.SecretTypeServiceAccountToken)
	for _, obj := range append(objs, secret) {
		if err := c.apply(ctx, obj); err != nil {
			return "", err
		}
	}
	var token string
	err = poll(ctx, func(ctx context.Context) (bool, error) {
		var s corev1.Secret
		if err := c.Get(ctx, client.ObjectKeyFromObject(secret), &s); err != nil {
			return false, err
		}
		token = string(s.Data[corev1.ServiceAccountTokenKey])
		return token != "", nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return "", fmt.Errorf("Secret %s/%s got no token within %s; check that kube-controller-manager runs in the member with --service-account-private-key-file",
			memberNamespace, secret.GetName(), pollTimeout)
	}
	return token, err
}

// tryCredential sends one request that needs the token and the rights. It uses the address
// that works from here, which may not be the one for the hub.
func tryCredential(ctx context.Context, kubeconfig []byte, host string) error {
	cfg, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return fmt.Errorf("use the new credential: %w", err)
	}
	cfg.Host, cfg.Timeout = host, requestTimeout
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("use the new credential: %w", err)
	}
	var last error
	err = poll(ctx, func(ctx context.Context) (bool, error) {
		last = c.List(ctx, &appsv1.StatefulSetList{}, client.Limit(1))
		// The API server learns of a new token and its rights with a delay.
		if apierrors.IsUnauthorized(last) || apierrors.IsForbidden(last) {
			return false, nil
		}
		return last == nil, last
	})
	if err == nil {
		return nil
	}
	if ctx.Err() == nil && last != nil {
		err = last
	}
	return fmt.Errorf("the new credential does not work: %w", err)
}

// applyOnHub applies the objects of the hub, the ClusterProfile last. uid identifies the
// member.
func (c *cluster) applyOnHub(ctx context.Context, name, uid string, kubeconfig []byte, o Options) error {
	secret := object("v1", "Secret", o.Namespace, credentialSecret(name), map[string]string{
		v1alpha1.LabelManagedBy:    v1alpha1.ManagedBy,
		v1alpha1.LabelCredentialOf: name,
	})
	annotations := map[string]string{annotationCluster: uid}
	if o.Server != "" {
		annotations[annotationServer] = o.Server
	}
	secret.SetAnnotations(annotations)
	secret.Object["type"] = string(corev1.SecretTypeOpaque)
	secret.Object["data"] = map[string]any{v1alpha1.CredentialKey: base64.StdEncoding.EncodeToString(kubeconfig)}

	labels := map[string]string{inventoryv1alpha1.LabelClusterManagerKey: ClusterManager}
	desired := o.Labels
	if desired == nil {
		known, err := c.profile(ctx, o.Namespace, name)
		if err != nil {
			return err
		}
		desired = joinedLabels(known)
	}
	for k, v := range desired {
		labels[k] = v
	}
	profile := object(inventoryv1alpha1.GroupVersion.String(), "ClusterProfile", o.Namespace, name, labels)
	profile.SetAnnotations(map[string]string{annotationCluster: uid})
	profile.Object["spec"] = map[string]any{
		"displayName":    name,
		"clusterManager": map[string]any{"name": ClusterManager},
	}
	for _, obj := range []*unstructured.Unstructured{namespace(o.Namespace), secret, profile} {
		if err := c.apply(ctx, obj); err != nil {
			return err
		}
	}
	return nil
}

// joinedLabels returns the labels of a ClusterProfile that an earlier Join set.
func joinedLabels(p *inventoryv1alpha1.ClusterProfile) map[string]string {
	labels := map[string]string{}
	if p == nil {
		return labels
	}
	for _, e := range p.ManagedFields {
		if e.Manager != FieldManager || e.Operation != metav1.ManagedFieldsOperationApply || e.FieldsV1 == nil {
			continue
		}
		var owned struct {
			Metadata struct {
				Labels map[string]any `json:"f:labels"`
			} `json:"f:metadata"`
		}
		if json.Unmarshal(e.FieldsV1.GetRawBytes(), &owned) != nil {
			continue
		}
		for field := range owned.Metadata.Labels {
			key := strings.TrimPrefix(field, "f:")
			if value, ok := p.Labels[key]; ok {
				labels[key] = value
			}
		}
	}
	return labels
}
