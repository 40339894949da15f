package nodeimage

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/reconcile-lab/reconcile-lab/internal/lab/binaries"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/nodeimage/archive"
)

const (
	// memcachedImage and exporterImage are the images of a CacheCluster by default.
	memcachedImage = "memcached:1.6"
	exporterImage  = "prom/memcached-exporter:v0.15.5"

	busyboxImage = "reconcile-lab/busybox:bookworm"
	// memcachedUser is the user ID of the published memcached image.
	memcachedUser = "11211"
)

func provisionerImage() string {
	return "rancher/local-path-provisioner:" + binaries.Version("local-path-provisioner")
}

// podImages writes one archive with the images of all pods of the node, and returns its
// path.
func podImages(ctx context.Context, work, rootfs string, programs map[string]string) (string, error) {
	root := filepath.Join(work, "root")
	if err := unpack(ctx, rootfs, root); err != nil {
		return "", err
	}
	defer os.RemoveAll(root)
	b := imageBuilder{ctx: ctx, work: work, root: root, programs: programs}
	controlPlane, err := b.controlPlaneImages()
	if err != nil {
		return "", err
	}
	caches, err := b.cacheImages()
	if err != nil {
		return "", err
	}
	file := filepath.Join(work, "images.tar")
	return file, archive.WriteFile(file, append(controlPlane, caches...)...)
}

// imageBuilder builds images of one layer each. It lives as long as one call of podImages,
// whose context it holds.
type imageBuilder struct {
	ctx      context.Context
	work     string            // directory of temporary files
	root     string            // unpacked root file system of the node
	programs map[string]string // paths by program name
}

// image writes the layer to a file and returns the image that consists of it.
func (b imageBuilder) image(tag string, layer archive.Layer, config archive.Config) (archive.Image, error) {
	file := filepath.Join(b.work, "layer-"+strings.NewReplacer("/", "_", ":", "_").Replace(tag)+".tar")
	if err := archive.WriteLayer(file, layer); err != nil {
		return archive.Image{}, fmt.Errorf("image %s: %w", tag, err)
	}
	return archive.Image{Tags: []string{tag}, Architecture: runtime.GOARCH, Config: config, Layers: []string{file}}, nil
}

// programImage returns an image that contains one static program.
func (b imageBuilder) programImage(tag, name, source string, user string) (archive.Image, error) {
	target := "/usr/local/bin/" + name
	return b.image(tag, archive.Layer{target: archive.Program(source)}, archive.Config{
		Env: []string{"PATH=/usr/local/bin"}, Entrypoint: []string{target}, User: user,
	})
}

// controlPlaneImages returns the images that kubeadm starts, under the names that kubeadm
// uses, and the images of the storage provisioner.
func (b imageBuilder) controlPlaneImages() ([]archive.Image, error) {
	var images []archive.Image
	tags, err := kubeadmImages(b.ctx, b.programs["kubeadm"])
	if err != nil {
		return nil, err
	}
	for _, tag := range tags {
		name, _, _ := strings.Cut(path.Base(tag), ":")
		var image archive.Image
		var err error
		switch source, known := b.programs[name]; {
		case name == "kube-proxy":
			image, err = b.kubeProxyImage(tag)
		case name == "pause":
			image, err = b.compiledImage(tag, "pause", "pause/main.go")
		case known:
			image, err = b.programImage(tag, name, source, "")
		default:
			err = fmt.Errorf("kubeadm requires image %s, but package binaries has no program for it", tag)
		}
		if err != nil {
			return nil, err
		}
		images = append(images, image)
	}
	provisioner, err := b.programImage(provisionerImage(), "local-path-provisioner", b.programs["local-path-provisioner"], "")
	if err != nil {
		return nil, err
	}
	busybox, err := b.image(busyboxImage, b.busyboxLayer("sh", "mkdir", "rm", "chmod"), archive.Config{Env: []string{"PATH=/bin"}})
	return append(images, provisioner, busybox), err
}

