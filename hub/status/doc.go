// Package status sums the members' reports up into the status of a CacheCluster.
// It is pure, and the order of its inputs does not show in its output.
//
// A member counts as ready only while its report is about the revision that it is
// to run and says so; a member that does not answer makes Ready Unknown, unless
// another one is known not to be ready, which makes it False. Nothing is claimed
// that no report holds.
package status
