package harness

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// The programs of a Server.
const (
	APIServer = "kube-apiserver"
	Etcd      = "etcd"
)

// Pause stops one of the server's programs where it is: its connections stay open and
// nobody answers. Resume lets it go on.
func (s *Server) Pause(program string) (resume func() error, err error) {
	pid, err := s.find(program)
	if err != nil {
		return nil, err
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return nil, fmt.Errorf("pause %s: %w", program, err)
	}
	return func() error { return syscall.Kill(pid, syscall.SIGCONT) }, nil
}

// find gives the process that serves this server: it names its own address or, the
// API server, the one of its etcd.
func (s *Server) find(program string) (int, error) {
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, err
	}
	address := s.environment.ControlPlane.Etcd.URL.Host
	for _, command := range commands {
		// Processes come and go while they are looked at.
		line, err := os.ReadFile(command)
		if err != nil {
			continue
		}
		name, arguments, _ := bytes.Cut(line, []byte{0})
		if filepath.Base(string(name)) == program && bytes.Contains(arguments, []byte(address)) {
			return strconv.Atoi(filepath.Base(filepath.Dir(command)))
		}
	}
	return 0, fmt.Errorf("no %s of %s runs", program, address)
}
