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

// Main runs the command line args, whose first element is the program's name, and
// returns the exit code.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	// Libraries log retries that this program reports itself.
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
		// An error before a command starts is an error of usage.
		fmt.Fprintf(errOut, "error: %v\nsee '%s --help' for usage\n", err, cmd.CommandPath())
		return exitUsage
	case ctx.Err() != nil:
		fmt.Fprintln(errOut, "interrupted")
		return exitInterrupted
	}
	fmt.Fprintf(errOut, "error: %s\n", formatError(err))
	return exitCode(err)
}

// command builds the tree of commands. The returned flag turns true when flags and
// arguments are valid and a command starts.
func (a *app) command(program string) (*cobra.Command, *bool) {
	started := new(bool)
	root := &cobra.Command{
		Use:   "reconcile-lab",
		Short: "Run caches in the member clusters of a hub, and labs of such clusters",
		Long: "Apply CacheClusters to a hub, observe their members and drift, join and remove members,\n" +
			"and run labs on this machine.\n\n" +
			"The hub is selected by the first of these that is set: --kubeconfig and --context; --lab;\n" +
			"the lab of the last up; KUBECONFIG or ~/.kube/config.\n\n" +
			"Exit codes:\n" + strings.TrimRight(exitCodeHelp(), "\n"),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if a.timeout < 0 {
				return fmt.Errorf("--timeout: %s: must be 0 or more", a.timeout)
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
	flags.VarP(&a.output, "output", "o", "output `format`: json or yaml; wide for tables")
	flags.DurationVar(&a.timeout, "timeout", 0, "maximum time to wait, such as 90s; 0 means the default of the command")

	root.AddGroup(
		&cobra.Group{ID: "caches", Title: "Caches:"},
		&cobra.Group{ID: "members", Title: "Members:"},
		&cobra.Group{ID: "lab", Title: "Lab:"},
	)
	addToGroup := func(id string, cmds ...*cobra.Command) {
		for _, c := range cmds {
			c.GroupID = id
			root.AddCommand(c)
		}
	}
	addToGroup("caches", a.applyCommand(), a.observeCommand(), a.getCommand(), a.statusCommand(), a.explainCommand())
	addToGroup("members", a.joinCommand(), a.leaveCommand())
	addToGroup("lab", append(labCommands(), a.injectCommand())...)
	root.AddCommand(a.debugCommand(), a.versionCommand(), newAgentCommand())
	return root, started
}

// enum is the value of a flag with a fixed list of values.
type enum struct {
	value   string
	allowed []string
}

func (e *enum) String() string { return e.value }

// Type is the name that pflag's GetString expects.
func (e *enum) Type() string { return "string" }

func (e *enum) Set(s string) error {
	for _, a := range e.allowed {
		if s == a {
			e.value = s
			return nil
		}
	}
	return fmt.Errorf("must be one of: %s", strings.Join(e.allowed, ", "))
}

// note prints a line that is not a result to standard error.
func (a *app) note(format string, args ...any) {
	fmt.Fprintf(a.err, format+"\n", args...)
}

// withTimeout bounds ctx by --timeout, or by the default of the command. 0 means no
// bound.
func (a *app) withTimeout(ctx context.Context, defaultTimeout time.Duration) (context.Context, context.CancelFunc) {
	d := a.timeout
	if d == 0 {
		d = defaultTimeout
	}
	if d == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d)
}
