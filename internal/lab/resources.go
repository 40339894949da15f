package lab

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// fits says whether the machine bears the clusters that are still to be made.
func fits(p Provider, dir string, wanted, existing []string) error {
	sized, ok := p.(Sized)
	if !ok {
		return nil
	}
	count := 0
	for _, cluster := range wanted {
		if !slices.Contains(existing, cluster) {
			count++
		}
	}
	if count == 0 {
		return nil
	}
	each := sized.Footprint()
	if available, known := availableMemory(); known {
		if err := enough("memory", "close programs, or use fewer members with --members", each.Memory, available, count); err != nil {
			return err
		}
	}
	var disk unix.Statfs_t
	// The lock lies in the folder, so it exists.
	if err := unix.Statfs(dir, &disk); err != nil {
		return fmt.Errorf("free space of %s: %w", dir, err)
	}
	return enough("space on the disk of "+dir, "free some, or set XDG_STATE_HOME to a folder on another disk",
		each.Disk, int64(disk.Bavail)*int64(disk.Bsize), count)
}

func enough(what, remedy string, each, available int64, count int) error {
	if need := each * int64(count); available < need {
		return fmt.Errorf("too little %s: %d clusters need about %d MB, %d MB are free: %s",
			what, count, need>>20, available>>20, remedy)
	}
	return nil
}
