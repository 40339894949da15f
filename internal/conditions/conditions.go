// Package conditions sets, compares and encodes status conditions.
//
// It is pure: time and generation are values. It promises three things:
//
//   - lastTransitionTime changes only with the status of a condition, and is the
//     time of the reconcile, not of the wall clock;
//   - the list is sorted by type, so that the order of the calls and a condition
//     that went and came back do not change its bytes;
//   - setting a condition to its present value changes nothing, so that the caller
//     compares the status with the old one and writes nothing.
//
// Setter is for an object whose status the caller owns as a whole. Transition,
// Equal and Encode are for a status that several owners share: each applies only
// its own conditions with server-side apply.
package conditions

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Setter sets conditions of one object in one reconcile.
type Setter struct {
	list       *[]metav1.Condition
	generation int64
	now        time.Time
}

// New returns a Setter for the conditions in list. The generation becomes their
// observedGeneration; now is the time of a transition.
func New(list *[]metav1.Condition, generation int64, now time.Time) Setter {
	return Setter{list: list, generation: generation, now: now}
}

// True sets a condition to True.
func (s Setter) True(conditionType, reason, message string) {
	s.Set(conditionType, metav1.ConditionTrue, reason, message)
}

// False sets a condition to False.
func (s Setter) False(conditionType, reason, message string) {
	s.Set(conditionType, metav1.ConditionFalse, reason, message)
}

// Unknown sets a condition to Unknown.
func (s Setter) Unknown(conditionType, reason, message string) {
	s.Set(conditionType, metav1.ConditionUnknown, reason, message)
}

// Set sets a condition.
func (s Setter) Set(conditionType string, status metav1.ConditionStatus, reason, message string) {
	c := Transition(*s.list, metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message,
		ObservedGeneration: s.generation}, s.now)
	if old := meta.FindStatusCondition(*s.list, conditionType); old != nil {
		*old = c
	} else {
		*s.list = append(*s.list, c)
	}
	slices.SortStableFunc(*s.list, byType)
}

// TrueOrAbsent sets a condition to True, or removes it. It serves the conditions
// whose presence has a meaning of its own, such as kstatus' Reconciling and Stalled.
func (s Setter) TrueOrAbsent(conditionType string, is bool, reason, message string) {
	if is {
		s.True(conditionType, reason, message)
	} else {
		s.Remove(conditionType)
	}
}

// Remove removes a condition.
func (s Setter) Remove(conditionType string) { meta.RemoveStatusCondition(s.list, conditionType) }

// Get returns a condition, or nil where the list has none of the type.
func Get(list []metav1.Condition, conditionType string) *metav1.Condition {
	return meta.FindStatusCondition(list, conditionType)
}

// Status returns True for true and False for false.
func Status(is bool) metav1.ConditionStatus {
	if is {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// Transition returns c with its lastTransitionTime: that of the old condition while
// the status stays, now otherwise.
func Transition(old []metav1.Condition, c metav1.Condition, now time.Time) metav1.Condition {
	c.LastTransitionTime = metav1.NewTime(now)
	if before := meta.FindStatusCondition(old, c.Type); before != nil && before.Status == c.Status {
		c.LastTransitionTime = before.LastTransitionTime
	}
	return c
}

// Equal reports whether list already holds c, lastTransitionTime aside.
func Equal(list []metav1.Condition, c metav1.Condition) bool {
	old := meta.FindStatusCondition(list, c.Type)
	return old != nil && old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message &&
		old.ObservedGeneration == c.ObservedGeneration
}

// Encode returns conditions, sorted by type, in the form of an unstructured object.
func Encode(list []metav1.Condition) []any {
	encoded := make([]any, 0, len(list))
	for _, c := range slices.SortedStableFunc(slices.Values(list), byType) {
		fields := map[string]any{"type": c.Type, "status": string(c.Status), "reason": c.Reason, "message": c.Message,
			"lastTransitionTime": c.LastTransitionTime.UTC().Format(time.RFC3339)}
		if c.ObservedGeneration != 0 {
			fields["observedGeneration"] = c.ObservedGeneration
		}
		encoded = append(encoded, fields)
	}
	return encoded
}

func byType(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) }
