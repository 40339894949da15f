// Package children defines the identity and the sizes of the children that one
// MemberCache has in a member: kinds, labels, owner mark, memory of the containers.
//
// The hub, the spoke controller and the checks of a spec share these definitions. The
// package renders nothing and reads no cluster; every function is pure.
package children
