// Package membership makes a cluster a member of a hub, and lets it go again.
//
// Join gives the hub a way into the member that can do no more than the spoke
// controller needs: a ServiceAccount with the rights in member.yaml, its token
// in a kubeconfig in a Secret on the hub, and a ClusterProfile that puts the
// member into the inventory. Leave takes all of that away.
//
// Join writes in the order in which a failure does no harm: the member first,
// then the Secret, the ClusterProfile last, so that an inventory entry never
// names a member that cannot be reached with the credential beside it. It
// reads and checks everything before the first write. A second Join with the
// same input writes nothing.
//
// A name is one cluster's until Leave ends its membership, and a cluster has one
// name. Which cluster it is, the hub remembers by the UID of namespace kube-system,
// not by an address: a cluster may move.
//
// The admin credentials that Join and Leave are called with are used, never
// stored. Nothing here touches CacheClusters, MemberCaches or their children.
package membership
