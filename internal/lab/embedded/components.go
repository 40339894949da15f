package embedded

import (
	"fmt"
	"path/filepath"
)

const (
	etcd              = "etcd"
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	kwok              = "kwok"
)

// programs is in the order in which they start.
var programs = []string{etcd, apiServer, controllerManager, scheduler, kwok}

// files returns the paths inside the directory of a cluster.
type files struct{ dir string }

func (f files) path(elements ...string) string {
	return filepath.Join(append([]string{f.dir}, elements...)...)
}
func (f files) pki(name string) string { return f.path("pki", name) }
func (f files) log(name string) string { return f.path("logs", name+".log") }
func (f files) kubeconfig() string     { return f.path("kubeconfig") }
func (f files) config() string         { return f.path("cluster.json") }
func (f files) stages() string         { return f.path("kwok.yaml") }

// arguments returns the arguments of a program. They name the directory of the cluster at
// least once, so that package process finds the process.
func arguments(program string, f files, ports ports) []string {
	clientURL := fmt.Sprintf("http://127.0.0.1:%d", ports.Etcd)
	peerURL := fmt.Sprintf("http://127.0.0.1:%d", ports.EtcdPeer)
	switch program {
	case etcd:
		return []string{
			"--name=lab",
			"--data-dir=" + f.path("etcd"),
			"--listen-client-urls=" + clientURL,
			"--advertise-client-urls=" + clientURL,
			"--listen-peer-urls=" + peerURL,
			"--initial-advertise-peer-urls=" + peerURL,
			"--initial-cluster=lab=" + peerURL,
			"--auto-compaction-retention=1",
			"--quota-backend-bytes=8589934592",
			// A lab can be created again, so its data need not survive a power failure.
			"--unsafe-no-fsync",
			"--log-level=warn",
		}
	case apiServer:
		return []string{
			"--etcd-servers=" + clientURL,
			"--bind-address=127.0.0.1",
			fmt.Sprintf("--secure-port=%d", ports.APIServer),
			"--tls-cert-file=" + f.pki("server.crt"),
			"--tls-private-key-file=" + f.pki("server.key"),
			"--client-ca-file=" + f.pki("ca.crt"),
			"--service-account-key-file=" + f.pki("server.key"),
			"--service-account-signing-key-file=" + f.pki("server.key"),
			"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
			"--service-cluster-ip-range=10.96.0.0/16",
			"--authorization-mode=Node,RBAC",
			"--allow-privileged=true",
			// The endpoints of the Service "kubernetes" must not contain 127.0.0.1, and no
			// pod could reach the API server there.
			"--endpoint-reconciler-type=none",
		}
	case controllerManager:
		return append(clientArguments(f),
			"--service-account-private-key-file="+f.pki("server.key"),
			"--root-ca-file="+f.pki("ca.crt"),
			// Simulated nodes do not fail, but kwok may be late on a busy machine.
			"--node-monitor-period=1m",
			"--node-monitor-grace-period=1h",
		)
	case scheduler:
		return clientArguments(f)
	case kwok:
		return []string{
			"--kubeconfig=" + f.kubeconfig(),
			"--config=" + f.stages(),
			"--manage-all-nodes=true",
			// kwok renews leases four times in this period. Nothing reads them.
			"--node-lease-duration-seconds=1200",
		}
	}
	return nil
}

// clientArguments returns the common arguments of controller manager and scheduler. They
// need no leader election. A low client-side rate limit would distort measurements.
func clientArguments(f files) []string {
	return []string{
		"--kubeconfig=" + f.kubeconfig(),
		"--leader-elect=false",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--secure-port=0",
	}
}
