// Package faults injects every fault into every request of the hub manager. It uses real
// API servers, and asserts that each run ends as a clean one does.
//
// A scenario is something that happens to one CacheCluster in a namespace of its own.
// Clean runs of it record the requests that the manager makes for that namespace and
// the events that it receives about it: the points. Each (point, fault) is then a run
// of its own, in which that one fault is injected once. Many runs share one manager,
// since faults are distinguished by namespace; a killed process has one of its own.
//
// The files without a build tag are the engine: what a point is, how a fault looks on
// the wire, and what was observed. The suite has the tag "faults" and starts with
// `make faults`; docs/faults.md explains its output.
package faults
