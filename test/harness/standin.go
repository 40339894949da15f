package harness

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// StandIn does a member's controllers' work, as soon as the member's API server
// reports it. What fails is retried.
type StandIn struct {
	// Delay is how long pods take to start.
	Delay time.Duration

	server *Server
	queue  workqueue.TypedDelayingInterface[work]

	mu   sync.Mutex
	held map[string]bool
}

// work is an object to look at, or to be called ready.
type work struct {
	kind  string
	key   client.ObjectKey
	ready bool
}

// again is how long after a failure an object is looked at once more; a delayed one too.
const again = 100 * time.Millisecond

// NewStandIn for a member.
func NewStandIn(s *Server) *StandIn {
	return &StandIn{server: s, held: map[string]bool{}, queue: workqueue.NewTypedDelayingQueue[work]()}
}

// Hold keeps StatefulSets of a namespace from becoming ready until Release.
func (i *StandIn) Hold(namespace string) { i.hold(namespace, true) }

// Release lets them become ready.
func (i *StandIn) Release(namespace string) { i.hold(namespace, false) }

func (i *StandIn) hold(namespace string, held bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.held[namespace] = held
}

func (i *StandIn) holds(namespace string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.held[namespace]
}

// Run works until ctx is done. It fails if it cannot watch the member.
func (i *StandIn) Run(ctx context.Context) error {
	defer i.queue.ShutDown()
	informers, err := cache.New(i.server.Config, cache.Options{Scheme: Scheme()})
	if err != nil {
		return fmt.Errorf("a member's Stand-in: %w", err)
	}
	for kind, object := range map[string]client.Object{
		"StatefulSet": &appsv1.StatefulSet{}, "Service": &corev1.Service{},
		"PodDisruptionBudget": &policyv1.PodDisruptionBudget{}, "Secret": &corev1.Secret{},
	} {
		informer, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("a member's Stand-in: watch %T: %w", object, err)
		}
		look := func(object any) {
			if o, ok := object.(client.Object); ok {
				i.queue.Add(work{kind: kind, key: client.ObjectKeyFromObject(o)})
			}
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, o any) { look(o) }}); err != nil {
			return fmt.Errorf("a member's Stand-in: watch %T: %w", object, err)
		}
	}
	context.AfterFunc(ctx, i.queue.ShutDown)
	var working sync.WaitGroup
	for range 2 {
		working.Go(func() {
			for {
				w, shutdown := i.queue.Get()
				if shutdown {
					return
				}
				if i.do(ctx, informers, w) != nil {
					i.queue.AddAfter(w, again)
				}
				i.queue.Done(w)
			}
		})
	}
	err = informers.Start(ctx)
	i.queue.ShutDown()
	working.Wait()
	return err
}

func (i *StandIn) do(ctx context.Context, informers client.Reader, w work) error {
	var object client.Object
	switch w.kind {
	case "StatefulSet":
		object = &appsv1.StatefulSet{}
	case "Service":
		object = &corev1.Service{}
	case "PodDisruptionBudget":
		object = &policyv1.PodDisruptionBudget{}
	default:
		object = &corev1.Secret{}
	}
	if err := informers.Get(ctx, w.key, object); err != nil {
		return client.IgnoreNotFound(err)
	}
	if object.GetDeletionTimestamp() != nil {
		return i.collect(ctx, object)
	}
	switch o := object.(type) {
	case *appsv1.StatefulSet:
		return i.ready(ctx, w, o)
	case *corev1.Secret:
		return i.issue(ctx, o)
	}
	return nil
}

// ready is the StatefulSet controller: all pods that are asked for are there.
func (i *StandIn) ready(ctx context.Context, w work, set *appsv1.StatefulSet) error {
	wanted := ptr.Deref(set.Spec.Replicas, 1)
	if set.Status.ObservedGeneration == set.Generation && set.Status.AvailableReplicas == wanted {
		return nil
	}
	switch {
	case i.holds(set.Namespace):
		i.queue.AddAfter(w, again)
		return nil
	case i.Delay > 0 && !w.ready:
		w.ready = true
		i.queue.AddAfter(w, i.Delay)
		return nil
	}
	set.Status = appsv1.StatefulSetStatus{ObservedGeneration: set.Generation, Replicas: wanted, ReadyReplicas: wanted,
		CurrentReplicas: wanted, UpdatedReplicas: wanted, AvailableReplicas: wanted}
	return client.IgnoreNotFound(i.server.Client.Status().Update(ctx, set))
}

// collect is the garbage collector: whatever is deleted in the foreground, or with
// its dependents orphaned, has none here and may go.
func (i *StandIn) collect(ctx context.Context, object client.Object) error {
	left := slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(f string) bool {
		return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
	})
	if len(left) == len(object.GetFinalizers()) {
		return nil
	}
	object.SetFinalizers(left)
	return client.IgnoreNotFound(i.server.Client.Update(ctx, object))
}

// issue is the token controller.
func (i *StandIn) issue(ctx context.Context, secret *corev1.Secret) error {
	if secret.Type != corev1.SecretTypeServiceAccountToken || len(secret.Data[corev1.ServiceAccountTokenKey]) > 0 {
		return nil
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Annotations[corev1.ServiceAccountNameKey]}}
	request := &authenticationv1.TokenRequest{}
	if err := i.server.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return err
	}
	secret.Data = map[string][]byte{corev1.ServiceAccountTokenKey: []byte(request.Status.Token)}
	return i.server.Client.Update(ctx, secret)
}
