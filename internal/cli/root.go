package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// pluginName is the file name by which kubectl finds its plugin.
const pluginName = "kubectl-cachecluster"

// app holds the global flags and the streams of one run.
type app struct {
	in       io.Reader
	out, err io.Writer

	hub     hubFlags
	output  enum
	timeout time.Duration
}

// Main runs the command line args, whose first is the program's name, and
// returns the exit code.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	// Libraries log retries that this program reports in its own words.
	klog.SetLogger(logr.Discard())
	ctrllog.SetLogger(logr.Discard())

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The second Ctrl-C ends the program at once.
	context.AfterFunc(ctx, stop)
	return run(ctx, args, in, out, errOut)
}

func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	a := &app{in: in, out: out, err: errOut}
	root, started := a.command(filepath.Base(args[0]))
	root.SetArgs(args[1:])
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)

	cmd, err := root.ExecuteContextC(ctx)
	switch {
	case err == nil:
		return exitOK
	case !*started:
		// Whatever fails before a command runs is how it was called.
		fmt.Fprintf(errOut, "error: %v\nsee %s --help\n", err, cmd.CommandPath())
		return exitUsage
	case ctx.Err() != nil:
		fmt.Fprintln(errOut, "interrupted")
		return exitInterrupted
	}
	fmt.Fprintf(errOut, "error: %s\n", describe(err))
	return exitCode(err)
}

// command builds the tree of commands. The flag that it returns turns true when
// flags and arguments were accepted and a command begins.
func (a *app) command(program string) (*cobra.Command, *bool) {
	started := new(bool)
	root := &cobra.Command{
		Use:   "reconcile-lab",
		Short: "Caches on a hub and its member clusters, and labs of such clusters",
		Long: "reconcile-lab applies CacheClusters to a hub, shows how they come up in the member\n" +
			"clusters and what drifts there, makes clusters members, and runs labs on this machine.\n\n" +
			"Which hub: --kubeconfig and --context if given; else the lab named by --lab; else the\n" +
			"lab of the last up; else KUBECONFIG or ~/.kube/config.\n\n" +
			"Exit codes:\n" + strings.TrimRight(exitCodeHelp(), "\n"),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if a.timeout < 0 {
				return fmt.Errorf("--timeout %s: use 0 or more", a.timeout)
			}
			*started = true
			return nil
		},
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		DisableAutoGenTag: true,
	}
	if program == pluginName {
		root.Use = pluginName
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl cachecluster"}
	}
	a.output = enum{allowed: []string{"json", "yaml", "wide"}}
	flags := root.PersistentFlags()
	a.hub.add(flags)
	flags.VarP(&a.output, "output", "o", "output `format`: json or yaml; wide where a table is printed")
	flags.DurationVar(&a.timeout, "timeout", 0, "how long to wait, such as 90s; 0 is the command's own default")

	root.AddGroup(
		&cobra.Group{ID: "caches", Title: "Caches:"},
		&cobra.Group{ID: "members", Title: "Members:"},
		&cobra.Group{ID: "lab", Title: "Lab:"},
	)
	grouped := func(id string, cmds ...*cobra.Command) {
		for _, c := range cmds {
			c.GroupID = id
			root.AddCommand(c)
		}
	}
	grouped("caches", a.applyCommand(), a.observeCommand(), a.getCommand(), a.statusCommand(), a.explainCommand())
	grouped("members", a.joinCommand(), a.leaveCommand())
	grouped("lab", append(labCommands(), a.injectCommand())...)
	root.AddCommand(a.versionCommand(), newAgentCommand())
	return root, started
}

// enum is the value of a flag that allows only some words.
type enum struct {
	value   string
	allowed []string
}

func (e *enum) String() string { return e.value }

// Type is what pflag's GetString asks for.
func (e *enum) Type() string { return "string" }

func (e *enum) Set(s string) error {
	for _, a := range e.allowed {
		if s == a {
			e.value = s
			return nil
		}
	}
	return fmt.Errorf("it is none of %s", strings.Join(e.allowed, ", "))
}

// note tells the user something that is not a result.
func (a *app) note(format string, args ...any) {
	fmt.Fprintf(a.err, format+"\n", args...)
}

// deadline bounds ctx by --timeout, or by the command's own default; 0 is none.
func (a *app) deadline(ctx context.Context, otherwise time.Duration) (context.Context, context.CancelFunc) {
	d := a.timeout
	if d == 0 {
		d = otherwise
	}
	if d == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d)
}
