package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/lab"
)

// callTimeout bounds one request to the hub.
const callTimeout = 30 * time.Second

// hubFlags select the hub and the namespace.
type hubFlags struct {
	kubeconfig, context, lab, namespace string
}

func (f *hubFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig `file` of the hub")
	flags.StringVar(&f.context, "context", "", "context of the hub in the kubeconfig")
	flags.StringVar(&f.lab, "lab", "", "`name` of the lab whose hub is used")
	flags.StringVarP(&f.namespace, "namespace", "n", "", "namespace on the hub (default: the namespace of the context)")
}

// hub is a client of the hub. It is configured, not yet connected.
type hub struct {
	client.WithWatch
	config    *rest.Config
	namespace string
	// lab is the lab of the hub; "" if the configuration is from a kubeconfig.
	lab string
}

// clientConfig selects the hub in the order that the help of the root command lists.
// It returns the name of the lab too, "" for a hub from a kubeconfig.
func (f *hubFlags) clientConfig() (loader clientcmd.ClientConfig, labName string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.context}
	if f.lab != "" && (f.kubeconfig != "" || f.context != "") {
		return nil, "", badInput("--lab: %s: cannot be combined with --kubeconfig or --context; pass one or the other", f.lab)
	}
	switch {
	case f.kubeconfig != "":
		rules.ExplicitPath = f.kubeconfig
	case f.context == "":
		path, name, err := lab.ResolveKubeconfig(f.lab)
		if err != nil {
			return nil, "", badInput("%w", err)
		}
		if path != "" {
			rules.ExplicitPath = path
			overrides.CurrentContext = lab.Hub
			labName = name
		}
	}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides), labName, nil
}

func (a *app) connect() (*hub, error) {
	loader, labName, err := a.hub.clientConfig()
	if err != nil {
		return nil, err
	}
	config, err := loader.ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err), errors.Is(err, os.ErrNotExist) && a.hub.kubeconfig == "":
		return nil, withCode(exitUnreachable, errors.New("no hub is configured; start a lab with `reconcile-lab up`, or pass --kubeconfig"))
	case err != nil:
		return nil, badInput("%w", err)
	}
	namespace := a.hub.namespace
	if namespace == "" {
		if namespace, _, err = loader.Namespace(); err != nil {
			return nil, badInput("%w", err)
		}
	}
	config.UserAgent = "reconcile-lab"
	// A single command sends few requests. Client-side throttling would only delay it.
	config.QPS = -1
	config.WarningHandler = rest.NewWarningWriter(a.err, rest.WarningWriterOptions{Deduplicate: true})
	c, err := client.NewWithWatch(config, client.Options{Scheme: newScheme()})
	if err != nil {
		return nil, err
	}
	return &hub{WithWatch: c, config: config, namespace: namespace, lab: labName}, nil
}

// connectTo returns the hub and the namespace of a command. "" means all namespaces.
func (a *app) connectTo(allNamespaces bool) (*hub, string, error) {
	if allNamespaces && a.hub.namespace != "" {
		return nil, "", badInput("--all-namespaces: cannot be combined with --namespace %s; pass one of them", a.hub.namespace)
	}
	h, err := a.connect()
	if err != nil {
		return nil, "", err
	}
	if allNamespaces {
		return h, "", nil
	}
	return h, h.namespace, nil
}

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(v1alpha1.AddToScheme(s))
	utilruntime.Must(inventoryv1alpha1.AddToScheme(s))
	return s
}

// source returns the origin of the configuration, for messages.
func (h *hub) source() string {
	if h.lab != "" {
		return "lab " + h.lab
	}
	return "from a kubeconfig"
}

// wrapError adds the address of the hub and a fix to the error of a request.
func (h *hub) wrapError(err error) error {
	switch {
	case err == nil:
		return nil
	case isUnreachable(err), errors.Is(err, context.DeadlineExceeded):
		return withCode(exitUnreachable, fmt.Errorf("hub: %s (%s): unreachable; check that it runs, `reconcile-lab clusters` lists the clusters of a lab: %w", h.config.Host, h.source(), err))
	case isUnknownKind(err):
		return fmt.Errorf("hub: %s (%s): the cluster has no kind CacheCluster; select a hub with --kubeconfig, --context or --lab, or install the CRDs in deploy/crd", h.config.Host, h.source())
	}
	return err
}

// list returns the CacheClusters of a namespace ("" means all), sorted by namespace
// and name as the API server does.
func (h *hub) list(ctx context.Context, namespace string) ([]v1alpha1.CacheCluster, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var l v1alpha1.CacheClusterList
	if err := h.List(ctx, &l, client.InNamespace(namespace)); err != nil {
		return nil, h.wrapError(err)
	}
	return l.Items, nil
}

// selected returns the named CacheClusters in the order of names, or all of the
// namespace without names.
func (h *hub) selected(ctx context.Context, namespace string, names []string) ([]v1alpha1.CacheCluster, error) {
	all, err := h.list(ctx, namespace)
	if err != nil || len(names) == 0 {
		return all, err
	}
	var found []v1alpha1.CacheCluster
	for _, name := range names {
		n := len(found)
		for _, cc := range all {
			if cc.Name == name {
				found = append(found, cc)
			}
		}
		if len(found) == n {
			return nil, fmt.Errorf("CacheCluster: %s: not found in %s; list the names with `reconcile-lab get -A`", name, inNamespace(namespace))
		}
	}
	return found, nil
}

func (a *app) noteNoCaches(namespace string) {
	a.note("no CacheCluster found in %s", inNamespace(namespace))
}

func inNamespace(namespace string) string {
	if namespace == "" {
		return "any namespace"
	}
	return "namespace " + namespace
}
