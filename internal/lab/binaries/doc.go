// Package binaries finds or makes the programs that labs run: etcd, the
// Kubernetes control plane, kwok, and what a kind node is made of.
//
// Promise: after [Ensure] every named program is an executable file in the cache
// folder, at <cache>/reconcile-lab/bin/<module>-<version>/<program>, of the exact
// version in the table. They come from the cache, else from where they are
// published (for those that are, see published.go), else they are built from Go
// modules whose sums are pinned in modules/. A file appears under its name only
// when it is complete, so an interrupted run leaves nothing half, and two
// processes never make the same module at once.
//
// Input: program names, the environment variable RECONCILE_LAB_BINARIES (auto,
// published or build; auto tries one after the other) and XDG_CACHE_HOME.
// Output: paths, and progress through [Report].
//
// It never writes outside the cache folder, the temporary folder and Go's own
// caches, and never needs root.
package binaries
