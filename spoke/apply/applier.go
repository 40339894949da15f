package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
)

// Options configure an Applier.
type Options struct {
	// Client writes to the member. Reader reads from the API server of the member without a
	// cache; it defaults to Client.
	Client client.Client
	Reader client.Reader
	// Writes is the write cache of the member; it defaults to an empty one.
	Writes *WriteCache
	// Namespace of the children. CreateNamespace allows the applier to create it.
	Namespace       string
	CreateNamespace bool
	// Defer reports whether the conflict breaker delays a correction; nil delays none.
	Defer func(*Step) bool
	// Now is the clock; it defaults to time.Now. EventTime is the arrival of the event that
	// led to this reconcile: correction times are measured from it.
	Now       func() time.Time
	EventTime time.Time
}

// Applier resolves and executes plans in one member.
type Applier struct {
	client          client.Client
	reader          client.Reader
	writes          *WriteCache
	namespace       string
	createNamespace bool
	deferred        func(*Step) bool
	now             func() time.Time
	eventTime       time.Time
}

// New returns an applier.
func New(o Options) *Applier {
	a := &Applier{client: o.Client, reader: o.Reader, writes: o.Writes, namespace: o.Namespace, createNamespace: o.CreateNamespace,
		deferred: o.Defer, now: o.Now, eventTime: o.EventTime}
	if a.reader == nil {
		a.reader = o.Client
	}
	if a.writes == nil {
		a.writes = NewWriteCache()
	}
	if a.deferred == nil {
		a.deferred = func(*Step) bool { return false }
	}
	if a.now == nil {
		a.now = time.Now
	}
	return a
}

// Apply claims the children of a plan, resolves and executes the plan, and returns the
// report.
func (a *Applier) Apply(ctx context.Context, plan Plan) Report {
	return NewReport(plan.Owner.Inventory, a.apply(ctx, plan))
}

func (a *Applier) apply(ctx context.Context, plan Plan) []Result {
	release, err := a.writes.claims.acquire(ctx, a.namespace, plan.Steps)
	if err != nil {
		return aborted(plan.Steps, err)
	}
	defer release()
	resolved, err := a.Resolve(ctx, plan)
	if err != nil {
		log.FromContext(ctx).V(levelNotWritten).Info("Plan not executed", "namespace", a.namespace, "error", err.Error())
		return aborted(plan.Steps, err)
	}
	return a.Execute(ctx, resolved)
}

// abortError ends a stage: the member is unreachable or asks for a pause, so every further
// request would be one too many or cost a timeout.
type abortError struct {
	// key is the child that the stage stopped at, or zero.
	key     Key
	failure *failure.Failure
}

// Error returns the message of the failure.
func (e *abortError) Error() string { return e.failure.Error() }

// Unwrap returns the failure.
func (e *abortError) Unwrap() error { return e.failure }

// aborts reports whether a failure ends a stage.
func aborts(f *failure.Failure) bool {
	return f != nil && (f.Class == v1alpha1.ClassUnreachable || f.Class == v1alpha1.ClassTransient && f.RetryAfter > 0)
}

// aborted returns the results of a plan that was not executed. The failure belongs to the
// child that the stage stopped at, or to the first one.
func aborted(steps []Step, err error) []Result {
	results := notExecuted(steps)
	var abort *abortError
	if !errors.As(err, &abort) || len(results) == 0 {
		return results
	}
	index := 0
	for i := range results {
		if results[i].Key == abort.key {
			index = i
		}
	}
	results[index].Failure = abort.failure
	return results
}

// get reads a child from the API server. It returns nil for an absent child.
func (a *Applier) get(ctx context.Context, key Key) (client.Object, error) {
	object, err := a.newObject(key)
	if err != nil {
		return nil, err
	}
	err = a.reader.Get(ctx, client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return object, err
}

// newObject returns an empty child of the type of its kind. For a typed object, the API
// server answers in protobuf, which costs both sides less than JSON.
func (a *Applier) newObject(key Key) (client.Object, error) {
	created, err := a.client.Scheme().New(key.Kind)
	if err != nil {
		return nil, err
	}
	object, ok := created.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%s is not an API object", key.Kind)
	}
	object.GetObjectKind().SetGroupVersionKind(key.Kind)
	object.SetNamespace(a.namespace)
	object.SetName(key.Name)
	return object, nil
}

