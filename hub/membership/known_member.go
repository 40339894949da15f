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

// knownMember is what the hub has recorded of the last Join of a name. It is zero for a
// new name.
type knownMember struct {
	// uid identifies the cluster. It is empty for a new name, and for a Join of a version
	// that did not record it; any cluster may then join.
	uid string
	// server is Options.Server of that Join, and host the address in the credential.
	server, host string
}

// knownMember returns what the hub has recorded of a name. A ClusterProfile of another
// cluster manager is ignored.
func (c *cluster) knownMember(ctx context.Context, namespace, name string) (knownMember, error) {
	var secret corev1.Secret
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: credentialSecret(name)}, &secret)
	if client.IgnoreNotFound(err) != nil {
		return knownMember{}, err
	}
	known := knownMember{uid: secret.Annotations[annotationCluster], server: secret.Annotations[annotationServer]}
	if cfg, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[v1alpha1.CredentialKey]); err == nil {
		known.host = cfg.Host
	}
	if known.uid != "" {
		return known, nil
	}
	var p inventoryv1alpha1.ClusterProfile
	err = c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &p)
	if meta.IsNoMatchError(err) {
		return known, nil
	}
	known.uid = p.Annotations[annotationCluster]
	return known, client.IgnoreNotFound(err)
}

// differsFrom reports whether a cluster is not the one that joined.
func (k knownMember) differsFrom(m *cluster) bool { return k.uid != "" && k.uid != m.uid }

// otherClusterError returns an error that names UIDs and addresses of both clusters. The
// addresses help to recognize them and do not identify them.
func (k knownMember) otherClusterError(m *cluster, name, host string) error {
	at := ""
	if k.host != "" {
		at = " at " + k.host
	}
	return fmt.Errorf("member %s %w than that of the kubeconfig: on the hub it is the cluster%s whose namespace kube-system has the UID %s; the kubeconfig connects to %s with the UID %s",
		name, ErrOther, at, k.uid, host, m.uid)
}
