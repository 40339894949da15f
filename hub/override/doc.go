// Package override gives the template that one member runs: the CacheCluster's
// own with the overrides that name or select the member laid over it, later ones
// over earlier ones. It is pure and leaves its inputs alone.
//
// What the result could not run is found here, per member, with the index of the
// override, before anything is written.
package override
