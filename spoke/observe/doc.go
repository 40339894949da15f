// Package observe reads the state of a cache in one member out of its live
// children: how many pods are ready, whether a rollout is under way, and what
// keeps pods from starting. It is pure, and it never calls ready what the
// StatefulSet controller has not yet seen.
package observe
