// Package kind makes lab clusters out of containers, with kind's library: one node
// each, everything in it real.
//
// Promise: as lab.Provider says. A cluster counts as whole from the mark that Create
// leaves in its node when all was done; one without it is made anew, one with it is
// started again where its container was stopped. Clusters are made in parallel safely.
//
// Inputs: the docker command line and package nodeimage, which finds or builds the image
// of the nodes. It keeps no file of its own on this machine, and never touches the
// user's kubeconfig or a cluster that is not the lab's.
package kind
