// Package inventory turns the hub's ClusterProfiles and their credentials into
// live member clusters. It is the multicluster provider of the hub manager.
//
// Each member has a goroutine and a transport of its own, and nothing of one
// member derives from another's: a member that hangs costs the others nothing.
// A member is engaged only after a probe succeeded and its cache is filled, and
// disengaged when two probes in a row fail; its context ends then and every
// connection to it is closed. So is one that no longer lets the hub list what it
// watches: an open watch outlives that right, and its cache then tells of the past.
// When it answers again it is engaged anew, with a
// fresh cache, so that no watch waits out a back-off.
//
// What is known of the connection is written to the ClusterProfile's condition
// cache.reconcile-lab.io/Reachable, at transitions only, with reason and message.
//
// A changed credential is tried first and takes the place of the old one only if
// it works. Credentials that would run a program or read a file of the hub are
// refused: who may write a Secret shall not thereby run code in the hub.
package inventory
