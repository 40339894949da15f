package fault

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/lab"
)

// credential is what faults change in the hub's Secret for a member. Several faults can
// change it at the same time and be undone in any order: the content is computed from the
// original Secret and the faults that remain.
type credential struct {
	// Secret is the Secret before the first fault.
	Secret *object `json:"secret"`
	// Written are the kubeconfigs that faults have written. Any other content is from
	// another client.
	Written [][]byte `json:"written,omitempty"`
	// Expired is true if the Secret contains an expired token.
	Expired bool `json:"expired,omitempty"`
	// Route is the proxy to which the Secret points, if any.
	Route *route `json:"route,omitempty"`
}

// expiredCredential replaces the token of a member with an expired one.
type expiredCredential struct{}

func (expiredCredential) prepare(ctx context.Context, i *Injector, f *Fault) error {
	f.Description = "the hub's credential for " + f.Request.Member + " is expired"
	if err := i.checkMember(f); err != nil {
		return err
	}
	return i.saveCredential(ctx, f.Request.Member)
}

func (expiredCredential) inject(ctx context.Context, i *Injector, f *Fault) error {
	return i.changeCredential(ctx, f.Request.Member, func(c *credential) { c.Expired = true })
}

func (expiredCredential) undo(ctx context.Context, i *Injector, f *Fault) (string, error) {
	return "the earlier credential is restored", i.changeCredential(ctx, f.Request.Member, func(c *credential) { c.Expired = false })
}

// saveCredential records the Secret of a member unless another fault has recorded it.
func (i *Injector) saveCredential(ctx context.Context, member string) error {
	if _, saved := i.state.Credentials[member]; saved {
		return nil
	}
	hub, err := i.client(lab.Hub)
	if err != nil {
		return err
	}
	secret, err := readCredential(ctx, hub, member)
	if err != nil {
		return err
	}
	i.state.Credentials[member] = credential{Secret: &object{Before: secret}}
	return nil
}

// errNoCredential is the error of a member that has left the hub.
var errNoCredential = errors.New("the hub has no credential")

// readCredential returns the Secret that the hub uses for a member: the first by name.
func readCredential(ctx context.Context, hub client.Client, member string) (*unstructured.Unstructured, error) {
	secrets := &unstructured.UnstructuredList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := hub.List(ctx, secrets, client.InNamespace(v1alpha1.InventoryNamespace), client.MatchingLabels{v1alpha1.LabelCredentialOf: member}); err != nil {
		return nil, fmt.Errorf("read the hub's credential for %s: %w", member, err)
	}
	if len(secrets.Items) == 0 {
		return nil, fmt.Errorf("%w for %s; run reconcile-lab up", errNoCredential, member)
	}
	return &secrets.Items[0], nil
}

// kubeconfigOf returns the kubeconfig in a credential Secret.
func kubeconfigOf(secret *unstructured.Unstructured) ([]byte, error) {
	text, _, err := unstructured.NestedString(secret.Object, "data", v1alpha1.CredentialKey)
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(text)
}

// changeCredential changes what faults do to the credential of a member, and writes the
// resulting Secret.
func (i *Injector) changeCredential(ctx context.Context, member string, change func(*credential)) error {
	c, saved := i.state.Credentials[member]
	if !saved {
		return nil
	}
	change(&c)
	hub, err := i.client(lab.Hub)
	if err != nil {
		return err
	}
	live, err := c.Secret.read(ctx, hub)
	if err != nil {
		return fmt.Errorf("read the hub's credential for %s: %w", member, err)
	}
	current, err := kubeconfigOf(live)
	if err != nil {
		return err
	}
	if c.wroteLast(current) {
		desired, err := c.kubeconfig()
		if err != nil {
			return err
		}
		c.Written = append(c.Written, desired)
		i.state.Credentials[member] = c
		if err := i.state.save(i.lab); err != nil {
			return err
		}
		if err := c.write(ctx, hub, live, desired); err != nil {
			return fmt.Errorf("write the hub's credential for %s: %w", member, err)
		}
	}
	if c.changed() {
		i.state.Credentials[member] = c
	} else {
		delete(i.state.Credentials, member)
	}
	return i.state.save(i.lab)
}

