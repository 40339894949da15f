// Package cli implements the commands of reconcile-lab, which work on the hub's
// API and on labs.
//
// # Contract
//
//   - Standard output holds results only. Notes and errors go to standard error.
//   - Each exit code has one meaning, see exit_codes.go.
//   - `-o json` and `-o yaml` print the same facts as the text.
//   - Lines that scripts search for keep their wording.
//   - An error reads `error: FIELD: VALUE: problem; fix`, without a full stop.
//
// # Inputs
//
// The commands read arguments, files and the hub's API. They connect to a member
// only for join and leave. They make no decision about a cache: they apply what the
// user passed, and print what the hub manager reports.
package cli
