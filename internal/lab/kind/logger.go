package kind

import (
	"fmt"
	"strings"

	"sigs.k8s.io/kind/pkg/log"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
)

// logger reports the steps that kind starts, and drops all other messages. Failures are in
// the error that kind returns.
type logger struct{ report lab.Report }

var _ log.Logger = logger{}

func (logger) Warn(string)           {}
func (logger) Warnf(string, ...any)  {}
func (logger) Error(string)          {}
func (logger) Errorf(string, ...any) {}

func (l logger) V(level log.Level) log.InfoLogger {
	if l.report == nil || level > 0 {
		return log.NoopInfoLogger{}
	}
	return steps(l)
}

type steps struct{ report lab.Report }

func (steps) Enabled() bool { return true }

func (s steps) Info(message string) { s.parse(message) }

func (s steps) Infof(format string, args ...any) { s.parse(fmt.Sprintf(format, args...)) }

// parse reports a message that begins with kind's bullet, without its pictograms.
func (s steps) parse(message string) {
	step, isStep := strings.CutPrefix(strings.TrimSpace(message), "• ")
	if !isStep {
		return
	}
	plain := strings.Map(func(r rune) rune {
		if r > 0x7e {
			return -1
		}
		return r
	}, step)
	plain = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(plain), "..."))
	if plain != "" {
		s.report(strings.ToLower(plain[:1]) + plain[1:])
	}
}
