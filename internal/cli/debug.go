package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/lab"
)

const (
	// managerLease is the lease of the leading hub manager. Other managers stand by, and
	// have no records.
	managerLease = "hub.cache.reconcile-lab.io"
	// metricsPort is the name of the port in the Deployment of the hub manager. The
	// records are served there too.
	metricsPort = "metrics"
)

// debugPaths are the paths of the hub manager that return records as a JSON list. The
// query parameters namespace, name and member select.
var debugPaths = []struct{ key, path string }{
	{"cacheClusters", "/debug/cacheclusters"},
	{"memberCaches", "/debug/caches"},
}

type debugCacheFlags struct {
	member, address string
}

func (a *app) debugCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "debug",
		Short: "Inspect the hub manager",
		Long:  "Print the state that the hub manager has in memory, in addition to the status of the objects.",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.debugCacheCommand())
	return cmd
}

func (a *app) debugCacheCommand() *cobra.Command {
	var f debugCacheFlags
	cmd := &cobra.Command{
		Use:   "cache NAME",
		Short: "Print the records of a cache in the hub manager",
		Long: "Print the records that the hub manager has in memory of a cache: one of its CacheCluster, and\n" +
			"one of each MemberCache. They contain retries, conflicts with other controllers, unreported\n" +
			"corrections, cache lag and deferred reports. A restart of the manager empties them.\n\n" +
			"The command asks the manager process of a lab, or the leading pod of the Deployment through\n" +
			"the API server of the hub. The latter needs the right to get pods/proxy in " + v1alpha1.InventoryNamespace + ".",
		Example: "  reconcile-lab debug cache cache-cluster\n" +
			"  reconcile-lab debug cache sessions -n shop --member eu-1 -o json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeCaches,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.debugCache(cmd.Context(), args[0], f)
		},
	}
	cmd.Flags().StringVar(&f.member, "member", "", "print no records of other members")
	cmd.Flags().StringVar(&f.address, "address", "", "`host:port` of the metrics of the hub manager (default: from the lab or the Deployment)")
	return cmd
}

func (a *app) debugCache(ctx context.Context, name string, f debugCacheFlags) error {
	h, err := a.connect()
	if err != nil {
		return err
	}
	ctx, cancel := a.withTimeout(ctx, callTimeout)
	defer cancel()
	get, err := h.managerGetter(ctx, f.address)
	if err != nil {
		return err
	}
	query := map[string]string{"namespace": h.namespace, "name": name}
	if f.member != "" {
		query["member"] = f.member
	}
	all := map[string][]any{}
	found := 0
	for _, p := range debugPaths {
		answer, err := get(ctx, p.path, query)
		if errors.Is(err, errNotServed) {
			a.note("the hub manager does not serve %s; it may be of an earlier version", p.path)
			continue
		}
		if err != nil {
			return err
		}
		var records []any
		if err := json.Unmarshal(answer, &records); err != nil {
			return fmt.Errorf("hub manager: %s: decode the response: %w", p.path, err)
		}
		all[p.key] = records
		found += len(records)
	}
	if found == 0 {
		return fmt.Errorf("CacheCluster: %s: the hub manager has no record in %s; list the names with `reconcile-lab get -A`", name, inNamespace(h.namespace))
	}
	if a.output.value != "json" {
		a.output.value = "yaml"
	}
	return a.printValue(all, false)
}

// managerGetter sends a GET request to the hub manager.
type managerGetter func(ctx context.Context, path string, query map[string]string) ([]byte, error)

// errNotServed is the error of a path that the hub manager does not serve.
var errNotServed = errors.New("not served by the hub manager")

// managerGetter returns the getter for an address, else for the manager process of the
// lab, else for the leading pod.
func (h *hub) managerGetter(ctx context.Context, address string) (managerGetter, error) {
	if address == "" {
		var err error
		if address, err = h.localManager(); err != nil {
			return nil, err
		}
	}
	if address != "" {
		return processGetter(address), nil
	}
	return h.podGetter(ctx)
}

