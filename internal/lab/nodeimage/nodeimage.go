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
	// sourceVariable chooses where the image comes from.
	sourceVariable = "RECONCILE_LAB_NODE_IMAGE"
	fromAuto       = "auto"
	fromBuild      = "build"

	// published is the image of Kubernetes 1.36 that the notes of our kind release name.
	published = "kindest/node:v1.36.4@sha256:099e049362a1526b2db71494e1947aae99bd16290d7c895f2b7ea312e3cbfaed"
	// answerWithin bounds the wait for a registry, so that a machine without one gets
	// on with building.
	answerWithin = 6 * time.Second
)

// Image of a kind node.
type Image struct {
	Ref string
	// Built says that it is ours: it brings its own pod network, wants kubelet settings
	// of its own, and holds the cache images.
	Built bool
}

// Report tells the user what is going on, in a few words.
type Report func(step string)

// Ensure returns an image that the daemon has, and first pulls, loads or builds it.
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
	if docker.HasImage(ctx, published) {
		return Image{Ref: published}, nil
	}
	dir, err := cacheDir()
	if err != nil {
		return Image{}, err
	}
	// A machine that had to build once would ask the registry in vain again.
	if _, err := os.Stat(savedImage(dir)); err != nil {
		err := pull(ctx, report)
		if err == nil {
			return Image{Ref: published}, nil
		}
		if ctx.Err() != nil {
			return Image{}, ctx.Err()
		}
		report(fmt.Sprintf("%s cannot be pulled, so a node image is built", published))
	}
	return built, ensureBuilt(ctx, report)
}

// pull gets the published image. The registry must begin to answer soon; the download
// then takes as long as it takes.
func pull(ctx context.Context, report Report) error {
	report("looking for " + published)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silent := time.AfterFunc(answerWithin, cancel)
	defer silent.Stop()

	out, lines := io.Pipe()
	go func() {
		scanner := bufio.NewScanner(out)
		for scanner.Scan() {
			if strings.Contains(scanner.Text(), "Pulling from") {
				silent.Stop()
				report("pulling " + published)
			}
		}
		_, _ = io.Copy(io.Discard, out)
	}()
	err := docker.Pipe(ctx, nil, lines, "pull", published)
	_ = lines.Close()
	return err
}

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

// build makes the image and saves it for a daemon that starts anew.
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
	report("images of the control plane and the caches")
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
	return removeOlder(ctx)
}

// removeOlder drops the images of earlier inputs, each of a gigabyte. Docker keeps those
// from which containers run.
func removeOlder(ctx context.Context) error {
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

// cacheDir is beside the binaries' one.
func cacheDir() (string, error) {
	bin, err := binaries.Dir()
	if err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(bin), "nodeimage-"+binaries.Version("kubernetes")), nil
}

// workDir makes a folder for one build, after removing those of builds that were
// killed. The caller holds the lock.
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
