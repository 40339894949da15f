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

// Host is a provider that knows at which address of this machine the hub manager
// reaches a program of it.
type Host interface {
	HostAddress(ctx context.Context) (string, error)
}

const readyFile = "ready.json"

// How long the hub may take to come through a proxy and to leave it again: it probes,
// looks at its rights, fills its caches, and lets go of the connection before.
const (
	comesWithin  = 40 * time.Second
	leavesWithin = 10 * time.Second
)

func proxyName(member string) string { return "proxy-" + member }

// throughProxy puts the member's proxy into the way, if it is not there, and makes
// it behave as all faults of the member say.
func (i *Injector) throughProxy(ctx context.Context, member string) error {
	w, err := readWay(i.Lab, proxyName(member))
	if err != nil || !runs(i.Lab, proxyName(member)) {
		if w, err = i.startProxy(ctx, member); err != nil {
			return err
		}
	}
	if err := i.changeCredential(ctx, member, func(c *credential) { c.Way = w }); err != nil {
		return err
	}
	// A way that does not work would be refused, and the direct one kept.
	i.Report("waiting for the hub to take the way through the proxy")
	if err := awaitUse(ctx, w, comesWithin, func(u proxy.Use) bool { return u.Watches > 0 && u.Probes > 0 }); err != nil {
		if !wait.Interrupted(err) || ctx.Err() != nil {
			return err
		}
		i.Report("the hub manager has not come this way (does it run, and does it reach the member?): the fault acts once it does")
	}
	_, err = w.ask(ctx, http.MethodPut, i.behaviour(member, ""))
	return err
}

// besideProxy undoes what throughProxy did for one fault.
func (i *Injector) besideProxy(ctx context.Context, f *Fault) error {
	member, name := f.Request.Member, proxyName(f.Request.Member)
	w, err := readWay(i.Lab, name)
	running := err == nil && runs(i.Lab, name)
	if running {
		if _, err := w.ask(ctx, http.MethodPut, i.behaviour(member, f.ID)); err != nil {
			return err
		}
	}
	for _, other := range i.state.Faults {
		if other.ID != f.ID && other.Request.Member == member && other.proxied() {
			return nil
		}
	}
	if err := i.changeCredential(ctx, member, func(c *credential) { c.Way = nil }); err != nil {
		return err
	}
	if running {
		// It leaves by itself, without losing a request; if it does not, it loses some.
		if err := awaitUse(ctx, w, leavesWithin, func(u proxy.Use) bool { return u.Watches == 0 }); err != nil && !wait.Interrupted(err) {
			return err
		}
	}
	return i.stop(ctx, name)
}

func (i *Injector) startProxy(ctx context.Context, member string) (*way, error) {
	name := proxyName(member)
	if err := i.stop(ctx, name); err != nil {
		return nil, err
	}
	host, ok := i.Provider.(Host)
	if !ok {
		return nil, fmt.Errorf("provider %s has no address for a proxy", i.Provider.Name())
	}
	address, err := host.HostAddress(ctx)
	if err != nil {
		return nil, err
	}
	before, err := kubeconfigOf(i.state.Credentials[member].Secret.Before)
	if err != nil {
		return nil, err
	}
	t, err := newProxyTask(before, address, filepath.Join(dir(i.Lab), name, readyFile))
	if err != nil {
		return nil, err
	}
	started, err := i.start(name, task{Proxy: &t})
	if err != nil {
		return nil, err
	}
	var w *way
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, comesWithin, true, func(context.Context) (bool, error) {
		select {
		case <-started.Exited:
			return false, fmt.Errorf("the proxy ended: see %s", filepath.Join(dir(i.Lab), name, agentLog))
		default:
		}
		w, err = readWay(i.Lab, name)
		return err == nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("start the proxy of %s: %w", member, err)
	}
	return w, nil
}

// behaviour is what all faults of a member make of its proxy, but for one.
func (i *Injector) behaviour(member, without string) proxy.Behaviour {
	var b proxy.Behaviour
	for _, f := range i.state.Faults {
		if f.ID == without || f.Request.Member != member || !f.proxied() {
			continue
		}
		r := f.Request
		switch r.Fault {
		case Partition:
			b.Network.Cut = b.Network.Cut || !r.Reset
			b.Network.Reset = b.Network.Reset || r.Reset
		case Slow:
			b.Network.Latency, b.Network.Jitter, b.Network.Bandwidth = r.Latency, r.Jitter, r.Bandwidth
		case Errors:
			b.Rules = append(b.Rules, r.rule(rules.Action{Code: r.Code, RetryAfter: r.RetryAfter}))
		case LostResponses:
			b.Rules = append(b.Rules, r.rule(rules.Action{Lose: true}))
		}
	}
	return b
}

func (r Request) rule(a rules.Action) rules.Rule {
	rule := rules.Rule{Match: rules.Match{Resources: r.Resources}, Action: a, Count: r.Count, Rate: r.Rate}
	if strings.Join(r.Verbs, "") == anyVerb {
		rule.Match.Paths = len(r.Resources) == 0
	} else {
		rule.Match.Verbs = r.Verbs
	}
	return rule
}

// ask speaks with the proxy's control.
func (w *way) ask(ctx context.Context, method string, body any) (proxy.Use, error) {
	var use proxy.Use
	content, err := json.Marshal(body)
	if err != nil {
		return use, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://"+w.Control, bytes.NewReader(content))
	if err != nil {
		return use, err
	}
	request.Header.Set("Authorization", "Bearer "+w.Secret)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return use, fmt.Errorf("ask the proxy: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return use, err
	}
	if response.StatusCode != http.StatusOK {
		return use, errors.New("the proxy says: " + strings.TrimSpace(string(answer)))
	}
	return use, json.Unmarshal(answer, &use)
}

func awaitUse(ctx context.Context, w *way, within time.Duration, until func(proxy.Use) bool) error {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, within, true, func(ctx context.Context) (bool, error) {
		use, err := w.ask(ctx, http.MethodGet, nil)
		return err == nil && until(use), err
	})
}
