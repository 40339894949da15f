// Package apply makes one member hold the children of one MemberCache.
//
// The protocol:
//
//  1. Plan is pure. It holds each child's intent against the live object and
//     decides: keep, create, update (our wish changed), repair (it drifted), leave
//     (it drifted, and only that is reported), recreate, take over, wait (it is being
//     deleted) or refuse (it belongs to somebody else). Children
//     that are not wanted any more are to be pruned.
//  2. Apply carries a plan out with server-side apply, child after child. One child's
//     failure does not stop the next, unless the member does not answer or asks for
//     time. Applying again what is there makes no write.
//     A member that holds nothing of a cache yet takes all of it or nothing: the
//     children are applied as a dry run, but for the StatefulSet, which is then
//     applied in earnest, and after it the others, all at once.
//  3. What cannot change in place keeps its live value, and the rest is applied.
//     With consent, the child is recreated, see Applier.recreate.
//  4. What was there before is taken over as the policy says, and never what carries
//     another owner's mark.
//  5. Pruning comes last and only when every child was applied, by UID, so that a
//     namesake that came in the meantime is never touched.
//
// A child is found again by its labels, which it has from its first moment on,
// and by the inventory in the MemberCache's status. There is no time at which a
// child exists and cannot be found, so nothing has to be saved before applying.
//
// Nothing is created because a cache lacks it: whatever the cache calls absent is
// looked up in the API server first, and the first apply of an object creates it or
// fails, see absentVersion. Whoever works on a child claims it meanwhile, so that two
// caches of one hub that want the same one come one after the other.
//
// At the end children are deleted, the StatefulSet and its pods first, or released:
// left running without our marks.
package apply
