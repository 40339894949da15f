// Package rules makes single requests to an API server fail: those that match, the
// nth of them, so many or such a share of them, in a way that is named.
//
// It is an http.RoundTripper around another, so that it serves in a proxy as well as
// inside a client. It keeps only counters and its source of chance.
package rules
