// Command binaries provides the programs of package binaries to scripts.
//
//	binaries ensure NAME...   downloads or builds programs, prints one path per line
//	binaries dir              prints a directory for KUBEBUILDER_ASSETS (envtest)
//	binaries version MODULE   prints the pinned version, such as v1.36.3
//	binaries list             prints every program with module, version and path
//
// Progress goes to standard error, so that $(binaries …) contains paths only.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"

	"github.com/reconcile-lab/reconcile-lab/internal/lab/binaries"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: binaries ensure NAME... | dir | version MODULE | list")

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	report := func(step string) { fmt.Fprintln(os.Stderr, step) }
	switch verb, args := args[0], args[1:]; {
	case verb == "ensure" && len(args) > 0:
		paths, err := binaries.Ensure(ctx, report, args...)
		if err != nil {
			return err
		}
		for _, name := range args {
			fmt.Println(paths[name])
		}
		return nil
	case verb == "dir" && len(args) == 0:
		dir, err := binaries.Assets(ctx, report)
		if err != nil {
			return err
		}
		fmt.Println(dir)
		return nil
	case verb == "version" && len(args) == 1:
		version := binaries.Version(args[0])
		if version == "" {
			return fmt.Errorf("unknown module %q; see binaries list", args[0])
		}
		fmt.Println(version)
		return nil
	case verb == "list" && len(args) == 0:
		return list()
	}
	return errUsage
}

func list() error {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PROGRAM\tMODULE\tVERSION\tPATH")
	for _, m := range binaries.Modules() {
		for _, p := range m.Programs {
			path, found, err := binaries.Find(p.Name)
			if err != nil {
				return err
			}
			if !found {
				path = "(missing)"
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", p.Name, m.Path, m.Version, path)
		}
	}
	return table.Flush()
}
