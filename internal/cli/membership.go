package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/reconcile-lab/reconcile-lab/hub/membership"
	"github.com/reconcile-lab/reconcile-lab/internal/lab"
)

const membershipTimeout = 2 * time.Minute

// memberFlags say how to reach a member as its admin. They take the names of the
// hub's flags, which are --hub-kubeconfig and --hub-context here.
type memberFlags struct {
	kubeconfig, context string
	allowExec           bool
}

func (a *app) addMemberFlags(cmd *cobra.Command, f *memberFlags) {
	flags := cmd.Flags()
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig `file` of the member, with admin rights")
	flags.StringVar(&f.context, "context", "", "context of the member in the kubeconfig")
	flags.BoolVar(&f.allowExec, "allow-exec", false, "run the program by which the kubeconfig logs in, here and for this command only")
	flags.StringVar(&a.hub.kubeconfig, "hub-kubeconfig", "", "kubeconfig `file` of the hub")
	flags.StringVar(&a.hub.context, "hub-context", "", "context of the hub in its kubeconfig")
}

// config is admin access to the member: what the flags say, else the lab's
// context of that name; nil if there is neither.
func (f *memberFlags) config(hub hubFlags, name string) (*rest.Config, error) {
	if f.kubeconfig != "" {
		cfg, err := membership.MemberConfig(f.kubeconfig, f.context, f.allowExec)
		return cfg, withCode(exitUsage, err)
	}
	if f.context != "" {
		return nil, badInput("--context names a context of the member's kubeconfig: give --kubeconfig as well")
	}
	if hub.kubeconfig != "" || hub.context != "" {
		return nil, nil
	}
	file, _, err := lab.ResolveKubeconfig(hub.lab)
	if err != nil || file == "" {
		return nil, withCode(exitUsage, err)
	}
	contexts, err := clientcmd.LoadFromFile(file)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", file, err)
	}
	if name == lab.Hub || contexts.Contexts[name] == nil {
		return nil, nil
	}
	return membership.MemberConfig(file, name, false)
}

func (a *app) joinCommand() *cobra.Command {
	var member memberFlags
	var labels map[string]string
	var server string
	cmd := &cobra.Command{
		Use:   "join NAME --kubeconfig FILE",
		Short: "Make a cluster a member of the hub",
		Long: "join creates in the member a ServiceAccount with only the rights that the hub uses, and on\n" +
			"the hub a ClusterProfile NAME and a Secret with that account's token. The kubeconfig that\n" +
			"is given needs admin rights; it is not stored. join may be repeated, to repair a membership\n" +
			"or to change its labels: with --label, those that an earlier join set and that are missing\n" +
			"now are removed; without it they stay. A NAME that is another cluster's is refused.",
		Example: "  reconcile-lab join eu-1 --kubeconfig eu-1.yaml --label topology.kubernetes.io/region=eu",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.join(cmd.Context(), args[0], member, membership.Options{Labels: labels, Server: server})
		},
	}
	a.addMemberFlags(cmd, &member)
	cmd.Flags().StringToStringVarP(&labels, "label", "l", nil, "label of the ClusterProfile, `key=value`, to select members by; may be repeated")
	cmd.Flags().StringVar(&server, "server", "", "https `address` by which the hub reaches the member, if not the kubeconfig's; that of an earlier join stays")
	return cmd
}

func (a *app) join(ctx context.Context, name string, f memberFlags, o membership.Options) error {
	if err := membership.ValidateName(name); err != nil {
		return withCode(exitUsage, err)
	}
	if err := membership.ValidateLabels(o.Labels); err != nil {
		return withCode(exitUsage, err)
	}
	member, err := f.config(a.hub, name)
	if err != nil {
		return err
	}
	if member == nil {
		return badInput("give the member's kubeconfig: reconcile-lab join %s --kubeconfig FILE", name)
	}
	h, err := a.connect()
	if err != nil {
		return err
	}
	ctx, cancel := a.deadline(ctx, membershipTimeout)
	defer cancel()
	o.Report = func(step string) { a.note("%s: %s", name, step) }
	err = membership.Join(ctx, h.config, member, name, o)
	if errors.Is(err, membership.ErrMember) && ctx.Err() == nil {
		// A member that does not answer is not the hub that exit code 5 is about.
		return withCode(exitError, err)
	}
	if err != nil {
		return h.explain(err)
	}
	if o.Server == "" && isLoopback(member.Host) {
		a.note("%s: %s is an address of this machine only: if the hub manager runs elsewhere, give the one that it reaches the member by: reconcile-lab join %s --kubeconfig FILE --server https://ADDRESS", name, member.Host, name)
	}
	return a.result(memberResult{Member: name, Result: "joined"})
}

// isLoopback tells a server that only this machine can reach.
func isLoopback(host string) bool {
	u, err := url.Parse(host)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

func (a *app) leaveCommand() *cobra.Command {
	var member memberFlags
	var keep, abandon bool
	cmd := &cobra.Command{
		Use:   "leave NAME [--kubeconfig FILE]",
		Short: "End a cluster's membership",
		Long: "leave removes the member's ClusterProfile and credential from the hub and, with the admin\n" +
			"kubeconfig, the ServiceAccount and its rights from the member; it says what it leaves\n" +
			"behind. It refuses while CacheClusters are placed on the member, and says how to take them\n" +
			"off it; with --abandon it leaves all the same, and names what stays there.",
		Example: "  reconcile-lab leave eu-1 --kubeconfig eu-1.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.leave(cmd.Context(), args[0], member, keep, abandon)
		},
	}
	a.addMemberFlags(cmd, &member)
	cmd.Flags().BoolVar(&keep, "keep-member", false, "change nothing in the member")
	cmd.Flags().BoolVar(&abandon, "abandon", false, "leave although caches are placed there; they keep running, with nobody to look after them")
	cmd.Flags().BoolVar(&abandon, "force", false, "the former name of --abandon")
	_ = cmd.Flags().MarkHidden("force")
	return cmd
}

func (a *app) leave(ctx context.Context, name string, f memberFlags, keep, abandon bool) error {
	if err := membership.ValidateName(name); err != nil {
		return withCode(exitUsage, err)
	}
	if keep && f.kubeconfig != "" {
		return badInput("--keep-member changes nothing in the member: leave out --kubeconfig")
	}
	o := membership.LeaveOptions{Abandon: abandon}
	o.Report = func(step string) { a.note("%s: %s", name, step) }
	if !keep {
		var err error
		if o.Member, err = f.config(a.hub, name); err != nil {
			return err
		}
	}
	h, err := a.connect()
	if err != nil {
		return err
	}
	ctx, cancel := a.deadline(ctx, membershipTimeout)
	defer cancel()
	err = membership.Leave(ctx, h.config, name, o)
	if errors.Is(err, membership.ErrPlaced) {
		return withCode(exitFailed, err)
	}
	if err != nil {
		return h.explain(err)
	}
	return a.result(memberResult{Member: name, Result: "left"})
}

// memberResult is what join and leave print.
type memberResult struct {
	Member string `json:"member"`
	Result string `json:"result"`
}

func (a *app) result(r memberResult) error {
	if a.structured() {
		return a.printValue(r, false)
	}
	_, err := fmt.Fprintf(a.out, "%s: %s\n", r.Member, r.Result)
	return err
}
