package lab

import "context"

// Role of a cluster in a lab.
type Role string

const (
	// RoleHub is the one cluster that holds CacheClusters.
	RoleHub Role = "hub"
	// RoleMember is a cluster that runs caches.
	RoleMember Role = "member"
)

// Report tells the user what a step is waiting for, in a few words, such as
// "building kube-apiserver". It may be called from several goroutines.
type Report func(step string)

// Provider makes clusters of one kind: embedded processes or kind containers.
// Cluster names are the lab's own ("hub", "member-1"); a provider adds the prefix
// that it needs. Every method may be called again after any failure or
// interruption and then completes or repairs what it finds.
type Provider interface {
	// Name is "embedded" or "kind".
	Name() string

	// Prepare gets what all clusters need, once: binaries, or Docker and a node
	// image. Its errors name the remedy.
	Prepare(ctx context.Context, report Report) error

	// Create makes the cluster, or completes a half-made one, and returns when its
	// API server answers and its nodes are ready. It does nothing to a ready one.
	Create(ctx context.Context, cluster string, role Role, report Report) error

	// Ready says whether the cluster's API server answers and its nodes are ready.
	Ready(ctx context.Context, cluster string) bool

	// Kubeconfig gives admin access from this machine.
	Kubeconfig(ctx context.Context, cluster string) ([]byte, error)

	// PodKubeconfig gives the same access from a pod or process of the hub: with
	// kind it names the node's own address instead of the published port.
	PodKubeconfig(ctx context.Context, cluster string) ([]byte, error)

	// List names the clusters that exist, half-made ones included, sorted.
	List(ctx context.Context) ([]string, error)

	// Delete removes the cluster and all that Create made for it. It is no error if
	// there is none.
	Delete(ctx context.Context, cluster string) error
}

// Footprint is what one idle cluster takes, in bytes.
type Footprint struct {
	Memory, Disk int64
}

// Sized is a Provider that knows its footprint, so that a machine which is too
// small is told from a lab which is broken.
type Sized interface {
	Footprint() Footprint
}
