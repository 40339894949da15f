package main

import (
	"context"
	"time"
)

// echoTime is how long the last operation may still show in events and counts.
const echoTime = 10 * time.Second

// measureIdle counts the writes while nothing changes.
func (f *fleet) measureIdle(ctx context.Context) error {
	if err := f.settle(ctx, quietTime); err != nil {
		return err
	}
	if err := pause(ctx, echoTime); err != nil {
		return err
	}
	logStep("counting writes for %s", f.idle)
	before, err := f.snapshot(ctx)
	if err != nil {
		return err
	}
	if err := pause(ctx, f.idle); err != nil {
		return err
	}
	after, err := f.snapshot(ctx)
	if err != nil {
		return err
	}
	used := after.subtract(before)
	f.report.Writes.Idle = used.Hub.writes() + used.Members.writes()
	f.report.PerOperation["idle"] = used
	return nil
}

func (f *fleet) measureMemory(context.Context) (err error) {
	f.report.Manager.RSSBytes, f.report.Manager.RSSPeakBytes, err = f.manager.resident()
	return err
}
