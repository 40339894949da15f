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

// injectTimeout bounds a fault or an undo: a kind cluster that was stopped takes
// this long to come back.
const injectTimeout = 5 * time.Minute

func (a *app) injectCommand() *cobra.Command {
	var r fault.Request
	var undo bool
	cmd := &cobra.Command{
		Use:   "inject FAULT [CACHE|MEMBER] | inject list | inject --undo [FAULT|ID]",
		Short: "Break a running lab on purpose, and put it right again",
		Long: "inject makes a fault in a lab and says how to undo it. A fault stays until it is undone, also\n" +
			"when this program, the hub manager or a member is restarted; undo restores what was there and\n" +
			"leaves alone what the hub has put right. `up` and `down` undo all faults of their lab.\n\n" +
			"Faults, with what their argument names:\n" + faultHelp(),
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
				return badInput("name a fault, such as drift, or `list`: see reconcile-lab inject --help")
			case args[0] == "list":
				return a.listFaults(args[1:])
			}
			return a.inject(cmd, args, r)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&undo, "undo", false, "undo the faults that are named by their ID or their name, or all")
	flags.StringVar(&r.Member, "member", "", "the member in which a child is changed; the first that holds the cache if empty")
	flags.StringVar(&r.Kind, "kind", "", "the child: KIND or KIND/NAME; the StatefulSet if empty")
	flags.StringVar(&r.Field, "field", "", "`path` of the field, as a status prints it; spec.replicas of a StatefulSet, else a label, if empty")
	flags.StringVar(&r.Value, "value", "", "what the field is set to; another one of its type if empty")
	flags.StringVar(&r.Add, "add", "", "what is added: env, annotation or sidecar")
	flags.StringVar(&r.Manager, "manager", "", "field manager in whose `name` it is written")
	flags.DurationVar(&r.Every, "every", 0, "how often a fight sets the field; each second if 0")
	flags.DurationVar(&r.For, "for", 0, "how long a fight goes on; until it is undone if 0")
	flags.BoolVar(&r.Restart, "restart", false, "start the hub manager again at once")
	flags.BoolVar(&r.Reset, "reset", false, "reset connections instead of dropping packets")
	flags.DurationVar(&r.Latency, "latency", 0, "by how much answers are late; 500ms if nothing else is slow")
	flags.DurationVar(&r.Jitter, "jitter", 0, "by how much that varies")
	flags.IntVar(&r.Bandwidth, "bandwidth", 0, "limit of each connection in `KB/s`")
	flags.IntVar(&r.Code, "code", 0, "HTTP status of the error, such as 429, 409, 403 or 503; 500 if 0")
	flags.DurationVar(&r.RetryAfter, "retry-after", 0, "what the error says about when to come again")
	flags.StringSliceVar(&r.Verbs, "verb", nil, "requests with this `verb`, as RBAC names them; * for all and for probes; may be repeated")
	flags.StringSliceVar(&r.Resources, "resource", nil, "requests for this `resource`, such as statefulsets; may be repeated")
	flags.Float64Var(&r.Rate, "rate", 0, "`share` of the requests that fail, such as 0.3; all if 0")
	flags.IntVar(&r.Count, "count", 0, "how many requests fail; without end if 0")
	return cmd
}

// faultHelp is a line for each fault, or two.
func faultHelp() string {
	var b strings.Builder
	for _, k := range fault.Kinds() {
		fmt.Fprintf(&b, "  %-26s %s\n", strings.TrimSpace(k.Name+" "+string(k.Target)), k.Does)
	}
	return strings.TrimRight(b.String(), "\n")
}

// injector is for the lab that --lab names, or the one of the last up.
func (a *app) injector(report lab.Report) (*fault.Injector, error) {
	if a.hub.kubeconfig != "" || a.hub.context != "" {
		return nil, badInput("faults are for labs only: leave out --kubeconfig and --context, and name a lab with --lab")
	}
	l, err := existingLab(a.hub.lab)
	if err != nil {
		return nil, err
	}
	p, err := providerOf(l)
	if err != nil {
		return nil, err
	}
	return &fault.Injector{Lab: l, Provider: p, Report: report}, nil
}

