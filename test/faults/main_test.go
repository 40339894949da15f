//go:build faults

package faults

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/reconcile-lab/reconcile-lab/test/harness"
)

var (
	settings Settings
	lab      *fleet
	out      *report
)

func TestMain(m *testing.M) {
	flag.Parse()
	harness.Log(os.Getenv("RECONCILE_LAB_TEST_LOG") != "")
	if flag.Lookup("test.list").Value.String() != "" {
		// A list needs no API servers.
		os.Exit(m.Run())
	}
	var err error
	if settings, err = ReadSettings(os.Getenv, scenarioNames(), time.Now().UnixNano()%1_000_000); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
	fmt.Printf("faults: seed %d (SEED=%d repeats the selection)\n", settings.Seed, settings.Seed)
	os.Exit(suite(m))
}

func serve(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Hour)
	defer cancel()
	// An interrupted run must not leave API servers running.
	interrupted, ignore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer ignore()
	out = newReport(settings.Seed, settings.Full)
	started := make(chan struct{})
	over := context.AfterFunc(interrupted, func() {
		<-started
		_ = lab.stop()
		_ = out.write(settings.Report)
		os.Exit(130)
	})
	// Before ignore, which ends that context too.
	defer over()
	var err error
	lab, err = startFleet(ctx)
	close(started)
	defer func() {
		if err := lab.stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// suite runs the tests and prints the closing lines last.
func suite(m *testing.M) int {
	code := serve(m)
	if err := out.write(settings.Report); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}
