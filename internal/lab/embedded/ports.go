package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
)

// ports of one cluster on 127.0.0.1.
type ports struct {
	APIServer int `json:"apiServer"`
	Etcd      int `json:"etcd"`
	EtcdPeer  int `json:"etcdPeer"`
}

// loadPorts returns the ports that an earlier Create chose, and reports whether they exist.
func loadPorts(f files) (saved ports, exists bool, err error) {
	content, err := os.ReadFile(f.config())
	if errors.Is(err, fs.ErrNotExist) {
		return ports{}, false, nil
	}
	if err != nil {
		return ports{}, false, err
	}
	var p ports
	if err := json.Unmarshal(content, &p); err != nil || p.APIServer == 0 || p.Etcd == 0 || p.EtcdPeer == 0 {
		// A full disk can truncate the file. The caller then chooses new ports.
		return ports{}, false, nil
	}
	return p, true, nil
}

func savePorts(f files, p ports) error {
	content, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	return lab.WriteFile(f.config(), content)
}

const (
	// The range is below the ephemeral ports of Linux and macOS. An outgoing connection
	// could otherwise use the port of a cluster at the moment of its restart.
	firstPort = 20000
	lastPort  = 32000
)

var (
	chosenMu sync.Mutex
	// chosen contains the ports that this process has chosen, so that clusters which are
	// created at the same time get different ones.
	chosen = map[int]bool{}
)

// choosePorts returns free ports. It starts at a random port, so that processes which
// create labs at the same time rarely choose the same ones.
func choosePorts() (ports, error) {
	chosenMu.Lock()
	defer chosenMu.Unlock()
	var found []int
	start := rand.IntN(lastPort - firstPort)
	for i := range lastPort - firstPort {
		port := firstPort + (start+i)%(lastPort-firstPort)
		if chosen[port] || !isFree(port) {
			continue
		}
		chosen[port] = true
		if found = append(found, port); len(found) == 3 {
			return ports{APIServer: found[0], Etcd: found[1], EtcdPeer: found[2]}, nil
		}
	}
	return ports{}, fmt.Errorf("no free ports between %d and %d on 127.0.0.1; list the programs that listen there with: ss -ltnp", firstPort, lastPort)
}

// isFree reports whether a program can listen on the port.
func isFree(port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

// inUse returns the first port of the program on which a process already listens.
func (p ports) inUse(program string) (port int, used bool) {
	candidates := map[string][]int{etcd: {p.Etcd, p.EtcdPeer}, apiServer: {p.APIServer}}[program]
	for _, port := range candidates {
		if !isFree(port) {
			return port, true
		}
	}
	return 0, false
}
