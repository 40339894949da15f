// Package render turns a MemberCache into the children that its member shall
// hold. It is pure: the same MemberCache gives the same bytes, and nothing but
// the MemberCache is looked at.
//
// Render returns server-side-apply intents, in the order in which they are to be
// applied: they hold what this project wants to own and nothing else, no
// defaults, no status, no empty fields. Each intent carries the hash of itself
// in an annotation, which tells a changed wish from drift.
//
// What is wrong with a template comes back as Problems that name the field, the
// value and the fix; then there are no children at all. Render never returns
// half of them.
package render
