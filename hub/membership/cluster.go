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
	// ClusterManager is the name under which Join owns ClusterProfiles.
	ClusterManager = "reconcile-lab"
	// FieldManager of everything that Join applies.
	FieldManager = "reconcile-lab-join"

	// memberNamespace, serviceAccount and the names of the ClusterRole and its
	// binding are those in member.yaml.
	memberNamespace = "reconcile-lab-system"
	serviceAccount  = "reconcile-lab"
	clusterRole     = "reconcile-lab-member"

	// annotationMember on a token Secret is the member's name on the hub that the
	// Secret is for.
	annotationMember = "cache.reconcile-lab.io/member"
	// annotationServer on the hub's Secret is the address that Join was given, so that
	// a Join without one keeps it.
	annotationServer = "cache.reconcile-lab.io/server"
	// annotationCluster on what Join writes to the hub is the UID of namespace
	// kube-system in the member: of which cluster the membership is, whatever its
	// address. It is on the Secret and on the ClusterProfile, because each may be
	// deleted alone, and joining again is what repairs that.
	annotationCluster = "cache.reconcile-lab.io/cluster-uid"

	callTimeout  = 15 * time.Second
	settleWait   = 30 * time.Second
	settlePeriod = 200 * time.Millisecond
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

// cluster is one side of a membership, with the identity by which two hubs
// that share a member, or a hub that is its own member, are told apart.
type cluster struct {
	client.Client
	uid string
}

func connect(ctx context.Context, cfg *rest.Config) (*cluster, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = callTimeout
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	// kube-system is made by the API server itself, a moment after it is ready.
	var system corev1.Namespace
	err = settle(ctx, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKey{Name: "kube-system"}, &system)
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		return nil, fmt.Errorf("reading namespace kube-system: %w", err)
	}
	return &cluster{Client: c, uid: string(system.UID)}, nil
}

// settle polls for what a cluster does by itself shortly after a write.
func settle(ctx context.Context, done wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextTimeout(ctx, settlePeriod, settleWait, true, done)
}

// apply makes obj so, taking over fields that others have set: the caller has
// checked that the object is ours. It writes nothing if it is so already.
func (c *cluster) apply(ctx context.Context, obj *unstructured.Unstructured) error {
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj.DeepCopy()), client.FieldOwner(FieldManager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("applying %s %s: %w", obj.GetKind(), obj.GetName(), err)
	}
	return nil
}

// remove deletes obj; it is no error if it is gone.
func (c *cluster) remove(ctx context.Context, obj client.Object) error {
	if err := client.IgnoreNotFound(c.Delete(ctx, obj)); err != nil {
		return fmt.Errorf("deleting %T %s: %w", obj, obj.GetName(), err)
	}
	return nil
}

// memberObjects are the objects of member.yaml, in the order of their applying.
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

// namespaceFree waits for a namespace that a former leave is still deleting.
func (c *cluster) namespaceFree(ctx context.Context, name string) error {
	err := settle(ctx, func(ctx context.Context) (bool, error) {
		var ns corev1.Namespace
		err := c.Get(ctx, client.ObjectKey{Name: name}, &ns)
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return err == nil && ns.DeletionTimestamp == nil, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("namespace %s is being deleted for more than %s: see what holds it with kubectl get namespace %s -o yaml, then try again", name, settleWait, name)
	}
	return err
}

// tokenSecret is the name of the Secret in a member that holds the token of one
// hub, so that one hub's leaving revokes no other hub's access.
func tokenSecret(hubUID string) string { return serviceAccount + "-" + hubUID }

// credentialSecret is the name of the Secret on the hub.
func credentialSecret(member string) string { return member + "-kubeconfig" }
