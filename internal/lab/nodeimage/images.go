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
	// What CacheClusters ask for by default.
	memcachedImage = "memcached:1.6"
	exporterImage  = "prom/memcached-exporter:v0.15.5"

	busyboxImage = "reconcile-lab/busybox:bookworm"
	// memcachedUser is the user of the published image.
	memcachedUser = "11211"
)

func provisionerImage() string {
	return "rancher/local-path-provisioner:" + binaries.Version("local-path-provisioner")
}

// podImages writes the archive of all images that pods of the node start from.
func podImages(ctx context.Context, work, rootfs string, programs map[string]string) (string, error) {
	root := filepath.Join(work, "root")
	if err := unpack(ctx, rootfs, root); err != nil {
		return "", err
	}
	defer os.RemoveAll(root)
	b := builder{ctx: ctx, work: work, root: root, programs: programs}
	control, err := b.controlPlane()
	if err != nil {
		return "", err
	}
	caches, err := b.caches()
	if err != nil {
		return "", err
	}
	file := filepath.Join(work, "images.tar")
	return file, archive.WriteFile(file, append(control, caches...)...)
}

type builder struct {
	ctx        context.Context
	work, root string
	programs   map[string]string
}

// image writes the one layer of an image.
func (b builder) image(tag string, layer archive.Layer, config archive.Config) (archive.Image, error) {
	file := filepath.Join(b.work, "layer-"+strings.NewReplacer("/", "_", ":", "_").Replace(tag)+".tar")
	if err := archive.WriteLayer(file, layer); err != nil {
		return archive.Image{}, fmt.Errorf("image %s: %w", tag, err)
	}
	return archive.Image{Tags: []string{tag}, Architecture: runtime.GOARCH, Config: config, Layers: []string{file}}, nil
}

// single is an image of one static program.
func (b builder) single(tag, name, source string, user string) (archive.Image, error) {
	target := "/usr/local/bin/" + name
	return b.image(tag, archive.Layer{target: archive.Program(source)}, archive.Config{
		Env: []string{"PATH=/usr/local/bin"}, Entrypoint: []string{target}, User: user,
	})
}

// controlPlane gives the images that kubeadm starts, by the names that it gives them.
func (b builder) controlPlane() ([]archive.Image, error) {
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
			image, err = b.kubeProxy(tag)
		case name == "pause":
			image, err = b.compiled(tag, "pause", "pause/main.go")
		case known:
			image, err = b.single(tag, name, source, "")
		default:
			err = fmt.Errorf("kubeadm wants image %s, for which there is no program", tag)
		}
		if err != nil {
			return nil, err
		}
		images = append(images, image)
	}
	provisioner, err := b.single(provisionerImage(), "local-path-provisioner", b.programs["local-path-provisioner"], "")
	if err != nil {
		return nil, err
	}
	busybox, err := b.image(busyboxImage, b.busybox("sh", "mkdir", "rm", "chmod"), archive.Config{Env: []string{"PATH=/bin"}})
	return append(images, provisioner, busybox), err
}

// kubeProxy needs iptables, nft and conntrack beside it. iptables loads its extensions
// by name at run time.
func (b builder) kubeProxy(tag string) (archive.Image, error) {
	extensions, err := find(b.root, "usr/lib/*/xtables/*.so")
	if err != nil {
		return archive.Image{}, err
	}
	programs := slices.Concat(extensions, []string{"/usr/sbin/nft", "/usr/sbin/conntrack", "/usr/sbin/xtables-nft-multi", "/usr/sbin/xtables-legacy-multi"})
	layer, err := withLibraries(b.root, programs...)
	if err != nil {
		return archive.Image{}, err
	}
	names, err := find(b.root, "usr/sbin/iptables*", "usr/sbin/ip6tables*", "etc/alternatives/iptables*", "etc/alternatives/ip6tables*")
	if err != nil {
		return archive.Image{}, err
	}
	for _, name := range names {
		// Some of them are scripts, which nothing here runs.
		if target, err := os.Readlink(filepath.Join(b.root, name)); err == nil {
			layer[name] = archive.Entry{Link: target}
		}
	}
	layer["/usr/local/bin/kube-proxy"] = archive.Program(b.programs["kube-proxy"])
	layer["/run"] = archive.Entry{Dir: true} // for the lock of iptables
	return b.image(tag, layer, archive.Config{
		Env:        []string{"PATH=/usr/local/bin:/usr/sbin:/usr/bin"},
		Entrypoint: []string{"/usr/local/bin/kube-proxy"},
	})
}

// caches gives the stand-ins of the published cache images.
func (b builder) caches() ([]archive.Image, error) {
	layer, err := withLibraries(b.root, "/usr/bin/memcached")
	if err != nil {
		return nil, err
	}
	// A shell and nc, for the entrypoint and to look into a running cache.
	merge(layer, b.busybox("sh", "nc", "timeout"), archive.Layer{
		"/etc/passwd":                         archive.Text("root:x:0:0:root:/root:/bin/sh\nmemcache:x:11211:11211::/:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"),
		"/usr/local/bin/docker-entrypoint.sh": {Content: []byte(file("memcached-entrypoint")), Mode: 0o755},
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
	exporter, err := b.compiled(exporterImage, "memcached_exporter", "exporter/main.go")
	return []archive.Image{memcached, exporter}, err
}

// busybox gives the layer of busybox under some of its names.
func (b builder) busybox(names ...string) archive.Layer {
	layer := archive.Layer{"/usr/bin/busybox": archive.Program(filepath.Join(b.root, "usr/bin/busybox")), "/bin": {Link: "usr/bin"}}
	for _, name := range names {
		layer["/usr/bin/"+name] = archive.Entry{Link: "busybox"}
	}
	return layer
}

// compiled is an image of a program of the recipe. It uses the standard library only,
// so it is built without a module.
func (b builder) compiled(tag, name, source string) (archive.Image, error) {
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
	return b.single(tag, name, filepath.Join(dir, name), "65534")
}

// kubeadmImages asks kubeadm for the images that it starts.
func kubeadmImages(ctx context.Context, kubeadm string) ([]string, error) {
	out, err := exec.CommandContext(ctx, kubeadm, "config", "images", "list", "--kubernetes-version", binaries.Version("kubernetes")).Output()
	if err != nil {
		return nil, fmt.Errorf("ask kubeadm for its images: %w", err)
	}
	return strings.Fields(string(out)), nil
}

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
