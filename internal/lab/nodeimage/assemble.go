package nodeimage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/reconcile-lab/reconcile-lab/internal/lab/binaries"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/docker"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/nodeimage/archive"
)

const entrypoint = `["/usr/local/bin/entrypoint", "/sbin/init"]`

// assemble builds the node image in the Docker daemon. The image has three parts:
// the root file system, the layer of Kubernetes programs and configuration, and the pods'
// images in the store of containerd.
func assemble(ctx context.Context, report Report, work, rootfs string, programs map[string]string, images string) error {
	report("assembling the node image")
	layer, err := nodeLayer(ctx, programs)
	if err != nil {
		return err
	}
	overlay := filepath.Join(work, "overlay.tar")
	if err := archive.WriteLayer(overlay, layer); err != nil {
		return err
	}
	base := strings.Replace(Tag(), repository, repository+"-base", 1)
	file := filepath.Join(work, "base.tar")
	err = archive.WriteFile(file, archive.Image{
		Tags:         []string{base},
		Architecture: runtime.GOARCH,
		Config:       archive.Config{Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "container=docker"}, StopSignal: "SIGRTMIN+3"},
		Layers:       []string{rootfs, overlay},
	})
	if err != nil {
		return err
	}
	if _, err := docker.Run(ctx, "load", "--quiet", "--input", file); err != nil {
		return err
	}
	// The node image keeps the layers of the base image.
	defer docker.Run(context.WithoutCancel(ctx), "image", "rm", base) //nolint:errcheck // an extra tag has no effect

	report("importing the pod images into the node image")
	return preload(ctx, work, base, images)
}

// preload starts a container of the base image, imports the pod images into its containerd
// and commits the container as the node image.
func preload(ctx context.Context, work, base, images string) (err error) {
	input := filepath.Join(work, "in")
	if err := os.Mkdir(input, 0o755); err != nil {
		return err
	}
	if err := os.Rename(images, filepath.Join(input, "images.tar")); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(input, "preload.sh"), []byte(recipeFile("preload.sh")), 0o755); err != nil {
		return err
	}
	container := "reconcile-lab-node-build"
	remove := func() error {
		_, err := docker.Run(context.WithoutCancel(ctx), "rm", "--force", "--volumes", container)
		return err
	}
	if err := remove(); err != nil && !strings.Contains(err.Error(), "No such container") {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	_, err = docker.Run(ctx, "run", "--name", container, "--privileged", "--network", "none", "--volume", input+":/in:ro", "--entrypoint", "bash", base, "/in/preload.sh")
	if err != nil {
		return err
	}
	_, err = docker.Run(ctx, "commit", "--change", "ENTRYPOINT "+entrypoint, "--change", "CMD []", container, Tag())
	return err
}

// nodeLayer returns the layer above the root file system: Kubernetes programs, units of
// systemd and configuration files.
func nodeLayer(ctx context.Context, programs map[string]string) (archive.Layer, error) {
	pause, err := pauseImage(ctx, programs["kubeadm"])
	if err != nil {
		return nil, err
	}
	placeholders := strings.NewReplacer("{{pause}}", pause, "{{provisioner}}", provisionerImage(), "{{busybox}}", busyboxImage)
	const wants = "/etc/systemd/system/multi-user.target.wants/"
	layer := archive.Layer{
		"/kind/version":                          archive.Text(binaries.Version("kubernetes")),
		"/kind/manifests/default-cni.yaml":       archive.Text(""),
		"/kind/manifests/default-storage.yaml":   archive.Text(placeholders.Replace(recipeFile("default-storage.yaml"))),
		"/etc/cni/net.d/10-bridge.conflist":      archive.Text(recipeFile("cni.conflist")),
		"/etc/containerd/config.toml":            archive.Text(placeholders.Replace(recipeFile("containerd.toml"))),
		"/etc/crictl.yaml":                       archive.Text("runtime-endpoint: unix:///run/containerd/containerd.sock\n"),
		"/etc/kubernetes/manifests":              {Dir: true},
		"/etc/systemd/system/containerd.service": archive.Text(recipeFile("containerd.service")),
		"/etc/systemd/system/kubelet.service":    archive.Text(recipeFile("kubelet.service")),
		"/usr/local/bin/entrypoint":              {Content: []byte(recipeFile("entrypoint")), Mode: 0o755},
		wants + "containerd.service":             {Link: "/etc/systemd/system/containerd.service"},
		wants + "kubelet.service":                {Link: "/etc/systemd/system/kubelet.service"},
	}
	for dir, names := range map[string][]string{
		"/usr/local/bin": {"containerd", "containerd-shim-runc-v2", "ctr"},
		"/usr/bin":       {"kubelet", "kubeadm", "kubectl"},
		"/opt/cni/bin":   {"bridge", "host-local", "loopback", "portmap"},
	} {
		for _, name := range names {
			layer[path.Join(dir, name)] = archive.Program(programs[name])
		}
	}
	return layer, nil
}

// pauseImage returns the name of the pause image that kubeadm uses.
func pauseImage(ctx context.Context, kubeadm string) (string, error) {
	tags, err := kubeadmImages(ctx, kubeadm)
	if err != nil {
		return "", err
	}
	for _, tag := range tags {
		if strings.HasPrefix(path.Base(tag), "pause:") {
			return tag, nil
		}
	}
	return "", fmt.Errorf("no pause image among the images of kubeadm: %s", strings.Join(tags, ", "))
}
