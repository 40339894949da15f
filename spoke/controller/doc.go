// Package controller runs the spoke's stages for one (member, MemberCache):
// Read, Plan, Apply, Observe, Summarize, Write.
//
// Every member has a queue and workers of its own, so that a member that hangs
// holds up nobody else. They live as long as MemberCaches name the member or the
// member is engaged. The state of the connection comes from two places: Engage
// gives the cluster while it answers, and the Reachable condition of the member's
// ClusterProfile says since when and why it does not.
//
// Nothing that matters is only in memory: after a restart the first reconcile of
// each MemberCache finds everything in the hub's and the member's API servers,
// and writes nothing if nothing changed.
package controller
