// Package embedded makes clusters out of plain processes: a real etcd,
// kube-apiserver, kube-controller-manager and kube-scheduler, and kwok, which
// plays the nodes and pods. It needs neither Docker nor root, and listens on
// 127.0.0.1 only.
//
// It promises what [lab.Provider] asks for. All of a cluster lies in one folder:
//
//	<lab>/clusters/<name>/cluster.json   the ports
//	                      pki/           certificate authority, server and admin certificates
//	                      kubeconfig     admin access
//	                      etcd/, logs/
//
// Processes are not recorded. They are found by their command line, which names
// that folder, and are right exactly when that line is the one that Create would
// use: so a new version, or a port that had to change, restarts what it concerns.
//
// It never touches a process or file outside that folder, nor ~/.kube/config.
package embedded
