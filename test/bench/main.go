// Command bench measures what a user of the embedded lab gets: how soon drift is
// put right, next to the least that it could take; how long a cache takes from
// apply to ready; what one hung member costs the others; what the hub manager
// writes, uses and asks for.
//
//	go run ./test/bench              a lab of its own, removed at the end
//	go run ./test/bench --lab NAME   a lab that is there, and holds no caches
//
// It prints a table and writes bench.json, which docs/benchmarks.md explains. The
// goals beside the figures are goals, no test: it ends well whenever it could
// measure. It runs in the project's folder, after make build.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
)

type options struct {
	name, out string
	only      string
	members   int
	caches    int
	trials    int
	idle      time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context) error {
	if len(os.Args) > 3 && os.Args[1] == floorCommand {
		err := runFloor(ctx, os.Args[2], os.Args[3], os.Args[4:])
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	var o options
	flag.StringVar(&o.name, "lab", "", "embedded lab to measure, which holds no caches; it makes one of its own if empty")
	flag.StringVar(&o.out, "out", "bench.json", "file for the figures")
	flag.StringVar(&o.only, "only", "", "measure only these, separated by commas: "+strings.Join(stageNames(), ", "))
	flag.IntVar(&o.members, "members", 3, "members of its own lab")
	flag.IntVar(&o.caches, "caches", 50, "CacheClusters that are there, in every member, when drift, quiet and memory are measured")
	flag.IntVar(&o.trials, "trials", 100, "how often each thing is tried")
	flag.DurationVar(&o.idle, "idle", time.Minute, "how long to watch for writes while nothing happens")
	flag.Parse()
	if o.caches < 1 || o.trials < 1 || o.idle <= 0 {
		return errors.New("--caches, --trials and --idle must be at least 1")
	}
	return run(ctx, o)
}

func run(ctx context.Context, o options) (err error) {
	up := time.Duration(0)
	if o.name == "" {
		o.name = fmt.Sprintf("bench-%d", os.Getpid())
		defer func() {
			err = errors.Join(err, cli(context.WithoutCancel(ctx), "down", "--name", o.name))
		}()
		step("making lab %s", o.name)
		start := time.Now()
		if err := cli(ctx, "up", "--name", o.name, "--members", fmt.Sprint(o.members)); err != nil {
			return err
		}
		up = time.Since(start)
	}
	l, err := lab.Open(o.name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f, err := connect(l, o)
	if err != nil {
		return err
	}
	f.report = report{Members: len(f.members()), Caches: o.caches, Trials: o.trials, UpS: up.Seconds(), PerOperation: map[string]operation{}}
	if err := f.observe(ctx); err != nil {
		return err
	}
	if err := f.measure(ctx); err != nil {
		return err
	}
	f.report.print(os.Stdout)
	return f.report.write(o.out)
}

// stage is one part of the run. All but create and bare need the caches that createAll
// leaves behind.
type stage struct {
	name    string
	measure func(*fleet, context.Context) error
}

var stages = []stage{
	{"create", (*fleet).measureCreate},
	{"bare", (*fleet).measureBare},
	{"createAll", (*fleet).measureCreateAll},
	{"drift", (*fleet).measureDrift},
	{"idle", (*fleet).measureIdle},
	{"memory", (*fleet).measureMemory},
	{"restart", (*fleet).measureRestart},
	{"hung", (*fleet).measureHung},
}

func stageNames() (all []string) {
	for _, s := range stages {
		all = append(all, s.name)
	}
	return all
}

func (f *fleet) measure(ctx context.Context) error {
	before, err := f.manager.cpu()
	if err != nil {
		return err
	}
	for _, s := range stages {
		if f.only != "" && s.name != "createAll" && !slices.Contains(strings.Split(f.only, ","), s.name) {
			continue
		}
		if err := s.measure(f, ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	after, err := f.manager.cpu()
	f.report.Manager.CPUSeconds = after - before
	return err
}

func step(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...)
}

// cli runs the command line as a user does.
func cli(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "./reconcile-lab", args...)
	// As Ctrl-C does.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return nil
}