// localManager returns the address of the metrics of a lab's manager process, and "" if
// the hub is not a lab with such a process.
func (h *hub) localManager() (string, error) {
	if h.lab == "" {
		return "", nil
	}
	l, err := lab.Open(h.lab)
	if err != nil {
		return "", err
	}
	state, err := l.Load()
	if err != nil || state.Manager == nil {
		return "", err
	}
	return state.Manager.Metrics, nil
}

func processGetter(address string) managerGetter {
	return func(ctx context.Context, path string, query map[string]string) ([]byte, error) {
		values := url.Values{}
		for key, value := range query {
			values.Set(key, value)
		}
		target := url.URL{Scheme: "http", Host: address, Path: path, RawQuery: values.Encode()}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
		if err != nil {
			return nil, badInput("--address: %q: %w; pass host:port", address, err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			// Exit code 5 means that the hub is unreachable, not its manager.
			return nil, withCode(exitError, fmt.Errorf("hub manager: %s: unreachable; check that it runs: %w", address, err))
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		switch {
		case err != nil:
			return nil, fmt.Errorf("hub manager: %s: read the response: %w", address, err)
		case response.StatusCode == http.StatusNotFound:
			return nil, errNotServed
		case response.StatusCode != http.StatusOK:
			return nil, fmt.Errorf("hub manager: %s%s: %s: %s", address, path, response.Status, strings.TrimSpace(string(body)))
		}
		return body, nil
	}
}

// podGetter sends requests through the pod proxy of the API server to the pod that has
// the lease.
func (h *hub) podGetter(ctx context.Context) (managerGetter, error) {
	clients, err := kubernetes.NewForConfig(h.config)
	if err != nil {
		return nil, err
	}
	pod, port, err := h.leadingPod(ctx, clients)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, path string, query map[string]string) ([]byte, error) {
		answer, err := clients.CoreV1().Pods(v1alpha1.InventoryNamespace).ProxyGet("http", pod, port, path, query).DoRaw(ctx)
		switch {
		case apierrors.IsNotFound(err):
			return nil, errNotServed
		case err != nil:
			return nil, fmt.Errorf("hub manager: pod %s/%s: %w", v1alpha1.InventoryNamespace, pod, h.wrapError(err))
		}
		return answer, nil
	}, nil
}

// leadingPod returns the pod of the hub manager that works, and the port of its metrics.
func (h *hub) leadingPod(ctx context.Context, clients kubernetes.Interface) (name, port string, err error) {
	lease, err := clients.CoordinationV1().Leases(v1alpha1.InventoryNamespace).Get(ctx, managerLease, metav1.GetOptions{})
	if err != nil {
		return "", "", fmt.Errorf("hub manager: lease %s/%s: %w", v1alpha1.InventoryNamespace, managerLease, h.wrapError(err))
	}
	// controller-runtime uses HOSTNAME_UUID, and the host name of a pod is its name.
	name, _, _ = strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
	if name == "" {
		return "", "", errors.New("hub manager: no leader; start the hub manager, or pass --address")
	}
	pod, err := clients.CoreV1().Pods(v1alpha1.InventoryNamespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", "", fmt.Errorf("hub manager: %s: the leader is not a pod of the hub; pass --address with the address of its metrics", name)
	case err != nil:
		return "", "", fmt.Errorf("hub manager: pod %s/%s: %w", v1alpha1.InventoryNamespace, name, h.wrapError(err))
	}
	for _, container := range pod.Spec.Containers {
		for _, p := range container.Ports {
			if p.Name == metricsPort {
				return name, strconv.Itoa(int(p.ContainerPort)), nil
			}
		}
	}
	return "", "", fmt.Errorf("hub manager: pod %s/%s: no port with the name %s; pass --address", v1alpha1.InventoryNamespace, name, metricsPort)
}
