// Package controller reconciles CacheClusters on the hub.
//
// # Stages
//
// A reconcile runs read, decide, preflight, apply, summarize and publish, in this order:
//
//   - read takes a snapshot of the CacheCluster, its MemberCaches and the members
//     from the cache of the hub;
//   - decide computes a plan from the snapshot. It is pure;
//   - preflight compares the plan with the API server before anything is changed or
//     deleted, because each kind has a cache of its own and one may be stale;
//   - apply creates, updates and deletes MemberCaches, several at a time. The failure
//     of one member does not stop the others;
//   - summarize (package hub/status) computes the status from what the members report;
//   - publish writes the status, unless it carries nothing but progress and the last
//     write was a moment ago.
//
// # State
//
// What the controller remembers of a CacheCluster between two reconciles is one
// record (cacheState). All of it may be lost. DebugHandler prints the records.
//
// The controller sends requests to the API server of the hub only. The spoke
// controller works in the members and reports in the status of a MemberCache.
package controller
