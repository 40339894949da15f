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

// proxyTask is what the background process of a proxy reads.
type proxyTask struct {
	// Member is the way to the member, without a credential.
	Member []byte `json:"member"`
	// Host is the address to listen at, Secret the one of the control.
	Host   string `json:"host"`
	Secret string `json:"secret"`
	// Ready is the file that says where it listens.
	Ready string `json:"ready"`
	Seed  uint64 `json:"seed"`
}

// way is a proxy that runs.
type way struct {
	Address   string `json:"address"`
	Authority []byte `json:"authority"`
	Control   string `json:"control"`
	Secret    string `json:"secret"`
}

func newProxyTask(member []byte, host, ready string) (proxyTask, error) {
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
	return proxyTask{Member: member, Host: host, Secret: rand.Text(), Ready: ready, Seed: uint64(time.Now().UnixNano())}, nil
}

// run serves until ctx ends.
func (t *proxyTask) run(ctx context.Context) error {
	member, err := clientcmd.RESTConfigFromKubeConfig(t.Member)
	if err != nil {
		return err
	}
	p, err := proxy.Start(t.Host, member, t.Seed)
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	control := &http.Server{Handler: p.Control(t.Secret), ReadHeaderTimeout: callTimeout}
	stop := context.AfterFunc(ctx, func() { _ = control.Close() })
	defer stop()
	ready, err := json.Marshal(way{Address: p.Address(), Authority: p.Authority(), Control: listener.Addr().String(), Secret: t.Secret})
	if err != nil {
		return err
	}
	if err := lab.WriteFile(t.Ready, ready); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "listening at", p.Address())
	if err := control.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// readWay reads where a proxy listens.
func readWay(l *lab.Lab, name string) (*way, error) {
	content, err := os.ReadFile(filepath.Join(dir(l), name, readyFile))
	if err != nil {
		return nil, err
	}
	w := &way{}
	return w, json.Unmarshal(content, w)
}
