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

// sighting is one CacheCluster as the hub shows it now.
type sighting struct {
	cache   *v1alpha1.CacheCluster
	deleted bool
}

// watch delivers every change of the CacheClusters in a namespace ("" is all),
// the present state first, until ctx ends. A lost connection is told, unless an
// earlier loss was not heard yet, and made again; what happened in between arrives as
// one change.
func (h *hub) watch(ctx context.Context, namespace string) (sightings <-chan sighting, lost <-chan error, err error) {
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
		// A watch ends now and then by the API server's choice.
		ordinary := errors.Is(err, io.EOF) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
		if ordinary || ctx.Err() != nil {
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
	out := make(chan sighting)
	deliver := func(obj any, deleted bool) {
		if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = gone.Obj
		}
		cc, ok := obj.(*v1alpha1.CacheCluster)
		if !ok {
			return
		}
		select {
		case out <- sighting{cc, deleted}:
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

// isNoKind says that the cluster does not know the kind that was asked for.
func isNoKind(err error) bool {
	return meta.IsNoMatchError(err)
}
