package integration

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/spoke/apply"
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
)

// Between the look at a cache and the write, an object may be deleted, and somebody
// else's may take its name. Repairs are forced, so nothing else would hold them off.
func TestARepairIsOfTheObjectThatWasLookedAt(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "namesake")
	server := lab.Members[one].Client
	children, problems := render.Render(&v1alpha1.MemberCache{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sessions.x", UID: "x"},
		Spec: v1alpha1.MemberCacheSpec{CacheCluster: "sessions", Cluster: "x"}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	desired, err := apply.Desire(applyconfigurations.NewTypeConverter(clientgoscheme.Scheme), children[:1])
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	looked := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sessions", UID: "00000000-0000-0000-0000-000000000001"}}
	repair := func() apply.Report {
		applier := &apply.Applier{Client: server, Reader: server, Recent: apply.NewRecent(), Namespace: ns, Now: time.Now, Since: time.Now()}
		return applier.Apply(t.Context(), apply.Plan{Steps: []apply.Step{{Desired: desired[0], Verb: apply.Repair, Live: looked}}})
	}
	tryAgain := func(report apply.Report) {
		t.Helper()
		if len(report.Failures) != 1 || report.Failures[0].Class != v1alpha1.ClassTransient {
			t.Errorf("failures %v, want one that is tried again: the cache is behind", report.Failures)
		}
	}

	tryAgain(repair())
	there := &corev1.Service{}
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(looked), there); !apierrors.IsNotFound(err) {
		t.Errorf("what was deleted came back as a repair, and nobody counts its deletion: %v", err)
	}

	theirs := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sessions"},
		Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"app": "theirs"}, Ports: []corev1.ServicePort{{Name: "theirs", Port: 80}}}}
	if err := server.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	tryAgain(repair())
	reload(t, server, theirs)
	if len(theirs.Labels) > 0 || len(theirs.Spec.Ports) != 1 {
		t.Errorf("somebody else's Service was taken over: labels %v, ports %v", theirs.Labels, theirs.Spec.Ports)
	}
}
