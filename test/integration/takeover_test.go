package integration

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
)

// foreign makes the children of a cache in a member as another client would, without
// a mark of ours.
func foreign(t *testing.T, member string, cc *v1alpha1.CacheCluster) {
	t.Helper()
	children, problems := render.Render(&v1alpha1.MemberCache{ObjectMeta: metav1.ObjectMeta{Namespace: cc.Namespace, Name: cc.Name + "." + member, UID: "x"},
		Spec: v1alpha1.MemberCacheSpec{CacheCluster: cc.Name, Cluster: member, Template: cc.Spec.CacheTemplate}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	server := lab.Members[member].Client
	if err := server.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cc.Namespace}}); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	for _, child := range children {
		u := child.Intent.DeepCopy()
		u.SetLabels(map[string]string{"team": "checkout"})
		u.SetAnnotations(map[string]string{"example.org/note": "x"})
		if err := server.Create(t.Context(), u, client.FieldOwner("helm")); err != nil {
			t.Fatal(err)
		}
	}
}

// identities of the children: UID, generation, and what another client had put on.
func identities(t *testing.T, member, namespace, name string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, object := range childKinds(namespace, name) {
		reload(t, lab.Members[member].Client, object)
		found[fmt.Sprintf("%T", object)] = fmt.Sprintf("%s generation %d team %s note %s", object.GetUID(), object.GetGeneration(),
			object.GetLabels()["team"], object.GetAnnotations()["example.org/note"])
	}
	return found
}

func owners(t *testing.T, member, namespace, name string) []string {
	t.Helper()
	var marks []string
	for _, object := range childKinds(namespace, name) {
		reload(t, lab.Members[member].Client, object)
		marks = append(marks, object.GetAnnotations()[v1alpha1.AnnotationOwner])
	}
	return marks
}

// With real controllers a StatefulSet whose generation stays restarts no pod.
func TestTakeover_IfMatchingTakesOnlyMatchingObjects(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "takeover-matching")
	cc := cache(ns, "sessions", one)
	cc.Spec.Replicas = ptr.To[int32](5)
	foreign(t, one, cc)
	before, versions := identities(t, one, ns, "sessions"), versionsOf(t, one, ns, "sessions")

	cc.Spec.Replicas, cc.Spec.Takeover = ptr.To[int32](2), v1alpha1.TakeoverIfMatching
	create(t, cc)
	entry := inState(t, cc, one, v1alpha1.MemberBlocked, v1alpha1.ReasonObjectOfAnother)
	contains(t, "message", entry.Message, "StatefulSet/sessions", "takeover IfMatching would change its spec.replicas", "its field managers are helm")
	contains(t, "hint", entry.Hint, "spec.takeover: Always")
	if marks := owners(t, one, ns, "sessions"); !cmp.Equal(marks, []string{"", "", ""}) {
		t.Errorf("marks %q: a member takes all of a cache or nothing", marks)
	}
	delete(versions, "*v1.StatefulSet") // the stand-in for its controller writes its status
	now := versionsOf(t, one, ns, "sessions")
	delete(now, "*v1.StatefulSet")
	if diff := cmp.Diff(versions, now); diff != "" {
		t.Errorf("what was refused was changed:\n%s", diff)
	}

	change(t, cc, func(cc *v1alpha1.CacheCluster) { cc.Spec.Replicas = ptr.To[int32](5) })
	isReady(t, cc)
	if diff := cmp.Diff(before, identities(t, one, ns, "sessions")); diff != "" {
		t.Errorf("more than our metadata changed (-before +after):\n%s", diff)
	}
	for _, mark := range owners(t, one, ns, "sessions") {
		if want := string(cc.UID) + "/" + one; mark != want {
			t.Errorf("mark %q, want %q", mark, want)
		}
	}
	if n := countOf(t, cc, one); n != 0 {
		t.Errorf("%d drifts: a takeover is none", n)
	}
}

