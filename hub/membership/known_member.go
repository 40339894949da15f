package membership

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/clientcmd"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// former is what the hub remembers of the last Join of a name. It is zero for a
// name that is new.
type former struct {
	// uid tells which cluster it was. Empty means that any may come: the name is
	// new, or its Join was of a version that did not write it down. The Join that
	// follows does.
	uid string
	// given is the address that Join was given, used the one in the credential.
	given, used string
}

// former reads what the hub remembers of a name. A foreign ClusterProfile is not
// refused here, and says nothing.
func (c *cluster) former(ctx context.Context, namespace, name string) (former, error) {
	var secret corev1.Secret
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: credentialSecret(name)}, &secret)
	if client.IgnoreNotFound(err) != nil {
		return former{}, err
	}
	f := former{uid: secret.Annotations[annotationCluster], given: secret.Annotations[annotationServer]}
	if cfg, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[v1alpha1.CredentialKey]); err == nil {
		f.used = cfg.Host
	}
	if f.uid != "" {
		return f, nil
	}
	var p inventoryv1alpha1.ClusterProfile
	err = c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &p)
	if meta.IsNoMatchError(err) {
		return f, nil
	}
	f.uid = p.Annotations[annotationCluster]
	return f, client.IgnoreNotFound(err)
}

// other tells a cluster that is not the one that the hub knows.
func (f former) other(m *cluster) bool { return f.uid != "" && f.uid != m.uid }

// refuse says how the two differ. The addresses help to recognize them, but do
// not tell them apart: a cluster moves, and another is made where one was.
func (f former) refuse(m *cluster, name, host string) error {
	at := ""
	if f.used != "" {
		at = " at " + f.used
	}
	return fmt.Errorf("member %s %w than the kubeconfig's: the hub knows it%s with the UID %s of namespace kube-system, the kubeconfig reaches %s with the UID %s",
		name, ErrOther, at, f.uid, host, m.uid)
}