// wroteLast reports whether no other client has written the Secret since the first fault.
// Another client is usually `reconcile-lab join`, whose new credential must be kept.
func (c *credential) wroteLast(current []byte) bool {
	original, err := kubeconfigOf(c.Secret.Before)
	return err != nil || bytes.Equal(current, original) || slices.ContainsFunc(c.Written, func(w []byte) bool { return bytes.Equal(current, w) })
}

// changed reports whether a fault changes the credential.
func (c *credential) changed() bool { return c.Expired || c.Route != nil }

// kubeconfig returns the desired content of the Secret.
func (c *credential) kubeconfig() ([]byte, error) {
	original, err := kubeconfigOf(c.Secret.Before)
	if err != nil || !c.changed() {
		return original, err
	}
	config, err := clientcmd.Load(original)
	if err != nil {
		return nil, err
	}
	if c.Expired {
		setExpiredToken(config)
	}
	if c.Route != nil {
		for _, cluster := range config.Clusters {
			cluster.Server, cluster.CertificateAuthorityData, cluster.TLSServerName = "https://"+c.Route.Address, c.Route.Authority, ""
		}
	}
	return clientcmd.Write(*config)
}

// write writes a kubeconfig to the live Secret. It restores the owners of fields if no
// fault changes the credential any more.
func (c *credential) write(ctx context.Context, hub client.Client, live *unstructured.Unstructured, kubeconfig []byte) error {
	if err := unstructured.SetNestedField(live.Object, base64.StdEncoding.EncodeToString(kubeconfig), "data", v1alpha1.CredentialKey); err != nil {
		return err
	}
	if err := hub.Update(ctx, live, client.FieldOwner(defaultManager)); err != nil || c.changed() {
		return err
	}
	return c.Secret.restoreOwners(ctx, hub, live, defaultManager)
}

// setExpiredToken replaces each user with a token that expired an hour ago. Its signature
// is invalid; an API server refuses it in the same way as an expired one.
func setExpiredToken(config *clientcmdapi.Config) {
	encode := func(claims map[string]any) string {
		content, err := json.Marshal(claims)
		if err != nil {
			return ""
		}
		return base64.RawURLEncoding.EncodeToString(content)
	}
	expiry := time.Now().Add(-time.Hour)
	for _, user := range config.AuthInfos {
		*user = clientcmdapi.AuthInfo{Token: strings.Join([]string{
			encode(map[string]any{"alg": "RS256", "typ": "JWT"}),
			encode(map[string]any{
				"iss": "kubernetes/serviceaccount", "sub": "system:serviceaccount:reconcile-lab-system:reconcile-lab",
				"iat": expiry.Add(-time.Hour).Unix(), "exp": expiry.Unix(),
			}),
			base64.RawURLEncoding.EncodeToString([]byte("expired")),
		}, ".")}
	}
}

// updateCredentialServer writes the current address of a member to its Secret. Docker can
// assign another address when it starts a container.
func (i *Injector) updateCredentialServer(ctx context.Context, member string) error {
	if _, saved := i.state.Credentials[member]; saved {
		return nil
	}
	content, err := i.provider.PodKubeconfig(ctx, member)
	if err != nil {
		return err
	}
	current, err := clientcmd.RESTConfigFromKubeConfig(content)
	if err != nil {
		return err
	}
	hub, err := i.client(lab.Hub)
	if err != nil {
		return err
	}
	secret, err := readCredential(ctx, hub, member)
	if errors.Is(err, errNoCredential) {
		return nil
	}
	if err != nil {
		return err
	}
	kubeconfig, err := kubeconfigOf(secret)
	if err != nil {
		return err
	}
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return err
	}
	changed := false
	for _, c := range config.Clusters {
		changed = changed || c.Server != current.Host
		c.Server = current.Host
	}
	if !changed {
		return nil
	}
	if kubeconfig, err = clientcmd.Write(*config); err != nil {
		return err
	}
	updated := &credential{Secret: &object{Before: secret}}
	return updated.write(ctx, hub, secret.DeepCopy(), kubeconfig)
}
