// Package deploy holds the manifests that the hub cluster needs, for programs
// that install them without a checkout at hand.
package deploy

import "embed"

// CRDs holds crd/*.yaml: CacheCluster, MemberCache and SIG Multicluster's
// ClusterProfile.
//
//go:embed crd/*.yaml
var CRDs embed.FS
