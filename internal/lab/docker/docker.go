// Package docker runs the docker command line, and says what to do where it cannot be.
//
// It promises errors that hold what docker said, or the remedy where docker is missing,
// not running or out of disk. It keeps no connection and no state; hack/docker/docker.sh
// installs and starts the engine.
package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
)

// minFree is what a node image and four clusters take, with some room.
const minFree = 5 << 30

// Run runs docker with the arguments and returns its trimmed output.
func Run(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	err := Pipe(ctx, nil, &out, args...)
	return strings.TrimSpace(out.String()), err
}

// Pipe runs docker with the arguments between a reader and a writer, either of which
// may be nil.
func Pipe(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, &said
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, exec.ErrNotFound):
		return errors.New("docker is not installed: run `make docker` (on Debian), or install Docker Engine")
	}
	message := lastLine(said.String())
	if strings.Contains(message, "no space left on device") {
		return fmt.Errorf("docker %s: the disk is full: make room, for example with `docker system prune`", args[0])
	}
	if message == "" {
		message = err.Error()
	}
	return fmt.Errorf("docker %s: %s", args[0], message)
}

// Check returns an error with a remedy if no daemon answers, or if it has too little
// disk for clusters.
func Check(ctx context.Context) error {
	root, err := Run(ctx, "info", "--format", "{{.DockerRootDir}}")
	if err != nil && ctx.Err() == nil {
		if _, missing := exec.LookPath("docker"); missing != nil {
			return err
		}
		return fmt.Errorf("no Docker daemon answers: run `make docker`, or start Docker (%w)", err)
	}
	if err != nil {
		return err
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(root, &fs); err != nil {
		return nil // a daemon elsewhere: its disk cannot be seen from here
	}
	if free := uint64(fs.Bavail) * uint64(fs.Bsize); free < minFree {
		return fmt.Errorf("%s has %.1f GiB free, %d are needed: make room, for example with `docker system prune`", root, float64(free)/(1<<30), minFree>>30)
	}
	return nil
}

// HasImage says whether the daemon has the image.
func HasImage(ctx context.Context, image string) bool {
	_, err := Run(ctx, "image", "inspect", "--format", "{{.Id}}", image)
	return err == nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
