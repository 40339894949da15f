// Command bench measures what a user of the embedded lab gets: how long a lab
// takes to come up, a cache to get ready and drift to be put right, what the hub
// manager costs, and whether anything is written while nothing happens.
//
//	go run ./test/bench              a lab of its own, removed at the end
//	go run ./test/bench --lab NAME   a lab that is there
//
// It prints a table and writes bench.json. The goals beside the figures are
// goals, no test: whether they are met depends on the machine, so it ends well
// whenever it could measure. It runs in the project's folder, after make build.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/reconcile-lab/reconcile-lab/cmd/reconcile-lab/lab"
)

type options struct {
	lab, out string
	members  int
	applies  int
	trials   int
	idle     time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.lab, "lab", "", "embedded lab to measure; it makes one of its own if empty")
	flag.StringVar(&o.out, "out", "bench.json", "file for the figures")
	flag.IntVar(&o.members, "members", 3, "members of its own lab")
	flag.IntVar(&o.applies, "applies", 5, "how often the example is applied and deleted")
	flag.IntVar(&o.trials, "trials", 100, "how often something is made to drift")
	flag.DurationVar(&o.idle, "idle", 5*time.Minute, "how long to watch for writes while nothing happens")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	var r report
	if o.lab == "" {
		o.lab = fmt.Sprintf("bench-%d", os.Getpid())
		defer func() {
			err = errors.Join(err, cli(context.WithoutCancel(ctx), "down", "--name", o.lab))
		}()
		step("making lab %s", o.lab)
		start := time.Now()
		if err := cli(ctx, "up", "--name", o.lab, "--members", fmt.Sprint(o.members)); err != nil {
			return err
		}
		r.add("up", seconds, time.Since(start).Seconds(), 60)
	}
	l, err := lab.Open(o.lab)
	if err != nil {
		return err
	}
	fleet, err := connect(l)
	if err != nil {
		return err
	}
	for _, measure := range []func(context.Context, options, *report) error{
		fleet.measureApply, fleet.measureDrift, fleet.measureIdle, fleet.measureManager,
	} {
		if err := measure(ctx, o, &r); err != nil {
			return err
		}
	}
	r.print(os.Stdout)
	return r.write(o.out)
}

func step(format string, args ...any) { fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...) }

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
