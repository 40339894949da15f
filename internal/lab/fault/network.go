package fault

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// NetworkControl is a provider that can remove a cluster from its network. With other
// providers, a proxy drops the packets.
type NetworkControl interface {
	// NetworkAddress returns the address of the cluster, or an error if it has none.
	NetworkAddress(ctx context.Context, cluster string) (string, error)
	// Disconnect removes the cluster from the network.
	Disconnect(ctx context.Context, cluster string) error
	// Reconnect undoes Disconnect. A connected cluster is not an error.
	Reconnect(ctx context.Context, cluster string) error
}

// usesProxy reports whether the proxy of the member causes the fault.
func (f Fault) usesProxy() bool {
	switch f.Request.Fault {
	case Slow, Errors, LostResponses:
		return true
	case Partition:
		return !f.Disconnected
	}
	return false
}

// partition drops all packets between the hub and a member, or resets connections.
type partition struct{}

func (partition) prepare(ctx context.Context, i *Injector, f *Fault) error {
	if err := i.checkMember(f); err != nil {
		return err
	}
	f.Description = "all packets between the hub and " + f.Request.Member + " are dropped"
	if f.Request.Reset {
		f.Description = "all connections between the hub and " + f.Request.Member + " are reset"
	}
	if network, ok := i.provider.(NetworkControl); ok && !f.Request.Reset {
		if _, err := network.NetworkAddress(ctx, f.Request.Member); err != nil {
			return err
		}
		f.Disconnected = true
		return nil
	}
	return i.saveCredential(ctx, f.Request.Member)
}

func (partition) inject(ctx context.Context, i *Injector, f *Fault) error {
	if network, ok := i.provider.(NetworkControl); ok && f.Disconnected {
		return network.Disconnect(ctx, f.Request.Member)
	}
	return i.addToProxy(ctx, f.Request.Member)
}

func (partition) undo(ctx context.Context, i *Injector, f *Fault) (string, error) {
	const note = "the connection is restored"
	if network, ok := i.provider.(NetworkControl); ok && f.Disconnected {
		if err := network.Reconnect(ctx, f.Request.Member); err != nil {
			return "", err
		}
		return note, i.updateCredentialServer(ctx, f.Request.Member)
	}
	return note, i.removeFromProxy(ctx, f)
}

// slow delays or throttles the responses of a member.
type slow struct{}

func (slow) prepare(ctx context.Context, i *Injector, f *Fault) error {
	if err := i.checkMember(f); err != nil {
		return err
	}
	r := &f.Request
	if r.Latency < 0 || r.Jitter < 0 || r.Bandwidth < 0 {
		return badInput("--latency, --jitter and --bandwidth must not be negative")
	}
	if r.Latency == 0 && r.Jitter == 0 && r.Bandwidth == 0 {
		r.Latency, r.Jitter = 500*time.Millisecond, 100*time.Millisecond
	}
	if r.Jitter > r.Latency {
		return badInput("--jitter: %s: must not exceed --latency (%s)", r.Jitter, r.Latency)
	}
	var limits []string
	if r.Latency > 0 {
		limits = append(limits, fmt.Sprintf("latency %s ± %s", r.Latency, r.Jitter))
	}
	if r.Bandwidth > 0 {
		limits = append(limits, fmt.Sprintf("at most %d KB/s per connection", r.Bandwidth))
	}
	f.Description = "responses of " + r.Member + " are slow: " + strings.Join(limits, ", ")
	return i.saveCredential(ctx, r.Member)
}

func (slow) inject(ctx context.Context, i *Injector, f *Fault) error {
	return i.addToProxy(ctx, f.Request.Member)
}

func (slow) undo(ctx context.Context, i *Injector, f *Fault) (string, error) {
	return "responses are no longer delayed", i.removeFromProxy(ctx, f)
}

// anyVerb selects every verb, and requests that name no resource.
const anyVerb = "*"