func (a *app) inject(cmd *cobra.Command, args []string, r fault.Request) error {
	at := slices.IndexFunc(fault.Kinds(), func(k fault.Kind) bool { return k.Name == args[0] })
	if at < 0 {
		return badInput("there is no fault %q; there are:\n%s", args[0], faultHelp())
	}
	kind := fault.Kinds()[at]
	if err := onlyFlags(cmd, kind); err != nil {
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
			return badInput("%s takes no argument: leave out %q", kind.Name, args[1])
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
	ctx, cancel := a.deadline(cmd.Context(), injectTimeout)
	defer cancel()
	f, err := i.Inject(ctx, r)
	if err != nil {
		return injectError(err)
	}
	if a.structured() {
		return a.printValue(faultReport(f), false)
	}
	fmt.Fprintf(a.out, "%s: %s\n", f.ID, f.What)
	a.note("look: %s", kind.Look)
	if !f.Over {
		a.note("undo: %s inject --undo %s%s", invocation(), f.ID, a.labFlag())
	}
	return nil
}

// onlyFlags refuses flags of other faults: they would have no effect.
func onlyFlags(cmd *cobra.Command, kind fault.Kind) error {
	for _, k := range fault.Kinds() {
		for _, name := range k.Flags {
			if cmd.Flags().Changed(name) && !slices.Contains(kind.Flags, name) {
				if len(kind.Flags) == 0 {
					return badInput("--%s is not for %s, which takes no flags of its own", name, kind.Name)
				}
				return badInput("--%s is not for %s, which takes --%s", name, kind.Name, strings.Join(kind.Flags, ", --"))
			}
		}
	}
	return nil
}

func (a *app) undoFaults(ctx context.Context, args []string) error {
	if len(args) > 1 {
		return badInput("--undo takes one fault or ID, or none for all")
	}
	which := ""
	if len(args) == 1 {
		which = args[0]
	}
	i, err := a.injector(func(step string) { a.note("undo: %s", step) })
	if err != nil {
		return err
	}
	ctx, cancel := a.deadline(ctx, injectTimeout)
	defer cancel()
	undone, err := i.Undo(ctx, which)
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
		fmt.Fprintln(a.out, "there is no fault to undo")
	}
	return injectError(err)
}

func (a *app) listFaults(args []string) error {
	if len(args) > 0 {
		return badInput("list takes no argument: leave out %q", args[0])
	}
	i, err := a.injector(nil)
	if err != nil {
		return err
	}
	faults, err := fault.List(i.Lab)
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
		a.note("lab %s has no faults", i.Lab.Name)
		return nil
	}
	var rows [][]string
	for _, f := range faults {
		rows = append(rows, []string{f.ID, time.Since(f.Since).Round(time.Second).String(), f.State(i.Lab), f.What})
	}
	return table(a.out, []string{"ID", "AGE", "STATE", "WHAT"}, rows)
}

// faultEntry is a fault for programs.
type faultEntry struct {
	ID     string    `json:"id,omitempty"`
	Fault  string    `json:"fault"`
	Member string    `json:"member,omitempty"`
	Cache  string    `json:"cache,omitempty"`
	Object string    `json:"object,omitempty"`
	Since  time.Time `json:"since"`
	What   string    `json:"what"`
	// Undone is what the undo found.
	Undone string `json:"undone,omitempty"`
}

func faultReport(f fault.Fault) faultEntry {
	entry := faultEntry{ID: f.ID, Fault: f.Request.Fault, Member: f.Request.Member, Since: f.Since, What: f.What}
	if f.Over {
		entry.ID = ""
	}
	if f.Object != nil {
		entry.Object, entry.Cache = f.Object.String(), f.Request.Namespace+"/"+f.Request.Cache
	}
	return entry
}

// labFlag is what a hint must repeat.
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

// completeFaults completes names of faults, then what they are about.
func (a *app) completeFaults(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		words := []string{"list"}
		for _, k := range fault.Kinds() {
			words = append(words, k.Name+"\t"+k.Does)
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

// newAgentCommand runs the background part of a fault; people do not call it.
func newAgentCommand() *cobra.Command {
	return &cobra.Command{
		Use:    fault.AgentCommand + " FILE",
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
