// Package kind runs clusters as containers with kind's library. Each cluster has one node,
// and nothing in it is simulated.
//
// It implements [lab.Provider]. Create writes a marker file into the node when the cluster
// is complete. A cluster without the marker is recreated. One with the marker is started
// again if its container is stopped. Clusters can be created in parallel.
//
// It needs the docker command line, and package nodeimage for the image of the nodes. It
// keeps no file on this machine. It never touches the kubeconfig of the user or a cluster
// of another lab.
package kind
