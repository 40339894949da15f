package lab

import (
	"fmt"
	"os"
	"strings"
)

// availableMemory returns the memory that programs can allocate without swapping, in bytes.
func availableMemory() (int64, bool) {
	content, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	return parseAvailable(string(content))
}

// parseAvailable returns MemAvailable of /proc/meminfo. Kernels before 3.14 do not have it.
func parseAvailable(meminfo string) (int64, bool) {
	for _, line := range strings.Split(meminfo, "\n") {
		var kilobytes int64
		if n, err := fmt.Sscanf(line, "MemAvailable: %d kB", &kilobytes); err == nil && n == 1 {
			return kilobytes << 10, true
		}
	}
	return 0, false
}
