package nodeimage

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ensureRootfs returns the path of the tar archive of the root file system, and creates the
// archive if it is missing.
func ensureRootfs(ctx context.Context, report Report, dir string) (string, error) {
	target := filepath.Join(dir, "rootfs-"+rootfsDigest()+".tar")
	if _, err := os.Stat(target); err == nil {
		return target, nil
	}
	if os.Geteuid() != 0 {
		return "", errors.New("debootstrap needs root to create the root file system of the node image; run this once with sudo, or set " + sourceVariable + " to an image that can be pulled")
	}
	if err := ensureDebootstrap(ctx, report); err != nil {
		return "", err
	}
	work, done, err := workDir(dir)
	if err != nil {
		return "", err
	}
	defer done()
	script, root := filepath.Join(work, "rootfs.sh"), filepath.Join(work, "root")
	if err := os.WriteFile(script, []byte(recipeFile("rootfs.sh")), 0o700); err != nil {
		return "", err
	}
	report("building the root file system from Debian packages (about 4 minutes)")
	// In a mount namespace of its own, the mounts of debootstrap end with it, even if it is
	// killed.
	args := append([]string{"--mount", "bash", script, root, suite}, nodePackages...)
	if err := logged(ctx, report, filepath.Join(dir, "rootfs.log"), "unshare", args...); err != nil {
		return "", err
	}
	partial := filepath.Join(work, "rootfs.tar")
	report("archiving the root file system")
	if err := logged(ctx, report, filepath.Join(dir, "pack.log"), "tar", "--create", "--file", partial, "--directory", root, "--numeric-owner", "."); err != nil {
		return "", err
	}
	old, err := filepath.Glob(filepath.Join(dir, "rootfs-*.tar"))
	if err != nil {
		return "", err
	}
	for _, f := range old {
		if err := os.Remove(f); err != nil {
			return "", err
		}
	}
	return target, os.Rename(partial, target)
}

// ensureDebootstrap installs debootstrap if it is missing.
func ensureDebootstrap(ctx context.Context, report Report) error {
	if _, err := exec.LookPath("debootstrap"); err == nil {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return errors.New("debootstrap is not installed and this system has no apt-get; install debootstrap, or set " + sourceVariable + " to an image that can be pulled")
	}
	report("installing debootstrap")
	for _, args := range [][]string{{"update", "-qq"}, {"install", "-qq", "--yes", "--no-install-recommends", "debootstrap"}} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w: %s", args[0], err, lastLine(string(out)))
		}
	}
	return nil
}

// logged runs a program and writes its output to a log file. It reports the "I: " lines of
// debootstrap to the user.
func logged(ctx context.Context, report Report, logFile, name string, args ...string) error {
	log, err := os.Create(logFile)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, name, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return err
	}
	last := ""
	lines := bufio.NewScanner(io.TeeReader(out, log))
	for lines.Scan() {
		last = lines.Text()
		if step, isInfo := strings.CutPrefix(last, "I: "); isInfo {
			report("root file system: " + strings.ToLower(step[:1]) + step[1:])
		}
	}
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%s: %w: %s (log: %s)", filepath.Base(name), err, last, logFile)
	}
	return nil
}

// lastLine returns the last line of the text.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
