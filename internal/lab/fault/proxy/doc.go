// Package proxy stands between the hub and one member, and makes single requests or
// the whole network between them fail.
//
// A connection goes through two layers: Toxiproxy, which delays, throttles or drops
// its bytes, and behind it an HTTPS server that acts on single requests by rules and
// forwards the others to the member's API server, with the caller's own credential.
// The server has a certificate of an authority of its own, made at each start, which
// the hub must be told; towards the member it trusts what the hub trusted.
//
// It listens at the one address that it is given, and on loopback.
package proxy
