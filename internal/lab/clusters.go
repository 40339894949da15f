package lab

import (
	"cmp"
	"context"
	"slices"
)

// Cluster is one cluster of a lab. Its JSON form is the output of
// `reconcile-lab clusters -o json`.
type Cluster struct {
	Name       string `json:"name"`
	Role       Role   `json:"role"`
	Provider   string `json:"provider"`
	Kubeconfig string `json:"kubeconfig"`
	Context    string `json:"context"`
	Ready      bool   `json:"ready"`
}

// Clusters returns the clusters of the lab, the hub first. They include clusters that an
// interrupted Up has not created yet.
func Clusters(ctx context.Context, l *Lab, p Provider) ([]Cluster, error) {
	state, err := l.Load()
	if err != nil {
		return nil, err
	}
	names, err := p.List(ctx)
	if err != nil {
		return nil, err
	}
	names = append(names, state.Members...)
	slices.SortFunc(names, byNumber)
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == Hub })
	names = append([]string{Hub}, names...)

	found := make([]Cluster, len(names))
	err = parallel(ctx, names, func(ctx context.Context, name string) error {
		found[slices.Index(names, name)] = Cluster{
			Name: name, Role: roleOf(name), Provider: p.Name(),
			Kubeconfig: l.Kubeconfig(), Context: name, Ready: p.Ready(ctx, name),
		}
		return nil
	})
	return found, err
}

// byNumber sorts member-10 after member-9.
func byNumber(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