// kubeProxyImage returns the image of kube-proxy, which runs iptables, nft and conntrack.
// iptables loads its extensions by name at run time, so no ELF header names them.
func (b imageBuilder) kubeProxyImage(tag string) (archive.Image, error) {
	extensions, err := glob(b.root, "usr/lib/*/xtables/*.so")
	if err != nil {
		return archive.Image{}, err
	}
	programs := slices.Concat(extensions, []string{"/usr/sbin/nft", "/usr/sbin/conntrack", "/usr/sbin/xtables-nft-multi", "/usr/sbin/xtables-legacy-multi"})
	layer, err := programLayer(b.root, programs...)
	if err != nil {
		return archive.Image{}, err
	}
	names, err := glob(b.root, "usr/sbin/iptables*", "usr/sbin/ip6tables*", "etc/alternatives/iptables*", "etc/alternatives/ip6tables*")
	if err != nil {
		return archive.Image{}, err
	}
	for _, name := range names {
		// Files that are not links are scripts, which kube-proxy does not run.
		if target, err := os.Readlink(filepath.Join(b.root, name)); err == nil {
			layer[name] = archive.Entry{Link: target}
		}
	}
	layer["/usr/local/bin/kube-proxy"] = archive.Program(b.programs["kube-proxy"])
	layer["/run"] = archive.Entry{Dir: true} // iptables creates its lock file here
	return b.image(tag, layer, archive.Config{
		Env:        []string{"PATH=/usr/local/bin:/usr/sbin:/usr/bin"},
		Entrypoint: []string{"/usr/local/bin/kube-proxy"},
	})
}

// cacheImages returns the replacements of the published memcached and exporter images.
func (b imageBuilder) cacheImages() ([]archive.Image, error) {
	layer, err := programLayer(b.root, "/usr/bin/memcached")
	if err != nil {
		return nil, err
	}
	// The entrypoint needs a shell; nc serves to inspect a running cache.
	merge(layer, b.busyboxLayer("sh", "nc", "timeout"), archive.Layer{
		"/etc/passwd":                         archive.Text("root:x:0:0:root:/root:/bin/sh\nmemcache:x:11211:11211::/:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"),
		"/usr/local/bin/docker-entrypoint.sh": {Content: []byte(recipeFile("memcached-entrypoint")), Mode: 0o755},
		"/tmp":                                {Dir: true, Mode: os.ModeSticky | 0o777},
	})
	memcached, err := b.image(memcachedImage, layer, archive.Config{
		Env:        []string{"PATH=/usr/local/bin:/usr/bin:/bin"},
		Entrypoint: []string{"/usr/local/bin/docker-entrypoint.sh"},
		Cmd:        []string{"memcached"},
		User:       memcachedUser,
	})
	if err != nil {
		return nil, err
	}
	exporter, err := b.compiledImage(exporterImage, "memcached_exporter", "exporter/main.go")
	return []archive.Image{memcached, exporter}, err
}

// busyboxLayer returns a layer with busybox, linked under the names of the given applets.
func (b imageBuilder) busyboxLayer(names ...string) archive.Layer {
	layer := archive.Layer{"/usr/bin/busybox": archive.Program(filepath.Join(b.root, "usr/bin/busybox")), "/bin": {Link: "usr/bin"}}
	for _, name := range names {
		layer["/usr/bin/"+name] = archive.Entry{Link: "busybox"}
	}
	return layer
}

// compiledImage returns an image of a program whose source is embedded in the recipe. The
// program imports the standard library only, so it is built without a module.
func (b imageBuilder) compiledImage(tag, name, source string) (archive.Image, error) {
	content, err := recipe.ReadFile(source)
	if err != nil {
		return archive.Image{}, err
	}
	dir := filepath.Join(b.work, "build-"+name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return archive.Image{}, err
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), content, 0o644); err != nil {
		return archive.Image{}, err
	}
	cmd := exec.CommandContext(b.ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", name, "main.go")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GO111MODULE=off", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return archive.Image{}, fmt.Errorf("build %s: %w: %s", name, err, lastLine(string(out)))
	}
	return b.programImage(tag, name, filepath.Join(dir, name), "65534")
}

// kubeadmImages returns the names of the images that kubeadm starts.
func kubeadmImages(ctx context.Context, kubeadm string) ([]string, error) {
	out, err := exec.CommandContext(ctx, kubeadm, "config", "images", "list", "--kubernetes-version", binaries.Version("kubernetes")).Output()
	if err != nil {
		return nil, fmt.Errorf("list the images of kubeadm: %w", err)
	}
	return strings.Fields(string(out)), nil
}

// unpack extracts a root file system without /dev and /var, which no image needs.
func unpack(ctx context.Context, tarball, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "tar", "--extract", "--file", tarball, "--directory", dir, "--exclude=./dev/*", "--exclude=./var").CombinedOutput()
	if err != nil {
		return fmt.Errorf("unpack %s: %w: %s", tarball, err, lastLine(string(out)))
	}
	return nil
}
