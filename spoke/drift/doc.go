// Package drift tells, for one child, whether the live object still is what was
// applied: what drifted and who did it. It compares no values, and is pure: that it
// remembers what it has read changes no answer.
//
// It rests on the API server's own bookkeeping of server-side apply. Whoever
// changes a field that we own takes it out of our entry in managedFields; what
// others add appears under their name. So an object has drifted exactly when our
// entry lacks a field that our intent holds, and the entries that hold the field
// now name who changed it. Defaults, the spelling of quantities and the order of
// keys can't be mistaken for drift, because no value is looked at.
//
// The set of fields of an intent comes from the same schema and library as the
// API server's (structured-merge-diff, and client-go's copy of the schema). Where
// a member of another version keeps a set of another shape, the caller passes
// what was missing straight after its own successful apply as Known; that is
// never drift.
package drift
