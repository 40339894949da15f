// Package status summarizes what the members report into the status of a CacheCluster.
//
// It is pure: the same input results in the same status, in any order of the members.
// A status in which nothing changed equals the old one.
//
// # Rules
//
//   - A member counts as ready only while its report is about the current revision and
//     generation and its state is Ready.
//   - An unreachable member makes Ready Unknown. A member that is known not to be ready
//     makes it False, which has precedence.
//   - The status contains nothing that no report contains.
package status
