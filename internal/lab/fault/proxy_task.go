package fault

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/fault/proxy"
)

// proxyTask is the task of the background process that runs a proxy.
type proxyTask struct {
	// Member is a kubeconfig for the member, without a credential.
	Member []byte `json:"member"`
	// Host is the listen address of the proxy.
	Host string `json:"host"`
	// Secret is the bearer token of the proxy's control endpoint.
	Secret string `json:"secret"`
	// ReadyFile is the file to which the process writes its route.
	ReadyFile string `json:"readyFile"`
	// Seed is the seed of random choices.
	Seed uint64 `json:"seed"`
}

// route is the address of a running proxy.
type route struct {
	// Address is host:port, and Authority the certificate authority of the proxy (PEM).
	Address   string `json:"address"`
	Authority []byte `json:"authority"`
	// Control is the address of the control endpoint, and Secret its bearer token.
	Control string `json:"control"`
	Secret  string `json:"secret"`
}

func newProxyTask(member []byte, host, readyFile string) (proxyTask, error) {
	config, err := clientcmd.Load(member)
	if err != nil {
		return proxyTask{}, err
	}
	for _, user := range config.AuthInfos {
		user.Token = ""
	}
	if member, err = clientcmd.Write(*config); err != nil {
		return proxyTask{}, err
	}
	return proxyTask{Member: member, Host: host, Secret: rand.Text(), ReadyFile: readyFile, Seed: uint64(time.Now().UnixNano())}, nil
}

// run serves until ctx ends.
func (t *proxyTask) run(ctx context.Context) error {
	member, err := clientcmd.RESTConfigFromKubeConfig(t.Member)
	if err != nil {
		return err
	}
	p, err := proxy.Start(proxy.Options{Host: t.Host, Member: member, Seed: t.Seed})
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	control := &http.Server{Handler: p.Control(t.Secret), ReadHeaderTimeout: requestTimeout}
	stop := context.AfterFunc(ctx, func() { _ = control.Close() })
	defer stop()
	ready, err := json.Marshal(route{Address: p.Address(), Authority: p.Authority(), Control: listener.Addr().String(), Secret: t.Secret})
	if err != nil {
		return err
	}
	if err := lab.WriteFile(t.ReadyFile, ready); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "listening on", p.Address())
	if err := control.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// readRoute returns the route of a proxy that has started.
func readRoute(l *lab.Lab, name string) (*route, error) {
	content, err := os.ReadFile(filepath.Join(faultDir(l), name, readyFile))
	if err != nil {
		return nil, err
	}
	r := &route{}
	return r, json.Unmarshal(content, r)
}
