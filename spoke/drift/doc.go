// Package drift detects whether a live object still matches the intent that the hub
// applied, and who changed it.
//
// # Input and output
//
// The input is an intent, the live object with its managedFields, and a Policy. Diff returns
// a Finding: the fields of the intent that the hub no longer owns. Attribute returns who
// changed fields, and Describe returns the finding of a status with both values of each
// field. Patch, RekeyedItems and SiblingEdits return what a correction writes.
//
// # Promises
//
//   - Field ownership decides what is drift. A client that changes a field removes it from the
//     hub's entry in managedFields, and its own entry then contains the field. Diff compares
//     no values, so that defaults, the notation of a quantity and the order of keys are
//     never drift.
//   - Fields of other managers are not drift. ForeignFields lists those of the pod template.
//   - The fields of an intent come from the schema and the library of the API server
//     (structured-merge-diff, and the copy of the schema in client-go).
//   - A member of another version can record another set of fields. The caller passes to
//     Diff what a successful apply did not record; these fields are never drift.
//
// # What it never does
//
// The package is pure: it sends no request, reads no clock and changes no argument. A cache
// of parsed entries changes no result.
package drift
