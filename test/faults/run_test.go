//go:build faults

package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

const (
	// quiet is how long nothing may be written at the end of a run.
	quiet = time.Second
	// limit of one run, far longer than anything takes.
	limit = 3 * time.Minute
)

// run is one execution of a scenario in a namespace of its own.
type run struct {
	*fleet
	scenario  *scenario
	known     *knowledge
	namespace string
	trace     *Trace
	sighting  *sighting
	// ctx bounds the run. before are the children when the recording began.
	ctx    context.Context
	cancel context.CancelFunc
	before map[string]map[string]string
	acted  time.Time
	// actedOut is set once the action is done; over returns nothing useful before.
	actedOut atomic.Bool
	// asked is the generation that the action caused, or 0.
	asked int64

	mu       sync.Mutex
	wrong    []string
	checking sync.WaitGroup
}

// prepare creates the namespace and the initial state of the scenario.
func (f *fleet) prepare(ctx context.Context, s *scenario, known *knowledge) (*run, error) {
	r := &run{fleet: f, scenario: s, known: known, namespace: f.space(), before: map[string]map[string]string{}}
	r.ctx, r.cancel = context.WithTimeout(ctx, limit)
	r.trace, r.sighting = f.board.Open(r.namespace), f.witness.open(r.namespace)
	if err := r.until("create the namespace", 20*time.Millisecond, func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(f.Hub.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}}))
	}); err != nil {
		return r, err
	}
	if s.setup != nil {
		if err := s.setup(r); err != nil {
			return r, fmt.Errorf("set up: %w", err)
		}
		if err := r.until("settle before the action", 20*time.Millisecond, func(context.Context) error {
			if err := ready(r.sighting.latest()); err != nil {
				return err
			}
			return r.still(quiet / 4)
		}); err != nil {
			return r, err
		}
		for member := range f.Members {
			r.before[member] = r.sighting.texts(member)
		}
		known.learn(r)
	}
	r.sighting.forget()
	r.sighting.mu.Lock()
	r.sighting.on = r.judge
	r.sighting.mu.Unlock()
	return r, nil
}

// begin arms the fault, if any, and runs the action.
func (r *run) begin(c *Case) error {
	if c != nil {
		r.trace.Arm(*c)
	}
	r.trace.Begin()
	r.acted = time.Now()
	if err := r.scenario.act(r); err != nil {
		return fmt.Errorf("act: %w", err)
	}
	r.actedOut.Store(true)
	return nil
}

// meets waits until the fault was injected, or the scenario is over without it, or a
// quarter of the limit has passed.
func (r *run) meets() {
	_ = wait.PollUntilContextTimeout(r.ctx, 20*time.Millisecond, limit/4, true, func(context.Context) (bool, error) {
		return !r.trace.Hit().IsZero() || r.actedOut.Load() && r.over() == nil && r.still(quiet) == nil, nil
	})
}

// result is the result of a run. busy is the time from the action to the last write.
type result struct {
	state      map[string]string
	writes     int
	took, busy time.Duration
	points     []Point
}

// finish waits until the scenario is over, nothing is written any more, and the state
// equals wanted, unless wanted is nil.
func (r *run) finish(wanted map[string]string) (result, error) {
	var state map[string]string
	err := r.until("converge", 30*time.Millisecond, func(ctx context.Context) error {
		if err := r.over(); err != nil {
			return err
		}
		pause := quiet
		if wanted == nil {
			// Nothing else shows that a clean run is over.
			pause = 3 * quiet
		}
		if err := r.still(pause); err != nil {
			return err
		}
		var err error
		if state, err = r.state(ctx); err != nil {
			return err
		}
		if wanted == nil {
			return nil
		}
		compare := Differ
		if f := r.trace.Fault(); f.Kills() {
			compare = func(a, b map[string]string) string { return Differ(WithoutLastDrift(a), WithoutLastDrift(b)) }
		}
		if diff := compare(wanted, state); diff != "" {
			select {
			case <-time.After(quiet / 2):
			case <-ctx.Done():
			}
			return fmt.Errorf("the state differs from a clean run's (-clean +this):%s", diff)
		}
		return nil
	})
	busy := time.Since(r.acted) - r.trace.Quiet()
	r.checking.Wait()
	took := time.Since(r.acted)
	if err == nil {
		r.known.learn(r)
	}
	return result{state: state, writes: r.trace.Writes(), took: took, busy: busy, points: r.trace.Points()}, err
}

