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
	// debugCachesPath is served by the hub manager at the address of its metrics.
	debugCachesPath = "/debug/caches"
	// managerLease is the lease of the hub manager that works; others only stand by.
	managerLease = "hub.cache.reconcile-lab.io"
	// metricsPort is the name of the port in the Deployment of the hub manager.
	metricsPort = "metrics"
)

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
		Short: "Print what the hub manager remembers of a cache",
		Long: "Print the record that the hub manager has in memory of a cache and of each of its members:\n" +
			"retries, conflicts with other controllers, unreported corrections and the like. Each field is\n" +
			"documented where it is declared, in hub/controller and spoke/controller.\n\n" +
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
	cmd.Flags().StringVar(&f.member, "member", "", "print the record of this member only")
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
	query := map[string]string{"namespace": h.namespace, "name": name}
	if f.member != "" {
		query["member"] = f.member
	}
	address := f.address
	if address == "" {
		if address, err = h.localManager(); err != nil {
			return err
		}
	}
	var answer []byte
	if address != "" {
		answer, err = getFromProcess(ctx, address, query)
	} else {
		answer, err = h.getFromPod(ctx, query)
	}
	if err != nil {
		return err
	}
	return a.printDebug(answer)
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

func getFromProcess(ctx context.Context, address string, query map[string]string) ([]byte, error) {
	values := url.Values{}
	for key, value := range query {
		values.Set(key, value)
	}
	target := url.URL{Scheme: "http", Host: address, Path: debugCachesPath, RawQuery: values.Encode()}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, badInput("--address: %q: %w; pass host:port", address, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, withCode(exitError, fmt.Errorf("hub manager: %s: unreachable; check that it runs: %w", address, err))
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("hub manager: %s: read the response: %w", address, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("hub manager: %s: %s: %s", address, response.Status, strings.TrimSpace(string(body)))
	}
	return body, nil
}

// getFromPod sends the request through the pod proxy of the API server, to the pod that
// has the lease.
func (h *hub) getFromPod(ctx context.Context, query map[string]string) ([]byte, error) {
	clients, err := kubernetes.NewForConfig(h.config)
	if err != nil {
		return nil, err
	}
	pod, port, err := h.leadingPod(ctx, clients)
	if err != nil {
		return nil, err
	}
	answer, err := clients.CoreV1().Pods(v1alpha1.InventoryNamespace).ProxyGet("http", pod, port, debugCachesPath, query).DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("hub manager: pod %s/%s: %w", v1alpha1.InventoryNamespace, pod, h.wrapError(err))
	}
	return answer, nil
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

// printDebug prints the response as YAML, or as -o asks.
func (a *app) printDebug(answer []byte) error {
	var value any
	if err := json.Unmarshal(answer, &value); err != nil {
		return fmt.Errorf("hub manager: decode the response: %w", err)
	}
	if a.output.value != "json" {
		a.output.value = "yaml"
	}
	return a.printValue(value, false)
}
