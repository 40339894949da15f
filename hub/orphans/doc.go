// Package orphans finds orphaned children: labelled objects in a member that no
// MemberCache of this hub owns. They exist after a member was abandoned while it was
// unreachable, and returned.
//
// # Scans
//
// The finder scans a member when it is engaged, when a MemberCache is deleted, and every
// ten minutes. While orphans are known, a deleted child or a changed owner also starts a scan.
// A scan compares two caches and sends no request. Candidates are then checked against
// both API servers.
//
// # Result
//
// The result is the condition cache.reconcile-lab.io/Leftovers of the ClusterProfile,
// applied with a field manager of its own. It is present only while it is True.
//
// The finder deletes nothing: children of another hub in the same member carry the same
// label, and nothing on them names the hub.
package orphans
