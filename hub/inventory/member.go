package inventory

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
)

// lostAfter is how many probes in a row a member may miss.
const lostAfter = 2

// maxRotation bounds the time between two tries of a credential that did not work.
const maxRotation = 5 * time.Minute

// member follows one member for as long as its ClusterProfile exists. All but the
// first block belongs to the goroutine of run.
type member struct {
	inventory *Inventory
	name      string
	context   context.Context
	stop      context.CancelFunc
	offers    chan []byte
	metrics   *memberMetrics
	// before is closed when an earlier member of this name has let go of everything;
	// done is closed when this one has.
	before, done chan struct{}

	credential []byte
	live       *connection
	failures   int
	ticks      int
	state      reachability
	// life is that of the credential that it was read of.
	life struct {
		of []byte
		lifetime
	}

	// wanted is a newer credential that is being tried, or nil; trial gives what came of
	// the one that is tried, and is nil where none is.
	wanted []byte
	trial  chan dialed
	// refused is a newer credential that did not work, how often, and when it is
	// tried again; nil where there is none.
	refused  []byte
	refusals int
	retryAt  time.Time
}

// dialed is what came of a credential.
type dialed struct {
	credential []byte
	next       *connection
	err        error
}

func newMember(ctx context.Context, i *Inventory, name string) *member {
	ctx, stop := context.WithCancel(ctx)
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithName("inventory").WithValues("cluster", name))
	return &member{inventory: i, name: name, context: ctx, stop: stop, offers: make(chan []byte, 1),
		metrics: newMemberMetrics(name), done: make(chan struct{})}
}

// offer hands over the latest credential; only the last one counts.
func (m *member) offer(kubeconfig []byte) {
	select {
	case <-m.offers:
	default:
	}
	m.offers <- kubeconfig
}

// run probes, engages and lets go until the member leaves.
func (m *member) run(aware multicluster.Aware) {
	defer close(m.done)
	if m.before != nil {
		<-m.before
	}
	m.metrics.begin()
	defer m.metrics.end()
	defer m.disengage()
	defer m.dropTrial()
	// The first offer comes before the first tick.
	due := time.Now().Add(m.inventory.options.Timing.Interval)
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	for {
		ticked := false
		select {
		case <-m.context.Done():
			return
		case kubeconfig := <-m.offers:
			m.take(aware, kubeconfig)
		case d := <-m.trial:
			earlier := m.live
			if m.rotated(aware, d); m.live != nil && m.live != earlier {
				// What took its place is probed at once: whoever waits for the hub to take
				// another way sees that it has.
				due = time.Now()
			}
		case <-timer.C:
			m.tick(aware)
			ticked = true
		}
		m.publish()
		// An offer may bring the next tick forward and never puts it off: a profile that
		// somebody writes each second must not keep the member from being probed.
		if next := time.Now().Add(m.pause()); ticked || next.Before(due) {
			due = next
		}
		timer.Reset(time.Until(due))
	}
}

// take makes a credential the one in use. While the member answers, a new one
// must work before it takes the place of the old.
func (m *member) take(aware multicluster.Aware, kubeconfig []byte) {
	switch {
	case bytes.Equal(kubeconfig, m.credential) && m.state.known():
		// The event was about something else, such as the profile's status, or took
		// back a credential that did not work.
		if m.live != nil {
			m.state = reachable(answers)
		}
		m.wanted, m.refused = nil, nil
	case m.live != nil && m.refused != nil && bytes.Equal(kubeconfig, m.refused):
		m.rotateAgain()
	case m.live == nil || len(kubeconfig) == 0:
		m.disengage()
		m.credential, m.wanted, m.refused = kubeconfig, nil, nil
		m.failures = 0
		m.tick(aware)
	default:
		m.rotate(kubeconfig)
	}
}

// rotate fills a second cache before it gives up the first: a credential that is
// taken but may not watch would otherwise cost the member its connection. Meanwhile
// that one is probed as ever.
func (m *member) rotate(kubeconfig []byte) {
	m.wanted = kubeconfig
	if m.trial != nil {
		// It comes next.
		return
	}
	trial := make(chan dialed, 1)
	m.trial = trial
	go func() {
		next, err := m.dial(kubeconfig)
		trial <- dialed{kubeconfig, next, err}
	}()
}

// rotated goes on with what came of a credential, if it is still wanted.
func (m *member) rotated(aware multicluster.Aware, d dialed) {
	m.trial = nil
	switch {
	case m.live == nil && d.err == nil && bytes.Equal(d.credential, m.credential):
		// The member was lost and the credential taken meanwhile.
	case m.live == nil && d.err != nil:
		// The member was lost: the next tick goes on with what is wanted.
		return
	case !bytes.Equal(d.credential, m.wanted):
		if d.next != nil {
			d.next.close()
		}
		if m.wanted != nil {
			m.rotate(m.wanted)
		}
		return
	case d.err != nil:
		m.wanted = nil
		m.state = reachable("connected with the earlier credential: the new one does not work: " + describe(d.err).message)
		if !bytes.Equal(d.credential, m.refused) {
			m.refused, m.refusals = d.credential, 0
		}
		m.refusals++
		m.retryAt = m.inventory.options.Clock.Now().Add(min(m.inventory.options.Timing.Interval<<min(m.refusals, 10), maxRotation))
		return
	}
	m.wanted, m.refused = nil, nil
	m.disengage()
	m.credential = d.credential
	m.engage(aware, d.next)
}

