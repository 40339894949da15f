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

// maxFailedProbes is how many probes in a row may fail before a member is disengaged.
const maxFailedProbes = 2

// maxRotationRetry bounds the retry interval of a credential that did not work.
const maxRotationRetry = 5 * time.Minute

// member manages the connection to one member while its ClusterProfile exists. All
// fields but those of the first block belong to the goroutine of run.
type member struct {
	inventory   *Inventory
	name        string
	context     context.Context
	stop        context.CancelFunc
	credentials chan []byte
	metrics     *memberMetrics
	// previous is closed when an earlier member of this name has closed its
	// connections; done is closed when this one has.
	previous, done chan struct{}

	credential []byte
	// engaged is the connection that the controllers use, or nil.
	engaged *connection
	// failedProbes is the number of probes and connection attempts in a row that failed.
	failedProbes int
	// ticks counts successful probes; it selects the kind whose rights are checked.
	ticks int
	state reachability
	// expiry caches the lifetime of the credential that it was read from.
	expiry struct {
		credential []byte
		lifetime
	}

	rotation rotation
}

// rotation is the state of a newer credential.
type rotation struct {
	// wanted is the newer credential, or nil.
	wanted []byte
	// result receives the result of the credential that is being tried; nil if none is.
	result chan dialResult
	// refused is the newer credential that did not work, or nil; refusals counts its
	// attempts, and retryAt is the time of the next one.
	refused  []byte
	refusals int
	retryAt  time.Time
}

// reset drops the newer credential.
func (r *rotation) reset() { r.wanted, r.refused = nil, nil }

// dialResult is a connection or an error.
type dialResult struct {
	credential []byte
	connection *connection
	err        error
}

func newMember(ctx context.Context, i *Inventory, name string) *member {
	ctx, stop := context.WithCancel(ctx)
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithName("inventory").WithValues("member", name))
	return &member{inventory: i, name: name, context: ctx, stop: stop, credentials: make(chan []byte, 1),
		metrics: newMemberMetrics(name), done: make(chan struct{})}
}

// setCredential hands over the latest credential; an earlier one that was not taken
// yet is dropped.
func (m *member) setCredential(kubeconfig []byte) {
	select {
	case <-m.credentials:
	default:
	}
	m.credentials <- kubeconfig
}

// run probes, engages and disengages the member until its context ends.
func (m *member) run(aware multicluster.Aware) {
	defer close(m.done)
	if m.previous != nil {
		<-m.previous
	}
	m.metrics.begin()
	defer m.metrics.end()
	defer m.disengage("the member left, or the manager stops")
	defer m.closeRotation()
	// The first credential comes before the first tick.
	due := time.Now().Add(m.inventory.options.Timing.Interval)
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	for {
		ticked := false
		select {
		case <-m.context.Done():
			return
		case kubeconfig := <-m.credentials:
			m.takeCredential(aware, kubeconfig)
		case result := <-m.rotation.result:
			before := m.engaged
			if m.finishRotation(aware, result); m.engaged != nil && m.engaged != before {
				// The new connection is probed at once: a client that waits for the hub to use
				// another route sees that it does.
				due = time.Now()
			}
		case <-timer.C:
			m.tick(aware)
			ticked = true
		}
		m.publish()
		// An event may bring the next tick forward and never delays it: a profile that
		// is written each second must not keep the member from being probed.
		if next := time.Now().Add(m.probePause()); ticked || next.Before(due) {
			due = next
		}
		timer.Reset(time.Until(due))
	}
}

// takeCredential starts to use a credential. While the member is engaged, a new one
// must work before it replaces the old one.
func (m *member) takeCredential(aware multicluster.Aware, kubeconfig []byte) {
	switch {
	case bytes.Equal(kubeconfig, m.credential) && m.state.known():
		// The event was about something else, such as the status of the profile, or it
		// restored the credential that works.
		if m.engaged != nil {
			m.state = reachable(answersMessage)
		}
		m.rotation.reset()
	case m.engaged != nil && m.rotation.refused != nil && bytes.Equal(kubeconfig, m.rotation.refused):
		m.retryRotation()
	case m.engaged == nil || len(kubeconfig) == 0:
		m.disengage("the credential changed")
		m.credential = kubeconfig
		m.rotation.reset()
		m.failedProbes = 0
		m.tick(aware)
	default:
		m.startRotation(kubeconfig)
	}
}

