package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Version is set by -ldflags -X at build time. A build without it uses the version that
// the Go toolchain records.
var Version = ""

type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := version()
			if a.structured() {
				return a.printValue(v, false)
			}
			_, err := fmt.Fprintf(a.out, "reconcile-lab %s %s %s\n", v.Version, v.Go, v.Platform)
			return err
		},
	}
}

func version() versionInfo {
	v := versionInfo{Version: Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Revision = s.Value
			}
		}
		if v.Version == "" {
			v.Version = info.Main.Version
		}
	}
	if v.Version == "" {
		v.Version = "(devel)"
	}
	return v
}
