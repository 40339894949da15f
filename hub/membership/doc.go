// Package membership makes a cluster a member of a hub, and ends the membership.
//
// # Join
//
// Join grants the hub access to the member with only the rights that the spoke controller
// needs. It creates a ServiceAccount with the rights in member.yaml, and a Secret on the
// hub with its token in a kubeconfig. A ClusterProfile adds the member to the inventory.
//
// Join reads and checks everything before the first write. It then writes to the member,
// the Secret and the ClusterProfile, in this order: a ClusterProfile never exists
// without a credential that works. A second Join with the same input writes nothing.
//
// # Leave
//
// Leave removes what Join created, on the hub first.
//
// # Identity
//
// A name belongs to one cluster until Leave ends its membership, and a cluster has one
// name. The hub identifies a cluster by the UID of namespace kube-system, not by an
// address, because a cluster may move.
//
// The admin credentials of the caller are used and never stored. Only Leave with Abandon
// changes MemberCaches. Nothing here changes CacheClusters or children.
package membership
