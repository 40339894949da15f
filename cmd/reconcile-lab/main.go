// Command reconcile-lab runs caches on a hub and its member clusters, and makes
// labs of such clusters. Under the name kubectl-cachecluster it is the kubectl
// plugin `kubectl cachecluster`.
package main

import (
	"os"

	"github.com/reconcile-lab/reconcile-lab/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args, os.Stdin, os.Stdout, os.Stderr))
}
