package binaries

import (
	"fmt"
	"slices"
	"strings"
)

// Module is a Go module from which programs are built.
type Module struct {
	// Name is a short name: it names the directory in the cache and the files in modules/.
	Name string
	// Path and Version identify the Go module.
	Path, Version string
	// LDFlags are linker flags in addition to -s -w.
	LDFlags []string
	// Programs is in build order.
	Programs []Program
}

// Program is one executable of a module.
type Program struct {
	// Name is the file name.
	Name string
	// Package is the main package; "." is the one in modules/<module>.go.txt.
	Package string
	// BuildTime is the duration of a build with empty caches on two cores, as text for
	// progress messages.
	BuildTime string
}

// modules defines all versions. modules/<name>.mod repeats them for Go; a test compares
// the two.
var modules = []Module{
	{
		Name: "etcd", Path: "go.etcd.io/etcd/server/v3", Version: "v3.6.16",
		Programs: []Program{{"etcd", "go.etcd.io/etcd/server/v3", "1 minute"}},
	},
	{
		Name: "kwok", Path: "sigs.k8s.io/kwok", Version: "v0.8.0",
		LDFlags: []string{"-X sigs.k8s.io/kwok/pkg/consts.Version=v0.8.0"},
		Programs: []Program{
			{"kwok", "sigs.k8s.io/kwok/cmd/kwok", "3 minutes"},
			{"kwokctl", "sigs.k8s.io/kwok/cmd/kwokctl", "1 minute"},
		},
	},
	{
		Name: "kubernetes", Path: "k8s.io/kubernetes", Version: "v1.36.3",
		LDFlags: []string{
			"-X k8s.io/component-base/version.gitVersion=v1.36.3",
			"-X k8s.io/component-base/version.gitMajor=1",
			"-X k8s.io/component-base/version.gitMinor=36",
		},
		Programs: []Program{
			{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", "10 minutes"},
			{"kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager", "3 minutes"},
			{"kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler", "1 minute"},
			{"kubectl", "k8s.io/kubernetes/cmd/kubectl", "1 minute"},
			{"kubelet", "k8s.io/kubernetes/cmd/kubelet", "1 minute"},
			{"kubeadm", "k8s.io/kubernetes/cmd/kubeadm", "1 minute"},
			{"kube-proxy", "k8s.io/kubernetes/cmd/kube-proxy", "1 minute"},
		},
	},
	{
		Name: "containerd", Path: "github.com/containerd/containerd/v2", Version: "v2.4.2",
		LDFlags: []string{"-X github.com/containerd/containerd/v2/version.Version=v2.4.2"},
		Programs: []Program{
			{"containerd", "github.com/containerd/containerd/v2/cmd/containerd", "2 minutes"},
			{"containerd-shim-runc-v2", "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2", "1 minute"},
			{"ctr", "github.com/containerd/containerd/v2/cmd/ctr", "1 minute"},
		},
	},
	{
		Name: "cni-plugins", Path: "github.com/containernetworking/plugins", Version: "v1.9.1",
		LDFlags: []string{"-X github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion=v1.9.1"},
		Programs: []Program{
			{"bridge", "github.com/containernetworking/plugins/plugins/main/bridge", "1 minute"},
			{"host-local", "github.com/containernetworking/plugins/plugins/ipam/host-local", "1 minute"},
			{"loopback", "github.com/containernetworking/plugins/plugins/main/loopback", "1 minute"},
			{"portmap", "github.com/containernetworking/plugins/plugins/meta/portmap", "1 minute"},
		},
	},
	{
		Name: "coredns", Path: "github.com/coredns/coredns", Version: "v1.14.2",
		Programs: []Program{{"coredns", ".", "2 minutes"}},
	},
	{
		Name: "local-path-provisioner", Path: "github.com/rancher/local-path-provisioner", Version: "v0.0.30",
		LDFlags:  []string{"-X main.VERSION=v0.0.30"},
		Programs: []Program{{"local-path-provisioner", "github.com/rancher/local-path-provisioner", "2 minutes"}},
	},
}

// Modules returns the table of modules.
func Modules() []Module { return slices.Clone(modules) }

// Version returns the version of a module by its short name, or "" for an unknown module.
func Version(module string) string {
	for _, m := range modules {
		if m.Name == module {
			return m.Version
		}
	}
	return ""
}

// lookup returns the program of that name and its module.
func lookup(name string) (Module, Program, error) {
	var known []string
	for _, m := range modules {
		for _, p := range m.Programs {
			if p.Name == name {
				return m, p, nil
			}
			known = append(known, p.Name)
		}
	}
	return Module{}, Program{}, fmt.Errorf("unknown program %q; must be one of: %s", name, strings.Join(known, ", "))
}
