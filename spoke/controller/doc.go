// Package controller reconciles one MemberCache in one member.
//
// # Stages
//
// Reconcile is a list of stages, one file each:
//
//   - read: take a snapshot of hub and member
//   - decide: render and plan
//   - preflight: verify before a deletion
//   - apply: write to the member
//   - observe: read the pods
//   - summarize: compute the status
//   - publish: write the status to the hub
//
// Each stage takes a value and returns the next. A stage that needs another reconcile adds its time to
// result.requeue; the shortest counts. Deletion replaces the stages from decide to observe.
//
// # State
//
// All that is remembered between two reconciles is in one cacheState per MemberCache, and in
// the caches of recent writes. None of it must be kept: after a restart the first reconcile
// of each MemberCache reads everything from the hub's and the member's API servers, and
// writes nothing if nothing changed.
//
// Queues, workers and watches are in spoke/memberqueue.
package controller
