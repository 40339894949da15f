package orphans

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// FieldManager owns the condition; the conditions of the inventory have another one.
const FieldManager = "reconcile-lab-leftovers"

// Options of a Finder.
type Options struct {
	// Hub has the MemberCaches and ClusterProfiles. Required.
	Hub cluster.Cluster
	// InventoryNamespace of the ClusterProfiles; v1alpha1.InventoryNamespace if empty.
	InventoryNamespace string
	// Kinds of children, which the cache of a member holds. Required.
	Kinds []client.Object
	// Interval between scans; ten minutes if 0.
	Interval time.Duration
	// Debounce is how long a scan waits for further requests; a second if 0.
	Debounce time.Duration
	// Clock of the finder; the real one if nil.
	Clock clock.PassiveClock
}

// scanTimeout bounds the requests of one scan.
const scanTimeout = 10 * time.Second

// Finder scans every engaged member.
type Finder struct {
	options Options
	started chan struct{}

	mu sync.Mutex
	// scans requests a scan, by member.
	scans map[string]chan struct{}
	// found reports by member whether the last scan found candidates; true before the
	// first scan. Loss: one more scan.
	found   map[string]bool
	stopped bool
	running sync.WaitGroup
}

var _ mcmanager.Runnable = &Finder{}

// New returns a Finder that is added to a multicluster manager.
func New(o Options) (*Finder, error) {
	if o.Hub == nil {
		return nil, errors.New("Hub is required")
	}
	if len(o.Kinds) == 0 {
		return nil, errors.New("Kinds is required")
	}
	if o.Interval < 0 || o.Debounce < 0 {
		return nil, fmt.Errorf("Interval and Debounce must not be negative: %s, %s", o.Interval, o.Debounce)
	}
	if o.InventoryNamespace == "" {
		o.InventoryNamespace = v1alpha1.InventoryNamespace
	}
	if o.Interval == 0 {
		o.Interval = 10 * time.Minute
	}
	if o.Debounce == 0 {
		o.Debounce = time.Second
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Finder{options: o, started: make(chan struct{}), scans: map[string]chan struct{}{}, found: map[string]bool{}}, nil
}

// NeedLeaderElection returns true: only the leader writes conditions.
func (f *Finder) NeedLeaderElection() bool { return true }

// Start requests a scan of every member when a MemberCache is deleted, until ctx ends.
func (f *Finder) Start(ctx context.Context) error {
	informer, err := f.options.Hub.GetCache().GetInformer(ctx, &v1alpha1.MemberCache{})
	if err != nil {
		return fmt.Errorf("watch MemberCaches on the hub: %w", err)
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(object any) {
		if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = tombstone.Obj
		}
		if _, ok := object.(*v1alpha1.MemberCache); ok {
			f.requestAll()
		}
	}})
	if err != nil {
		return fmt.Errorf("watch MemberCaches on the hub: %w", err)
	}
	defer func() { _ = informer.RemoveEventHandler(registration) }()
	close(f.started)
	<-ctx.Done()
	f.mu.Lock()
	f.stopped = true
	f.mu.Unlock()
	f.running.Wait()
	return nil
}

// requestAll requests a scan of every engaged member, because a cluster may be a member
// under two names.
func (f *Finder) requestAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, scan := range f.scans {
		request(scan)
	}
}

// request requests a scan, unless one is requested already.
func request(scan chan struct{}) {
	select {
	case scan <- struct{}{}:
	default:
	}
}

// foundCandidates reports whether the last scan of a member found candidates.
func (f *Finder) foundCandidates(member string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.found[member]
}

// setFound records whether a scan found candidates, while the member is engaged.
func (f *Finder) setFound(member string, found bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, engaged := f.scans[member]; engaged {
		f.found[member] = found
	}
}

// Engage scans a member until ctx ends.
func (f *Finder) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	select {
	case <-f.started:
	case <-ctx.Done():
		return ctx.Err()
	}
	scan := make(chan struct{}, 1)
	request(scan)
	if !f.begin(ctx, string(name), cl, scan) {
		return fmt.Errorf("engage %q: the orphan finder is stopping", name)
	}
	// Without known candidates, a child that is deleted changes no result.
	requestIfFound := func(any) {
		if f.foundCandidates(string(name)) {
			request(scan)
		}
	}
	// A child that is taken over gets another owner.
	ownerChanged := func(before, after any) {
		if ownerOf(before) != ownerOf(after) {
			requestIfFound(after)
		}
	}
	for _, object := range f.options.Kinds {
		informer, err := cl.GetCache().GetInformer(ctx, object)
		if err != nil {
			return fmt.Errorf("watch %T in %s: %w", object, name, err)
		}
		// The handler ends with the informer, and the informer with the cluster.
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: ownerChanged, DeleteFunc: requestIfFound}); err != nil {
			return fmt.Errorf("watch %T in %s: %w", object, name, err)
		}
	}
	return nil
}

func ownerOf(object any) string {
	if o, ok := object.(metav1.Object); ok {
		return o.GetAnnotations()[v1alpha1.AnnotationOwner]
	}
	return ""
}

// begin starts the goroutine of a member. It reports false while the finder stops.
func (f *Finder) begin(ctx context.Context, name string, cl cluster.Cluster, scan chan struct{}) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return false
	}
	f.scans[name] = scan
	f.found[name] = true
	f.running.Go(func() { f.run(ctx, name, cl, scan) })
	return true
}

// run scans a member when a scan is requested and at every interval, until ctx ends.
func (f *Finder) run(ctx context.Context, name string, cl cluster.Cluster, scan chan struct{}) {
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.scans[name] == scan {
			delete(f.scans, name)
			delete(f.found, name)
		}
	}()
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithName("orphans").WithValues("member", name))
	interval := time.NewTicker(f.options.Interval)
	defer interval.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-scan:
		case <-interval.C:
		}
		// The jitter keeps members that are engaged together from scanning together.
		debounce := time.NewTimer(f.options.Debounce + rand.N(f.options.Debounce))
		select {
		case <-ctx.Done():
			debounce.Stop()
			return
		case <-debounce.C:
		}
		if err := f.scan(ctx, name, cl); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Failed to scan a member for orphaned children")
		}
	}
}
