// Package observe derives the state of a cache in one member from its live children.
//
// # Input and output
//
// Observe takes the StatefulSet and its pods. It returns the state of the member, the number of
// ready pods, and the reason why pods are not ready. PodProblem returns the reason for one pod.
// PodRefusal takes the events of the StatefulSet, and returns why the member refuses pods.
//
// # Promises
//
//   - The package is pure: it sends no request and reads no clock.
//   - The same cause results in the same bytes. The order of pods, the number of ready pods
//     and the next back-off change no message, because a changed message is a write.
//
// # What it never does
//
// It never reports Ready for a spec that the StatefulSet controller has not observed.
package observe
