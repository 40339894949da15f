package controller

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/events"
	"github.com/reconcile-lab/reconcile-lab/internal/expectations"
	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
	"github.com/reconcile-lab/reconcile-lab/spoke/memberqueue"
)

var memberScheme = memberqueue.Scheme()

// member reconciles the MemberCaches of one member.
type member struct {
	name       string
	hub        cluster.Cluster
	typer      drift.Typer
	clock      clock.PassiveClock
	events     *events.Sink
	connection func(context.Context) (memberqueue.Connection, error)
	// hubWrites are writes to the hub that its cache may not show yet, and writeCache those
	// to the member.
	hubWrites  *expectations.Writes
	writeCache *apply.WriteCache
	retries    *retries
	states     states
}

var _ memberqueue.Member = &member{}

func newMember(c *Controller, name string, connection func(context.Context) (memberqueue.Connection, error)) *member {
	return &member{
		name: name, hub: c.options.Hub, typer: c.options.Typer, clock: c.options.Clock, events: c.options.Events,
		connection: connection, hubWrites: &c.hubWrites, writeCache: apply.NewWriteCache(), retries: newRetries(),
	}
}

// Trigger implements memberqueue.Member.
func (m *member) Trigger(key types.NamespacedName, e memberqueue.Event) bool {
	now := m.clock.Now()
	if !m.needsReconcile(key, e, now) {
		return false
	}
	m.states.record(key, e.Type, now)
	return true
}

// Forget implements memberqueue.Member.
func (m *member) Forget(mc *v1alpha1.MemberCache) {
	m.states.forget(client.ObjectKeyFromObject(mc))
	m.hubWrites.Forget(mc.UID)
	m.events.Forget(mc.UID)
}

// Connected implements memberqueue.Member.
func (m *member) Connected() { m.writeCache.Reset() }

// ChildDeleted implements memberqueue.Member.
func (m *member) ChildDeleted(child client.Object) {
	if key, ok := keyOf(child); ok {
		m.writeCache.Forget(key, child.GetNamespace(), child.GetUID())
	}
}

// OldestEvent implements memberqueue.Member.
func (m *member) OldestEvent() time.Duration { return m.states.oldest(m.clock.Now()) }

// keyOf returns the key of a child.
func keyOf(child client.Object) (apply.Key, bool) {
	gvk, err := apiutil.GVKForObject(child, memberScheme)
	return apply.Key{Kind: gvk, Name: child.GetName()}, err == nil
}
