// Package lab creates and removes labs: a hub and members on this machine, and the hub
// manager.
//
// [Up] and [Down] are idempotent: after an interruption, the next call completes the work.
// Up changes nothing in a complete lab. Down leaves neither a process nor a file. All files
// of a lab are in its directory below [Root], with a lock that excludes other commands.
//
// Inputs are a [Provider], which runs the clusters, and the number of members. Outputs are
// the directory of the lab, with lab.json and a merged kubeconfig, and progress.
//
// It never writes to ~/.kube/config. It ends only processes that were started for the lab.
package lab
