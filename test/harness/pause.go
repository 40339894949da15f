package harness

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reconcile-lab/reconcile-lab/internal/lab/process"
)

// The programs of a Server.
const (
	APIServer = "kube-apiserver"
	Etcd      = "etcd"
)

// Pause stops the execution of one of the server's programs. Its connections stay open and
// no request is answered. resume continues it.
func (s *Server) Pause(program string) (resume func() error, err error) {
	found, err := s.find(program)
	if err != nil {
		return nil, err
	}
	if err := process.Pause(found...); err != nil {
		return nil, err
	}
	return func() error { return process.Resume(found...) }, nil
}

// find returns the process of a program of this server. The arguments of etcd and of the API
// server both contain the address of etcd.
func (s *Server) find(program string) ([]process.Process, error) {
	address := s.environment.ControlPlane.Etcd.URL.Host
	found, err := process.Select(func(p process.Process) bool {
		return p.Program() == program &&
			slices.ContainsFunc(p.Args[1:], func(a string) bool { return strings.Contains(a, address) })
	})
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("no %s of %s runs", program, address)
	}
	return found, err
}
