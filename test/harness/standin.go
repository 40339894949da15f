package harness

import (
	"context"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// StandIn does a member's controllers' work. Errors are tried again with the next
// round.
type StandIn struct {
	server *Server

	mu   sync.Mutex
	held map[string]bool
}

// NewStandIn for a member.
func NewStandIn(s *Server) *StandIn { return &StandIn{server: s, held: map[string]bool{}} }

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

// Run works until ctx is done.
func (i *StandIn) Run(ctx context.Context) {
	_ = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		i.ready(ctx)
		i.collect(ctx)
		i.issue(ctx)
		return false, nil
	})
}

// ready is the StatefulSet controller: all pods that are asked for are there.
func (i *StandIn) ready(ctx context.Context) {
	var sets appsv1.StatefulSetList
	if i.server.Client.List(ctx, &sets) != nil {
		return
	}
	for n := range sets.Items {
		set := &sets.Items[n]
		wanted := ptr.Deref(set.Spec.Replicas, 1)
		if i.holds(set.Namespace) || set.DeletionTimestamp != nil ||
			set.Status.ObservedGeneration == set.Generation && set.Status.AvailableReplicas == wanted {
			continue
		}
		set.Status = appsv1.StatefulSetStatus{ObservedGeneration: set.Generation, Replicas: wanted, ReadyReplicas: wanted,
			CurrentReplicas: wanted, UpdatedReplicas: wanted, AvailableReplicas: wanted}
		_ = i.server.Client.Status().Update(ctx, set)
	}
}

// collect is the garbage collector: whatever is deleted in the foreground has no
// dependents here and may go.
func (i *StandIn) collect(ctx context.Context) {
	for _, list := range []client.ObjectList{&appsv1.StatefulSetList{}, &corev1.ServiceList{}, &policyv1.PodDisruptionBudgetList{}} {
		if i.server.Client.List(ctx, list) != nil {
			continue
		}
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			object, ok := item.(client.Object)
			if !ok || object.GetDeletionTimestamp() == nil {
				return nil
			}
			left := slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(f string) bool { return f == metav1.FinalizerDeleteDependents })
			if len(left) < len(object.GetFinalizers()) {
				object.SetFinalizers(left)
				_ = i.server.Client.Update(ctx, object)
			}
			return nil
		})
	}
}

// issue is the token controller.
func (i *StandIn) issue(ctx context.Context) {
	var secrets corev1.SecretList
	if i.server.Client.List(ctx, &secrets) != nil {
		return
	}
	for n := range secrets.Items {
		secret := &secrets.Items[n]
		if secret.Type != corev1.SecretTypeServiceAccountToken || len(secret.Data[corev1.ServiceAccountTokenKey]) > 0 {
			continue
		}
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Annotations[corev1.ServiceAccountNameKey]}}
		request := &authenticationv1.TokenRequest{}
		if i.server.Client.SubResource("token").Create(ctx, account, request) != nil {
			continue
		}
		secret.Data = map[string][]byte{corev1.ServiceAccountTokenKey: []byte(request.Status.Token)}
		_ = i.server.Client.Update(ctx, secret)
	}
}
