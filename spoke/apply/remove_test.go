package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/children"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
)

// memberWith returns a member with the live objects.
func memberWith(t *testing.T, live Live) client.WithWatch {
	t.Helper()
	b := fake.NewClientBuilder().WithScheme(scheme.Scheme)
	for key, object := range live {
		made, err := scheme.Scheme.New(key.Kind)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			t.Fatal(err)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, made); err != nil {
			t.Fatal(err)
		}
		made.(client.Object).SetManagedFields(nil)
		b = b.WithObjects(made.(client.Object))
	}
	return b.Build()
}

// outcome returns the remaining targets and the failures of removals.
func outcome(removals []Removal) ([]Target, []*failure.Failure) {
	return RemainingTargets(removals), RemovalFailures(removals)
}

func names(targets []Target) []string {
	var all []string
	for _, target := range targets {
		all = append(all, target.Key.String())
	}
	return all
}

func TestRemove_KeepsServicesAndBudgetsUntilStatefulSetIsGone(t *testing.T) {
	live := liveOf(t, desired(t))
	// An object that is deleted in the foreground exists until its dependents are deleted.
	live[setKey].SetFinalizers([]string{"foregroundDeletion"})
	server := memberWith(t, live)
	a := New(Options{Client: server, Namespace: "shop"})

	remaining, failures := outcome(a.Remove(t.Context(), Targets(live, owner)))
	if diff := cmp.Diff([]string{"StatefulSet/sessions", "PodDisruptionBudget/sessions", "Service/sessions"}, names(remaining)); diff != "" || len(failures) > 0 {
		t.Fatalf("remaining (-want +got):\n%s\nfailures %v", diff, failures)
	}
	for _, key := range []Key{budgetKey, {Kind: children.ServiceKind, Name: "sessions"}} {
		if found, err := a.get(t.Context(), key); found == nil || err != nil || found.GetDeletionTimestamp() != nil {
			t.Errorf("%s is deleted while pods run: %v", key, err)
		}
	}
	delete(live, setKey)
	if remaining, failures := outcome(a.Remove(t.Context(), Targets(live, owner))); len(remaining)+len(failures) > 0 {
		t.Errorf("remaining %v, failures %v", names(remaining), failures)
	}
}

func TestRelease_RemovesOnlyHubMarks(t *testing.T) {
	live := liveOf(t, desired(t))
	set := live[setKey]
	labels, annotations := set.GetLabels(), set.GetAnnotations()
	labels["team"], annotations["example.org/note"] = "checkout", "x"
	set.SetLabels(labels)
	set.SetAnnotations(annotations)
	server := memberWith(t, live)
	a := New(Options{Client: server, Namespace: "shop"})
	targets := Targets(live, owner)
	// A target with an older UID names a predecessor, and the live object must stay.
	targets = append(targets, Target{Key: setKey, UID: "older"})
	for range 2 {
		if remaining, failures := outcome(a.Release(t.Context(), targets)); len(remaining)+len(failures) > 0 {
			t.Fatalf("remaining %v, failures %v", names(remaining), failures)
		}
	}
	found, err := a.get(t.Context(), setKey)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{v1alpha1.LabelInstance, v1alpha1.LabelName, "team"}, slices.Sorted(maps.Keys(found.GetLabels()))); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"example.org/note": "x"}, found.GetAnnotations()); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if releasePatch(found) != nil {
		t.Error("a second release would write")
	}
	var patch map[string]map[string]any
	if err := json.Unmarshal(releasePatch(live[budgetKey]), &patch); err != nil || patch["metadata"]["uid"] != string(live[budgetKey].GetUID()) {
		t.Errorf("%v: the patch does not name the UID: %v", err, patch)
	}
}

// Each further request to a member that is unreachable or asks for a pause would be one too
// many, or cost a timeout.
func TestRemoval_StopsAtUnreachableMember(t *testing.T) {
	for _, met := range []error{apierrors.NewTooManyRequests("slow down", 7), &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}} {
		for name, end := range map[string]func(a *Applier, live Live) (remaining []string, failures []*failure.Failure){
			"remove": func(a *Applier, live Live) ([]string, []*failure.Failure) {
				delete(live, setKey)
				remaining, failures := outcome(a.Remove(t.Context(), Targets(live, owner)))
				return names(remaining), failures
			},
			"release": func(a *Applier, live Live) ([]string, []*failure.Failure) {
				delete(live, setKey)
				remaining, failures := outcome(a.Release(t.Context(), Targets(live, owner)))
				return names(remaining), failures
			},
			"prune": func(a *Applier, live Live) ([]string, []*failure.Failure) {
				delete(live, setKey)
				o := owner
				for _, target := range Targets(live, owner) {
					o.Inventory = append(o.Inventory, target.entry())
				}
				report := a.Apply(t.Context(), Decide(nil, live, o, nil))
				var remaining []string
				for _, e := range report.Inventory {
					remaining = append(remaining, keyOf(e).String())
				}
				slices.Sort(remaining)
				return remaining, report.Failures
			},
		} {
			t.Run(fmt.Sprintf("%s: %v", name, met), func(t *testing.T) {
				live := liveOf(t, desired(t))
				sent := 0
				server := interceptor.NewClient(memberWith(t, live), interceptor.Funcs{
					Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
						sent++
						return met
					},
					Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
						sent++
						return met
					},
				})
				a := New(Options{Client: server, Namespace: "shop"})

				remaining, failures := end(a, live)

				if sent != 1 || len(failures) != 1 {
					t.Errorf("%d requests and %d failures, want one of each", sent, len(failures))
				}
				if diff := cmp.Diff([]string{"PodDisruptionBudget/sessions", "Service/sessions"}, remaining); diff != "" {
					t.Errorf("known to be remaining (-want +got):\n%s", diff)
				}
			})
		}
	}
}
