// Package harness runs real API servers for tests: a hub and members, each an etcd
// and a kube-apiserver of the project's cached binaries, without any controller.
//
// What controllers would do, and the project rests on, a Stand-in does in the
// members: it calls StatefulSets ready, lets objects go that wait for the garbage
// collector, and fills the Secrets that ask for a token.
package harness