// end deletes the CacheCluster and waits until the namespace is empty: no CacheCluster, no
// MemberCache, and no child in a member. The error names what remains.
func (r *run) end(ctx context.Context) error {
	defer r.cancel()
	defer r.board.Close(r.namespace)
	defer r.witness.close(r.namespace)
	replay := ""
	if c := r.trace.Case(); c != nil {
		replay = "; replay: " + c.Replay()
	}
	r.trace.Revive()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := r.Hub.Client.Delete(ctx, &v1alpha1.CacheCluster{ObjectMeta: r.at()})
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	var left []string
	err = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var err error
		left, err = r.remaining(ctx)
		return err == nil && len(left) == 0, nil
	})
	if err == nil {
		return nil
	}
	return fmt.Errorf("namespace %s of scenario %s is not empty %s after the CacheCluster was deleted, left are: %s%s",
		r.namespace, r.scenario.name, limit, strings.Join(left, ", "), replay)
}

// remaining returns the objects that a deleted CacheCluster must not leave. Orphaned
// children have no label of a CacheCluster.
func (r *run) remaining(ctx context.Context) ([]string, error) {
	var left []string
	if cc := r.sighting.latest(); cc != nil {
		left = append(left, fmt.Sprintf("CacheCluster/%s (finalizers %v, %s)", cc.Name, cc.Finalizers, reportOf(cc, time.Time{}, false).Text))
		return left, nil
	}
	var caches v1alpha1.MemberCacheList
	if err := r.Hub.Client.List(ctx, &caches, client.InNamespace(r.namespace)); err != nil {
		return []string{fmt.Sprintf("MemberCaches that cannot be listed (%v)", err)}, err
	}
	for i := range caches.Items {
		left = append(left, "MemberCache/"+caches.Items[i].Name)
	}
	for _, member := range slices.Sorted(maps.Keys(r.Members)) {
		for _, key := range r.sighting.labelled(member) {
			left = append(left, fmt.Sprintf("%s in %s", key, member))
		}
	}
	return left, nil
}

// over returns an error that names why the scenario is not over yet.
func (r *run) over() error {
	cc := r.sighting.latest()
	if !r.scenario.ends {
		if err := ready(cc); err != nil {
			return err
		}
		if cc.Generation < r.asked {
			return fmt.Errorf("generation %d was not seen yet", r.asked)
		}
	}
	if r.scenario.done == nil {
		return nil
	}
	return r.scenario.done(r, cc)
}

// still returns an error while something was written, or an event was delayed, within the
// duration.
func (r *run) still(how time.Duration) error {
	if since := r.trace.Quiet(); since < how {
		return fmt.Errorf("written %s ago", since)
	}
	return nil
}

// ready returns an error that names why a CacheCluster is not ready.
func ready(cc *v1alpha1.CacheCluster) error {
	if cc == nil {
		return errors.New("no CacheCluster")
	}
	c := meta.FindStatusCondition(cc.Status.Conditions, v1alpha1.ConditionReady)
	if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != cc.Generation || cc.Status.ObservedGeneration != cc.Generation {
		return fmt.Errorf("not ready: %s", reportOf(cc, time.Time{}, false).Text)
	}
	return nil
}

