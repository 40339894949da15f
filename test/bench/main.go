// Command bench measures the hub manager in an embedded lab: the time of a correction and
// of a create, and the cost of one hung member for the others. It also counts writes and
// reconciles, and measures memory.
//
//	go run ./test/bench              creates a lab and removes it at the end
//	go run ./test/bench --lab NAME   uses an existing lab without CacheClusters
//
// It prints a table and writes bench.json; docs/benchmarks.md explains the keys. A
// missed goal is marked and does not fail the run. The command runs in the root of
// the repository, after make build.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
)

type options struct {
	name, out string
	// only lists the selected stages; all of them if empty.
	only    []string
	binary  string
	profile string
	members int
	caches  int
	trials  int
	idle    time.Duration
	// heapCaches is the number of CacheClusters of the stage heap, sizes are those of
	// the stage growth.
	heapCaches int
	sizes      []int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "error:", err)
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
	o, err := parseOptions(os.Args[1:], os.Stderr)
	if err != nil {
		return err
	}
	return run(ctx, o)
}

func parseOptions(args []string, output io.Writer) (o options, err error) {
	var only, sizes string
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.StringVar(&o.name, "lab", "", "name of an existing embedded lab without CacheClusters; bench creates its own lab if empty")
	flags.StringVar(&o.out, "out", "bench.json", "file for the figures")
	flags.StringVar(&only, "only", "", "comma-separated stages to measure; all if empty: "+strings.Join(stageNames(), ", "))
	flags.StringVar(&o.binary, "manager", "", "hub manager binary for bench's own lab; the one beside ./reconcile-lab if empty")
	flags.StringVar(&o.profile, "heap-profile", "", "file for a pprof heap profile of the manager at the end of the stage heap")
	flags.IntVar(&o.members, "members", 3, "number of members of bench's own lab")
	flags.IntVar(&o.caches, "caches", 50, "number of CacheClusters that exist while drift, idle, memory, restart and hung are measured")
	flags.IntVar(&o.trials, "trials", 100, "number of trials of each latency")
	flags.DurationVar(&o.idle, "idle", time.Minute, "how long to count writes while nothing changes")
	flags.IntVar(&o.heapCaches, "heap-caches", 400, "number of CacheClusters of the stage heap")
	flags.StringVar(&sizes, "sizes", "50,200,800", "comma-separated numbers of CacheClusters of the stage growth, ascending")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.caches < 1 || o.trials < 1 || o.heapCaches < 1 || o.idle <= 0 {
		return o, errors.New("--caches, --trials, --heap-caches, --idle: must be greater than zero")
	}
	if o.name != "" && o.binary != "" {
		return o, errors.New("--manager: cannot be combined with --lab; start the lab with " + lab.HubVariable)
	}
	if o.only, err = parseOnly(only); err != nil {
		return o, err
	}
	o.sizes, err = parseSizes(sizes)
	return o, err
}

func parseOnly(list string) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	selected := strings.Split(list, ",")
	for _, name := range selected {
		if !slices.Contains(stageNames(), name) {
			return nil, fmt.Errorf("--only: %q: must be one of: %s", name, strings.Join(stageNames(), ", "))
		}
	}
	return selected, nil
}

func parseSizes(list string) (sizes []int, err error) {
	for item := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(item))
		if err != nil || n < 1 || len(sizes) > 0 && n <= sizes[len(sizes)-1] {
			return nil, fmt.Errorf("--sizes: %q: must be ascending positive numbers, such as 50,200,800", list)
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}

func run(ctx context.Context, o options) (err error) {
	up := time.Duration(0)
	if o.name == "" {
		o.name = fmt.Sprintf("bench-%d", os.Getpid())
		if o.binary != "" {
			if err := os.Setenv(lab.HubVariable, o.binary); err != nil {
				return err
			}
		}
		defer func() {
			err = errors.Join(err, runCLI(context.WithoutCancel(ctx), "down", "--name", o.name))
		}()
		logStep("creating lab %s", o.name)
		start := time.Now()
		if err := runCLI(ctx, "up", "--name", o.name, "--members", strconv.Itoa(o.members)); err != nil {
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

// stage is one part of the run.
type stage struct {
	name    string
	measure func(*fleet, context.Context) error
	// needsCaches: the stage needs the CacheClusters that the stage createAll leaves.
	needsCaches bool
}

const createAllStage = "createAll"

// stages in the order of the run. The last two remove all CacheClusters first.
var stages = []stage{
	{"create", (*fleet).measureCreate, false},
	{"bare", (*fleet).measureBare, false},
	{createAllStage, (*fleet).measureCreateAll, false},
	{"drift", (*fleet).measureDrift, true},
	{"idle", (*fleet).measureIdle, true},
	{"memory", (*fleet).measureMemory, true},
	{"restart", (*fleet).measureRestart, true},
	{"hung", (*fleet).measureHung, true},
	{"heap", (*fleet).measureHeap, false},
	{"growth", (*fleet).measureGrowth, false},
}

func stageNames() (all []string) {
	for _, s := range stages {
		all = append(all, s.name)
	}
	return all
}

// selectStages returns the stages to run: those in only, and createAll where one of
// them needs its CacheClusters.
func selectStages(all []stage, only []string) (selected []stage) {
	if len(only) == 0 {
		return all
	}
	needsCaches := false
	for _, s := range all {
		needsCaches = needsCaches || s.needsCaches && slices.Contains(only, s.name)
	}
	for _, s := range all {
		if slices.Contains(only, s.name) || needsCaches && s.name == createAllStage {
			selected = append(selected, s)
		}
	}
	return selected
}

func (f *fleet) measure(ctx context.Context) error {
	before, err := f.manager.cpu()
	if err != nil {
		return err
	}
	for _, s := range selectStages(stages, f.only) {
		if err := s.measure(f, ctx); err != nil {
			return fmt.Errorf("stage %s: %w", s.name, err)
		}
	}
	after, err := f.manager.cpu()
	f.report.Manager.CPUSeconds = after - before
	return err
}

func logStep(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...)
}

// runCLI runs ./reconcile-lab, as a user does.
func runCLI(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "./reconcile-lab", args...)
	// The CLI cleans up after an interrupt, not after a kill.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return nil
}
