// Package failure sorts every error that talking to a member can give into one
// of five classes, and says what a user should know: reason, message, hint. It is
// pure; only Reconcile turns a class into a time to try again.
//
// Invalid waits for the next generation, Blocked for the thing that it names,
// Unreachable for the member's return; Conflict and Transient are tried again
// with growing delays. The same failure gives the same bytes: messages hold no
// times, addresses of sockets or generated names.
package failure
