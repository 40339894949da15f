// Package harness runs real API servers for tests: a hub and members, each an etcd
// and a kube-apiserver of the project's cached binaries, without any controller.
//
// A Stand-in replaces the controllers of a member that the project needs: it reports
// StatefulSets as ready, deletes objects in place of the garbage collector, and fills the
// Secrets that request a token.
package harness
