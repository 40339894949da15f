// Package lab makes and removes labs: a hub and its members on this machine, with
// the hub manager, ready to apply CacheClusters to.
//
// It promises that [Up] and [Down] may be repeated after any interruption and then
// finish the job, that Up changes nothing on a lab that is as asked for, and that
// Down leaves neither process nor file. Everything of a lab lies in its folder
// below [Root]; a lock in it keeps two commands apart.
//
// Input: a [Provider], which makes the clusters, and the wanted number of members.
// Output: the lab's folder, with lab.json and a merged kubeconfig, and progress.
//
// It never writes to ~/.kube/config and ends only processes that its own command
// lines started.
package lab
