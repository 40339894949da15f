package lab

import "context"

// Role is the role of a cluster in a lab.
type Role string

const (
	// RoleHub is the role of the one cluster that contains CacheClusters.
	RoleHub Role = "hub"
	// RoleMember is the role of a cluster that runs caches.
	RoleMember Role = "member"
)

// roleOf returns the role of the cluster with that name.
func roleOf(cluster string) Role {
	if cluster == Hub {
		return RoleHub
	}
	return RoleMember
}

// Report receives the current step, a short phrase for the user such as "building
// kube-apiserver". It can be called from several goroutines.
type Report func(step string)

// Provider runs clusters, as processes (embedded) or containers (kind). Cluster names are
// "hub", "member-1" and so on; a provider may add a prefix. Every method is idempotent:
// after a failure or an interruption, the next call completes the work.
type Provider interface {
	// Name returns "embedded" or "kind".
	Name() string

	// Prepare provides what all clusters need: binaries, or Docker and a node image. Its
	// errors name the remedy.
	Prepare(ctx context.Context, report Report) error

	// Create creates or completes the cluster. It returns when the API server answers and
	// the nodes are ready. It changes nothing in a ready cluster.
	Create(ctx context.Context, cluster string, role Role, report Report) error

	// Ready reports whether the API server answers and the nodes are ready.
	Ready(ctx context.Context, cluster string) bool

	// Kubeconfig returns a kubeconfig with admin access from this machine.
	Kubeconfig(ctx context.Context, cluster string) ([]byte, error)

	// PodKubeconfig returns a kubeconfig with admin access from the hub manager. With kind
	// it contains the address of the node instead of the published port.
	PodKubeconfig(ctx context.Context, cluster string) ([]byte, error)

	// List returns the names of the existing clusters, sorted. They include incomplete ones.
	List(ctx context.Context) ([]string, error)

	// Delete removes the cluster and everything that Create created for it. A cluster that
	// does not exist is not an error.
	Delete(ctx context.Context, cluster string) error
}

// Footprint is the memory and disk space that one idle cluster uses, in bytes.
type Footprint struct {
	Memory, Disk int64
}

// Sized is a Provider that knows its footprint. Up then refuses a lab that exceeds the free
// memory or disk space.
type Sized interface {
	// Footprint returns the resources that one idle cluster uses.
	Footprint() Footprint
}
