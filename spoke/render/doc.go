// Package render renders the children of a MemberCache.
//
// # Input and output
//
// Render takes a MemberCache and returns server-side apply intents, in the order of
// application. An intent holds the fields that the hub owns: no other defaults, no
// status, no empty fields. An annotation holds the hash of the intent, by which drift
// distinguishes a changed spec from a changed object.
//
// # Promises
//
// Render is pure: the same MemberCache results in the same bytes, and it reads nothing
// else. An invalid spec results in problems and no children; see package validation.
package render
