package cli

import (
	"context"
	"errors"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// cacheUpdate is a new version of a CacheCluster, or its last one before deletion.
type cacheUpdate struct {
	cache   *v1alpha1.CacheCluster
	deleted bool
}

// watch delivers every change of the CacheClusters in a namespace ("" means all)
// until ctx ends, the present state first. After a lost connection it reconnects,
// and delivers the changes in between as one. lost has a buffer of one error: a
// second loss is dropped until the first is read.
func (h *hub) watch(ctx context.Context, namespace string) (updates <-chan cacheUpdate, lost <-chan error, err error) {
	losses := make(chan error, 1)
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			l := &v1alpha1.CacheClusterList{}
			return l, h.List(ctx, l, &client.ListOptions{Namespace: namespace, Raw: &o})
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return h.Watch(ctx, &v1alpha1.CacheClusterList{}, &client.ListOptions{Namespace: namespace, Raw: &o})
		},
	}
	informer := cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(lw, h.WithWatch), &v1alpha1.CacheCluster{}, 0, nil)
	err = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		// The API server ends every watch after some time.
		expected := errors.Is(err, io.EOF) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
		if expected || ctx.Err() != nil {
			return
		}
		select {
		case losses <- err:
		default:
		}
	})
	if err != nil {
		return nil, nil, err
	}
	out := make(chan cacheUpdate)
	deliver := func(obj any, deleted bool) {
		if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = tombstone.Obj
		}
		cc, ok := obj.(*v1alpha1.CacheCluster)
		if !ok {
			return
		}
		select {
		case out <- cacheUpdate{cc, deleted}:
		case <-ctx.Done():
		}
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { deliver(obj, false) },
		UpdateFunc: func(_, obj any) { deliver(obj, false) },
		DeleteFunc: func(obj any) { deliver(obj, true) },
	})
	if err != nil {
		return nil, nil, err
	}
	go informer.RunWithContext(ctx)
	return out, losses, nil
}

func (a *app) noteConnectionLost(err error) {
	a.note("connection to the hub lost, reconnecting: %v", err)
}

// isUnknownKind reports whether the cluster does not have the requested kind.
func isUnknownKind(err error) bool {
	return meta.IsNoMatchError(err)
}
