//go:build faults

package faults

import (
	"context"
	"fmt"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// bystander is a settled CacheCluster that nothing happens to while faults happen to
// all the others and managers come and go.
type bystander struct {
	*run
	versions map[string]string
}

func (f *fleet) bystander(ctx context.Context) (*bystander, error) {
	s := &scenario{name: "bystander", setup: placed(one, two, three)}
	r, err := f.prepare(ctx, s, &knowledge{})
	if err != nil {
		return nil, err
	}
	// It outlives the limit of a run.
	r.cancel()
	r.ctx, r.cancel = context.WithCancel(ctx)
	b := &bystander{run: r}
	b.versions, err = b.read()
	return b, err
}

// untouched returns an error that names what was written to the bystander.
func (b *bystander) untouched() error {
	now, err := b.read()
	if err != nil {
		return err
	}
	if diff := cmp.Diff(b.versions, now); diff != "" {
		return fmt.Errorf("a CacheCluster that nothing happened to was written (-before +after):\n%s", diff)
	}
	return nil
}

func (b *bystander) read() (map[string]string, error) {
	found := map[string]string{}
	for _, server := range []string{hub, one, two, three} {
		kinds := childKinds
		if server == hub {
			kinds = hubKinds
		}
		for _, kind := range kinds {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind)
			if err := b.server(server).List(b.ctx, list, client.InNamespace(b.namespace)); err != nil {
				return nil, err
			}
			for i := range list.Items {
				found[fmt.Sprintf("%s %s/%s", server, kind.Kind, list.Items[i].GetName())] = list.Items[i].GetResourceVersion()
			}
		}
	}
	return found, nil
}
