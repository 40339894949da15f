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
	// Does says in a few words what it does, Look what to look at then.
	Does, Look string
	// Target is what the first argument names.
	Target Target
	// Flags that it takes.
	Flags []string

	action action
}

// Target of a fault.
type Target string

const (
	// OnCache is a fault of one child of a CacheCluster in one member.
	OnCache Target = "CACHE"
	// OnMember is a fault of a member, or of the way to it.
	OnMember Target = "MEMBER"
	// OnHub is a fault of the hub manager.
	OnHub Target = ""
)

// action is how a fault is done and undone.
type action interface {
	// prepare checks the request and completes the fault's record with what undo
	// needs. It changes nothing.
	prepare(ctx context.Context, i *Injector, f *Fault) error
	// do makes the fault. It is done whole or undo makes up for it.
	do(ctx context.Context, i *Injector, f *Fault) error
	// undo restores what was there; it may be repeated. It says what it found.
	undo(ctx context.Context, i *Injector, f *Fault) (string, error)
}

var (
	childFlags = []string{"member", "kind", "manager"}
	fieldFlags = append(slices.Clone(childFlags), "field", "value")
	ruleFlags  = []string{"verb", "resource", "rate", "count"}
)

// kinds in the order of help.
var kinds = []Kind{
	{Name: Drift, Target: OnCache, Flags: fieldFlags, action: drift{},
		Does: "change a field of a child in a member, as somebody does by hand",
		Look: "`reconcile-lab observe` tells of the repair, with the field, who changed it and how long it took"},
	{Name: Delete, Target: OnCache, Flags: childFlags[:2], action: deletion{},
		Does: "delete a child in a member",
		Look: "`reconcile-lab observe` tells of the repair"},
	{Name: Foreign, Target: OnCache, Flags: append(slices.Clone(childFlags), "add"), action: foreign{},
		Does: "add something of somebody else's inside the pod template: env, annotation or sidecar",
		Look: "the hub keeps, reports or removes it, as spec.drift.foreign says: `reconcile-lab status`"},
	{Name: Fight, Target: OnCache, Flags: append(slices.Clone(fieldFlags), "every", "for"), action: fight{},
		Does: "set a field again and again in the background, as a second controller does",
		Look: "the hub slows down in this member and says DriftFight, with the field and the manager: `reconcile-lab status`"},
	{Name: MemberDown, Target: OnMember, action: down{},
		Does: "stop the member's API server (embedded) or its container (kind): connections are refused",
		Look: "the member turns Unreachable within 15 s, the others go on: `reconcile-lab status`"},
	{Name: Hang, Target: OnMember, action: hang{},
		Does: "freeze the member's API server (embedded) or its container (kind): connections stay open, nothing answers",
		Look: "the member turns Unreachable within 15 s, the others go on: `reconcile-lab status`"},
	{Name: Partition, Target: OnMember, Flags: []string{"reset"}, action: partition{},
		Does: "let no packet through between the hub and the member",
		Look: "the member turns Unreachable within 15 s, the others go on: `reconcile-lab status`"},
	{Name: Slow, Target: OnMember, Flags: []string{"latency", "jitter", "bandwidth"}, action: slow{},
		Does: "delay or throttle what the member answers",
		Look: "work in this member takes longer, in the others it does not: change something, then `reconcile-lab observe`"},
	{Name: Errors, Target: OnMember, Flags: append([]string{"code", "retry-after"}, ruleFlags...), action: failing{},
		Does: "answer requests to the member with an error; writes, if no --verb is given",
		Look: "change something: this member waits and tries again, the others go on: `reconcile-lab status`"},
	{Name: LostResponses, Target: OnMember, Flags: ruleFlags, action: losing{},
		Does: "carry requests to the member out and lose their answers; writes, if no --verb is given",
		Look: "change something: it is done once, and this member's status follows by what the watch shows: `reconcile-lab status`"},
	{Name: ExpiredCredential, Target: OnMember, action: expired{},
		Does: "replace the hub's credential for the member by one that has expired",
		Look: "the hub stays connected with the earlier one and says so, until it is restarted: `kubectl --context hub -n reconcile-lab-system describe clusterprofile MEMBER`"},
	{Name: HubKill, Target: OnHub, Flags: []string{"restart"}, action: kill{},
		Does: "kill the hub manager (embedded: kill -9; kind: its pod, which its Deployment replaces)",
		Look: "nothing is put right until it is back, and then everything: `reconcile-lab observe`"},
}

// Kinds lists the faults.
func Kinds() []Kind { return slices.Clone(kinds) }

func kindOf(name string) (Kind, error) {
	for _, k := range kinds {
		if k.Name == name {
			return k, nil
		}
	}
	return Kind{}, badInput("there is no fault %q: choose from %s", name, strings.Join(names(kinds), ", "))
}

func names(kinds []Kind) []string {
	var all []string
	for _, k := range kinds {
		all = append(all, k.Name)
	}
	return all
}
