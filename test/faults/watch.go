package faults

import (
	"context"
	"reflect"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// How long an event is delayed, how long a missed one stays so, and how long a
// stale cache waits for the next version.
const (
	delay     = 500 * time.Millisecond
	blindness = time.Second
	staleness = 700 * time.Millisecond
)

// Informer makes informers whose watches of a server meet faults.
func (p *Process) Informer(server string) func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer {
	return func(lw toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		kind := strings.ToLower(reflect.TypeOf(object).Elem().Name())
		tapped := &tap{process: p, server: server, kind: kind, inner: toolscache.ToListerWatcherWithContext(lw), stale: map[string]bool{}}
		return toolscache.NewSharedIndexInformer(tapped, object, resync, indexers)
	}
}

// tap is one informer's source.
type tap struct {
	process      *Process
	server, kind string
	inner        toolscache.ListerWatcherWithContext

	mu sync.Mutex
	// stale objects are shown one version late.
	stale map[string]bool
	// blind traces missed an event, until expires; relisting ones wait for the list
	// that shows it.
	blind     []*Trace
	expires   time.Time
	relisting []*Trace
}

func (t *tap) List(o metav1.ListOptions) (runtime.Object, error) {
	return t.ListWithContext(context.Background(), o)
}

func (t *tap) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return t.WatchWithContext(context.Background(), o)
}

func (t *tap) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list, err := t.inner.ListWithContext(ctx, o)
	version := ""
	if l, wrong := meta.ListAccessor(list); err == nil && wrong == nil {
		version = l.GetResourceVersion()
	}
	t.note("", "list after version %q has version %q: %v", o.ResourceVersion, version, err)
	return list, err
}

// note adds a line to the watch log.
func (t *tap) note(namespace, format string, a ...any) {
	t.process.Board.WatchLog.note(namespace, t.server+" "+t.kind+" "+format, a...)
}

func (t *tap) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	number := t.process.Board.watches.Add(1)
	inner, err := t.inner.WatchWithContext(ctx, o)
	t.note("", "watch %d begins after version %q, listing %t: %v", number, o.ResourceVersion, o.SendInitialEvents != nil && *o.SendInitialEvents, err)
	if err != nil {
		return nil, err
	}
	w := &tappedWatch{tap: t, number: number, inner: inner, out: make(chan watch.Event), stopped: make(chan struct{}),
		lines: map[string]*line{}, listing: o.SendInitialEvents != nil && *o.SendInitialEvents}
	if !w.listing {
		t.relisted()
	}
	go w.run()
	return w, nil
}

// relisted releases the traces of missed events after a list. It waits until the list has
// its effects.
func (t *tap) relisted() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, trace := range t.relisting {
		time.AfterFunc(delay, func() { trace.hold(-1) })
	}
	t.relisting = nil
}

func (t *tap) isStale(object string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stale[object]
}

func (t *tap) makeStale(object string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stale[object] = true
}

// line is a queue of events that are delayed: those of a namespace, or of one
// object that is stale.
type line struct {
	trace  *Trace
	events []watch.Event
	due    time.Time
}

type tappedWatch struct {
	*tap
	number  int64
	inner   watch.Interface
	out     chan watch.Event
	once    sync.Once
	stopped chan struct{}

	// The rest belongs to run. listing: what comes are the objects that there are.
	listing bool
	lines   map[string]*line
	// newest is the version of the newest event that was sent.
	newest string
}

func (w *tappedWatch) ResultChan() <-chan watch.Event { return w.out }

func (w *tappedWatch) Stop() { w.once.Do(func() { close(w.stopped) }) }

func (w *tappedWatch) run() {
	defer close(w.out)
	defer w.inner.Stop()
	defer w.discard()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-w.stopped:
			w.note("", "watch %d is stopped", w.number)
			return
		case event, ok := <-w.inner.ResultChan():
			if !ok || !w.take(event) {
				w.note("", "watch %d ends, by the server: %t", w.number, !ok)
				w.release(time.Time{})
				return
			}
		case <-ticker.C:
			now := time.Now()
			w.release(now)
			if w.expired(now) {
				w.note("", "watch %d expires", w.number)
				w.send(watch.Event{Type: watch.Error, Object: &metav1.Status{Status: metav1.StatusFailure, Code: 410,
					Reason: metav1.StatusReasonExpired, Message: "too old resource version"}})
				return
			}
		}
	}
}

