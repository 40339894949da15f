package binaries

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// wrappers contains go.mod and go.sum of one module per program source, under other names,
// because embedding excludes directories that contain a go.mod.
//
//go:embed modules
var wrappers embed.FS

// build builds programs of one module. The caller holds the lock of the module.
func build(ctx context.Context, report Report, m Module, programs []Program, dir string) error {
	goTool, err := exec.LookPath("go")
	if err != nil {
		return fmt.Errorf("build %s: no Go toolchain on PATH; install Go 1.26 or later, or set %s=published on a machine with internet access", m.Name, sourceVariable)
	}
	work, err := os.MkdirTemp("", "reconcile-lab-build-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := writeWrapper(m, work); err != nil {
		return err
	}
	for _, p := range programs {
		if err := buildProgram(ctx, report, goTool, work, dir, m, p); err != nil {
			return err
		}
	}
	return nil
}

// writeWrapper writes the main module from which the Go tool builds the programs.
func writeWrapper(m Module, work string) error {
	for source, target := range map[string]string{".mod": "go.mod", ".sum": "go.sum", ".go.txt": "main.go"} {
		content, err := wrappers.ReadFile("modules/" + m.Name + source)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(work, target), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// buildProgram builds one program and reports its progress.
func buildProgram(ctx context.Context, report Report, goTool, work, dir string, m Module, p Program) error {
	temporary := filepath.Join(dir, "."+p.Name+".tmp")
	defer func() { _ = os.Remove(temporary) }()

	// With -v, the Go tool prints each package that it compiles, its only form of progress.
	cmd := exec.CommandContext(ctx, goTool, "build", "-v", "-trimpath",
		"-ldflags", strings.Join(append([]string{"-s", "-w"}, m.LDFlags...), " "),
		"-o", temporary, p.Package)
	cmd.Dir = work
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-buildvcs=false")
	output := &progress{}
	cmd.Stdout, cmd.Stderr = output, output
	// A process group of its own, so that a signal reaches the compilers too.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 5 * time.Second

	start := time.Now()
	report(fmt.Sprintf("building %s %s (about %s, once)", p.Name, m.Version, p.BuildTime))
	stop := every(10*time.Second, func() {
		report(fmt.Sprintf("building %s %s: %d packages compiled in %s (about %s, once)",
			p.Name, m.Version, output.packages(), time.Since(start).Round(time.Second), p.BuildTime))
	})
	err := cmd.Run()
	stop()
	if ctx.Err() != nil {
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
		return fmt.Errorf("build %s: %w", p.Name, ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("build %s %s: %w", p.Name, m.Version, explain(err, output.errors()))
	}
	return os.Rename(temporary, filepath.Join(dir, p.Name))
}

// explain returns an error with a remedy for the output of the Go tool.
func explain(err error, output string) error {
	switch {
	case strings.Contains(output, "no space left on device"):
		return errors.New("the disk is full, a first build of everything needs about 12 GB for the caches of Go; free some space, or move the caches with GOCACHE, GOMODCACHE and XDG_CACHE_HOME")
	case strings.Contains(output, "dial tcp"), strings.Contains(output, "i/o timeout"), strings.Contains(output, "no such host"):
		return fmt.Errorf("cannot download a Go module: %s; check the network, or set GOPROXY to a reachable module proxy", lastLines(output))
	case strings.Contains(output, "signal: killed"):
		return errors.New("the compiler was killed, probably for lack of memory; close programs or add swap (4 GB are enough)")
	case output == "":
		return err
	}
	return fmt.Errorf("%w: %s", err, lastLines(output))
}

// lastLines returns the end of an output, which contains the cause of a failure.
func lastLines(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "; ")
}

// progress counts the packages that "go build -v" prints, and collects its other lines.
type progress struct {
	mu       sync.Mutex
	partial  []byte // the last line, until it is complete
	compiled int
	other    bytes.Buffer
}

var _ io.Writer = (*progress)(nil)

func (p *progress) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.partial = append(p.partial, data...)
	for {
		line, rest, complete := bytes.Cut(p.partial, []byte("\n"))
		if !complete {
			return len(data), nil
		}
		p.partial = rest
		switch {
		case bytes.HasPrefix(line, []byte("go: downloading ")):
		case !bytes.ContainsAny(line, " :"):
			p.compiled++
		default:
			p.other.Write(append(line, '\n'))
		}
	}
}

func (p *progress) packages() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.compiled
}

func (p *progress) errors() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.other.String() + string(p.partial)
}

// every calls f in intervals until the caller calls the returned function.
func every(interval time.Duration, f func()) func() {
	done := make(chan struct{})
	ticker := time.NewTicker(interval)
	go func() {
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				f()
			}
		}
	}()
	return sync.OnceFunc(func() { close(done) })
}
