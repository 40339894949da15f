// Package v1alpha1 is the API of Reconcile Lab, group cache.reconcile-lab.io.
//
// Two kinds, both namespaced:
//
//   - CacheCluster is what a user writes on the hub: one cache and the member
//     clusters that shall run it.
//   - MemberCache is what the hub writes, one for each chosen member: the same
//     cache after overrides. The spoke controller reports into its status.
//
// Each object has one controller that writes its spec and one that writes its
// status. The package holds types, validation markers and the vocabulary of
// condition types, reasons and labels; it does nothing and imports nothing of
// this project.
//
// +kubebuilder:object:generate=true
// +groupName=cache.reconcile-lab.io
package v1alpha1
