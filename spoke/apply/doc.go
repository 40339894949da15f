// Package apply converges the children of one MemberCache in one member.
//
// # Stages
//
//	Decide  (pure)         desired, live, owner, memory   -> Plan
//	Resolve (reads)        Plan                           -> Plan
//	Execute (writes)       Plan                           -> []Result
//	NewReport (pure)       []Result                       -> Report
//
// A Plan is a value. No stage changes the plan that it receives, so that a plan can be
// printed, compared, and shown before it is executed.
//
// Decide compares each child with its live object and chooses an Action. A child of this
// owner that is no longer desired is pruned.
//
// Resolve checks the plan in the member. It reads from the API server whatever the informer
// cache calls absent, because a stale cache must not cause a create. It sends dry runs, and
// it asks the conflict breaker whether a correction must wait.
//
// Execute writes, one child after the other. The failure of one child does not stop the
// next, unless the member is unreachable or asks for a pause. Executing an unchanged plan
// writes nothing.
//
// # Promises
//
//   - A member that holds no child of a cache yet gets all children or none. Every child but
//     the StatefulSet passes a dry run, then the StatefulSet is applied, then the others in
//     parallel.
//   - A first apply creates the object or fails, see absentVersion. Every other write names
//     the UID of the live object, so that it never changes a successor of the same name.
//   - A child is claimed from Resolve to the end of Execute. Two caches of one hub that
//     desire the same child run one after the other.
//   - An immutable field keeps its live value, and all other fields are applied. With
//     consent, the child is recreated, see recreate.go.
//   - An existing object is taken over as the policy allows, and never while it carries the
//     mark of another owner.
//   - Pruning comes last, by UID, and only after every child was applied.
//
// # Inventory
//
// A child carries its labels from its first write on, and the status of the MemberCache
// lists it. A child can be found at any time, so nothing must be saved before a write.
//
// Remove deletes the children, the StatefulSet and its pods first. Release leaves them
// running without the hub's marks.
package apply
