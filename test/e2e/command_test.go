//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gcustom"
	"github.com/onsi/gomega/gexec"
	"github.com/onsi/gomega/types"
)

// result is what a command printed and how it ended.
type result struct {
	command, stdout, stderr string
	code                    int
}

// lines of the standard output.
func (r result) lines() []string { return strings.Split(strings.TrimRight(r.stdout, "\n"), "\n") }

// run runs a program in the project's folder with the lab's state.
func (l *testLab) run(ctx context.Context, in, program string, args ...string) result {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, program, args...)
	// As Ctrl-C does: a lab that is half made must be in a state that down removes.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	cmd.Dir = l.root
	cmd.Env = append(os.Environ(), "RECONCILE_LAB_STATE="+l.state)
	cmd.Stdin = strings.NewReader(in)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	r := result{command: strings.Join(cmd.Args, " "), stdout: out.String(), stderr: said.String()}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		r.code = exit.ExitCode()
	case err != nil:
		Fail(fmt.Sprintf("%s: %v", r.command, err))
	}
	fmt.Fprintf(GinkgoWriter, "$ %s\n%s%s", r.command, r.stdout, r.stderr)
	return r
}

// cli runs reconcile-lab on the lab.
func (l *testLab) cli(ctx context.Context, args ...string) result {
	GinkgoHelper()
	return l.run(ctx, "", l.binary(), append(args, "--lab", l.name)...)
}

// apply runs `reconcile-lab apply -` with a manifest.
func (l *testLab) apply(ctx context.Context, manifest string, flags ...string) result {
	GinkgoHelper()
	return l.run(ctx, manifest, l.binary(), append([]string{"apply", "-", "--lab", l.name}, flags...)...)
}

// kubectl runs the kubectl that `reconcile-lab env` puts on the PATH, with the
// project's folder there too, so that it finds its plugin.
func (l *testLab) kubectl(ctx context.Context, args ...string) result {
	GinkgoHelper()
	const script = `eval "$(./reconcile-lab env --name "$0")" && PATH="$PWD:$PATH" exec kubectl "$@"`
	return l.run(ctx, "", "bash", append([]string{"-c", script, l.name}, args...)...)
}

// begin starts reconcile-lab on the lab and leaves it running.
func (l *testLab) begin(args ...string) *gexec.Session {
	GinkgoHelper()
	cmd := exec.Command(l.binary(), append(args, "--lab", l.name)...)
	cmd.Env = append(os.Environ(), "RECONCILE_LAB_STATE="+l.state)
	session, err := gexec.Start(cmd, GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	return session
}

// succeed matches a command that ended well.
func succeed() types.GomegaMatcher { return exitWith(0) }

// exitWith matches a command that ended with the code.
func exitWith(code int) types.GomegaMatcher {
	return gcustom.MakeMatcher(func(r result) (bool, error) { return r.code == code, nil }).
		WithTemplate("{{.Actual.Command}}\n{{.Actual.Output}}\n{{.To}} exit with {{.Data}}, got {{.Actual.Code}}", code)
}

// The template of exitWith reads these.

func (r result) Command() string { return r.command }
func (r result) Output() string  { return r.stdout + r.stderr }
func (r result) Code() int       { return r.code }
