package fault

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/reconcile-lab/reconcile-lab/internal/lab/fault/proxy"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/fault/rules"
)

// ProxyHost is a provider whose hub manager can reach programs of this machine.
type ProxyHost interface {
	// HostAddress returns the IP address at which the hub manager reaches a program.
	HostAddress(ctx context.Context) (string, error)
}

const readyFile = "ready.json"

// Limits for the hub to switch to a proxy and back. To switch, the hub sends a probe,
// reviews its permissions, fills its caches, and closes the earlier connection.
const (
	switchTimeout  = 40 * time.Second
	releaseTimeout = 10 * time.Second
)

// proxyName returns the name of the task of a member's proxy.
func proxyName(member string) string { return "proxy-" + member }

// addToProxy routes the hub through the proxy of a member, and configures the proxy for all
// faults of the member.
func (i *Injector) addToProxy(ctx context.Context, member string) error {
	r, err := readRoute(i.lab, proxyName(member))
	if err != nil || !isRunning(i.lab, proxyName(member)) {
		if r, err = i.startProxy(ctx, member); err != nil {
			return err
		}
	}
	if err := i.changeCredential(ctx, member, func(c *credential) { c.Route = r }); err != nil {
		return err
	}
	// The faults begin after the hub has switched: it keeps its direct connection as long as
	// the new one does not work.
	i.report("waiting for the hub manager to connect through the proxy")
	if err := r.waitForUse(ctx, switchTimeout, func(u proxy.Use) bool { return u.Watches > 0 && u.Probes > 0 }); err != nil {
		if !wait.Interrupted(err) || ctx.Err() != nil {
			return err
		}
		i.report("the hub manager has not connected through the proxy, the fault takes effect when it does; check that the hub manager runs and reaches the member")
	}
	_, err = r.request(ctx, http.MethodPut, i.behavior(member, ""))
	return err
}

// removeFromProxy undoes addToProxy for one fault. The last fault of a member removes the
// proxy.
func (i *Injector) removeFromProxy(ctx context.Context, f *Fault) error {
	member, name := f.Request.Member, proxyName(f.Request.Member)
	r, err := readRoute(i.lab, name)
	running := err == nil && isRunning(i.lab, name)
	if running {
		if _, err := r.request(ctx, http.MethodPut, i.behavior(member, f.ID)); err != nil {
			return err
		}
	}
	for _, other := range i.state.Faults {
		if other.ID != f.ID && other.Request.Member == member && other.usesProxy() {
			return nil
		}
	}
	if err := i.changeCredential(ctx, member, func(c *credential) { c.Route = nil }); err != nil {
		return err
	}
	if running {
		// The hub switches back without losing a request. If it is late, it loses some.
		if err := r.waitForUse(ctx, releaseTimeout, func(u proxy.Use) bool { return u.Watches == 0 }); err != nil && !wait.Interrupted(err) {
			return err
		}
	}
	return i.stop(ctx, name)
}

// startProxy starts the proxy of a member and waits until it listens.
func (i *Injector) startProxy(ctx context.Context, member string) (*route, error) {
	name := proxyName(member)
	if err := i.stop(ctx, name); err != nil {
		return nil, err
	}
	host, ok := i.provider.(ProxyHost)
	if !ok {
		return nil, fmt.Errorf("provider %s does not support proxies", i.provider.Name())
	}
	address, err := host.HostAddress(ctx)
	if err != nil {
		return nil, err
	}
	original, err := kubeconfigOf(i.state.Credentials[member].Secret.Before)
	if err != nil {
		return nil, err
	}
	t, err := newProxyTask(original, address, filepath.Join(faultDir(i.lab), name, readyFile))
	if err != nil {
		return nil, err
	}
	started, err := i.start(name, task{Proxy: &t})
	if err != nil {
		return nil, err
	}
	var r *route
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, switchTimeout, true, func(context.Context) (bool, error) {
		select {
		case <-started.Exited:
			return false, fmt.Errorf("the proxy ended; see its log, %s", filepath.Join(faultDir(i.lab), name, agentLog))
		default:
		}
		r, err = readRoute(i.lab, name)
		return err == nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("start the proxy of %s: %w", member, err)
	}
	return r, nil
}

// behavior returns the configuration of a member's proxy for all faults of the member
// except one.
func (i *Injector) behavior(member, exceptID string) proxy.Behavior {
	var b proxy.Behavior
	for _, f := range i.state.Faults {
		if f.ID == exceptID || f.Request.Member != member || !f.usesProxy() {
			continue
		}
		r := f.Request
		switch r.Fault {
		case Partition:
			b.Network.Drop = b.Network.Drop || !r.Reset
			b.Network.Reset = b.Network.Reset || r.Reset
		case Slow:
			b.Network.Latency, b.Network.Jitter, b.Network.Bandwidth = r.Latency, r.Jitter, r.Bandwidth
		case Errors:
			b.Rules = append(b.Rules, r.rule(rules.Action{Code: r.Code, RetryAfter: r.RetryAfter}))
		case LostResponses:
			b.Rules = append(b.Rules, r.rule(rules.Action{LoseResponse: true}))
		}
	}
	return b
}

// rule returns the rule of the proxy for a request.
func (r Request) rule(a rules.Action) rules.Rule {
	rule := rules.Rule{Match: rules.Match{Resources: r.Resources}, Action: a, Count: r.Count, Rate: r.Rate}
	if r.matchesAll() {
		rule.Match.NonResource = len(r.Resources) == 0
	} else {
		rule.Match.Verbs = r.Verbs
	}
	return rule
}

// request sends a request to the control endpoint of the proxy.
func (r *route) request(ctx context.Context, method string, body any) (proxy.Use, error) {
	var use proxy.Use
	content, err := json.Marshal(body)
	if err != nil {
		return use, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://"+r.Control, bytes.NewReader(content))
	if err != nil {
		return use, err
	}
	request.Header.Set("Authorization", "Bearer "+r.Secret)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return use, fmt.Errorf("control the proxy: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return use, err
	}
	if response.StatusCode != http.StatusOK {
		return use, errors.New("control the proxy: " + strings.TrimSpace(string(answer)))
	}
	return use, json.Unmarshal(answer, &use)
}

// waitForUse polls the use of the proxy until done returns true.
func (r *route) waitForUse(ctx context.Context, timeout time.Duration, done func(proxy.Use) bool) error {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		use, err := r.request(ctx, http.MethodGet, nil)
		return err == nil && done(use), err
	})
}
