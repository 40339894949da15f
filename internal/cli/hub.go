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

// callTimeout bounds one question to the hub: an answer that takes longer will
// not come.
const callTimeout = 30 * time.Second

// hubFlags say which hub, and which namespace there.
type hubFlags struct {
	kubeconfig, context, lab, namespace string
}

func (f *hubFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig `file` of the hub")
	flags.StringVar(&f.context, "context", "", "context of the hub in the kubeconfig")
	flags.StringVar(&f.lab, "lab", "", "`name` of the lab whose hub is meant")
	flags.StringVarP(&f.namespace, "namespace", "n", "", "namespace on the hub; the context's own if empty")
}

// hub is a connection that was configured, not yet tried.
type hub struct {
	client.WithWatch
	config    *rest.Config
	namespace string
	// origin says in words where the configuration came from.
	origin string
}

// configuration finds the hub as the help of the root command says.
func (f *hubFlags) configuration() (clientcmd.ClientConfig, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.context}
	if f.lab != "" && (f.kubeconfig != "" || f.context != "") {
		return nil, "", badInput("--lab names the hub as --kubeconfig and --context do: give one or the other")
	}
	origin := "kubeconfig"
	switch {
	case f.kubeconfig != "":
		rules.ExplicitPath = f.kubeconfig
		origin = f.kubeconfig
	case f.context == "":
		path, name, err := lab.ResolveKubeconfig(f.lab)
		if err != nil {
			return nil, "", badInput("%w", err)
		}
		if path != "" {
			rules.ExplicitPath = path
			overrides.CurrentContext = lab.Hub
			origin = "lab " + name
		}
	}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides), origin, nil
}

func (a *app) connect() (*hub, error) {
	loader, origin, err := a.hub.configuration()
	if err != nil {
		return nil, err
	}
	config, err := loader.ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err), errors.Is(err, os.ErrNotExist) && a.hub.kubeconfig == "":
		return nil, withCode(exitUnreachable, errors.New("there is no hub: start a lab with `reconcile-lab up`, or name one with --kubeconfig"))
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
	// One person's questions need no throttling by the client.
	config.QPS = -1
	config.WarningHandler = rest.NewWarningWriter(a.err, rest.WarningWriterOptions{Deduplicate: true})
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme()})
	if err != nil {
		return nil, err
	}
	return &hub{WithWatch: c, config: config, namespace: namespace, origin: origin}, nil
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(v1alpha1.AddToScheme(s))
	utilruntime.Must(inventoryv1alpha1.AddToScheme(s))
	return s
}

// explain adds to the error of a call to the hub which hub it was and what may help.
func (h *hub) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case isUnreachable(err), errors.Is(err, context.DeadlineExceeded):
		return withCode(exitUnreachable, fmt.Errorf("the hub at %s (%s) does not answer: is it running? `reconcile-lab clusters` lists a lab's: %w", h.config.Host, h.origin, err))
	case isNoKind(err):
		return fmt.Errorf("the cluster at %s (%s) is no hub: it has no CacheClusters; choose another with --kubeconfig, --context or --lab, or install the CRDs in deploy/crd", h.config.Host, h.origin)
	}
	return err
}

// list returns the CacheClusters of a namespace ("" is all), sorted by namespace
// and name as the API server does.
func (h *hub) list(ctx context.Context, namespace string) ([]v1alpha1.CacheCluster, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var l v1alpha1.CacheClusterList
	if err := h.List(ctx, &l, client.InNamespace(namespace)); err != nil {
		return nil, h.explain(err)
	}
	return l.Items, nil
}

// selected returns those CacheClusters that are named, in that order, or all of
// the namespace.
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
			return nil, fmt.Errorf("there is no CacheCluster %s in %s", name, inNamespace(namespace))
		}
	}
	return found, nil
}

func inNamespace(namespace string) string {
	if namespace == "" {
		return "any namespace"
	}
	return "namespace " + namespace
}
