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

// memberFlags configure admin access to a member. --kubeconfig and --context select
// the member here, so the flags of the hub are --hub-kubeconfig and --hub-context.
type memberFlags struct {
	kubeconfig, context string
	allowExec           bool
}

func (a *app) addMemberFlags(cmd *cobra.Command, f *memberFlags) {
	flags := cmd.Flags()
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig `file` of the member, with admin rights")
	flags.StringVar(&f.context, "context", "", "context of the member in the kubeconfig")
	flags.BoolVar(&f.allowExec, "allow-exec", false, "run the credential plugin of the kubeconfig, here and for this command only")
	flags.StringVar(&a.hub.kubeconfig, "hub-kubeconfig", "", "kubeconfig `file` of the hub")
	flags.StringVar(&a.hub.context, "hub-context", "", "context of the hub in its kubeconfig")
}

// config returns admin access to the member: by the flags, else by the context of
// this name in the lab. It returns nil without either.
func (f *memberFlags) config(hub hubFlags, name string) (*rest.Config, error) {
	if f.kubeconfig != "" {
		cfg, err := membership.MemberConfig(f.kubeconfig, f.context, f.allowExec)
		return cfg, withCode(exitUsage, err)
	}
	if f.context != "" {
		return nil, badInput("--context: %s: requires the kubeconfig of the member; pass --kubeconfig as well", f.context)
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
		Long: "Create in the member a ServiceAccount with only the rights that the hub uses, and on the hub\n" +
			"a ClusterProfile NAME and a Secret with the token of the ServiceAccount. The kubeconfig needs\n" +
			"admin rights; it is not stored.\n\n" +
			"Run join again to repair a membership or to change its labels: --label replaces the labels that\n" +
			"an earlier join set; without it they stay. A NAME of another cluster is refused.",
		Example: "  reconcile-lab join eu-1 --kubeconfig eu-1.yaml --label topology.kubernetes.io/region=eu",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.join(cmd.Context(), args[0], member, membership.Options{Labels: labels, Server: server})
		},
	}
	a.addMemberFlags(cmd, &member)
	cmd.Flags().StringToStringVarP(&labels, "label", "l", nil, "label of the ClusterProfile, `key=value`, for selectors; may be repeated")
	cmd.Flags().StringVar(&server, "server", "", "https `address` of the member for the hub (default: that of the earlier join, or of the kubeconfig)")
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
		return badInput("--kubeconfig: required for member %s; run reconcile-lab join %s --kubeconfig FILE", name, name)
	}
	h, err := a.connect()
	if err != nil {
		return err
	}
	ctx, cancel := a.withTimeout(ctx, membershipTimeout)
	defer cancel()
	o.Report = func(step string) { a.note("%s: %s", name, step) }
	err = membership.Join(ctx, h.config, member, name, o)
	if errors.Is(err, membership.ErrMember) && ctx.Err() == nil {
		// Exit code 5 means that the hub is unreachable, not the member.
		return withCode(exitError, err)
	}
	if err != nil {
		return h.wrapError(err)
	}
	if o.Server == "" && isLoopback(member.Host) {
		a.note("%s: %s is a loopback address; if the hub manager runs on another machine, pass an address that it can reach: reconcile-lab join %s --kubeconfig FILE --server https://ADDRESS", name, member.Host, name)
	}
	return a.printMembership(membershipResult{Member: name, Result: "joined"})
}

// isLoopback reports whether only this machine can reach a server.
func isLoopback(server string) bool {
	u, err := url.Parse(server)
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
		Short: "Remove a member from the hub",
		Long: "Remove the ClusterProfile and the credential of the member from the hub. With the admin\n" +
			"kubeconfig, also remove the ServiceAccount and its rights from the member. The output lists\n" +
			"what remains in the member.\n\n" +
			"leave refuses while CacheClusters are placed on the member, and prints how to remove them.\n" +
			"With --abandon it removes the member, and lists the children that stay there.",
		Example: "  reconcile-lab leave eu-1 --kubeconfig eu-1.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.leave(cmd.Context(), args[0], member, keep, abandon)
		},
	}
	a.addMemberFlags(cmd, &member)
	cmd.Flags().BoolVar(&keep, "keep-member", false, "make no change in the member")
	cmd.Flags().BoolVar(&abandon, "abandon", false, "leave although caches are placed there; they keep running, and nothing manages them")
	cmd.Flags().BoolVar(&abandon, "force", false, "former name of --abandon")
	_ = cmd.Flags().MarkHidden("force")
	return cmd
}

func (a *app) leave(ctx context.Context, name string, f memberFlags, keep, abandon bool) error {
	if err := membership.ValidateName(name); err != nil {
		return withCode(exitUsage, err)
	}
	if keep && f.kubeconfig != "" {
		return badInput("--keep-member: cannot be combined with --kubeconfig; remove one of them")
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
	ctx, cancel := a.withTimeout(ctx, membershipTimeout)
	defer cancel()
	err = membership.Leave(ctx, h.config, name, o)
	if errors.Is(err, membership.ErrPlaced) {
		return withCode(exitFailed, err)
	}
	if err != nil {
		return h.wrapError(err)
	}
	return a.printMembership(membershipResult{Member: name, Result: "left"})
}

// membershipResult is the output of join and leave.
type membershipResult struct {
	Member string `json:"member"`
	Result string `json:"result"`
}

func (a *app) printMembership(r membershipResult) error {
	if a.structured() {
		return a.printValue(r, false)
	}
	_, err := fmt.Fprintf(a.out, "%s: %s\n", r.Member, r.Result)
	return err
}
