package embedded

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/binaries"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/process"
)

//go:embed stages.yaml
var stages []byte

// patience with each step. A busy two-core machine needs half a minute for four
// API servers at once.
const patience = 2 * time.Minute

// Failures that a second try from stopped processes cures.
var (
	// errStuck says that processes run that do not get ready.
	errStuck = errors.New("not ready in time")
	// errPortLost says that somebody took a port between choice and use.
	errPortLost = errors.New("another program took its port meanwhile")
)

// create completes whatever an earlier call left.
func create(ctx context.Context, cluster string, f files, report lab.Report) error {
	for _, dir := range []string{f.dir, f.path("logs")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := ensurePKI(f); err != nil {
		return err
	}
	if err := lab.WriteFile(f.stages(), stages); err != nil {
		return err
	}
	chosen, err := settlePorts(ctx, f, report)
	if err != nil {
		return err
	}
	config, err := kubeconfig(f, fmt.Sprintf("https://127.0.0.1:%d", chosen.APIServer), cluster)
	if err != nil {
		return err
	}
	if err := lab.WriteFile(f.kubeconfig(), config); err != nil {
		return err
	}

	start := starter{files: f, ports: chosen}
	c, err := newClient(f)
	if err != nil {
		return err
	}
	if err := start.programs(ctx, etcd, apiServer); err != nil {
		return err
	}
	if err := start.await(ctx, report, "waiting for the API server", func(ctx context.Context) (bool, error) {
		return c.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil, nil
	}); err != nil {
		return err
	}
	if err := start.releaseNodes(ctx, c); err != nil {
		return err
	}
	if err := start.programs(ctx, controllerManager, scheduler, kwok); err != nil {
		return err
	}
	if err := ensureNodes(ctx, c); err != nil {
		return err
	}
	return start.await(ctx, report, "waiting for nodes and controllers", func(ctx context.Context) (bool, error) {
		if ready, err := nodesReady(ctx, c); err != nil || !ready {
			return false, nil
		}
		// Pods are refused before the controller manager has made this one.
		_, err := c.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
}

// settlePorts keeps the ports of an earlier call, unless somebody else took one of
// them meanwhile. It ends what runs with other arguments than it should.
func settlePorts(ctx context.Context, f files, report lab.Report) (ports, error) {
	kept, made, err := loadPorts(f)
	if err != nil {
		return ports{}, err
	}
	if made {
		right, wrong, err := running(f, kept)
		if err != nil {
			return ports{}, err
		}
		// Such as those that a fault test has stopped.
		process.Continue(slices.Concat(right, wrong)...)
		if len(wrong) > 0 {
			if err := process.Stop(ctx, 10*time.Second, f.dir, programs...); err != nil {
				return ports{}, err
			}
			right = nil
		}
		port, taken := 0, false
		for _, program := range programs {
			if !slices.ContainsFunc(right, func(p process.Process) bool { return p.Program() == program }) {
				if number, yes := kept.taken(program); yes {
					port, taken = number, yes
				}
			}
		}
		if !taken {
			return kept, nil
		}
		report(fmt.Sprintf("port %d was taken by another program meanwhile: changing to others", port))
	}
	if err := process.Stop(ctx, 10*time.Second, f.dir, programs...); err != nil {
		return ports{}, err
	}
	fresh, err := choosePorts()
	if err != nil {
		return ports{}, err
	}
	return fresh, savePorts(f, fresh)
}

// running tells the cluster's processes that run as they should from others, such
// as those of an earlier version.
func running(f files, ports ports) (right, wrong []process.Process, err error) {
	found, err := process.Find(f.dir, programs...)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range found {
		path, _, err := binaries.Find(p.Program())
		if err != nil {
			return nil, nil, err
		}
		if slices.Equal(p.Args, append([]string{path}, arguments(p.Program(), f, ports)...)) {
			right = append(right, p)
		} else {
			wrong = append(wrong, p)
		}
	}
	return right, wrong, nil
}

// starter starts what does not run yet and watches it come up.
type starter struct {
	files   files
	ports   ports
	started map[string]*process.Started
}

func (s *starter) programs(ctx context.Context, names ...string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	right, _, err := running(s.files, s.ports)
	if err != nil {
		return err
	}
	for _, name := range names {
		if slices.ContainsFunc(right, func(p process.Process) bool { return p.Program() == name }) {
			continue
		}
		path, _, err := binaries.Find(name)
		if err != nil {
			return err
		}
		// Only this run's output, so that errors quote the right lines.
		if err := os.WriteFile(s.files.log(name), nil, 0o600); err != nil {
			return err
		}
		p, err := process.Start(s.files.log(name), path, arguments(name, s.files, s.ports)...)
		if err != nil {
			return err
		}
		if s.started == nil {
			s.started = map[string]*process.Started{}
		}
		s.started[name] = p
	}
	return nil
}

// await polls until done says so. It gives up early when a program that was just
// started ends, and says what that wrote last.
func (s *starter) await(ctx context.Context, report lab.Report, what string, done wait.ConditionWithContextFunc) error {
	report(what)
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		for name, p := range s.started {
			select {
			case <-p.Exited:
				return false, s.explain(name)
			default:
			}
		}
		return done(ctx)
	})
	if ctx.Err() == nil && wait.Interrupted(err) {
		return fmt.Errorf("%s: %w (%s): the machine may be too busy: run reconcile-lab up again; logs are in %s",
			what, errStuck, patience, s.files.path("logs"))
	}
	return err
}

// explain says why a program ended.
func (s *starter) explain(name string) error {
	log, err := os.ReadFile(s.files.log(name))
	if err != nil {
		return err
	}
	text := string(bytes.TrimSpace(log))
	switch {
	case strings.Contains(text, "no space left on device"):
		return fmt.Errorf("%s ended because the disk is full: free some space, then run reconcile-lab up again", name)
	case strings.Contains(text, "address already in use"):
		return fmt.Errorf("%s ended: %w: run reconcile-lab up again, which changes to another", name, errPortLost)
	case text == "":
		return fmt.Errorf("%s ended without a word, which is how the kernel ends a program when memory runs out: close programs or use fewer members, then run reconcile-lab up again", name)
	}
	lines := strings.Split(text, "\n")
	return fmt.Errorf("%s ended: %s (whole log: %s)", name, lines[len(lines)-1], s.files.log(name))
}
