// Package placement decides which members run a cache. It is pure: the same
// placement over the same members gives the same Decision, whatever their order.
//
// Chosen are the members that spec.placement.clusters names, in its order, and
// then those that its clusterSelector selects, by name. Everything else is
// answered too: Missing are named members that do not exist, and a Problem says
// what is wrong with the placement itself. A placement with a problem chooses
// nobody and the caller must leave things as they are.
package placement
