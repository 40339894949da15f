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

// connection is one member's cluster with a transport of its own.
type connection struct {
	cluster.Cluster
	http    *http.Client
	dialer  *connrotation.Dialer
	api     discovery.DiscoveryInterface
	version string

	// context of the engagement, which end ends; stopped is closed when the
	// cluster has stopped. All are set by fill.
	context context.Context
	end     context.CancelFunc
	stopped chan struct{}
	// watchError is the last one of a watch of the cache, or nil.
	watchError atomic.Pointer[error]
}

// Requests to one member; its own API server's fairness decides beyond that.
const (
	memberQPS   = 100
	memberBurst = 200
)

// connect makes a connection and asks the member nothing yet.
// It goes through each of the given transports, the first one outermost.
func connect(member string, kubeconfig []byte, o Options, through ...func(http.RoundTripper) http.RoundTripper) (*connection, error) {
	config, err := restConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	// A dialer of its own keeps client-go from sharing one transport among members,
	// and lets every connection be closed when the member is lost.
	dialer := connrotation.NewDialer((&net.Dialer{Timeout: o.Timing.Deadline, KeepAlive: 15 * time.Second}).DialContext)
	config.Dial = dialer.DialContext
	config.QPS, config.Burst = memberQPS, memberBurst
	config.UserAgent = "reconcile-lab-hub"
	if o.Transport != nil {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return o.Transport(member, next) })
	}
	// The last one that is wrapped around is the outermost, so that what a test's
	// transport makes up counts as what the member answered.
	for _, wrap := range slices.Backward(through) {
		config.Wrap(wrap)
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return patient{next: next, now: o.Clock.Now} })
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
		return nil, fmt.Errorf("set up the member's cluster: %w", err)
	}
	return c, nil
}

// staticMapper knows the kinds of the scheme by convention; asking each member's
// discovery would cost two dozen requests at every engagement.
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

// restConfig reads a kubeconfig that stands for itself.
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
	errCredential   = errors.New("the kubeconfig in the member's Secret cannot be used")
)

// probe asks whether the API server is ready and takes the credential.
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

// readVersion is best effort: a member that hides its version works all the same.
func (c *connection) readVersion(ctx context.Context) {
	raw, err := c.api.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	var info version.Info
	if err == nil && json.Unmarshal(raw, &info) == nil {
		c.version = info.GitVersion
	}
}

// permitted is an error if the account may not list one of the kinds any more. An
// open watch outlives the right to it by up to ten minutes, in which the cache says
// that nothing changes.
func (c *connection) permitted(ctx context.Context, deadline time.Duration, kinds ...client.Object) error {
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
		// From the API server's memory, and nothing is called so.
		err = c.api.RESTClient().Get().AbsPath(path).Param("resourceVersion", "0").
			Param("fieldSelector", "metadata.name=reconcile-lab.probe").Do(ctx).Error()
		if apierrors.IsForbidden(err) {
			return fmt.Errorf("%w: %w", errSync, err)
		}
	}
	return nil
}

// fill starts the cluster and returns when every kind is in its cache. The
// connection must be closed also when it fails.
func (c *connection) fill(ctx context.Context, o Options) error {
	for _, object := range o.Kinds {
		if _, err := c.GetCache().GetInformer(ctx, object, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("%w: %w", errSync, err)
		}
	}
	ctx, c.end = context.WithCancel(ctx)
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

// ended says that the cluster's cache stopped by itself.
func (c *connection) ended() bool {
	select {
	case <-c.stopped:
		return true
	default:
		return false
	}
}

// close ends the connection's context, waits until nothing uses it any more and
// closes every socket.
func (c *connection) close() {
	if c.end != nil {
		c.end()
		<-c.stopped
	}
	c.dialer.CloseAll()
	c.http.CloseIdleConnections()
}
