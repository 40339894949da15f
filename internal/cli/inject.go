package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/fault"
)

// injectTimeout bounds an injection or an undo. A stopped kind cluster needs most of
// it to start.
const injectTimeout = 5 * time.Minute

func (a *app) injectCommand() *cobra.Command {
	var r fault.Request
	var undo bool
	cmd := &cobra.Command{
		Use:   "inject FAULT [CACHE|MEMBER] | inject list | inject --undo [FAULT|ID]",
		Short: "Inject a fault into a running lab, or undo faults",
		Long: "Inject a fault into a lab, and print how to undo it. A fault stays until it is undone, also\n" +
			"after a restart of this program, the hub manager or a member. Undo restores the earlier state,\n" +
			"except for what the hub has corrected since. `up` and `down` undo all faults of their lab.\n\n" +
			"Faults and their argument:\n" + faultHelp(),
		Example: "  reconcile-lab inject drift cache-cluster --member member-2\n" +
			"  reconcile-lab inject drift --kind Service --field metadata.labels.app.kubernetes.io/name --value other\n" +
			"  reconcile-lab inject fight --every 200ms --for 1m\n" +
			"  reconcile-lab inject hang member-2\n" +
			"  reconcile-lab inject errors member-2 --code 429 --retry-after 5s --resource statefulsets\n" +
			"  reconcile-lab inject list\n" +
			"  reconcile-lab inject --undo hang",
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: a.completeFaults,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case undo:
				return a.undoFaults(cmd.Context(), args)
			case len(args) == 0:
				return badInput("fault: required; pass a fault such as drift, or list (see reconcile-lab inject --help)")
			case args[0] == "list":
				return a.listFaults(args[1:])
			}
			return a.inject(cmd, args, r)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&undo, "undo", false, "undo the faults with this ID or name, or all faults without one")
	flags.StringVar(&r.Member, "member", "", "member of the child (default: the first member of the cache)")
	flags.StringVar(&r.Kind, "kind", "", "child: KIND or KIND/NAME (default: the StatefulSet)")
	flags.StringVar(&r.Field, "field", "", "`path` of the field, as the status prints it (default: spec.replicas of a StatefulSet, else a label)")
	flags.StringVar(&r.Value, "value", "", "new value of the field (default: a different value of its type)")
	flags.StringVar(&r.Add, "add", "", "what is added to the pod template: env, annotation or sidecar (default: env)")
	flags.StringVar(&r.Manager, "manager", "", "`name` of the field manager of the change")
	flags.DurationVar(&r.Every, "every", 0, "interval between two changes by fault fight (default: 1s)")
	flags.DurationVar(&r.For, "for", 0, "duration of fault fight; 0 means until it is undone")
	flags.BoolVar(&r.Restart, "restart", false, "restart the hub manager at once")
	flags.BoolVar(&r.Reset, "reset", false, "reset connections instead of dropping packets")
	flags.DurationVar(&r.Latency, "latency", 0, "delay of each response (default: 500ms, if no other slow flag is set)")
	flags.DurationVar(&r.Jitter, "jitter", 0, "maximum random addition to the delay")
	flags.IntVar(&r.Bandwidth, "bandwidth", 0, "limit of each connection in `KB/s`")
	flags.IntVar(&r.Code, "code", 0, "HTTP status of the error, such as 429, 409, 403 or 503 (default: 500)")
	flags.DurationVar(&r.RetryAfter, "retry-after", 0, "value of the Retry-After header of the error")
	flags.StringSliceVar(&r.Verbs, "verb", nil, "RBAC `verb` of the failing requests; * means all, probes too; may be repeated")
	flags.StringSliceVar(&r.Resources, "resource", nil, "`resource` of the failing requests, such as statefulsets; may be repeated")
	flags.Float64Var(&r.Rate, "rate", 0, "`share` of the requests that fail, such as 0.3 (default: all)")
	flags.IntVar(&r.Count, "count", 0, "number of requests that fail; 0 means no limit")
	return cmd
}

// faultHelp returns one line per fault.
func faultHelp() string {
	var b strings.Builder
	for _, k := range fault.Kinds() {
		fmt.Fprintf(&b, "  %-26s %s\n", strings.TrimSpace(k.Name+" "+string(k.Target)), k.Effect)
	}
	return strings.TrimRight(b.String(), "\n")
}

// faultLab returns the lab that --lab selects, or the one of the last up.
func (a *app) faultLab() (*lab.Lab, error) {
	if a.hub.kubeconfig != "" || a.hub.context != "" {
		return nil, badInput("--kubeconfig, --context: not supported, faults work in labs only; select a lab with --lab")
	}
	return existingLab(a.hub.lab)
}

// injector returns the injector of the lab that --lab selects, or of the last up.
func (a *app) injector(report lab.Report) (*fault.Injector, error) {
	l, err := a.faultLab()
	if err != nil {
		return nil, err
	}
	p, err := providerOf(l)
	if err != nil {
		return nil, err
	}
	return fault.New(fault.Options{Lab: l, Provider: p, Report: report})
}

