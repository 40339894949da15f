//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// cleanup is how long the removal of a lab may take at the end of the time that
// go test allows.
const cleanup = 3 * time.Minute

func TestEndToEnd(t *testing.T) {
	RegisterFailHandler(Fail)
	log.SetLogger(zap.New(zap.WriteTo(GinkgoWriter)))
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultEventuallyTimeout(3 * time.Minute)
	SetDefaultEventuallyPollingInterval(200 * time.Millisecond)
	suite, reporter := GinkgoConfiguration()
	// A test binary that go test ends removes nothing; Ginkgo, when it ends itself, does.
	if deadline, ok := t.Deadline(); ok && time.Until(deadline) > 2*cleanup {
		suite.Timeout = time.Until(deadline) - cleanup
	}
	RunSpecs(t, "End to end on "+os.Getenv("E2E_PROVIDER"), suite, reporter)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	lab, err = newTestLab(os.Getenv("E2E_PROVIDER"), os.Getenv("E2E_LAB"))
	Expect(err).NotTo(HaveOccurred())
	lab.start(ctx)
	lab.connect(ctx)
})

var _ = AfterSuite(func(ctx SpecContext) {
	if lab != nil {
		lab.remove(ctx)
	}
})

// The state of the hub and its manager is the first thing to check after a failure.
var _ = JustAfterEach(func(ctx SpecContext) {
	if CurrentSpecReport().Failed() && lab != nil {
		status := lab.cli(ctx, "status", "--all-namespaces")
		AddReportEntry("status of every cache", fmt.Sprintf("%s%s", status.stdout, status.stderr))
		AddReportEntry("end of the hub manager's log", lab.managerLog(ctx))
	}
})
