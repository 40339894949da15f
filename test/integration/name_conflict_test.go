package integration

import (
	"fmt"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/children"
	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
)

// Between the read of a cache and the write, an object may be deleted, and another
// client may create one of the same name. Corrections are forced, so no conflict stops them.
func TestNameConflict_CorrectionRequiresUIDOfReadObject(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "namesake")
	server := lab.Members[one].Client
	desired, _ := desiredOf(t, ns, "sessions", "x")
	memberNamespace(t, server, ns)
	read := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sessions", UID: "00000000-0000-0000-0000-000000000001"}}
	correct := func() apply.Report {
		applier := apply.New(apply.Options{Client: server, Namespace: ns, EventTime: time.Now()})
		return applier.Apply(t.Context(), apply.Plan{Steps: []apply.Step{{Desired: desired[0], Action: apply.Correct, Live: read}}})
	}
	retries := func(report apply.Report) {
		t.Helper()
		if len(report.Failures) != 1 || report.Failures[0].Class != v1alpha1.ClassTransient {
			t.Errorf("failures %v, want one that is retried: the cache is stale", report.Failures)
		}
	}

	retries(correct())
	there := &corev1.Service{}
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(read), there); !apierrors.IsNotFound(err) {
		t.Errorf("a deleted Service was recreated as a correction, so its deletion is not counted: %v", err)
	}

	theirs := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sessions"},
		Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"app": "theirs"}, Ports: []corev1.ServicePort{{Name: "theirs", Port: 80}}}}
	if err := server.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	retries(correct())
	reload(t, server, theirs)
	if len(theirs.Labels) > 0 || len(theirs.Spec.Ports) != 1 {
		t.Errorf("another owner's Service was taken over: labels %v, ports %v", theirs.Labels, theirs.Spec.Ports)
	}
}

// desiredOf returns the children of a headless cache, and the mark of their owner.
func desiredOf(t *testing.T, ns, name string, uid types.UID) ([]apply.Desired, string) {
	t.Helper()
	mc := &v1alpha1.MemberCache{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name + ".x", UID: uid}, Spec: v1alpha1.MemberCacheSpec{CacheCluster: name, Cluster: "x"}}
	rendered, problems := render.Render(mc)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	desired, err := apply.NewDesired(applyconfigurations.NewTypeConverter(clientgoscheme.Scheme), rendered)
	if err != nil {
		t.Fatal(err)
	}
	return desired, children.OwnerMark(mc)
}

func memberNamespace(t *testing.T, server client.Client, ns string) {
	t.Helper()
	if err := server.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
}

// They have one field manager, so no conflict of fields keeps one of them off.
func TestNameConflict_OneOfTwoHubsCreatesTheObject(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "two-hubs")
	server := lab.Members[one].Client
	memberNamespace(t, server, ns)
	for round := range 10 {
		name := fmt.Sprint("sessions-", round)
		reports, marks := make([]apply.Report, 2), make([]string, 2)
		var both sync.WaitGroup
		for hub := range reports {
			desired, mark := desiredOf(t, ns, name, types.UID(fmt.Sprint("hub-", hub)))
			owner := apply.Owner{Mark: mark}
			marks[hub] = mark
			applier := apply.New(apply.Options{Client: server, Namespace: ns, EventTime: time.Now()})
			both.Go(func() {
				reports[hub] = applier.Apply(t.Context(), apply.Decide(desired, apply.Live{}, owner, nil))
			})
		}
		both.Wait()
		created := map[apply.Key]string{}
		for hub := range reports {
			for _, c := range reports[hub].Changes {
				if other, ok := created[c.Key]; ok {
					t.Errorf("%s was created for %s and for %s", c.Key, other, marks[hub])
				}
				created[c.Key] = marks[hub]
			}
		}
		if len(reports[0].Failures)+len(reports[1].Failures) == 0 {
			t.Errorf("no hub reports a conflict with the other: %v", created)
		}
		for key, mark := range created {
			there := &metav1.PartialObjectMetadata{}
			there.SetGroupVersionKind(key.Kind)
			if err := server.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: key.Name}, there); err != nil {
				t.Fatal(err)
			}
			if got := there.Annotations[v1alpha1.AnnotationOwner]; got != mark {
				t.Errorf("%s was created for %s and has the mark %s", key, mark, got)
			}
		}
	}
}

// A cache's client Service has the name of the other's headless one.
func TestNameConflict_LaterOfTwoCachesGetsNothing(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "two-caches")
	const pairs = 6
	var caches []*v1alpha1.CacheCluster
	for i := range pairs {
		first := cache(ns, fmt.Sprint("c", i), one)
		first.Spec.Service = &v1alpha1.ServiceSpec{Type: v1alpha1.ServiceClusterIP}
		caches = append(caches, first, cache(ns, fmt.Sprintf("c%d-client", i), one))
	}
	var all sync.WaitGroup
	for _, cc := range caches {
		all.Go(func() { _ = lab.Hub.Client.Create(t.Context(), cc) })
	}
	all.Wait()
	for i := range pairs {
		pair := caches[2*i : 2*i+2]
		var winner, loser *v1alpha1.CacheCluster
		for _, cc := range pair {
			becomes(t, cc, "is ready, or reports the conflict", func(cc *v1alpha1.CacheCluster) error {
				entry, err := statusOf(cc, one)
				switch {
				case err != nil:
					return err
				case entry.State == v1alpha1.MemberReady:
					winner = cc
				case entry.Reason == v1alpha1.ReasonObjectOfAnother:
					loser = cc
				default:
					return fmt.Errorf("%s %+v", entry.State, entry.Outcome)
				}
				return nil
			})
		}
		if winner == nil || loser == nil {
			t.Errorf("pair %d: winner %v, loser %v", i, winner, loser)
			continue
		}
		err := lab.Members[one].Client.Get(t.Context(), client.ObjectKeyFromObject(loser), &appsv1.StatefulSet{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("%s reports a name conflict, but has its StatefulSet: %v", loser.Name, err)
		}
		service := &corev1.Service{}
		if err := lab.Members[one].Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: fmt.Sprintf("c%d-client", i)}, service); err != nil {
			t.Fatal(err)
		}
		if mark := service.Annotations[v1alpha1.AnnotationOwner]; mark != string(winner.UID)+"/"+one {
			t.Errorf("the Service has the mark %s, and %s (%s) is ready", mark, winner.Name, winner.UID)
		}
	}
}
