// Package memberqueue runs a queue with workers of its own for each member, so that a
// member that hangs delays no other member.
//
// # Events
//
// MemberCaches come from the hub. Children, pods and autoscalers come from the member's
// cluster. A queue exists while MemberCaches name the member or the member is engaged.
//
// # Connection
//
// A member is connected while it is engaged. It is unreachable if its ClusterProfile does
// not exist or has a Reachable condition that is False. Between the two, for example after
// a start of the manager, the connection is unknown, and no MemberCache is queued: each
// change of the connection to a known one queues all MemberCaches of the member once.
//
// The package decides when to reconcile. What a reconcile does is up to the Member, which
// spoke/controller implements.
package memberqueue
