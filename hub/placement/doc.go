// Package placement decides which members run a cache. It is pure: the same placement and
// members result in the same Decision, in any order of the members.
//
// It chooses the members in spec.placement.clusters, in that order, and then those that
// clusterSelector selects, by name. Missing lists the named members that do not exist.
// Problem is set for an invalid placement: it chooses no member, and the caller must
// change nothing.
package placement
