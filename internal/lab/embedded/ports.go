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

// loadPorts reads what an earlier Create chose; none is no error.
func loadPorts(f files) (ports, bool, error) {
	content, err := os.ReadFile(f.config())
	if errors.Is(err, fs.ErrNotExist) {
		return ports{}, false, nil
	}
	if err != nil {
		return ports{}, false, err
	}
	var p ports
	if err := json.Unmarshal(content, &p); err != nil || p.APIServer == 0 || p.Etcd == 0 || p.EtcdPeer == 0 {
		// Written half by a full disk: choose again.
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
	// Below what Linux and macOS give to outgoing connections, which could
	// otherwise hold a cluster's port at the moment of its restart.
	firstPort = 20000
	lastPort  = 32000
)

var (
	choosing sync.Mutex
	// chosen keeps clusters that are made at the same time from the same choice.
	chosen = map[int]bool{}
)

// choosePorts finds free ones. It begins at random, so that labs of other
// processes do not run into each other.
func choosePorts() (ports, error) {
	choosing.Lock()
	defer choosing.Unlock()
	var found []int
	start := rand.IntN(lastPort - firstPort)
	for i := range lastPort - firstPort {
		port := firstPort + (start+i)%(lastPort-firstPort)
		if chosen[port] || !free(port) {
			continue
		}
		chosen[port] = true
		if found = append(found, port); len(found) == 3 {
			return ports{APIServer: found[0], Etcd: found[1], EtcdPeer: found[2]}, nil
		}
	}
	return ports{}, fmt.Errorf("no free ports between %d and %d on 127.0.0.1: see what listens there with: ss -ltnp", firstPort, lastPort)
}

func free(port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

// taken says which of a program's ports somebody else has.
func (p ports) taken(program string) (int, bool) {
	used := map[string][]int{etcd: {p.Etcd, p.EtcdPeer}, apiServer: {p.APIServer}}[program]
	for _, port := range used {
		if !free(port) {
			return port, true
		}
	}
	return 0, false
}
