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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/lab"
)

// credential is what faults make of the hub's Secret for a member. Several may do so
// at once and go in any order: what the Secret holds follows from what it held
// before all of them, and from those that are left.
type credential struct {
	// Secret as it was before.
	Secret *object `json:"secret"`
	// Wrote is what we ever put there; anything else is somebody else's.
	Wrote [][]byte `json:"wrote,omitempty"`
	// Expired says that it is to be one that has expired.
	Expired bool `json:"expired,omitempty"`
	// Way is the proxy that it is to lead through.
	Way *way `json:"way,omitempty"`
}

// expired is a credential that has expired, in the place of the good one.
type expired struct{}

func (expired) prepare(ctx context.Context, i *Injector, f *Fault) error {
	f.What = "the hub's credential for " + f.Request.Member + " is one that has expired"
	if err := i.needsMember(f); err != nil {
		return err
	}
	return i.holdCredential(ctx, f.Request.Member)
}

func (expired) do(ctx context.Context, i *Injector, f *Fault) error {
	return i.changeCredential(ctx, f.Request.Member, func(c *credential) { c.Expired = true })
}

func (expired) undo(ctx context.Context, i *Injector, f *Fault) (string, error) {
	return "the earlier credential is back", i.changeCredential(ctx, f.Request.Member, func(c *credential) { c.Expired = false })
}

// holdCredential remembers the Secret, if no other fault has done so.
func (i *Injector) holdCredential(ctx context.Context, member string) error {
	if _, held := i.state.Credentials[member]; held {
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

// errNoCredential: the member has left.
var errNoCredential = errors.New("the hub has no credential")

// readCredential finds the Secret as the hub does: the first by name.
func readCredential(ctx context.Context, hub client.Client, member string) (*unstructured.Unstructured, error) {
	secrets := &unstructured.UnstructuredList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := hub.List(ctx, secrets, client.InNamespace(v1alpha1.InventoryNamespace), client.MatchingLabels{v1alpha1.LabelCredentialOf: member}); err != nil {
		return nil, fmt.Errorf("read the hub's credential for %s: %w", member, err)
	}
	if len(secrets.Items) == 0 {
		return nil, fmt.Errorf("%w for %s: run reconcile-lab up", errNoCredential, member)
	}
	return &secrets.Items[0], nil
}

func kubeconfigOf(secret *unstructured.Unstructured) ([]byte, error) {
	text, _, err := unstructured.NestedString(secret.Object, "data", v1alpha1.CredentialKey)
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(text)
}

// changeCredential makes the Secret what is left of the faults, or what it was.
func (i *Injector) changeCredential(ctx context.Context, member string, change func(*credential)) error {
	c, held := i.state.Credentials[member]
	if !held {
		return nil
	}
	change(&c)
	hub, err := i.client(lab.Hub)
	if err != nil {
		return err
	}
	now, err := c.Secret.read(ctx, hub)
	if err != nil {
		return fmt.Errorf("read the hub's credential for %s: %w", member, err)
	}
	is, err := kubeconfigOf(now)
	if err != nil {
		return err
	}
	if c.ours(is) {
		wanted, err := c.content()
		if err != nil {
			return err
		}
		c.Wrote = append(c.Wrote, wanted)
		i.state.Credentials[member] = c
		if err := i.state.save(i.Lab); err != nil {
			return err
		}
		if err := c.write(ctx, hub, now, wanted); err != nil {
			return fmt.Errorf("write the hub's credential for %s: %w", member, err)
		}
	}
	if c.inUse() {
		i.state.Credentials[member] = c
	} else {
		delete(i.state.Credentials, member)
	}
	return i.state.save(i.Lab)
}

// ours says whether nobody else has written the Secret since. join does, to repair a
// membership: then that is what counts.
func (c *credential) ours(is []byte) bool {
	before, err := kubeconfigOf(c.Secret.Before)
	return err != nil || bytes.Equal(is, before) || slices.ContainsFunc(c.Wrote, func(w []byte) bool { return bytes.Equal(is, w) })
}

func (c *credential) inUse() bool { return c.Expired || c.Way != nil }

// content of the Secret now.
func (c *credential) content() ([]byte, error) {
	before, err := kubeconfigOf(c.Secret.Before)
	if err != nil || !c.inUse() {
		return before, err
	}
	config, err := clientcmd.Load(before)
	if err != nil {
		return nil, err
	}
	if c.Expired {
		expire(config)
	}
	if c.Way != nil {
		for _, cluster := range config.Clusters {
			cluster.Server, cluster.CertificateAuthorityData, cluster.TLSServerName = "https://"+c.Way.Address, c.Way.Authority, ""
		}
	}
	return clientcmd.Write(*config)
}

func (c *credential) write(ctx context.Context, hub client.Client, now *unstructured.Unstructured, content []byte) error {
	if err := unstructured.SetNestedField(now.Object, base64.StdEncoding.EncodeToString(content), "data", v1alpha1.CredentialKey); err != nil {
		return err
	}
	if err := hub.Update(ctx, now, client.FieldOwner(defaultManager)); err != nil || c.inUse() {
		return err
	}
	return c.Secret.restoreOwners(ctx, hub, now, defaultManager)
}

// expire gives each user a token that ended an hour ago. It is signed by nobody: an
// API server refuses it as it refuses one that has expired.
func expire(config *clientcmdapi.Config) {
	encode := func(claims map[string]any) string {
		content, err := json.Marshal(claims)
		if err != nil {
			return ""
		}
		return base64.RawURLEncoding.EncodeToString(content)
	}
	ended := time.Now().Add(-time.Hour)
	for _, user := range config.AuthInfos {
		*user = clientcmdapi.AuthInfo{Token: strings.Join([]string{
			encode(map[string]any{"alg": "RS256", "typ": "JWT"}),
			encode(map[string]any{
				"iss": "kubernetes/serviceaccount", "sub": "system:serviceaccount:reconcile-lab-system:reconcile-lab",
				"iat": metav1.NewTime(ended.Add(-time.Hour)).Unix(), "exp": ended.Unix(),
			}),
			base64.RawURLEncoding.EncodeToString([]byte("expired")),
		}, ".")}
	}
}

// follow makes the credential name the member's present address, which Docker may
// change when it starts a container again.
func (i *Injector) follow(ctx context.Context, member string) error {
	if _, held := i.state.Credentials[member]; held {
		return nil
	}
	content, err := i.Provider.PodKubeconfig(ctx, member)
	if err != nil {
		return err
	}
	there, err := clientcmd.RESTConfigFromKubeConfig(content)
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
		changed = changed || c.Server != there.Host
		c.Server = there.Host
	}
	if !changed {
		return nil
	}
	if kubeconfig, err = clientcmd.Write(*config); err != nil {
		return err
	}
	moved := &credential{Secret: &object{Before: secret}}
	return moved.write(ctx, hub, secret.DeepCopy(), kubeconfig)
}
