package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/embedded"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/kind"
)

const kindName = "kind"

func labCommands() []*cobra.Command {
	return []*cobra.Command{newUpCommand(), newDownCommand(), newClustersCommand(), newEnvCommand()}
}

// newProvider makes the provider of that name for a lab.
func newProvider(name string, l *lab.Lab) (lab.Provider, error) {
	switch name {
	case embedded.Name:
		return embedded.New(l.Dir), nil
	case kindName:
		return kind.New(l.Name), nil
	}
	return nil, badInput("provider %q: use %s or %s", name, embedded.Name, kindName)
}

// providerOf is the provider that an existing lab runs on.
func providerOf(l *lab.Lab) (lab.Provider, error) {
	state, err := l.Load()
	if err != nil {
		return nil, err
	}
	return newProvider(providerName(l, state), l)
}

// providerName guesses by the lab's name where nothing is recorded, so that what
// an early interruption or a lost file left can still be removed.
func providerName(l *lab.Lab, state lab.State) string {
	switch {
	case state.Provider != "":
		return state.Provider
	case l.Name == kindName:
		return kindName
	}
	return embedded.Name
}

var errNoLab = errors.New("there is no lab: make one with reconcile-lab up")

// existingLab opens the lab of that name, or of the last up if it is empty. It is an
// error if there is no such lab.
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

// openLab opens the lab that --name or --lab names, else the one of the last up.
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

// addName gives a command --name, which on lab commands means what --lab means
// everywhere.
func addName(cmd *cobra.Command, usage string) {
	cmd.Flags().String("name", "", usage)
}

func labName(cmd *cobra.Command) (string, error) {
	name, err := cmd.Flags().GetString("name")
	if err != nil {
		return "", err
	}
	// The commands also run without the root's flags, in tests.
	if flag := cmd.Flags().Lookup("lab"); flag != nil && flag.Value.String() != "" {
		if name != "" && name != flag.Value.String() {
			return "", badInput("--name %s and --lab %s: give one of them", name, flag.Value)
		}
		name = flag.Value.String()
	}
	return name, nil
}

// labAsked is what --name or --lab says; that both say different things was found before.
func labAsked(cmd *cobra.Command) string {
	name, _ := labName(cmd)
	return name
}

// invocation is how the user called this program, for hints to copy.
func invocation() string { return os.Args[0] }

func exportLine(variable, value string) string {
	return fmt.Sprintf("export %s=%s", variable, shellQuote(value))
}
