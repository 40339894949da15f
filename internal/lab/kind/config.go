package kind

import (
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

	"github.com/reconcile-lab/reconcile-lab/internal/lab/nodeimage"
)

// host describes the properties of this machine that a node depends on.
type host struct {
	cgroupV1      bool
	noSysResource bool
}

// detectHost returns the properties of this machine.
func detectHost() host {
	_, err := os.Stat("/sys/fs/cgroup/cgroup.controllers")
	status, _ := os.ReadFile("/proc/self/status")
	return host{cgroupV1: os.IsNotExist(err) && exists("/sys/fs/cgroup"), noSysResource: lacksSysResource(string(status))}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// lacksSysResource reports whether CAP_SYS_RESOURCE (bit 24) is missing from the bounding
// set in /proc/PID/status. It returns false if the file has no such line.
func lacksSysResource(status string) bool {
	for line := range strings.Lines(status) {
		var bounding uint64
		if _, err := fmt.Sscanf(line, "CapBnd: %x", &bounding); err == nil {
			return bounding&(1<<24) == 0
		}
	}
	return false
}

// config returns the configuration of a cluster on this machine.
func config(image nodeimage.Image) *v1alpha4.Cluster { return configFor(image, detectHost()) }

// configFor returns the configuration of a cluster with one node. The published image
// depends on the host only. The built image contains its own pod network and runs its
// containers in cgroups without systemd.
func configFor(image nodeimage.Image, h host) *v1alpha4.Cluster {
	config := &v1alpha4.Cluster{
		TypeMeta: v1alpha4.TypeMeta{Kind: "Cluster", APIVersion: "kind.x-k8s.io/v1alpha4"},
		Nodes:    []v1alpha4.Node{{Role: v1alpha4.ControlPlaneRole}},
		// A lab can be created again, and four instances of etcd on one disk are slow.
		KubeadmConfigPatches: []string{"kind: ClusterConfiguration\netcd:\n  local:\n    extraArgs:\n    - name: unsafe-no-fsync\n      value: \"true\"\n"},
	}
	var kubelet []string
	if h.cgroupV1 {
		kubelet = append(kubelet, "failCgroupV1: false")
	}
	if h.noSysResource {
		kubelet = append(kubelet, "oomScoreAdj: 0")
	}
	if image.Built {
		config.Networking.DisableDefaultCNI = true
		kubelet = append(kubelet,
			"cgroupDriver: cgroupfs",
			"cgroupRoot: /",
			"localStorageCapacityIsolation: false",
			"resolvConf: /kind/resolv.conf",
		)
	}
	if len(kubelet) > 0 {
		patch := "kind: KubeletConfiguration\n" + strings.Join(kubelet, "\n") + "\n"
		config.Nodes[0].KubeadmConfigPatches = []string{patch}
	}
	v1alpha4.SetDefaultsCluster(config)
	return config
}
