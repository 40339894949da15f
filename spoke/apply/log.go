package apply

import (
	"context"
	"time"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

// Levels of the log lines of decisions that write nothing. Writes are logged at level 0.
const (
	levelNotWritten = 1
	levelUnchanged  = 4
)

// resultOK is the result in the log line of a write that succeeded.
const resultOK = "OK"

// logStep logs one line for a step: what was written to which object, why, how long it took
// and how it ended.
func (a *Applier) logStep(ctx context.Context, step *Step, result *Result, took time.Duration) {
	level, message := 0, "Wrote child"
	switch {
	case step.Action == None:
		level, message = levelUnchanged, "Child unchanged"
	case !step.writes():
		level, message = levelNotWritten, "Child not written"
	case result.Failure != nil:
		message = "Write of child failed"
	}
	logger := log.FromContext(ctx).V(level)
	if !logger.Enabled() {
		return
	}
	values := append(a.objectValues(step.Action, step.Key()), "cause", step.cause())
	if fields := step.fieldList(); fields != "" {
		values = append(values, "fields", fields, "manager", drift.Attribute(step.Live, step.changedFields()).Manager)
	}
	logger.Info(message, append(values, resultValues(result.Failure, took)...)...)
}

// logRemoval logs one line for a target that was pruned, deleted or released. A target for
// which no request was necessary is not logged at level 0.
func (a *Applier) logRemoval(ctx context.Context, action Action, target Target, wrote bool, f *failure.Failure, took time.Duration) {
	level, message := 0, "Wrote child"
	switch {
	case f != nil:
		message = "Write of child failed"
	case !wrote:
		level, message = levelNotWritten, "Child not written"
	}
	logger := log.FromContext(ctx).V(level)
	if !logger.Enabled() {
		return
	}
	values := append(a.objectValues(action, target.Key), "cause", removalCauses[action])
	logger.Info(message, append(values, resultValues(f, took)...)...)
}

var removalCauses = map[Action]string{
	Prune:   "not desired",
	Delete:  "the MemberCache is being deleted",
	Release: "the MemberCache is being deleted and orphans its children",
}

func (a *Applier) objectValues(action Action, key Key) []any {
	return []any{"action", string(action), "kind", key.Kind.Kind, "child", klog.KRef(a.namespace, key.Name)}
}

func resultValues(f *failure.Failure, took time.Duration) []any {
	values := []any{"duration", took}
	if f == nil {
		return append(values, "result", resultOK)
	}
	return append(values, "result", f.Reason, "error", f.Message)
}

// writes reports whether Execute sends a write for a step.
func (s *Step) writes() bool {
	switch s.Action {
	case Create, Update, Correct, RemoveForeign, TakeOver:
		return true
	case Recreate:
		return s.Failure == nil
	}
	return false
}

// cause returns why a step was decided.
func (s *Step) cause() string {
	switch {
	case s.Deferred:
		return "drift, deferred by the conflict breaker"
	case s.Failure != nil:
		return s.Failure.Reason
	case s.Deleted:
		return "drift: deleted by another client"
	case s.Action == RemoveForeign:
		return "foreign fields"
	case s.Action == Correct, s.Action == ReportOnly:
		return "drift"
	case s.Action == Update:
		return "the intent changed"
	case s.Action == Create && s.Recreating:
		return "the child is being recreated"
	case s.Action == Create:
		return "absent"
	case s.Action == TakeOver:
		return "takeover of an existing object"
	case s.Action == Recreate:
		return "an immutable field changed"
	}
	return "as desired"
}
