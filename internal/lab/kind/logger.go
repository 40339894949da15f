package kind

import (
	"fmt"
	"strings"

	"sigs.k8s.io/kind/pkg/log"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
)

// logger passes the steps that kind begins to the lab's progress, and drops the rest:
// what goes wrong is in the error.
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

func (s steps) Info(message string) { s.tell(message) }

func (s steps) Infof(format string, args ...any) { s.tell(fmt.Sprintf(format, args...)) }

// tell knows a step by kind's bullet, and leaves its pictograms out.
func (s steps) tell(message string) {
	step, begins := strings.CutPrefix(strings.TrimSpace(message), "• ")
	if !begins {
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
