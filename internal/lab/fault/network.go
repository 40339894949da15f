package fault

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Cutter is a provider that can take a cluster off its network. On others a proxy
// swallows the packets.
type Cutter interface {
	// Place is where the cluster is in the network.
	Place(ctx context.Context, cluster string) (string, error)
	// Cut takes it away, Mend puts it back to its place.
	Cut(ctx context.Context, cluster string) error
	Mend(ctx context.Context, cluster, place string) error
}

// proxied says that a fault is made by the member's proxy.
func (f Fault) proxied() bool {
	switch f.Request.Fault {
	case Slow, Errors, LostResponses:
		return true
	case Partition:
		return f.Network == ""
	}
	return false
}

// partition is a member to which no packet gets through.
type partition struct{}

func (partition) prepare(ctx context.Context, i *Injector, f *Fault) error {
	if err := i.needsMember(f); err != nil {
		return err
	}
	f.What = "no packet gets through between the hub and " + f.Request.Member
	if f.Request.Reset {
		f.What = "every connection between the hub and " + f.Request.Member + " is reset"
	}
	if cutter, ok := i.Provider.(Cutter); ok && !f.Request.Reset {
		var err error
		f.Network, err = cutter.Place(ctx, f.Request.Member)
		return err
	}
	return i.holdCredential(ctx, f.Request.Member)
}

func (partition) do(ctx context.Context, i *Injector, f *Fault) error {
	if cutter, ok := i.Provider.(Cutter); ok && f.Network != "" {
		return cutter.Cut(ctx, f.Request.Member)
	}
	return i.throughProxy(ctx, f.Request.Member)
}

func (partition) undo(ctx context.Context, i *Injector, f *Fault) (string, error) {
	const note = "packets get through again"
	if cutter, ok := i.Provider.(Cutter); ok && f.Network != "" {
		if err := cutter.Mend(ctx, f.Request.Member, f.Network); err != nil {
			return "", err
		}
		return note, i.follow(ctx, f.Request.Member)
	}
	return note, i.besideProxy(ctx, f)
}

// slow is a network that delays or throttles.
type slow struct{}

func (slow) prepare(ctx context.Context, i *Injector, f *Fault) error {
	if err := i.needsMember(f); err != nil {
		return err
	}
	r := &f.Request
	if r.Latency < 0 || r.Jitter < 0 || r.Bandwidth < 0 {
		return badInput("--latency, --jitter and --bandwidth: use 0 or more")
	}
	if r.Latency == 0 && r.Jitter == 0 && r.Bandwidth == 0 {
		r.Latency, r.Jitter = 500*time.Millisecond, 100*time.Millisecond
	}
	if r.Jitter > r.Latency {
		return badInput("--jitter %s: use at most the latency, %s", r.Jitter, r.Latency)
	}
	var how []string
	if r.Latency > 0 {
		how = append(how, fmt.Sprintf("%s ± %s late", r.Latency, r.Jitter))
	}
	if r.Bandwidth > 0 {
		how = append(how, fmt.Sprintf("at most %d KB/s for each connection", r.Bandwidth))
	}
	f.What = "answers of " + r.Member + " are slow: " + strings.Join(how, ", ")
	return i.holdCredential(ctx, r.Member)
}

func (slow) do(ctx context.Context, i *Injector, f *Fault) error {
	return i.throughProxy(ctx, f.Request.Member)
}

func (slow) undo(ctx context.Context, i *Injector, f *Fault) (string, error) {
	return "answers are as quick as before", i.besideProxy(ctx, f)
}

// anyVerb stands for every verb, and for paths that are no resources.
const anyVerb = "*"

// verbs that a rule may name.
var (
	writes   = []string{"create", "update", "patch", "delete"}
	allVerbs = append(slices.Clone(writes), "get", "list", "watch", "deletecollection", anyVerb)
)

// choose requests for a rule.
func (r *Request) choose() error {
	if len(r.Verbs) == 0 {
		r.Verbs = writes
		if r.Code == http.StatusUnauthorized {
			r.Verbs = []string{anyVerb}
		}
	}
	for _, v := range r.Verbs {
		if !slices.Contains(allVerbs, v) || v == anyVerb && len(r.Verbs) > 1 {
			return badInput("--verb %s: use %s, or %q alone", v, strings.Join(allVerbs[:len(allVerbs)-1], ", "), anyVerb)
		}
	}
	if r.Rate < 0 || r.Rate > 1 {
		return badInput("--rate %v: use a share over 0 and up to 1", r.Rate)
	}
	if r.Count < 0 {
		return badInput("--count %d: use 0 (no end) or more", r.Count)
	}
	return nil
}

// which says in words what a rule acts on.
func (r *Request) which() string {
	text := strings.Join(r.Verbs, ", ") + " requests"
	if strings.Join(r.Verbs, "") == anyVerb {
		text = "all requests"
	}
	if len(r.Resources) > 0 {
		text += " for " + strings.Join(r.Resources, ", ")
	}
	if r.Rate > 0 && r.Rate < 1 {
		text = fmt.Sprintf("%g %% of %s", r.Rate*100, text)
	}
	if r.Count > 0 {
		text += fmt.Sprintf(", %d in all,", r.Count)
	}
	return text
}

// failing is a member that answers with errors.
type failing struct{}

func (failing) prepare(ctx context.Context, i *Injector, f *Fault) error {
	if err := i.needsMember(f); err != nil {
		return err
	}
	r := &f.Request
	if r.Code == 0 {
		r.Code = http.StatusInternalServerError
	}
	if r.Code < 400 || r.Code > 599 || http.StatusText(r.Code) == "" {
		return badInput("--code %d: use an HTTP error such as 429, 500, 409, 403 or 503", r.Code)
	}
	if r.RetryAfter < 0 {
		return badInput("--retry-after %s: use 0 (none) or more", r.RetryAfter)
	}
	if err := r.choose(); err != nil {
		return err
	}
	f.What = fmt.Sprintf("%s to %s are answered with %d %s", r.which(), r.Member, r.Code, http.StatusText(r.Code))
	if r.RetryAfter > 0 {
		f.What += fmt.Sprintf(", Retry-After %s", r.RetryAfter)
	}
	return i.holdCredential(ctx, r.Member)
}

func (failing) do(ctx context.Context, i *Injector, f *Fault) error {
	return i.throughProxy(ctx, f.Request.Member)
}

func (failing) undo(ctx context.Context, i *Injector, f *Fault) (string, error) {
	return "the member answers by itself again", i.besideProxy(ctx, f)
}

// losing is a member that carries out and whose answers are lost.
type losing struct{}

func (losing) prepare(ctx context.Context, i *Injector, f *Fault) error {
	if err := i.needsMember(f); err != nil {
		return err
	}
	r := &f.Request
	if err := r.choose(); err != nil {
		return err
	}
	f.What = fmt.Sprintf("%s to %s are carried out and their answers lost", r.which(), r.Member)
	return i.holdCredential(ctx, r.Member)
}

func (losing) do(ctx context.Context, i *Injector, f *Fault) error {
	return i.throughProxy(ctx, f.Request.Member)
}

func (losing) undo(ctx context.Context, i *Injector, f *Fault) (string, error) {
	return "answers arrive again", i.besideProxy(ctx, f)
}
