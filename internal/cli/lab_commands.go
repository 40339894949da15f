package cli

import (
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/embedded"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/kind"
)

// kindName is the provider kind, and the default name of its lab.
const kindName = "kind"

var providerNames = []string{embedded.Name, kindName}

// existingLabUsage describes --name of the commands that need a lab.
const existingLabUsage = "name of the lab (default: the lab of the last up)"

func labCommands() []*cobra.Command {
	return []*cobra.Command{newUpCommand(), newDownCommand(), newClustersCommand(), newEnvCommand()}
}

// newProvider returns the provider with this name for a lab.
func newProvider(name string, l *lab.Lab) (lab.Provider, error) {
	switch name {
	case embedded.Name:
		return embedded.New(l.Dir), nil
	case kindName:
		return kind.New(l.Name), nil
	}
	return nil, badInput("provider: %q: must be one of: %s", name, strings.Join(providerNames, ", "))
}

// providerOf returns the provider of an existing lab.
func providerOf(l *lab.Lab) (lab.Provider, error) {
	state, err := l.Load()
	if err != nil {
		return nil, err
	}
	return newProvider(providerName(l, state), l)
}

// providerName returns the recorded provider. Without a record it derives the provider
// from the name, so that a lab can be removed after an interrupted up or a lost file.
func providerName(l *lab.Lab, state lab.State) string {
	switch {
	case state.Provider != "":
		return state.Provider
	case l.Name == kindName:
		return kindName
	}
	return embedded.Name
}

var errNoLab = errors.New("no lab found; create one with `reconcile-lab up`")

// existingLab opens the lab with this name, or the lab of the last up for an empty
// name. It returns an error if the lab does not exist.
func existingLab(name string) (*lab.Lab, error) {
	if name == "" {
		var err error
		if name, err = lab.Current(); err != nil {
			return nil, err
		}
		if name == "" {
			return nil, errNoLab
		}
	}
	l, err := lab.Open(name)
	if err != nil {
		return nil, badInput("%w", err)
	}
	if !l.Exists() {
		return nil, badInput("%w", lab.Unknown(name))
	}
	return l, nil
}

// openLab opens the lab of --name or --lab, else the lab of the last up.
func openLab(cmd *cobra.Command) (*lab.Lab, error) {
	name, err := labName(cmd)
	if err != nil {
		return nil, err
	}
	if name == "" {
		if name, err = lab.Current(); err != nil {
			return nil, err
		}
	}
	if name == "" {
		return nil, errNoLab
	}
	return lab.Open(name)
}

// addNameFlag adds --name, which has the same meaning as --lab.
func addNameFlag(cmd *cobra.Command, usage string) {
	cmd.Flags().String("name", "", usage)
}

// labName returns the value of --name or --lab.
func labName(cmd *cobra.Command) (string, error) {
	name, err := cmd.Flags().GetString("name")
	if err != nil {
		return "", err
	}
	// Tests run these commands without the flags of the root command.
	if flag := cmd.Flags().Lookup("lab"); flag != nil && flag.Value.String() != "" {
		if name != "" && name != flag.Value.String() {
			return "", badInput("--name: %s: differs from --lab %s; pass one of them", name, flag.Value)
		}
		name = flag.Value.String()
	}
	return name, nil
}

// requestedLab returns labName after its error was handled.
func requestedLab(cmd *cobra.Command) string {
	name, _ := labName(cmd)
	return name
}

// invocation returns the path of this program, for commands in hints.
func invocation() string { return os.Args[0] }
