// Package cli is the command line: what a person or a script asks of a hub.
//
// It promises that standard output holds results and nothing else (notes and
// errors go to standard error), that each exit code has one meaning (see
// exit_codes.go), that `-o json` and `-o yaml` print the same facts as the text,
// and that the lines which scripts look for keep their wording.
//
// Input are arguments, files and the hub's API; it talks to members only to
// join them and to let them leave. It decides nothing about a cache: it applies
// what it was given and reports what the hub's controllers say.
package cli