// startRotation syncs a second cache before the first one is given up: a credential
// that is accepted but may not watch would otherwise cost the member its connection.
// The engaged connection is probed meanwhile.
func (m *member) startRotation(kubeconfig []byte) {
	m.rotation.wanted = kubeconfig
	if m.rotation.result != nil {
		// finishRotation starts it.
		return
	}
	result := make(chan dialResult, 1)
	m.rotation.result = result
	go func() {
		next, err := m.dial(kubeconfig)
		result <- dialResult{kubeconfig, next, err}
	}()
}

// finishRotation uses the result of a credential if that is still wanted.
func (m *member) finishRotation(aware multicluster.Aware, result dialResult) {
	m.rotation.result = nil
	switch {
	case m.engaged == nil && result.err == nil && bytes.Equal(result.credential, m.credential):
		// The member was disengaged, and the credential taken meanwhile.
	case m.engaged == nil && result.err != nil:
		// The member was disengaged: the next tick tries the wanted credential.
		return
	case !bytes.Equal(result.credential, m.rotation.wanted):
		if result.connection != nil {
			result.connection.close()
		}
		if m.rotation.wanted != nil {
			m.startRotation(m.rotation.wanted)
		}
		return
	case result.err != nil:
		m.refuseRotation(result)
		return
	}
	m.rotation.reset()
	m.disengage("the credential was rotated")
	m.credential = result.credential
	m.engage(aware, result.connection)
}

// refuseRotation keeps the engaged connection and schedules a retry of the credential.
func (m *member) refuseRotation(result dialResult) {
	cause := describe(result.err)
	m.rotation.wanted = nil
	m.state = reachable("connected with the earlier credential, because the new one does not work: " + cause.message)
	if !bytes.Equal(result.credential, m.rotation.refused) {
		m.rotation.refused, m.rotation.refusals = result.credential, 0
		log.FromContext(m.context).Info("Credential refused, keeping the earlier one", "reason", cause.reason, "message", cause.message)
	}
	m.rotation.refusals++
	backoff := min(m.inventory.options.Timing.Interval<<min(m.rotation.refusals, 10), maxRotationRetry)
	m.rotation.retryAt = m.inventory.options.Clock.Now().Add(backoff)
}

// retryRotation retries a credential that did not work once its retry is due. No event
// reports that the cause is over.
func (m *member) retryRotation() {
	if m.rotation.refused != nil && m.rotation.result == nil && !m.inventory.options.Clock.Now().Before(m.rotation.retryAt) {
		m.startRotation(m.rotation.refused)
	}
}

// closeRotation waits for the credential that is being tried, and closes its
// connection.
func (m *member) closeRotation() {
	if m.rotation.result == nil {
		return
	}
	if result := <-m.rotation.result; result.connection != nil {
		result.connection.close()
	}
}

// tick probes an engaged member, and connects to one that is not.
func (m *member) tick(aware multicluster.Aware) {
	if m.engaged != nil {
		m.probe()
		return
	}
	if newer := cmp.Or(string(m.rotation.wanted), string(m.rotation.refused)); newer != "" {
		// The earlier credential does not work any more either: use the newer one.
		m.credential = []byte(newer)
		m.rotation.reset()
	}
	next, err := m.dial(m.credential)
	if err != nil {
		m.setUnreachable(err)
		return
	}
	m.engage(aware, next)
}

