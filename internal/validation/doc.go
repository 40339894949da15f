// Package validation checks a template and the policies of a spec beyond what the API
// server checks at admission.
//
// The API server refuses most invalid values of a CacheCluster. An override is combined
// with its template on the hub only, so the combination is checked here: by the hub
// before it writes a MemberCache, by the spoke before it renders children, and by
// `reconcile-lab apply`.
//
// The functions are pure. They return every Problem at once, in the order of the fields,
// and never change the spec.
package validation
