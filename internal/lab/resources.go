package lab

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// checkResources returns an error if the machine has too little free memory or disk space
// for the clusters that do not exist yet.
func checkResources(p Provider, dir string, wanted, existing []string) error {
	sized, ok := p.(Sized)
	if !ok {
		return nil
	}
	missing := 0
	for _, cluster := range wanted {
		if !slices.Contains(existing, cluster) {
			missing++
		}
	}
	if missing == 0 {
		return nil
	}
	each := sized.Footprint()
	if available, known := availableMemory(); known {
		if err := enough("memory", "close programs, or use fewer members with --members", each.Memory, available, missing); err != nil {
			return err
		}
	}
	var disk unix.Statfs_t
	// The directory exists, since it contains the lock.
	if err := unix.Statfs(dir, &disk); err != nil {
		return fmt.Errorf("read the free disk space of %s: %w", dir, err)
	}
	return enough("disk space in "+dir, "free some, or set XDG_STATE_HOME to a directory on another disk",
		each.Disk, int64(disk.Bavail)*int64(disk.Bsize), missing)
}

// enough returns an error with a remedy if less than each × count bytes are available.
func enough(what, remedy string, each, available int64, count int) error {
	if need := each * int64(count); available < need {
		return fmt.Errorf("too little %s: %d clusters need about %d MB, %d MB are free; %s",
			what, count, need>>20, available>>20, remedy)
	}
	return nil
}
