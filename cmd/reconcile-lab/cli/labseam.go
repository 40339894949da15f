package cli

import "github.com/spf13/cobra"

func labCommands() []*cobra.Command { return nil }