// probe probes the engaged connection, and disengages the member if that is needed.
func (m *member) probe() {
	deadline, kinds := m.inventory.options.Timing.Deadline, m.inventory.options.Kinds
	err := m.engaged.probe(m.context, deadline)
	if err != nil || m.engaged.hasEnded() {
		if m.failedProbes++; m.failedProbes >= maxFailedProbes || m.engaged.hasEnded() {
			m.disengage("probes fail")
			m.setUnreachable(err)
		}
		return
	}
	m.failedProbes = 0
	// One kind at each probe. Once one is refused all are checked, in order, so that the
	// same loss results in the same message.
	if len(kinds) == 0 || m.engaged.checkListRight(m.context, deadline, kinds[m.ticks%len(kinds)]) == nil {
		m.ticks++
		m.retryRotation()
		return
	}
	if err := m.engaged.checkListRight(m.context, deadline, kinds...); err != nil {
		m.disengage("the right to list was lost")
		m.setUnreachable(err)
		return
	}
	// The first refusal was a temporary failure of the authorizer.
	m.ticks++
}

// dial connects, probes and syncs the cache. Without an error, the connection can be
// engaged.
func (m *member) dial(kubeconfig []byte) (*connection, error) {
	o := m.inventory.options
	next, err := connect(m.name, kubeconfig, o, m.metrics.wrapTransport)
	if err != nil {
		return nil, err
	}
	if err = next.probe(m.context, o.Timing.Deadline); err == nil {
		err = next.checkListRight(m.context, o.Timing.Deadline, o.Kinds...)
	}
	if err == nil {
		err = next.startAndSync(m.context, o)
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
	err := m.inventory.registry.add(next.context, name, next)
	if err == nil {
		err = aware.Engage(next.context, name, next)
	}
	if err != nil {
		m.inventory.registry.remove(name, next)
		next.close()
		m.setUnreachable(err)
		return
	}
	m.engaged = next
	m.failedProbes = 0
	m.state = reachable(answersMessage)
	log.FromContext(m.context).Info("Member engaged", "version", next.version)
}

// disengage ends the context of the member and closes every connection to it.
func (m *member) disengage(cause string) {
	if m.engaged == nil {
		return
	}
	m.inventory.registry.remove(multicluster.ClusterName(m.name), m.engaged)
	m.engaged.close()
	m.engaged = nil
	log.FromContext(m.context).Info("Member disengaged", "cause", cause)
}

// setUnreachable records why the member is not engaged, and logs a transition.
func (m *member) setUnreachable(err error) {
	if m.context.Err() != nil {
		return
	}
	if m.engaged == nil {
		m.failedProbes++
	}
	next := describe(err)
	if next != m.state {
		log.FromContext(m.context).Info("Member unreachable", "reason", next.reason, "message", next.message)
	}
	m.state = next
}

// breaker returns the state of the circuit breaker: closed while requests pass,
// suspect after one failed probe, open while only probes are sent.
func (m *member) breaker() breakerState {
	switch {
	case m.engaged == nil:
		return breakerOpen
	case m.failedProbes > 0:
		return breakerSuspect
	default:
		return breakerClosed
	}
}

// probePause returns the time until the next tick, with jitter so that members do not
// tick at the same time.
func (m *member) probePause() time.Duration {
	t := m.inventory.options.Timing
	pause := t.Interval
	switch {
	case m.engaged != nil && m.failedProbes > 0:
		pause = t.Recheck
	case m.engaged == nil && len(m.credential) > 0:
		pause = min(t.Retry<<min(m.failedProbes, 10), t.MaxRetry)
	}
	return time.Duration(float64(pause) * (0.8 + 0.2*rand.Float64()))
}

// answersMessage is the message of Reachable=True for a healthy member.
const answersMessage = "the member's API server answers"

var errSync = errors.New("the hub cannot watch the objects of the member")

// describe returns reason and message of the condition for an error of a connection.
func describe(err error) reachability {
	switch {
	case err == nil:
		return reachability{reason: v1alpha1.ReasonProbeFailed, message: "the connection to the member's API server ended"}
	case errors.Is(err, errNoCredential):
		return reachability{reason: v1alpha1.ReasonCredentialsMissing,
			message: fmt.Sprintf("the hub has no Secret for the member with the label %s and the key %s", v1alpha1.LabelCredentialOf, v1alpha1.CredentialKey)}
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