// rotateAgain tries a credential that did not work once more: what stood in its way
// may have passed, and no event would say so.
func (m *member) rotateAgain() {
	if m.refused != nil && m.trial == nil && !m.inventory.options.Clock.Now().Before(m.retryAt) {
		m.rotate(m.refused)
	}
}

// dropTrial waits for the credential that is being tried and lets go of it.
func (m *member) dropTrial() {
	if m.trial == nil {
		return
	}
	if d := <-m.trial; d.next != nil {
		d.next.close()
	}
}

// tick probes a member that is engaged, and tries to engage one that is not.
func (m *member) tick(aware multicluster.Aware) {
	if m.live == nil {
		if newer := cmp.Or(string(m.wanted), string(m.refused)); newer != "" {
			// The earlier credential works no more either: the newer one counts.
			m.credential, m.wanted, m.refused = []byte(newer), nil, nil
		}
		next, err := m.dial(m.credential)
		if err != nil {
			m.lost(err)
			return
		}
		m.engage(aware, next)
		return
	}
	deadline, kinds := m.inventory.options.Timing.Deadline, m.inventory.options.Kinds
	err := m.live.probe(m.context, deadline)
	if err == nil && !m.live.ended() {
		m.failures = 0
		// One kind each time; all of them, in order, once one is refused: the same
		// loss gives the same message.
		if len(kinds) == 0 || m.live.permitted(m.context, deadline, kinds[m.ticks%len(kinds)]) == nil {
			m.ticks++
			m.rotateAgain()
			return
		}
		if err = m.live.permitted(m.context, deadline, kinds...); err == nil {
			// Whoever decides about rights had a moment's trouble.
			m.ticks++
			return
		}
		m.disengage()
		m.lost(err)
		return
	}
	if m.failures++; m.failures >= lostAfter || m.live.ended() {
		m.disengage()
		m.lost(err)
	}
}

// dial connects, probes and fills the cache; the connection can be used when there
// is no error.
func (m *member) dial(kubeconfig []byte) (*connection, error) {
	next, err := connect(m.name, kubeconfig, m.inventory.options, m.metrics.around)
	if err != nil {
		return nil, err
	}
	o := m.inventory.options
	if err = next.probe(m.context, o.Timing.Deadline); err == nil {
		err = next.permitted(m.context, o.Timing.Deadline, o.Kinds...)
	}
	if err == nil {
		err = next.fill(m.context, o)
	}
	if err != nil {
		next.close()
		return nil, err
	}
	return next, nil
}

// engage hands the member to the controllers.
func (m *member) engage(aware multicluster.Aware, next *connection) {
	name := multicluster.ClusterName(m.name)
	err := m.inventory.add(next.context, name, next)
	if err == nil {
		err = aware.Engage(next.context, name, next)
	}
	if err != nil {
		m.inventory.remove(name, next)
		next.close()
		m.lost(err)
		return
	}
	m.live = next
	m.failures = 0
	m.state = reachable(answers)
	log.FromContext(m.context).Info("member engaged")
}

// disengage ends the member's context and closes every connection to it.
func (m *member) disengage() {
	if m.live == nil {
		return
	}
	m.inventory.remove(multicluster.ClusterName(m.name), m.live)
	m.live.close()
	m.live = nil
}

func (m *member) lost(err error) {
	if m.context.Err() != nil {
		return
	}
	if m.live == nil {
		m.failures++
	}
	next := describe(err)
	if next != m.state {
		log.FromContext(m.context).Info("member not reachable", "reason", next.reason, "message", next.message)
	}
	m.state = next
}

// breaker is what the member's circuit breaker is in: closed while requests go
// through, suspect after a first probe that failed, open while only probes go out.
func (m *member) breaker() breakerState {
	switch {
	case m.live == nil:
		return breakerOpen
	case m.failures > 0:
		return breakerSuspect
	default:
		return breakerClosed
	}
}

// pause until the next tick, jittered so that members do not tick together.
func (m *member) pause() time.Duration {
	t := m.inventory.options.Timing
	wait := t.Interval
	switch {
	case m.live != nil && m.failures > 0:
		wait = t.Recheck
	case m.live == nil && len(m.credential) > 0:
		wait = min(t.Retry<<min(m.failures, 10), t.MaxRetry)
	}
	return time.Duration(float64(wait) * (0.8 + 0.2*rand.Float64()))
}

// answers is the message of a member about which there is nothing else to say.
const answers = "the member's API server answers"

var errSync = errors.New("the member's objects cannot be watched")

// describe says why a member can't be reached, in the words of the condition.
func describe(err error) reachability {
	switch {
	case err == nil:
		return reachability{reason: v1alpha1.ReasonProbeFailed, message: "the connection to the member's API server ended"}
	case errors.Is(err, errNoCredential):
		return reachability{reason: v1alpha1.ReasonCredentialsMissing,
			message: fmt.Sprintf("the hub holds no Secret for the member with the label %s and the key %s", v1alpha1.LabelCredentialOf, v1alpha1.CredentialKey)}
	case errors.Is(err, errCredential):
		return reachability{reason: v1alpha1.ReasonCredentialsInvalid, message: err.Error()}
	}
	f := failure.Of(err, "reach", "the member")
	r := reachability{reason: v1alpha1.ReasonProbeFailed, message: f.Message}
	switch {
	case f.Reason == v1alpha1.ReasonUnauthorized:
		r.reason = v1alpha1.ReasonCredentialsInvalid
	case errors.Is(err, errSync):
		r.reason = v1alpha1.ReasonSyncFailed
	}
	return r
}
