// Package docker runs the docker command line.
//
// Its errors contain the last line that docker printed, or a remedy where docker is
// missing, not running or out of disk space. It keeps no connection and no state.
// hack/docker/docker.sh installs and starts Docker Engine.
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

// minFreeBytes is the disk space that a node image and four clusters need.
const minFreeBytes = 5 << 30

// Run runs docker with the arguments and returns its trimmed output.
func Run(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	err := Pipe(ctx, nil, &out, args...)
	return strings.TrimSpace(out.String()), err
}

// Pipe runs docker with the arguments. in is its standard input and out its standard
// output; both may be nil.
func Pipe(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
	var errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, &errOut
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, exec.ErrNotFound):
		return errors.New("docker is not installed; run `make docker` (on Debian), or install Docker Engine")
	}
	message := lastLine(errOut.String())
	if strings.Contains(message, "no space left on device") {
		return fmt.Errorf("docker %s: the disk is full; free some space, for example with `docker system prune`", args[0])
	}
	if message == "" {
		message = err.Error()
	}
	return fmt.Errorf("docker %s: %s", args[0], message)
}

// Check returns an error with a remedy if no daemon answers or if its disk has too little
// free space.
func Check(ctx context.Context) error {
	root, err := Run(ctx, "info", "--format", "{{.DockerRootDir}}")
	if err != nil && ctx.Err() == nil {
		if _, missing := exec.LookPath("docker"); missing != nil {
			return err
		}
		return fmt.Errorf("no Docker daemon answers: %w; run `make docker`, or start Docker", err)
	}
	if err != nil {
		return err
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(root, &fs); err != nil {
		return nil // the daemon runs on another machine
	}
	if free := uint64(fs.Bavail) * uint64(fs.Bsize); free < minFreeBytes {
		return fmt.Errorf("%s has %.1f GiB of free space, %d GiB are needed; free some, for example with `docker system prune`", root, float64(free)/(1<<30), minFreeBytes>>30)
	}
	return nil
}

// HasImage reports whether the daemon has the image.
func HasImage(ctx context.Context, image string) bool {
	_, err := Run(ctx, "image", "inspect", "--format", "{{.Id}}", image)
	return err == nil
}

// lastLine returns the last line of the text.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
