// Package orphans finds children in a member that nobody looks after: a member
// that was let go while it was away, and returns, still holds what was left behind.
//
// It looks when a member is engaged, when a MemberCache of it goes, when a child
// goes while some are known, and every ten minutes. A look compares two caches and
// costs no request; what it suspects is asked for again, of both API servers, before
// it is told. The answer is the condition cache.reconcile-lab.io/Leftovers of the
// ClusterProfile, with a field manager of its own; it is there only while it is true.
//
// Nothing is removed: children of another hub in the same member carry the same
// label, and nothing on them says whose they are.
package orphans