// until polls until check returns nil. The error wraps the last one of check.
func (r *run) until(what string, every time.Duration, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(r.ctx, every, true, func(ctx context.Context) (bool, error) {
		err := check(ctx)
		if err != nil && ctx.Err() == nil {
			last = err
		}
		if errors.Is(err, errFinal) {
			return false, err
		}
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, errors.Join(last, r.ctx.Err()))
	}
	return nil
}

// state returns the normalised objects of all servers by server, kind and name.
func (r *run) state(ctx context.Context) (map[string]string, error) {
	found := map[string]string{}
	for _, server := range append(slices.Sorted(maps.Keys(r.Members)), hub) {
		kinds := childKinds
		if server == hub {
			kinds = hubKinds
		}
		for _, kind := range kinds {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind)
			if err := r.server(server).List(ctx, list, client.InNamespace(r.namespace)); err != nil {
				return nil, err
			}
			for i := range list.Items {
				found[fmt.Sprintf("%s %s/%s", server, kind.Kind, list.Items[i].GetName())] = Normalise(&list.Items[i])
			}
		}
	}
	return found, nil
}

// grace is the time within which a change may be unknown to a manager that reports Ready.
const grace = time.Second

// judge receives every version of the CacheCluster and checks that its status is true.
func (r *run) judge(cc *v1alpha1.CacheCluster, at time.Time) {
	if ready(cc) != nil || r.scenario.differs {
		return
	}
	wanted := r.known.wanted(r.sighting.life(cc), cc.Generation)
	for member, children := range wanted {
		for key, text := range children {
			if !r.sighting.shows(member, key, text) {
				r.checking.Go(func() { r.check(cc, at, member, key, text) })
			}
		}
	}
}

// check reads the child from the member's API server.
func (r *run) check(cc *v1alpha1.CacheCluster, at time.Time, member, key, text string) {
	live, err := r.child(r.ctx, member, key)
	version := ""
	switch {
	case client.IgnoreNotFound(err) != nil:
		return
	case err == nil:
		if is, ready := Essence(live); is == text && ready {
			return
		}
		version = live.GetResourceVersion()
	}
	was, known := false, false
	_ = wait.PollUntilContextTimeout(r.ctx, 10*time.Millisecond, 2*time.Second, true, func(context.Context) (bool, error) {
		was, known = r.sighting.showed(member, key, text, version, at.Add(-grace))
		return known, nil
	})
	if was {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrong = append(r.wrong, fmt.Sprintf("Ready at generation %d while %s in %s differs from that generation", cc.Generation, key, member))
}

func (r *run) child(ctx context.Context, member, key string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	for _, kind := range childKinds {
		if name, ok := cut(key, kind.Kind); ok {
			u.SetGroupVersionKind(kind)
			u.SetName(name)
		}
	}
	err := r.Members[member].Client.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: u.GetName()}, u)
	return u, err
}

func cut(key, kind string) (string, bool) {
	if len(key) > len(kind) && key[:len(kind)+1] == kind+"/" {
		return key[len(kind)+1:], true
	}
	return "", false
}

func (r *run) wrongs() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.wrong)
}

// knowledge is what clean runs of a scenario recorded: the children of each generation of
// the CacheCluster by member.
type knowledge struct {
	mu     sync.Mutex
	clean  bool
	asks   map[generation]map[string]map[string]string
	state  map[string]string
	writes int
	busy   time.Duration
	points []Point
}

type generation struct {
	life   int
	number int64
}

func (k *knowledge) learn(r *run) {
	cc := r.sighting.latest()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.clean || cc == nil {
		return
	}
	wanted := map[string]map[string]string{}
	for _, member := range cc.Spec.Placement.Clusters {
		wanted[member] = r.sighting.texts(member)
	}
	if k.asks == nil {
		k.asks = map[generation]map[string]map[string]string{}
	}
	k.asks[generation{r.sighting.life(cc), cc.Generation}] = wanted
}

func (k *knowledge) wanted(life int, number int64) map[string]map[string]string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.asks[generation{life, number}]
}
