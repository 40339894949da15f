// Package inventory connects to the member clusters that the ClusterProfiles of the hub
// name. It is the multicluster provider of the hub manager.
//
// # Members
//
// Each member has a goroutine and a transport of its own, and shares nothing with
// another member: a member that hangs does not delay the others. A member is engaged
// after a probe succeeded and its cache is synced. It is disengaged when two probes in a
// row fail: its context ends and every connection to it is closed. It is also
// disengaged when the hub may no longer list a watched kind: an open watch outlives
// that right, and its cache is then stale. When the member answers again, it is engaged
// with a new cache, so that no watch waits for its backoff.
//
// # Conditions
//
// The state of the connection is the condition cache.reconcile-lab.io/Reachable of the
// ClusterProfile, and the end of the credential is CredentialExpiring. They are written
// on transitions only.
//
// # Credentials
//
// A new credential is tried first, and replaces the old one only if it works. A
// credential that runs a program or reads a file of the hub is refused: a client that
// may write a Secret must not thereby run code in the hub.
package inventory
