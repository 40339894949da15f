package process

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// list reads /proc, since minimal systems have no ps. It omits processes without a command
// line: kernel threads, zombies and processes that end during the call.
func list() ([]Process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var all []Process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		if err != nil || len(line) == 0 {
			continue
		}
		all = append(all, Process{PID: pid, Args: strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")})
	}
	return all, nil
}
