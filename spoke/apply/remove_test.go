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
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
)

// holding is a member that holds the live objects.
func holding(t *testing.T, live Live) client.WithWatch {
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

func TestServicesAndBudgetsStayUntilThePodsAreGone(t *testing.T) {
	live := liveOf(t, desired(t))
	// What is deleted in the foreground stays until its dependents are gone.
	live[setKey].SetFinalizers([]string{"foregroundDeletion"})
	server := holding(t, live)
	a := New(Options{Client: server, Namespace: "shop"})

	left, failures := outcome(a.Remove(t.Context(), Targets(live, owner)))
	if diff := cmp.Diff([]string{"StatefulSet/sessions", "PodDisruptionBudget/sessions", "Service/sessions"}, names(left)); diff != "" || len(failures) > 0 {
		t.Fatalf("left (-want +got):\n%s\nfailures %v", diff, failures)
	}
	for _, key := range []Key{budgetKey, {Kind: render.ServiceKind, Name: "sessions"}} {
		if found, err := a.get(t.Context(), key); found == nil || err != nil || found.GetDeletionTimestamp() != nil {
			t.Errorf("%s is gone while pods run: %v", key, err)
		}
	}
	delete(live, setKey)
	if left, failures := outcome(a.Remove(t.Context(), Targets(live, owner))); len(left)+len(failures) > 0 {
		t.Errorf("left %v, failures %v", names(left), failures)
	}
}

func TestOnlyOurMarksAreTakenOff(t *testing.T) {
	live := liveOf(t, desired(t))
	set := live[setKey]
	labels, annotations := set.GetLabels(), set.GetAnnotations()
	labels["team"], annotations["example.org/note"] = "checkout", "x"
	set.SetLabels(labels)
	set.SetAnnotations(annotations)
	server := holding(t, live)
	a := New(Options{Client: server, Namespace: "shop"})
	targets := Targets(live, owner)
	// A namesake of another life is not ours to touch.
	targets = append(targets, Target{Key: setKey, UID: "older"})
	for range 2 {
		if left, failures := outcome(a.Release(t.Context(), targets)); len(left)+len(failures) > 0 {
			t.Fatalf("left %v, failures %v", names(left), failures)
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
		t.Error("a second release would write again")
	}
	var patch map[string]map[string]any
	if err := json.Unmarshal(releasePatch(live[budgetKey]), &patch); err != nil || patch["metadata"]["uid"] != string(live[budgetKey].GetUID()) {
		t.Errorf("%v: the patch is not for this very object: %v", err, patch)
	}
}

// A member that asks to come again later, or does not answer, is sent nothing more: each
// further request would be one too many, or cost a time-out.
func TestNoChildIsComeToAfterOneThatSaysThatTheMemberWillNotAnswer(t *testing.T) {
	for _, met := range []error{apierrors.NewTooManyRequests("slow down", 7), &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}} {
		for name, end := range map[string]func(a *Applier, live Live) (left []string, failures []*failure.Failure){
			"remove": func(a *Applier, live Live) ([]string, []*failure.Failure) {
				delete(live, setKey)
				left, failures := outcome(a.Remove(t.Context(), Targets(live, owner)))
				return names(left), failures
			},
			"release": func(a *Applier, live Live) ([]string, []*failure.Failure) {
				delete(live, setKey)
				left, failures := outcome(a.Release(t.Context(), Targets(live, owner)))
				return names(left), failures
			},
			"prune": func(a *Applier, live Live) ([]string, []*failure.Failure) {
				delete(live, setKey)
				o := owner
				for _, target := range Targets(live, owner) {
					o.Inventory = append(o.Inventory, target.entry())
				}
				report := a.Apply(t.Context(), Decide(nil, live, o, nil))
				var left []string
				for _, e := range report.Inventory {
					left = append(left, keyOf(e).String())
				}
				slices.Sort(left)
				return left, report.Failures
			},
		} {
			t.Run(fmt.Sprintf("%s: %v", name, met), func(t *testing.T) {
				live := liveOf(t, desired(t))
				sent := 0
				server := interceptor.NewClient(holding(t, live), interceptor.Funcs{
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

				left, failures := end(a, live)

				if sent != 1 || len(failures) != 1 {
					t.Errorf("%d requests and %d failures, want one of each", sent, len(failures))
				}
				if diff := cmp.Diff([]string{"PodDisruptionBudget/sessions", "Service/sessions"}, left); diff != "" {
					t.Errorf("known to be left (-want +got):\n%s", diff)
				}
			})
		}
	}
}