// Verbs that a rule can name.
var (
	writeVerbs = []string{"create", "update", "patch", "delete"}
	allVerbs   = append(slices.Clone(writeVerbs), "get", "list", "watch", "deletecollection")
)

// matchesAll reports whether the request selects every verb.
func (r *Request) matchesAll() bool { return len(r.Verbs) == 1 && r.Verbs[0] == anyVerb }

// selectRequests validates which requests a rule selects, and adds defaults.
func (r *Request) selectRequests() error {
	if len(r.Verbs) == 0 {
		r.Verbs = writeVerbs
		if r.Code == http.StatusUnauthorized {
			r.Verbs = []string{anyVerb}
		}
	}
	for _, v := range r.Verbs {
		if !slices.Contains(allVerbs, v) && !r.matchesAll() {
			return badInput("--verb: %q: must be one of: %s; or use %q as the only verb", v, strings.Join(allVerbs, ", "), anyVerb)
		}
	}
	if r.Rate < 0 || r.Rate > 1 {
		return badInput("--rate: %v: must be between 0 and 1", r.Rate)
	}
	if r.Count < 0 {
		return badInput("--count: %d: must not be negative; use 0 for no limit", r.Count)
	}
	return nil
}

// describeRequests returns a phrase for the requests that a rule selects.
func (r *Request) describeRequests() string {
	text := strings.Join(r.Verbs, ", ") + " requests"
	if r.matchesAll() {
		text = "all requests"
	}
	if len(r.Resources) > 0 {
		text += " for " + strings.Join(r.Resources, ", ")
	}
	text += " to " + r.Member
	if r.Rate > 0 && r.Rate < 1 {
		text = fmt.Sprintf("%g %% of %s", r.Rate*100, text)
	}
	if r.Count > 0 {
		text += fmt.Sprintf(" (the first %d)", r.Count)
	}
	return text
}

// errorResponses answers requests to a member with an HTTP error.
type errorResponses struct{}

func (errorResponses) prepare(ctx context.Context, i *Injector, f *Fault) error {
	if err := i.checkMember(f); err != nil {
		return err
	}
	r := &f.Request
	if r.Code == 0 {
		r.Code = http.StatusInternalServerError
	}
	if r.Code < 400 || r.Code > 599 || http.StatusText(r.Code) == "" {
		return badInput("--code: %d: must be an HTTP error, such as 429, 500, 409, 403 or 503", r.Code)
	}
	if r.RetryAfter < 0 {
		return badInput("--retry-after: %s: must not be negative; use 0 for no header", r.RetryAfter)
	}
	if err := r.selectRequests(); err != nil {
		return err
	}
	f.Description = fmt.Sprintf("%s are answered with %d %s", r.describeRequests(), r.Code, http.StatusText(r.Code))
	if r.RetryAfter > 0 {
		f.Description += fmt.Sprintf(", Retry-After %s", r.RetryAfter)
	}
	return i.saveCredential(ctx, r.Member)
}

func (errorResponses) inject(ctx context.Context, i *Injector, f *Fault) error {
	return i.addToProxy(ctx, f.Request.Member)
}

func (errorResponses) undo(ctx context.Context, i *Injector, f *Fault) (string, error) {
	return "the member answers all requests again", i.removeFromProxy(ctx, f)
}

// lostResponses forwards requests to a member and drops the responses.
type lostResponses struct{}

func (lostResponses) prepare(ctx context.Context, i *Injector, f *Fault) error {
	if err := i.checkMember(f); err != nil {
		return err
	}
	r := &f.Request
	if err := r.selectRequests(); err != nil {
		return err
	}
	f.Description = fmt.Sprintf("%s are executed, their responses are lost", r.describeRequests())
	return i.saveCredential(ctx, r.Member)
}

func (lostResponses) inject(ctx context.Context, i *Injector, f *Fault) error {
	return i.addToProxy(ctx, f.Request.Member)
}

func (lostResponses) undo(ctx context.Context, i *Injector, f *Fault) (string, error) {
	return "responses are no longer lost", i.removeFromProxy(ctx, f)
}
