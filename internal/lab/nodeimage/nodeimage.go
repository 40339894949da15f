package nodeimage

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/reconcile-lab/reconcile-lab/internal/lab/binaries"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/binaries/filelock"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/docker"
)

const (
	// sourceVariable is the environment variable that selects the source of the image.
	sourceVariable = "RECONCILE_LAB_NODE_IMAGE"
	fromAuto       = "auto"
	fromBuild      = "build"

	// publishedImage is the image of Kubernetes 1.36 in the release notes of the kind version
	// in go.mod.
	publishedImage = "kindest/node:v1.36.4@sha256:099e049362a1526b2db71494e1947aae99bd16290d7c895f2b7ea312e3cbfaed"
	// registryTimeout limits the wait for the first answer of the registry, so that a machine
	// without a registry starts to build soon.
	registryTimeout = 6 * time.Second
)

// Image is the image of a kind node.
type Image struct {
	// Ref is the name and tag of the image.
	Ref string
	// Built is true if this package has built the image. A built image contains its own pod
	// network and the cache images, and needs its own kubelet settings.
	Built bool
}

// Report receives the current step, a short phrase for the user.
type Report func(step string)

// Ensure pulls, loads or builds an image if the daemon has none, and returns it.
func Ensure(ctx context.Context, report Report) (Image, error) {
	if err := docker.Check(ctx); err != nil {
		return Image{}, err
	}
	built := Image{Ref: Tag(), Built: true}
	switch from := os.Getenv(sourceVariable); from {
	case fromBuild:
		return built, ensureBuilt(ctx, report)
	case "", fromAuto:
	default:
		if docker.HasImage(ctx, from) {
			return Image{Ref: from}, nil
		}
		if err := docker.Pipe(ctx, nil, io.Discard, "pull", from); err != nil {
			return Image{}, fmt.Errorf("%s=%s: %w", sourceVariable, from, err)
		}
		return Image{Ref: from}, nil
	}
	if docker.HasImage(ctx, built.Ref) {
		return built, nil
	}
	if docker.HasImage(ctx, publishedImage) {
		return Image{Ref: publishedImage}, nil
	}
	dir, err := cacheDir()
	if err != nil {
		return Image{}, err
	}
	// A machine that has built an image before cannot reach the registry.
	if _, err := os.Stat(savedImage(dir)); err != nil {
		err := pull(ctx, report)
		if err == nil {
			return Image{Ref: publishedImage}, nil
		}
		if ctx.Err() != nil {
			return Image{}, ctx.Err()
		}
		report(fmt.Sprintf("cannot pull %s, building a node image instead", publishedImage))
	}
	return built, ensureBuilt(ctx, report)
}

// pull pulls the published image. Only the wait for the first answer of the registry is
// limited, not the download.
func pull(ctx context.Context, report Report) error {
	report("looking for " + publishedImage)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	noAnswer := time.AfterFunc(registryTimeout, cancel)
	defer noAnswer.Stop()

	out, lines := io.Pipe()
	go func() {
		scanner := bufio.NewScanner(out)
		for scanner.Scan() {
			if strings.Contains(scanner.Text(), "Pulling from") {
				noAnswer.Stop()
				report("pulling " + publishedImage)
			}
		}
		_, _ = io.Copy(io.Discard, out)
	}()
	err := docker.Pipe(ctx, nil, lines, "pull", publishedImage)
	_ = lines.Close()
	return err
}

// ensureBuilt loads the image from the cache directory, or builds it.
func ensureBuilt(ctx context.Context, report Report) error {
	if docker.HasImage(ctx, Tag()) {
		return nil
	}
	dir, err := cacheDir()
	if err != nil {
		return err
	}
	unlock, err := filelock.Take(ctx, filepath.Join(dir, ".lock"), func() { report("waiting for another process that builds the node image") })
	if err != nil {
		return err
	}
	defer unlock()
	if docker.HasImage(ctx, Tag()) {
		return nil
	}
	if f, err := os.Open(savedImage(dir)); err == nil {
		defer f.Close()
		report("loading the node image from the cache")
		return docker.Pipe(ctx, f, nil, "load", "--quiet")
	}
	if err := build(ctx, report, dir); err != nil {
		return fmt.Errorf("build node image: %w", err)
	}
	return nil
}

// build builds the image and saves it to the cache directory, for a Docker daemon whose
// images were removed.
func build(ctx context.Context, report Report, dir string) error {
	rootfs, err := ensureRootfs(ctx, report, dir)
	if err != nil {
		return err
	}
	programs, err := binaries.Ensure(ctx, binaries.Report(report), nodePrograms...)
	if err != nil {
		return err
	}
	work, done, err := workDir(dir)
	if err != nil {
		return err
	}
	defer done()
	report("building the images of the control plane and of the caches")
	images, err := podImages(ctx, work, rootfs, programs)
	if err != nil {
		return err
	}
	if err := assemble(ctx, report, work, rootfs, programs, images); err != nil {
		return err
	}
	report("saving the node image to the cache")
	return save(ctx, dir)
}

// save saves the image to the cache directory and removes earlier images.
func save(ctx context.Context, dir string) error {
	partial := savedImage(dir) + ".partial"
	defer os.Remove(partial)
	if _, err := docker.Run(ctx, "save", "--output", partial, Tag()); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(dir, "node-*.tar"))
	if err != nil {
		return err
	}
	for _, file := range old {
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	if err := os.Rename(partial, savedImage(dir)); err != nil {
		return err
	}
	return removeOldImages(ctx)
}

// removeOldImages removes images of earlier inputs from the daemon; each has about 1 GB.
// Docker refuses to remove an image that a container uses.
func removeOldImages(ctx context.Context) error {
	tags, err := docker.Run(ctx, "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", repository)
	if err != nil {
		return err
	}
	for tag := range strings.FieldsSeq(tags) {
		if tag != Tag() {
			_, _ = docker.Run(ctx, "image", "rm", tag)
		}
	}
	return nil
}

// cacheDir returns the cache directory, a sibling of the one of package binaries.
func cacheDir() (string, error) {
	bin, err := binaries.Dir()
	if err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(bin), "nodeimage-"+binaries.Version("kubernetes")), nil
}

// workDir creates a directory for one build and removes those of killed builds. The caller
// holds the lock.
func workDir(dir string) (work string, done func(), err error) {
	old, err := filepath.Glob(filepath.Join(dir, "work-*"))
	if err != nil {
		return "", nil, err
	}
	for _, d := range old {
		if err := os.RemoveAll(d); err != nil {
			return "", nil, err
		}
	}
	work, err = os.MkdirTemp(dir, "work-")
	return work, func() { _ = os.RemoveAll(work) }, err
}