// patch sends a patch of a child and returns the answer. It creates the namespace if that
// is allowed and the namespace is absent.
func (a *Applier) patch(ctx context.Context, key Key, patch client.Patch, options ...client.PatchOption) (client.Object, error) {
	object, err := a.newObject(key)
	if err != nil {
		return nil, err
	}
	err = a.client.Patch(ctx, object, patch, options...)
	if !a.createNamespace || !namespaceMissing(err) {
		return object, err
	}
	// A create, because an apply needs the right to patch every namespace.
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.namespace}}
	if err := a.client.Create(ctx, namespace, client.FieldOwner(v1alpha1.FieldManager)); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, failure.Of(err, "create", "Namespace/"+a.namespace)
	}
	if object, err = a.newObject(key); err != nil {
		return nil, err
	}
	return object, a.client.Patch(ctx, object, patch, options...)
}

func namespaceMissing(err error) bool {
	return err != nil && failure.Of(err, "", "").Reason == v1alpha1.ReasonNamespaceMissing
}

// absentVersion makes a server-side apply create or fail. An API server ignores the version
// where no object exists, and no object has this version. Without it, an apply would join an
// object that another hub created a moment ago: both use the same field manager, so there
// would be no conflict.
const absentVersion = "1"

// rejectsVersion reports whether the member does not accept absentVersion. For Services, an
// API server before Kubernetes 1.24 may answer 500 with this text. Only the preceding read
// then guards a first apply.
func rejectsVersion(err error) bool {
	return err != nil && strings.Contains(err.Error(), "resourceVersion should not be set on objects to be created")
}

// applyIntent applies the whole intent of a step. It forces, except for a create, which must
// fail if the object exists. It returns the answer, and whether the request carried
// absentVersion in case of a create.
func (a *Applier) applyIntent(ctx context.Context, step *Step, options ...client.PatchOption) (applied client.Object, guarded bool, err error) {
	intent := step.Intent.DeepCopy()
	options = append(options, client.FieldOwner(v1alpha1.FieldManager))
	guarded = step.Action == Create && !step.unguarded
	switch {
	case guarded:
		intent.SetResourceVersion(absentVersion)
	case step.Action != Create:
		// The UID refuses a successor of the same name.
		intent.SetUID(step.Live.GetUID())
		if step.Action == TakeOver {
			// The object must not have changed since it was found fit.
			intent.SetResourceVersion(step.Live.GetResourceVersion())
		}
		options = append(options, client.ForceOwnership)
	}
	body, err := intent.MarshalJSON()
	if err != nil {
		return nil, guarded, err
	}
	applied, err = a.patch(ctx, step.Key(), client.RawPatch(types.ApplyPatchType, body), options...)
	if guarded && rejectsVersion(err) {
		unguarded := *step
		unguarded.unguarded = true
		return a.applyIntent(ctx, &unguarded, options...)
	}
	return applied, guarded, err
}

// applyFailure classifies the error of an apply. For a create, it names the object that
// appeared at the same time.
func applyFailure(err error, step *Step) *failure.Failure {
	f := failure.Of(err, "apply", step.Key().String())
	if apierrors.IsConflict(err) && f.Class == v1alpha1.ClassTransient && step.Action == Create {
		// The hub itself may have created it, if an answer was lost.
		f.Message = fmt.Sprintf("%s was created in the member at the same time; the next reconcile reads it", step.Key())
	}
	if f.Reason == v1alpha1.ReasonObjectOfAnother && step.Action == Create {
		f.Message = fmt.Sprintf("metadata.name: %q: %s was created in the member at the same time by another client", step.Intent.GetName(), step.Key())
	}
	return f
}
