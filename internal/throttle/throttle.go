// Package throttle computes how long a status write waits for what follows it.
//
// Pods that start, members that report and repairs that settle change a status many
// times in a few seconds. Only some of these changes decide anything. The caller
// knows which; this package knows how long the others may wait. It holds no state,
// and time is a value: a caller keeps the start of a pause where it keeps the rest
// of what it remembers of the object.
package throttle

import "time"

// Pause is how long a write may wait that carries nothing but progress.
type Pause struct {
	// Base is the pause of an object that changes alone.
	Base time.Duration
	// PerObject is added for every other object that changes at the same time: in a
	// burst each of them takes longer, and more progress fits into one write.
	PerObject time.Duration
	// Max bounds the pause; Base if it is less.
	Max time.Duration
}

// For returns the pause while as many objects change, among them the object itself.
func (p Pause) For(objects int) time.Duration {
	return max(p.Base, min(p.Base+time.Duration(max(0, objects-1))*p.PerObject, p.Max))
}

// Remaining returns the rest of a pause that began at start, or 0 where it is over.
// It is 0 as well where start is zero, or later than now: a clock that was set back
// must not postpone a write for long.
func (p Pause) Remaining(start time.Time, objects int, now time.Time) time.Duration {
	elapsed := now.Sub(start)
	if start.IsZero() || elapsed < 0 {
		return 0
	}
	return max(0, p.For(objects)-elapsed)
}
