// Package v1alpha1 is the API of Reconcile Lab, group cache.reconcile-lab.io.
//
// Two kinds, both namespaced:
//
//   - CacheCluster is the object of the user on the hub: one cache, and the member
//     clusters that run it.
//   - MemberCache is the object of the hub for one member: the same cache after
//     overrides. The spoke controller writes its status.
//
// Each object has one writer of its spec and one writer of its status. The package
// contains types, validation markers, and the condition types, reasons and labels.
// It imports no other package of this project.
//
// +kubebuilder:object:generate=true
// +groupName=cache.reconcile-lab.io
package v1alpha1
