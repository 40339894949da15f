//go:build !linux

package lab

// availableMemory is unknown here: macOS has no such figure, since it swaps on demand.
func availableMemory() (int64, bool) { return 0, false }
