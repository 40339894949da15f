package lab

import (
	"context"
	"slices"
)

// Cluster is one cluster of a lab, as `reconcile-lab clusters -o json` prints it.
type Cluster struct {
	Name       string `json:"name"`
	Role       Role   `json:"role"`
	Provider   string `json:"provider"`
	Kubeconfig string `json:"kubeconfig"`
	Context    string `json:"context"`
	Ready      bool   `json:"ready"`
}

// Clusters returns the lab's clusters, the hub first: those that exist, and those
// that an interrupted Up was to make.
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
		role := RoleMember
		if name == Hub {
			role = RoleHub
		}
		found[slices.Index(names, name)] = Cluster{
			Name: name, Role: role, Provider: p.Name(),
			Kubeconfig: l.Kubeconfig(), Context: name, Ready: p.Ready(ctx, name),
		}
		return nil
	})
	return found, err
}

// byNumber puts member-10 after member-9.
func byNumber(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
