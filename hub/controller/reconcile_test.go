package controller

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/hub/status"
	"github.com/reconcile-lab/reconcile-lab/internal/events"
)

func TestNothingIsRememberedOfACacheClusterThatIsGone(t *testing.T) {
	r := &Reconciler{Events: events.NewSink(nil)}
	cc := sessions("eu")
	cc.UID = "gone"
	r.pace.note(cc.UID, noon)
	r.writes.Wrote(cc)
	r.removed.note(cc.UID, &v1alpha1.MemberCache{})
	r.forget(t.Context(), event.DeleteEvent{Object: cc}, nil)
	if len(r.pace.wrote) > 0 || r.writes.Behind(cc) || len(r.removed.of) > 0 {
		t.Errorf("remembered: %v, %v", r.pace.wrote, r.removed.of)
	}
}

func TestAMemberCacheThatTheHubForbidsIsTriedAgainAndOneThatIsInvalidIsNot(t *testing.T) {
	membercaches := schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "membercaches"}
	for _, c := range []struct {
		name  string
		err   error
		class v1alpha1.ErrorClass
		again bool
	}{
		{"a quota that may be raised", apierrors.NewForbidden(membercaches, "sessions.eu", nil), v1alpha1.ClassBlocked, true},
		{"a field that only the user can correct", apierrors.NewInvalid(schema.GroupKind{Kind: "MemberCache"}, "sessions.eu", nil), v1alpha1.ClassInvalid, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cc := sessions("eu")
			mc := asWanted(cc, "eu")
			p := &plan{verdict: status.Input{Members: []status.Member{{Name: "eu", Placed: true}}}}
			err := (&Reconciler{}).report(&mc, p, c.err)
			if (err != nil) != c.again {
				t.Errorf("error %v; tried again: want %t", err, c.again)
			}
			if problem := p.entry("eu").Problem; problem == nil || problem.Class != c.class {
				t.Errorf("the verdict is told %+v", problem)
			}
		})
	}
}
