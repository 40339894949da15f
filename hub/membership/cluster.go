package membership

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

const (
	// ClusterManager is the name of the cluster manager in the ClusterProfiles of Join.
	ClusterManager = "reconcile-lab"
	// FieldManager owns the fields that Join applies.
	FieldManager = "reconcile-lab-join"

	// memberNamespace, serviceAccount and clusterRole are the names in member.yaml.
	memberNamespace = "reconcile-lab-system"
	serviceAccount  = "reconcile-lab"
	clusterRole     = "reconcile-lab-member"

	// annotationMember on a token Secret is the name of the member on the hub that uses
	// the Secret.
	annotationMember = "cache.reconcile-lab.io/member"
	// annotationServer on the Secret of the hub is Options.Server of the last Join. A Join
	// without a server keeps it.
	annotationServer = "cache.reconcile-lab.io/server"
	// annotationCluster on the objects of the hub is the UID of namespace kube-system in
	// the member. It identifies the cluster, whatever its address. It is on the Secret and
	// on the ClusterProfile, because either may be deleted alone, and Join repairs that.
	annotationCluster = "cache.reconcile-lab.io/cluster-uid"

	requestTimeout = 15 * time.Second
	pollTimeout    = 30 * time.Second
	pollInterval   = 200 * time.Millisecond
)

//go:embed member.yaml
var memberYAML []byte

var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(v1alpha1.AddToScheme(s))
	utilruntime.Must(inventoryv1alpha1.AddToScheme(s))
	return s
}()

// cluster is one side of a membership. The uid distinguishes two hubs that share a
// member, and a hub that is its own member.
type cluster struct {
	client.Client
	uid string
}

// connect returns a cluster after one successful request.
func connect(ctx context.Context, cfg *rest.Config) (*cluster, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = requestTimeout
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	// The API server creates kube-system a moment after it is ready.
	var system corev1.Namespace
	err = poll(ctx, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKey{Name: "kube-system"}, &system)
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		return nil, fmt.Errorf("read namespace kube-system: %w", err)
	}
	return &cluster{Client: c, uid: string(system.UID)}, nil
}

// poll waits for something that a cluster does shortly after a write.
func poll(ctx context.Context, done wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextTimeout(ctx, pollInterval, pollTimeout, true, done)
}

// apply applies obj and takes over fields of other field managers. The caller has
// checked that the object is its own. An equal object is not written.
func (c *cluster) apply(ctx context.Context, obj *unstructured.Unstructured) error {
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj.DeepCopy()), client.FieldOwner(FieldManager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", obj.GetKind(), obj.GetName(), err)
	}
	return nil
}

// remove deletes obj. An object that is gone is no error.
func (c *cluster) remove(ctx context.Context, obj client.Object) error {
	if err := client.IgnoreNotFound(c.Delete(ctx, obj)); err != nil {
		return fmt.Errorf("delete %T %s: %w", obj, obj.GetName(), err)
	}
	return nil
}

// memberObjects returns the objects of member.yaml, in the order in which they are
// applied.
func memberObjects() ([]*unstructured.Unstructured, error) {
	var objs []*unstructured.Unstructured
	dec := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(memberYAML), 4096)
	for {
		u := &unstructured.Unstructured{}
		if err := dec.Decode(u); errors.Is(err, io.EOF) {
			return objs, nil
		} else if err != nil {
			return nil, fmt.Errorf("member.yaml: %w", err)
		}
		objs = append(objs, u)
	}
}

func object(apiVersion, kind, namespace, name string, labels map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetLabels(labels)
	return u
}

func namespace(name string) *unstructured.Unstructured {
	return object("v1", "Namespace", "", name, map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy})
}

// awaitNamespaceDeletion waits while an earlier Leave still deletes a namespace.
func (c *cluster) awaitNamespaceDeletion(ctx context.Context, name string) error {
	err := poll(ctx, func(ctx context.Context) (bool, error) {
		var ns corev1.Namespace
		err := c.Get(ctx, client.ObjectKey{Name: name}, &ns)
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return err == nil && ns.DeletionTimestamp == nil, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("namespace %s is being deleted for more than %s; see what blocks the deletion: kubectl get namespace %s -o yaml; then run the command again", name, pollTimeout, name)
	}
	return err
}

// tokenSecret returns the name of the Secret in a member that has the token of one hub.
// Each hub has its own, so that Leave revokes no access of another hub.
func tokenSecret(hubUID string) string { return serviceAccount + "-" + hubUID }

// credentialSecret returns the name of the Secret on the hub.
func credentialSecret(member string) string { return member + "-kubeconfig" }
