// Package proxy runs a proxy between the hub and one member. It makes selected requests, or
// all of the network traffic, fail.
//
// A connection passes two layers. Toxiproxy delays, throttles or drops its bytes. An HTTPS
// server then applies rules to requests and forwards the others to the API server of the
// member, with the credential of the caller. The server has a certificate of an authority
// that is created at each start; the hub must trust it. Towards the member, the proxy trusts
// the authority in its Options.
//
// It listens on the address in its Options and on loopback only.
package proxy
