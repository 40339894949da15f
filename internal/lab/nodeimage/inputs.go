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

// suite is the Debian release of the nodes. It is independent of the host.
const suite = "bookworm"

// nodePackages are the Debian packages of a node. First those that kubeadm, the kubelet,
// containerd and kind call, then those that the pod images are built from.
var nodePackages = []string{
	"systemd", "systemd-sysv", "dbus",
	"conntrack", "iptables", "nftables", "iproute2", "ethtool",
	"util-linux", "mount", "kmod", "libseccomp2", "pigz", "e2fsprogs",
	"ca-certificates", "curl", "jq", "procps", "hostname", "runc",
	"busybox-static", "memcached",
}

// nodePrograms are the programs of package binaries that a node contains.
var nodePrograms = []string{
	"kubelet", "kubeadm", "kubectl",
	"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy",
	"etcd", "coredns", "local-path-provisioner",
	"containerd", "ctr", "containerd-shim-runc-v2",
	"bridge", "host-local", "loopback", "portmap",
}

// recipe contains every input of the image other than packages and binaries. It includes
// the Go files of the build steps, so that a changed step changes the tag.
//
//go:embed files pause/main.go exporter/main.go images.go assemble.go libraries.go inputs.go
var recipe embed.FS

// recipeFile returns the content of a file in files/. It returns "" for a missing file; a
// test reads every name that the code uses.
func recipeFile(name string) string {
	content, err := recipe.ReadFile("files/" + name)
	if err != nil {
		return ""
	}
	return string(content)
}

// repository is the image name of built node images.
const repository = "reconcile-lab/node"

// Tag returns the name and tag of the built image. The tag contains a hash of the inputs.
func Tag() string {
	return fmt.Sprintf("%s:%s-%s", repository, binaries.Version("kubernetes"), digest())
}

// savedImage returns the path of the image in the cache directory.
func savedImage(dir string) string { return filepath.Join(dir, "node-"+digest()+".tar") }

// digest returns the hash of all inputs of the image.
func digest() string {
	hash := sha256.New()
	_, _ = fmt.Fprintln(hash, rootfsDigest())
	for _, m := range binaries.Modules() {
		_, _ = fmt.Fprintln(hash, m.Path, m.Version, m.LDFlags)
	}
	// Reading an embedded file system cannot fail, and its order is fixed.
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

// rootfsDigest returns the hash of the inputs of the root file system.
func rootfsDigest() string {
	hash := sha256.New()
	_, _ = fmt.Fprintln(hash, suite, runtime.GOARCH, nodePackages)
	_, _ = io.WriteString(hash, recipeFile("rootfs.sh"))
	return hex.EncodeToString(hash.Sum(nil))[:10]
}