func (w *tappedWatch) send(e watch.Event) {
	if object, err := meta.Accessor(e.Object); err == nil && !older(object.GetResourceVersion(), w.newest) {
		w.newest = object.GetResourceVersion()
	}
	select {
	case w.out <- e:
	case <-w.stopped:
	}
}

// take handles an event and reports whether the watch goes on.
func (w *tappedWatch) take(e watch.Event) bool {
	object, err := meta.Accessor(e.Object)
	if err == nil {
		w.note(object.GetNamespace(), "watch %d: %s %s version %s, listing %t", w.number, e.Type, object.GetName(), object.GetResourceVersion(), w.listing)
	} else {
		w.note("", "watch %d: %s %v", w.number, e.Type, e.Object)
	}
	if err != nil || e.Type == watch.Bookmark || e.Type == watch.Error || w.listing || w.process.dead.Load() {
		w.send(e)
		if err == nil && e.Type == watch.Bookmark && w.listing && object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			w.listing = false
			w.relisted()
		}
		return true
	}
	namespace := object.GetNamespace()
	trace := w.process.Board.find(namespace)
	if trace == nil {
		w.send(e)
		return true
	}
	_, fault, _ := trace.meet(Place{Server: w.server, Verb: string(e.Type), Kind: w.kind, Name: object.GetName()})
	id := namespace + "/" + object.GetName()
	switch {
	case fault == Closed:
		return false
	case fault == Missed:
		w.miss(trace)
		return true
	case fault == Stale:
		w.makeStale(id)
		w.lag(id, trace, e)
		return true
	case fault == Delayed:
		w.keep(namespace, trace, e, delay)
		return true
	case w.lines[namespace] != nil:
		// Events of one namespace keep their order.
		w.lines[namespace].events = append(w.lines[namespace].events, e)
		return true
	case w.isStale(id):
		w.lag(id, trace, e)
		return true
	}
	w.send(e)
	if fault == Duplicated {
		w.send(e)
	}
	return true
}

func (w *tappedWatch) keep(id string, trace *Trace, e watch.Event, how time.Duration) {
	trace.hold(1)
	w.lines[id] = &line{trace: trace, events: []watch.Event{e}, due: time.Now().Add(how)}
}

// lag shows the version before and keeps this one.
func (w *tappedWatch) lag(id string, trace *Trace, e watch.Event) {
	if before := w.lines[id]; before != nil {
		w.free(id, before)
	}
	w.keep(id, trace, e, staleness)
}

func (w *tappedWatch) miss(trace *Trace) {
	trace.hold(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.blind = append(w.blind, trace)
	if w.expires.IsZero() {
		w.expires = time.Now().Add(blindness)
	}
}

// expired reports once that the watch must end because an event was missed. Another
// watch may have missed it.
func (t *tap) expired(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.expires.IsZero() || now.Before(t.expires) {
		return false
	}
	t.relisting = append(t.relisting, t.blind...)
	t.blind, t.expires = nil, time.Time{}
	return true
}

func (w *tappedWatch) free(id string, l *line) {
	delete(w.lines, id)
	for _, e := range l.events {
		w.send(e)
	}
	w.catchUp(l.events[len(l.events)-1].Object)
	l.trace.hold(-1)
}

// catchUp sends the newest version to the informer after an event that came late.
// Otherwise its next watch would begin after that event and repeat the events of all namespaces, which
// no API server does.
func (w *tappedWatch) catchUp(late runtime.Object) {
	object, err := meta.Accessor(late)
	if err != nil || !older(object.GetResourceVersion(), w.newest) {
		return
	}
	mark := reflect.New(reflect.TypeOf(late).Elem()).Interface().(runtime.Object)
	if object, err = meta.Accessor(mark); err == nil {
		object.SetResourceVersion(w.newest)
		w.send(watch.Event{Type: watch.Bookmark, Object: mark})
	}
}

// older compares versions of one API server; what is no version is not older.
func older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// release sends what is due; everything for the zero time.
func (w *tappedWatch) release(now time.Time) {
	for id, l := range w.lines {
		if now.IsZero() || now.After(l.due) {
			w.free(id, l)
		}
	}
}

// discard drops what is delayed: the next list shows it.
func (w *tappedWatch) discard() {
	for id, l := range w.lines {
		delete(w.lines, id)
		l.trace.hold(-1)
	}
}
