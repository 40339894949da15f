package nodeimage

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"runtime"

	"github.com/reconcile-lab/reconcile-lab/internal/lab/binaries"
)

// suite is the Debian release of the nodes, whatever the host's is.
const suite = "bookworm"

// nodePackages are what kubeadm, the kubelet, containerd and kind call, then what the
// images of pods are made of.
var nodePackages = []string{
	"systemd", "systemd-sysv", "dbus",
	"conntrack", "iptables", "nftables", "iproute2", "ethtool",
	"util-linux", "mount", "kmod", "libseccomp2", "pigz", "e2fsprogs",
	"ca-certificates", "curl", "jq", "procps", "hostname", "runc",
	"busybox-static", "memcached",
}

// nodePrograms of package binaries.
var nodePrograms = []string{
	"kubelet", "kubeadm", "kubectl",
	"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy",
	"etcd", "coredns", "local-path-provisioner",
	"containerd", "ctr", "containerd-shim-runc-v2",
	"bridge", "host-local", "loopback", "portmap",
}

// recipe is all that shapes the image besides packages and binaries. The Go files of
// the steps are part of it: an image of older steps is another image.
//
//go:embed files pause/main.go exporter/main.go images.go assemble.go libraries.go inputs.go
var recipe embed.FS

func file(name string) string {
	content, err := recipe.ReadFile("files/" + name)
	if err != nil {
		return "" // the names are constants, and a test reads them all
	}
	return string(content)
}

const repository = "reconcile-lab/node"

// Tag of the image that is built, with a hash of its inputs.
func Tag() string {
	return fmt.Sprintf("%s:%s-%s", repository, binaries.Version("kubernetes"), digest())
}

func savedImage(dir string) string { return filepath.Join(dir, "node-"+digest()+".tar") }

func digest() string {
	hash := sha256.New()
	_, _ = fmt.Fprintln(hash, rootfsDigest())
	for _, m := range binaries.Modules() {
		_, _ = fmt.Fprintln(hash, m.Path, m.Version, m.LDFlags)
	}
	// An embedded file system neither fails nor changes its order.
	_ = fs.WalkDir(recipe, ".", func(path string, entry fs.DirEntry, _ error) error {
		if !entry.IsDir() {
			content, _ := recipe.ReadFile(path)
			_, _ = fmt.Fprintln(hash, path, len(content))
			_, _ = hash.Write(content)
		}
		return nil
	})
	return hex.EncodeToString(hash.Sum(nil))[:10]
}

func rootfsDigest() string {
	hash := sha256.New()
	_, _ = fmt.Fprintln(hash, suite, runtime.GOARCH, nodePackages)
	_, _ = io.WriteString(hash, file("rootfs.sh"))
	return hex.EncodeToString(hash.Sum(nil))[:10]
}