func TestTakeover_AlwaysAppliesSpec(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "takeover-always")
	cc := storing(ns, "sessions", one)
	cc.Spec.Replicas, cc.Spec.Image = ptr.To[int32](5), "memcached:theirs"
	cc.Spec.Pod = &v1alpha1.PodSpec{Management: v1alpha1.PodManagementOrderedReady}
	foreign(t, one, cc)
	before := setOf(t, one, ns, "sessions")

	cc.Spec.Replicas, cc.Spec.Image, cc.Spec.Pod, cc.Spec.Takeover = ptr.To[int32](2), "", nil, v1alpha1.TakeoverAlways
	create(t, cc)
	entry := inState(t, cc, one, v1alpha1.MemberBlocked, v1alpha1.ReasonImmutableField)
	contains(t, "message", entry.Message, "spec.podManagementPolicy")
	set := setOf(t, one, ns, "sessions")
	if set.UID != before.UID || *set.Spec.Replicas != 2 || set.Spec.Template.Spec.Containers[0].Image != "memcached:1.6" || set.Labels["team"] != "checkout" {
		t.Errorf("%d replicas of %s, team %q", *set.Spec.Replicas, set.Spec.Template.Spec.Containers[0].Image, set.Labels["team"])
	}
	change(t, cc, func(cc *v1alpha1.CacheCluster) { cc.Spec.Recreate = v1alpha1.RecreateOrphanPods })
	isReady(t, cc)
	if set := setOf(t, one, ns, "sessions"); set.UID == before.UID || set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement {
		t.Errorf("pod management %s", set.Spec.PodManagementPolicy)
	}
}

func TestTakeover_RefusesObjectOfAnotherCacheCluster(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "takeover-rivals")
	cc := cache(ns, "sessions", one)
	foreign(t, one, cc)
	set := setOf(t, one, ns, "sessions")
	edit(t, one, set, func() { set.Annotations[v1alpha1.AnnotationOwner] = "11111111-2222-3333-4444-555555555555/theirs" })
	cc.Spec.Takeover = v1alpha1.TakeoverAlways
	create(t, cc)
	entry := inState(t, cc, one, v1alpha1.MemberBlocked, v1alpha1.ReasonObjectOfAnother)
	contains(t, "message", entry.Message, "StatefulSet/sessions", "UID 11111111-2222-3333-4444-555555555555", "member theirs")
	if marks := owners(t, one, ns, "sessions"); marks[0] != "" || marks[2] != "" {
		t.Errorf("marks %q: a member takes all of a cache or nothing", marks)
	}
	// What the hint says frees it.
	contains(t, "hint", entry.Hint, "kubectl annotate -n "+ns+" statefulset/sessions cache.reconcile-lab.io/owner-")
	edit(t, one, set, func() { delete(set.Annotations, v1alpha1.AnnotationOwner) })
	isReady(t, cc)
	if after := setOf(t, one, ns, "sessions"); after.UID != set.UID {
		t.Error("it was replaced")
	}
}

func TestTakeover_CorrectsEditedOwnerMarkOnlyWithConsent(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "takeover-mark")
	cc := create(t, cache(ns, "sessions", one))
	isReady(t, cc)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sessions"}}
	edit(t, one, budget, func() { budget.Annotations[v1alpha1.AnnotationOwner] = "mine" })
	entry := inState(t, cc, one, v1alpha1.MemberBlocked, v1alpha1.ReasonObjectOfAnother)
	contains(t, "message", entry.Message, "another client changed its annotation")
	contains(t, "hint", entry.Hint, "spec.takeover: Always", v1alpha1.AnnotationOwner+"="+string(cc.UID)+"/"+one)

	change(t, cc, func(cc *v1alpha1.CacheCluster) { cc.Spec.Takeover = v1alpha1.TakeoverAlways })
	isReady(t, cc)
	uid := budget.UID
	reload(t, lab.Members[one].Client, budget)
	if got, want := budget.Annotations[v1alpha1.AnnotationOwner], string(cc.UID)+"/"+one; got != want || budget.UID != uid {
		t.Errorf("mark %q, want %q", got, want)
	}
}
