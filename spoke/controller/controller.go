package controller

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/reconcile-lab/reconcile-lab/internal/events"
	"github.com/reconcile-lab/reconcile-lab/internal/expectations"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
	"github.com/reconcile-lab/reconcile-lab/spoke/memberqueue"
)

// Options of a Controller.
type Options struct {
	// Hub holds the MemberCaches and ClusterProfiles.
	Hub cluster.Cluster
	// InventoryNamespace is the namespace of the ClusterProfiles.
	InventoryNamespace string
	// Typer knows the schema of the children.
	Typer drift.Typer
	// Workers of each member; 16 if 0.
	Workers int
	// Clock; the real one if nil.
	Clock clock.PassiveClock
	// Events records transitions of MemberCaches; none if nil.
	Events *events.Sink
}

// Controller reconciles the MemberCaches of all members.
type Controller struct {
	options Options
	queues  *memberqueue.Queues
	// hubWrites are writes to the hub that its cache may not show yet.
	hubWrites expectations.Writes
}

var _ mcmanager.Runnable = &Controller{}

// New returns a Controller for a multicluster manager.
func New(o Options) (*Controller, error) {
	if o.Hub == nil || o.Typer == nil {
		return nil, errors.New("spoke controller: Hub and Typer are required")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Controller{options: o}
	queues, err := memberqueue.New(memberqueue.Options{
		Hub: o.Hub, InventoryNamespace: o.InventoryNamespace, Workers: o.Workers, Clock: o.Clock,
		NewMember: func(q *memberqueue.Queue) memberqueue.Member { return newMember(c, q.Name(), q.Connection) },
		Stopped:   forgetMember,
	})
	if err != nil {
		return nil, fmt.Errorf("spoke controller: %w", err)
	}
	c.queues = queues
	return c, nil
}

// NeedLeaderElection reports that only the leader writes to members.
func (c *Controller) NeedLeaderElection() bool { return true }

// Start returns when ctx is done and all reconciles have ended.
func (c *Controller) Start(ctx context.Context) error { return c.queues.Start(ctx) }

// Engage connects a member's cluster until ctx ends. Its cache must be synced and hold
// memberqueue.Kinds with the indexes of memberqueue.AddIndexes.
func (c *Controller) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	return c.queues.Engage(ctx, name, cl)
}
