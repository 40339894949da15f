// Package embedded runs clusters as plain processes: a real etcd, kube-apiserver,
// kube-controller-manager and kube-scheduler, and kwok, which simulates nodes and pods.
// It needs neither Docker nor root, and listens on 127.0.0.1 only.
//
// It implements [lab.Provider]. All files of a cluster are in one directory:
//
//	<lab>/clusters/<name>/cluster.json   the ports
//	                      pki/           certificate authority, server and admin certificates
//	                      kubeconfig     admin access
//	                      etcd/, logs/
//
// Processes are not recorded. They are found by their command line, which names that
// directory. A process is current if its command line is the one that Create would use;
// Create restarts the others. So a new version or a changed port takes effect.
//
// It never touches a process or file outside that directory, nor ~/.kube/config.
package embedded
