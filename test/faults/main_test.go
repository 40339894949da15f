//go:build faults

package faults

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/reconcile-lab/reconcile-lab/test/harness"
)

// What `make faults` sets.
var (
	full     = os.Getenv("FAULTS_FULL") != ""
	seed     = setting("FAULTS_SEED", time.Now().UnixNano()%1_000_000)
	only     = os.Getenv("FAULTS_ONLY")
	chosen   = os.Getenv("FAULTS_CASE")
	file     = os.Getenv("FAULTS_REPORT")
	parallel = setting("FAULTS_PARALLEL", 12)
	sample   = setting("FAULTS_SAMPLE", 220)
	minutes  = setting("FAULTS_MINUTES", 0)
	nHistory = setting("FAULTS_HISTORIES", -1)
	part     = os.Getenv("FAULTS_PART")
)

// portion is FAULTS_PART, such as 2/3: the second of three; the whole where it is empty.
func portion() (number, of int, err error) {
	if part == "" {
		return 1, 1, nil
	}
	if n, err := fmt.Sscanf(part, "%d/%d", &number, &of); n != 2 || err != nil || number < 1 || number > of || fmt.Sprintf("%d/%d", number, of) != part {
		return 0, 0, fmt.Errorf("PART=%q: want NUMBER/OF, such as 2/3", part)
	}
	return number, of, nil
}

func setting(name string, otherwise int64) int64 {
	n, err := strconv.ParseInt(os.Getenv(name), 10, 64)
	if err != nil {
		return otherwise
	}
	return n
}

var (
	lab *fleet
	out *report
)

func TestMain(m *testing.M) {
	flag.Parse()
	harness.Log(os.Getenv("RECONCILE_LAB_TEST_LOG") != "")
	if file == "" {
		file = "faults.json"
	}
	fmt.Printf("faults: seed %d (FAULTS_SEED=%d repeats the choice)\n", seed, seed)
	os.Exit(suite(m))
}

func serve(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Hour)
	defer cancel()
	// An interrupted run must not leave API servers behind.
	interrupted, ignore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer ignore()
	out = newReport(seed, full)
	started := make(chan struct{})
	over := context.AfterFunc(interrupted, func() {
		<-started
		_ = lab.stop()
		_ = out.write(file)
		os.Exit(130)
	})
	// Before the signals are let go, which ends that context too.
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
	if err := out.write(file); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}
