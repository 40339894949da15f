package fault

import (
	"context"
	"slices"
	"strings"
)

// Names of the faults.
const (
	Drift             = "drift"
	Delete            = "delete"
	Foreign           = "foreign"
	Fight             = "fight"
	MemberDown        = "member-down"
	Hang              = "hang"
	Partition         = "partition"
	Slow              = "slow"
	Errors            = "errors"
	LostResponses     = "lost-responses"
	ExpiredCredential = "expired-credential"
	HubKill           = "hub-kill"
)

// Kind is a fault that can be injected.
type Kind struct {
	Name string
	// Effect describes in one sentence what the fault does.
	Effect string
	// Observe describes what the user sees then, and the command that shows it.
	Observe string
	// Target is the object that the first argument names.
	Target Target
	// Flags are the flags of `inject` that the fault accepts.
	Flags []string

	action action
}

// Target is the object of a fault, as help texts print it.
type Target string

const (
	// OnCache is the target of faults in one child of a CacheCluster in one member.
	OnCache Target = "CACHE"
	// OnMember is the target of faults in a member, or in the connection to it.
	OnMember Target = "MEMBER"
	// OnHub is the target of faults in the hub manager.
	OnHub Target = ""
)

// action injects and undoes one kind of fault.
type action interface {
	// prepare validates the request and adds to the fault what undo needs. It changes
	// nothing in the lab.
	prepare(ctx context.Context, i *Injector, f *Fault) error
	// inject injects the fault. After an error, undo removes what was changed.
	inject(ctx context.Context, i *Injector, f *Fault) error
	// undo restores the earlier state and returns a note about the result. It is
	// idempotent.
	undo(ctx context.Context, i *Injector, f *Fault) (note string, err error)
}

var (
	childFlags = []string{"member", "kind", "manager"}
	fieldFlags = append(slices.Clone(childFlags), "field", "value")
	ruleFlags  = []string{"verb", "resource", "rate", "count"}
)

// unreachable is what the user sees of a member that the hub cannot reach.
const unreachable = "the member becomes Unreachable within 15 s, other members are not affected: `reconcile-lab status`"

// kinds is in the order of help texts.
var kinds = []Kind{
	{Name: Drift, Target: OnCache, Flags: fieldFlags, action: drift{},
		Effect:  "change a field of a child in a member once, as a user with kubectl does",
		Observe: "`reconcile-lab observe` reports the correction, with the field, the field manager and the duration"},
	{Name: Delete, Target: OnCache, Flags: childFlags[:2], action: deletion{},
		Effect:  "delete a child in a member",
		Observe: "`reconcile-lab observe` reports that the child is recreated"},
	{Name: Foreign, Target: OnCache, Flags: append(slices.Clone(childFlags), "add"), action: foreign{},
		Effect:  "add a foreign field to the pod template: an env variable, an annotation or a sidecar",
		Observe: "the hub keeps, reports or removes it according to spec.drift.foreign: `reconcile-lab status`"},
	{Name: Fight, Target: OnCache, Flags: append(slices.Clone(fieldFlags), "every", "for"), action: conflict{},
		Effect:  "set a field repeatedly in the background, as a second controller does",
		Observe: "the hub corrects with backoff in this member and reports DriftFight, with field and field manager: `reconcile-lab status`"},
	{Name: MemberDown, Target: OnMember, action: memberDown{},
		Effect:  "stop the member's API server (embedded) or its container (kind): it refuses connections",
		Observe: unreachable},
	{Name: Hang, Target: OnMember, action: hang{},
		Effect:  "pause the member's API server (embedded) or its container (kind): connections stay open, no request is answered",
		Observe: unreachable},
	{Name: Partition, Target: OnMember, Flags: []string{"reset"}, action: partition{},
		Effect:  "drop all packets between the hub and the member",
		Observe: unreachable},
	{Name: Slow, Target: OnMember, Flags: []string{"latency", "jitter", "bandwidth"}, action: slow{},
		Effect:  "delay or throttle the responses of the member",
		Observe: "the next change takes longer in this member than in others: `reconcile-lab observe`"},
	{Name: Errors, Target: OnMember, Flags: append([]string{"code", "retry-after"}, ruleFlags...), action: errorResponses{},
		Effect:  "answer requests to the member with an HTTP error (by default writes only)",
		Observe: "the hub retries the next change in this member, other members are not affected: `reconcile-lab status`"},
	{Name: LostResponses, Target: OnMember, Flags: ruleFlags, action: lostResponses{},
		Effect:  "forward requests to the member and drop the responses (by default writes only)",
		Observe: "the next change happens once, and the status of this member follows from its watch: `reconcile-lab status`"},
	{Name: ExpiredCredential, Target: OnMember, action: expiredCredential{},
		Effect:  "replace the hub's credential for the member with an expired one",
		Observe: "until its restart the hub uses the earlier credential and reports it: `kubectl --context hub -n reconcile-lab-system describe clusterprofile MEMBER`"},
	{Name: HubKill, Target: OnHub, Flags: []string{"restart"}, action: hubKill{},
		Effect:  "kill the hub manager (embedded: SIGKILL; kind: its pod, which the Deployment recreates)",
		Observe: "nothing is corrected until the hub manager runs again, then everything: `reconcile-lab observe`"},
}

// Kinds returns all faults.
func Kinds() []Kind { return slices.Clone(kinds) }

// kindOf returns the fault with that name.
func kindOf(name string) (Kind, error) {
	var names []string
	for _, k := range kinds {
		if k.Name == name {
			return k, nil
		}
		names = append(names, k.Name)
	}
	return Kind{}, badInput("fault: %q: must be one of: %s", name, strings.Join(names, ", "))
}
