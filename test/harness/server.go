package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterinventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/binaries"
)

// Server is one API server without controllers.
type Server struct {
	// Config has every right.
	Config *rest.Config
	Client client.Client

	environment *envtest.Environment
}

// Start starts an API server that serves the CRDs of the named folders. Programs
// that are not cached yet are built first, which takes minutes.
func Start(ctx context.Context, crds ...string) (*Server, error) {
	environment := &envtest.Environment{
		CRDDirectoryPaths: crds, ErrorIfCRDPathMissing: true,
		ControlPlaneStartTimeout: 3 * time.Minute, ControlPlaneStopTimeout: time.Minute,
	}
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		assets, err := binaries.Assets(ctx, func(step string) { fmt.Fprintln(os.Stderr, step) })
		if err != nil {
			return nil, fmt.Errorf("programs of an API server: %w", err)
		}
		environment.BinaryAssetsDirectory = assets
	}
	collectLess()
	config, err := environment.Start()
	if err != nil {
		// One of etcd and kube-apiserver may run.
		return nil, errors.Join(fmt.Errorf("start an API server: %w", err), environment.Stop())
	}
	config.QPS, config.Burst = 200, 400
	s := &Server{Config: config, environment: environment}
	if s.Client, err = client.New(config, client.Options{Scheme: Scheme()}); err != nil {
		return nil, errors.Join(fmt.Errorf("client of an API server: %w", err), environment.Stop())
	}
	return s, nil
}

// collectLess has etcd and kube-apiserver, which inherit the environment, spend memory
// instead of time on garbage: a fault suite is some thousands of short lives. This
// process has read the variable long ago.
var collectLess = sync.OnceFunc(func() {
	if os.Getenv("GOGC") == "" {
		_ = os.Setenv("GOGC", "400")
	}
})

// Stop ends the API server and its etcd and removes their files.
func (s *Server) Stop() error { return s.environment.Stop() }

// Scheme knows every kind that tests read or write.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, clusterinventory.AddToScheme} {
		// These register static types and fail only for two types of one kind.
		_ = add(scheme)
	}
	return scheme
}
