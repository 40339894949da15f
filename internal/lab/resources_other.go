//go:build !linux

package lab

// availableMemory is not known here: macOS gives programs memory by swapping.
func availableMemory() (int64, bool) { return 0, false }
