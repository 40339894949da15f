// Package rules makes selected requests to an API server fail.
//
// A [Rule] selects requests by verb, resource, namespace and name. It acts on all of them,
// from the nth one on, on a number of them or on a random share. [Transport] is an
// http.RoundTripper that wraps another, for use in a proxy or in a client. Its only state
// is counters and a random source.
package rules