func (a *app) inject(cmd *cobra.Command, args []string, r fault.Request) error {
	index := slices.IndexFunc(fault.Kinds(), func(k fault.Kind) bool { return k.Name == args[0] })
	if index < 0 {
		return badInput("fault: %q: must be one of:\n%s", args[0], faultHelp())
	}
	kind := fault.Kinds()[index]
	if err := checkFaultFlags(cmd, kind); err != nil {
		return err
	}
	r.Fault = kind.Name
	if len(args) == 2 {
		switch kind.Target {
		case fault.OnCache:
			r.Cache = args[1]
		case fault.OnMember:
			r.Member = args[1]
		default:
			return badInput("argument: %q: %s takes no argument; remove it", args[1], kind.Name)
		}
	}
	if kind.Target == fault.OnCache {
		r.Namespace = a.hub.namespace
		if r.Namespace == "" {
			r.Namespace = "default"
		}
	}
	i, err := a.injector(func(step string) { a.note("%s: %s", kind.Name, step) })
	if err != nil {
		return err
	}
	ctx, cancel := a.withTimeout(cmd.Context(), injectTimeout)
	defer cancel()
	f, err := i.Inject(ctx, r)
	if err != nil {
		return injectError(err)
	}
	if a.structured() {
		return a.printValue(faultReport(f), false)
	}
	fmt.Fprintf(a.out, "%s: %s\n", f.ID, f.Description)
	a.note("effect: %s", kind.Observe)
	if !f.NoUndo {
		a.note("undo: %s inject --undo %s%s", invocation(), f.ID, a.labFlag())
	}
	return nil
}

// checkFaultFlags refuses flags of other faults, which would have no effect.
func checkFaultFlags(cmd *cobra.Command, kind fault.Kind) error {
	for _, k := range fault.Kinds() {
		for _, name := range k.Flags {
			if cmd.Flags().Changed(name) && !slices.Contains(kind.Flags, name) {
				if len(kind.Flags) == 0 {
					return badInput("--%s: not supported by fault %s, which has no flags; remove it", name, kind.Name)
				}
				return badInput("--%s: not supported by fault %s; use --%s", name, kind.Name, strings.Join(kind.Flags, ", --"))
			}
		}
	}
	return nil
}

func (a *app) undoFaults(ctx context.Context, args []string) error {
	if len(args) > 1 {
		return badInput("--undo: %s: takes at most one fault or ID; pass one, or none to undo all", strings.Join(args, " "))
	}
	selected := ""
	if len(args) == 1 {
		selected = args[0]
	}
	i, err := a.injector(func(step string) { a.note("undo: %s", step) })
	if err != nil {
		return err
	}
	ctx, cancel := a.withTimeout(ctx, injectTimeout)
	defer cancel()
	undone, err := i.Undo(ctx, selected)
	if a.structured() {
		reports := []faultEntry{}
		for _, u := range undone {
			entry := faultReport(u.Fault)
			entry.Undone = u.Note
			reports = append(reports, entry)
		}
		return errors.Join(a.printValue(reports, false), injectError(err))
	}
	for _, u := range undone {
		fmt.Fprintf(a.out, "%s: undone: %s\n", u.ID, u.Note)
	}
	if len(undone) == 0 && err == nil {
		fmt.Fprintln(a.out, "no fault to undo")
	}
	return injectError(err)
}

func (a *app) listFaults(args []string) error {
	if len(args) > 0 {
		return badInput("argument: %q: list takes no argument; remove it", args[0])
	}
	l, err := a.faultLab()
	if err != nil {
		return err
	}
	faults, err := fault.List(l)
	if err != nil {
		return err
	}
	if a.structured() {
		reports := []faultEntry{}
		for _, f := range faults {
			reports = append(reports, faultReport(f))
		}
		return a.printValue(reports, false)
	}
	if len(faults) == 0 {
		a.note("no fault found in lab %s", l.Name)
		return nil
	}
	var rows [][]string
	for _, f := range faults {
		rows = append(rows, []string{f.ID, time.Since(f.Since).Round(time.Second).String(), f.State(l), f.Description})
	}
	return table(a.out, []string{"ID", "AGE", "STATE", "DESCRIPTION"}, rows)
}

// faultEntry is a fault as -o prints it.
type faultEntry struct {
	ID     string    `json:"id,omitempty"`
	Fault  string    `json:"fault"`
	Member string    `json:"member,omitempty"`
	Cache  string    `json:"cache,omitempty"`
	Object string    `json:"object,omitempty"`
	Since  time.Time `json:"since"`
	What   string    `json:"what"`
	// Undone is the result of the undo.
	Undone string `json:"undone,omitempty"`
}

func faultReport(f fault.Fault) faultEntry {
	entry := faultEntry{ID: f.ID, Fault: f.Request.Fault, Member: f.Request.Member, Since: f.Since, What: f.Description}
	if f.NoUndo {
		entry.ID = ""
	}
	if f.Object != nil {
		entry.Object, entry.Cache = f.Object.String(), f.Request.Namespace+"/"+f.Request.Cache
	}
	return entry
}

// labFlag returns the flag --lab that a command in a hint must repeat.
func (a *app) labFlag() string {
	if a.hub.lab == "" {
		return ""
	}
	return " --lab " + a.hub.lab
}

func injectError(err error) error {
	var input fault.InputError
	if errors.As(err, &input) {
		return withCode(exitUsage, err)
	}
	return err
}

// completeFaults completes the names of faults, then their argument.
func (a *app) completeFaults(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		words := []string{"list"}
		for _, k := range fault.Kinds() {
			words = append(words, k.Name+"\t"+k.Effect)
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
	for _, k := range fault.Kinds() {
		switch {
		case k.Name != args[0] || len(args) > 1:
		case k.Target == fault.OnCache:
			return a.completeCaches(cmd, nil, "")
		case k.Target == fault.OnMember:
			if l, err := existingLab(a.hub.lab); err == nil {
				if state, err := l.Load(); err == nil {
					return state.Members, cobra.ShellCompDirectiveNoFileComp
				}
			}
		}
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// newAgentCommand returns the hidden command that runs the background part of a
// fault.
func newAgentCommand() *cobra.Command {
	return &cobra.Command{
		Use:    fault.AgentCommand + " FILE",
		Short:  "Run the background process of a fault",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := fault.Agent(cmd.Context(), args[0])
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
			return err
		},
	}
}
