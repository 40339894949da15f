// Command glossary updates the generated tables of a document: glossary FILE.
package main

import (
	"fmt"
	"os"

	"github.com/reconcile-lab/reconcile-lab/internal/glossary"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: glossary FILE")
	}
	before, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	after, err := glossary.Rewrite(string(before))
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	if after == string(before) {
		return nil
	}
	return os.WriteFile(args[0], []byte(after), 0o644)
}
