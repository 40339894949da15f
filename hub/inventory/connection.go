package inventory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/connrotation"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// connection is the cluster of one member, with a transport of its own.
type connection struct {
	cluster.Cluster
	http    *http.Client
	dialer  *connrotation.Dialer
	api     discovery.DiscoveryInterface
	version string

	// context is the context of the engagement, and cancel ends it. stopped is closed
	// when the cluster has stopped. startAndSync sets all three.
	context context.Context
	cancel  context.CancelFunc
	stopped chan struct{}
	// watchError is the last error of a watch of the cache, or nil.
	watchError atomic.Pointer[error]
}

// Requests to one member; the priority and fairness of its API server decides beyond
// them.
const (
	memberQPS   = 100
	memberBurst = 200
)

// connect returns a connection and sends no request. Requests go through the given
// transports, the first one outermost.
func connect(member string, kubeconfig []byte, o Options, wrappers ...func(http.RoundTripper) http.RoundTripper) (*connection, error) {
	config, err := restConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	// With a dialer of its own, client-go does not share one transport among members, and
	// every connection can be closed when the member is disengaged.
	dialer := connrotation.NewDialer((&net.Dialer{Timeout: o.Timing.Deadline, KeepAlive: 15 * time.Second}).DialContext)
	config.Dial = dialer.DialContext
	config.QPS, config.Burst = memberQPS, memberBurst
	config.UserAgent = "reconcile-lab-hub"
	if o.Transport != nil {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return o.Transport(member, next) })
	}
	// The last wrapper is the outermost, so that an answer of a test's transport counts as
	// an answer of the member.
	for _, wrap := range slices.Backward(wrappers) {
		config.Wrap(wrap)
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return retryAfterTransport{next: next, now: o.Clock.Now}
	})
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errCredential, err)
	}
	c := &connection{http: httpClient, dialer: dialer}
	if c.api, err = discovery.NewDiscoveryClientForConfigAndClient(config, httpClient); err != nil {
		return nil, fmt.Errorf("%w: %w", errCredential, err)
	}
	c.Cluster, err = cluster.New(config, func(co *cluster.Options) {
		co.Scheme = o.Scheme
		co.HTTPClient = httpClient
		co.Cache = o.Cache
		if o.NewInformer != nil {
			co.Cache.NewInformer = o.NewInformer(member)
		}
		co.Cache.DefaultWatchErrorHandler = func(_ context.Context, _ *toolscache.Reflector, err error) { c.watchError.Store(&err) }
		co.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return staticMapper(o.Scheme), nil }
	})
	if err != nil {
		c.close()
		return nil, fmt.Errorf("create the cluster of the member: %w", err)
	}
	return c, nil
}

// staticMapper returns a mapper that knows the kinds of the scheme by convention.
// Discovery would cost two dozen requests at every engagement.
func staticMapper(scheme *runtime.Scheme) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(scheme.PrioritizedVersionsAllGroups())
	for gvk := range scheme.AllKnownTypes() {
		scope := meta.RESTScopeNamespace
		if gvk.Kind == "Namespace" || gvk.Kind == "Node" || gvk.Kind == "PersistentVolume" {
			scope = meta.RESTScopeRoot
		}
		mapper.Add(gvk, scope)
	}
	return mapper
}

// restConfig parses a kubeconfig. It refuses one that runs a program or reads a file.
func restConfig(kubeconfig []byte) (*rest.Config, error) {
	if len(kubeconfig) == 0 {
		return nil, errNoCredential
	}
	parsed, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errCredential, err)
	}
	for name, user := range parsed.AuthInfos {
		if user.Exec != nil || user.AuthProvider != nil || user.TokenFile != "" || user.ClientCertificate != "" || user.ClientKey != "" {
			return nil, fmt.Errorf("%w: users[%s]: exec, auth-provider and file references are refused; use a token or certificate data", errCredential, name)
		}
	}
	for name, c := range parsed.Clusters {
		if c.CertificateAuthority != "" {
			return nil, fmt.Errorf("%w: clusters[%s].certificate-authority: %q: files are refused; use certificate-authority-data", errCredential, name, c.CertificateAuthority)
		}
	}
	config, err := clientcmd.NewDefaultClientConfig(*parsed, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errCredential, err)
	}
	return config, nil
}

var (
	errNoCredential = errors.New("no credential")
	errCredential   = errors.New("the kubeconfig in the Secret of the member cannot be used")
)

// probe returns an error unless the API server is ready and accepts the credential.
func (c *connection) probe(ctx context.Context, deadline time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	if err := c.api.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return err
	}
	if c.version == "" {
		c.readVersion(ctx)
	}
	return nil
}

// readVersion reads the Kubernetes version. A failure is ignored: nothing depends on it.
func (c *connection) readVersion(ctx context.Context) {
	raw, err := c.api.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	var info version.Info
	if err == nil && json.Unmarshal(raw, &info) == nil {
		c.version = info.GitVersion
	}
}

// checkListRight returns an error if the account may no longer list one of the kinds. An
// open watch outlives that right by up to ten minutes, in which the cache is stale.
func (c *connection) checkListRight(ctx context.Context, deadline time.Duration, kinds ...client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	for _, object := range kinds {
		gvk, err := c.GetClient().GroupVersionKindFor(object)
		if err != nil {
			return fmt.Errorf("%w: %w", errSync, err)
		}
		mapping, err := c.GetRESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return fmt.Errorf("%w: %w", errSync, err)
		}
		path := "/apis/" + gvk.GroupVersion().String() + "/" + mapping.Resource.Resource
		if gvk.Group == "" {
			path = "/api/" + gvk.Version + "/" + mapping.Resource.Resource
		}
		// resourceVersion 0 is served from the cache of the API server, and no object has the
		// name: the answer is empty.
		err = c.api.RESTClient().Get().AbsPath(path).Param("resourceVersion", "0").
			Param("fieldSelector", "metadata.name=reconcile-lab.probe").Do(ctx).Error()
		if apierrors.IsForbidden(err) {
			return fmt.Errorf("%w: %w", errSync, err)
		}
	}
	return nil
}

// startAndSync starts the cluster and returns when its cache is synced. The connection
// must be closed even if it fails.
func (c *connection) startAndSync(ctx context.Context, o Options) error {
	for _, object := range o.Kinds {
		if _, err := c.GetCache().GetInformer(ctx, object, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("%w: %w", errSync, err)
		}
	}
	ctx, c.cancel = context.WithCancel(ctx)
	c.context = ctx
	c.stopped = make(chan struct{})
	go func() {
		defer close(c.stopped)
		if err := c.Start(ctx); err != nil {
			c.watchError.Store(&err)
		}
	}()
	waiting, cancel := context.WithTimeout(ctx, o.Timing.Sync)
	defer cancel()
	if c.GetCache().WaitForCacheSync(waiting) {
		return nil
	}
	if cause := c.watchError.Load(); cause != nil {
		return fmt.Errorf("%w: %w", errSync, *cause)
	}
	return fmt.Errorf("%w within %s", errSync, o.Timing.Sync)
}

// hasEnded reports whether the cache stopped without close.
func (c *connection) hasEnded() bool {
	select {
	case <-c.stopped:
		return true
	default:
		return false
	}
}

// close ends the context of the connection, waits until the cluster has stopped, and
// closes every socket.
func (c *connection) close() {
	if c.cancel != nil {
		c.cancel()
		<-c.stopped
	}
	c.dialer.CloseAll()
	c.http.CloseIdleConnections()
}
