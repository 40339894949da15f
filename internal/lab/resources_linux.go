package lab

import (
	"fmt"
	"os"
	"strings"
)

// availableMemory is what programs can still get without swapping, in bytes.
func availableMemory() (int64, bool) {
	content, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	return parseAvailable(string(content))
}

func parseAvailable(meminfo string) (int64, bool) {
	for _, line := range strings.Split(meminfo, "\n") {
		var kilobytes int64
		if n, err := fmt.Sscanf(line, "MemAvailable: %d kB", &kilobytes); err == nil && n == 1 {
			return kilobytes << 10, true
		}
	}
	return 0, false
}
