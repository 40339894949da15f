// Package binaries provides the programs that labs run: etcd, the Kubernetes control plane,
// kwok, and the programs of a kind node.
//
// After [Ensure], every named program is an executable file of the exact version in the
// table, at <cache>/reconcile-lab/bin/<module>-<version>/<program>. A missing program is
// downloaded if its module is published (see published.go), else built from Go modules
// whose checksums are pinned in modules/. A file appears under its name only when it is
// complete, so an interruption leaves no partial file. Two processes never build the same
// module at the same time.
//
// Inputs are program names, the environment variable RECONCILE_LAB_BINARIES (auto,
// published or build; auto tries published, then build) and XDG_CACHE_HOME. Outputs are
// paths, and progress through [Report].
//
// It writes to the cache directory, the temporary directory and the caches of Go only. It
// never needs root.
package binaries
