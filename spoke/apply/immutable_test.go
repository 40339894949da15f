package apply

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/children"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
)

// stored returns the desired children of a cache with volumes.
func stored(t *testing.T, change func(*v1alpha1.CacheTemplate)) []Desired {
	t.Helper()
	template := v1alpha1.CacheTemplate{
		Memcached: &v1alpha1.MemcachedSpec{Extended: []string{"modern", "ext_path=/data/extstore:8G"}},
		Storage:   &v1alpha1.StorageSpec{Size: resource.MustParse("1Gi"), StorageClassName: ptr.To("fast")},
		Service:   &v1alpha1.ServiceSpec{Type: v1alpha1.ServiceClusterIP},
	}
	if change != nil {
		change(&template)
	}
	children, problems := render.Render(&v1alpha1.MemberCache{
		ObjectMeta: metav1.ObjectMeta{Name: "sessions.member-1", Namespace: "shop", UID: "owner"},
		Spec:       v1alpha1.MemberCacheSpec{CacheCluster: "sessions", Cluster: "member-1", Template: template},
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	all, err := NewDesired(typer, children)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func withoutStorage(c *v1alpha1.CacheTemplate) { c.Storage, c.Memcached = nil, nil }

func find(t *testing.T, all []Desired, key Key) *Desired {
	t.Helper()
	for i := range all {
		if all[i].Key() == key {
			return &all[i]
		}
	}
	t.Fatalf("no %s", key)
	return nil
}

// storedBy returns a child as an API server holds it: applied, with defaults.
func storedBy(t *testing.T, d *Desired) *unstructured.Unstructured {
	t.Helper()
	u := applied(t, d)
	claims, _, _ := unstructured.NestedSlice(u.Object, "spec", "volumeClaimTemplates")
	for _, c := range claims {
		claim := c.(map[string]any)
		claim["status"] = map[string]any{"phase": "Pending"}
		claim["spec"].(map[string]any)["volumeMode"] = "Filesystem"
	}
	if len(claims) > 0 {
		set(u, claims, "spec", "volumeClaimTemplates")
	}
	return u
}

func typed(t testing.TB, u *unstructured.Unstructured) metav1.Object {
	t.Helper()
	var into metav1.Object = &corev1.Service{}
	switch u.GetKind() {
	case statefulSet:
		into = &appsv1.StatefulSet{}
	case children.BudgetKind.Kind:
		into = &policyv1.PodDisruptionBudget{}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
		t.Fatal(err)
	}
	return into
}

func TestImmutableChanges_NamesEachField(t *testing.T) {
	headless := Key{Kind: children.ServiceKind, Name: "sessions"}
	for _, c := range []struct {
		name, why string
		key       Key
		// before changes the intent that was applied, live changes the live object, and next
		// changes the present intent.
		before, next func(*v1alpha1.CacheTemplate)
		live         func(u *unstructured.Unstructured)
		want         []string
		obstructed   bool
	}{
		{"nothing", "defaults of the API server are no change", setKey, nil, nil, nil, nil, false},
		{"another spelling of the size", "quantities count by value", setKey, nil,
			func(c *v1alpha1.CacheTemplate) { c.Storage.Size = resource.MustParse("1024Mi") }, nil, nil, false},
		{"mutable fields", "retention, replicas and image are mutable", setKey, nil, func(c *v1alpha1.CacheTemplate) {
			c.Replicas, c.Image, c.Storage.WhenDeleted = ptr.To[int32](5), "memcached:2", v1alpha1.ClaimDelete
		}, nil, nil, false},
		{"the size", "", setKey, nil, func(c *v1alpha1.CacheTemplate) { c.Storage.Size = resource.MustParse("2Gi") }, nil,
			[]string{`spec.volumeClaimTemplates[name="data"].spec.resources.requests.storage cannot change from 1Gi to 2Gi`}, false},
		{"the class", "", setKey, nil, func(c *v1alpha1.CacheTemplate) { c.Storage.StorageClassName = ptr.To("slow") }, nil,
			[]string{`spec.volumeClaimTemplates[name="data"].spec.storageClassName cannot change from "fast" to "slow"`}, false},
		{"the class, left out", "none means the default", setKey, nil, func(c *v1alpha1.CacheTemplate) { c.Storage.StorageClassName = nil }, nil,
			[]string{`spec.volumeClaimTemplates[name="data"].spec.storageClassName cannot change from "fast" to the default class`}, false},
		{"new storage", "pods cannot get another volume", setKey, withoutStorage, nil, nil,
			[]string{`spec.volumeClaimTemplates[name="data"] cannot change from absent to a claim of 1Gi`}, true},
		{"removed storage", "the hub applied the claim before", setKey, nil, withoutStorage, nil,
			[]string{`spec.volumeClaimTemplates[name="data"] cannot change from a claim of 1Gi to absent`}, false},
		{"a claim of another client", "only fields of the intent are compared", setKey, withoutStorage, withoutStorage,
			func(u *unstructured.Unstructured) {
				set(u, []any{map[string]any{"metadata": map[string]any{"name": "logs"}}}, "spec", "volumeClaimTemplates")
			}, nil, false},
		{"management", "", setKey, nil, func(c *v1alpha1.CacheTemplate) {
			c.Pod = &v1alpha1.PodSpec{Management: v1alpha1.PodManagementOrderedReady}
		}, nil, []string{`spec.podManagementPolicy cannot change from "Parallel" to "OrderedReady"`}, false},
		{"all fields, changed by another client", "in the order of paths", setKey, nil, nil, func(u *unstructured.Unstructured) {
			set(u, "other", "spec", "serviceName")
			set(u, "OrderedReady", "spec", "podManagementPolicy")
			set(u, map[string]any{"matchLabels": map[string]any{"app": "x"}}, "spec", "selector")
		}, []string{`spec.podManagementPolicy cannot change from "OrderedReady" to "Parallel"`,
			`spec.selector cannot change from "app=x" to "app.kubernetes.io/instance=sessions,app.kubernetes.io/name=memcached"`,
			`spec.serviceName cannot change from "other" to "sessions"`}, true},
		{"an address instead of None", "clients would not see the pods", headless, nil, nil,
			func(u *unstructured.Unstructured) { set(u, "10.0.0.7", "spec", "clusterIP") },
			[]string{`spec.clusterIP cannot change from "10.0.0.7" to "None"`}, false},
		{"None instead of an address", "clients would not reach it", clientKey, nil, nil,
			func(u *unstructured.Unstructured) { set(u, "None", "spec", "clusterIP") },
			[]string{`spec.clusterIP cannot change from "None" to an address`}, false},
		{"any address", "the API server chose it", clientKey, nil, nil,
			func(u *unstructured.Unstructured) { set(u, "10.0.0.7", "spec", "clusterIP") }, nil, false},
		{"a Service of another type", "the type is mutable", clientKey, nil, nil, func(u *unstructured.Unstructured) { set(u, "NodePort", "spec", "type") }, nil, false},
		{"an ExternalName", "its address is mutable", headless, nil, nil, func(u *unstructured.Unstructured) {
			set(u, "ExternalName", "spec", "type")
			unstructured.RemoveNestedField(u.Object, "spec", "clusterIP")
		}, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			live := storedBy(t, find(t, stored(t, c.before), c.key))
			if c.live != nil {
				c.live(live)
			}
			next := find(t, stored(t, c.next), c.key)
			for kind, object := range map[string]metav1.Object{"unstructured": live, "typed": typed(t, live)} {
				var got []string
				obstructed := false
				for _, s := range immutableChanges(next.Intent, object) {
					got = append(got, s.String())
					obstructed = obstructed || s.obstacle != ""
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("%s, %s (-want +got):\n%s", c.why, kind, diff)
				}
				if obstructed != c.obstructed {
					t.Errorf("%s: recreation obstructed: %t", kind, obstructed)
				}
			}
			// After the other fields are applied, a second apply changes nothing and nothing drifts.
			retained, _ := retainImmutable(*next, live)
			all, err := drift.IntentFields(typer, retained.Intent)
			if err != nil {
				t.Fatal(err)
			}
			after := storedBy(t, &Desired{Child: retained.Child, Fields: all})
			if again, _ := retainImmutable(*next, after); !drift.Diff(again.Fields, next.Hash, after, nil).Clean() || !cmp.Equal(retained.Intent, again.Intent) {
				t.Error("a second apply would change something")
			}
			if remaining := immutableChanges(retained.Intent, live); len(remaining) > 0 && c.key != clientKey {
				t.Errorf("the API server would refuse the intent: %v", remaining)
			}
		})
	}
}

func TestRetainImmutable_AdaptsContainerToLiveClaims(t *testing.T) {
	with, without := find(t, stored(t, nil), setKey), find(t, stored(t, withoutStorage), setKey)
	container := func(d Desired) map[string]any {
		containers, _, _ := unstructured.NestedSlice(d.Intent.Object, "spec", "template", "spec", "containers")
		return containers[0].(map[string]any)
	}
	retained, _ := retainImmutable(*with, storedBy(t, without))
	if _, mounted := container(retained)["volumeMounts"]; mounted || strings.Contains(join(container(retained)["args"]), "/data") || !strings.Contains(join(container(retained)["args"]), "--extended=modern") {
		t.Errorf("mounts %v and arguments %q: a pod without the volume would not start", container(retained)["volumeMounts"], join(container(retained)["args"]))
	}
	retained, _ = retainImmutable(*without, storedBy(t, with))
	if diff := cmp.Diff(container(*with)["volumeMounts"], container(retained)["volumeMounts"]); diff != "" {
		t.Errorf("the mount is absent although the claim exists (-want +got):\n%s", diff)
	}
	if !cmp.Equal(with.Intent, find(t, stored(t, nil), setKey).Intent) {
		t.Error("the desired intent was changed")
	}
}

func reasonOf(f *failure.Failure) string {
	if f == nil {
		return ""
	}
	return f.Reason
}

func join(list any) string {
	text := ""
	for _, e := range list.([]any) {
		text += e.(string) + " "
	}
	return text
}

func TestDecide_RecreatesOnlyWithConsent(t *testing.T) {
	bigger := func(c *v1alpha1.CacheTemplate) {
		c.Storage.Size, c.Replicas = resource.MustParse("2Gi"), ptr.To[int32](5)
	}
	consent := v1alpha1.Policies{Recreate: v1alpha1.RecreateOrphanPods}
	for _, c := range []struct {
		name, why    string
		before, next func(*v1alpha1.CacheTemplate)
		policies     v1alpha1.Policies
		noted        bool
		deleting     bool
		action       Action
		// retained and failure are reasons; text is in one of the messages.
		retained, failure, text string
	}{
		{"without consent", "replicas are applied", nil, bigger, v1alpha1.Policies{}, false, false, Update, v1alpha1.ReasonImmutableField, "", "spec.recreate: OrphanPods"},
		{"with consent", "", nil, bigger, consent, false, false, Recreate, "", v1alpha1.ReasonRecreating, "its running pods stay"},
		{"with consent that is noted", "", nil, bigger, consent, true, false, Recreate, "", v1alpha1.ReasonRecreating, ""},
		{"being deleted for the recreation", "its pods wait for the successor", nil, bigger, consent, true, true, Wait, "", v1alpha1.ReasonRecreating, ""},
		{"being deleted for the recreation, without consent since", "the deletion cannot be reverted", nil, bigger, v1alpha1.Policies{}, true, true, Wait, "", v1alpha1.ReasonRecreating, ""},
		{"deleted by another client", "the hub did not delete it", nil, bigger, v1alpha1.Policies{}, false, true, Wait, "", v1alpha1.ReasonChildrenTerminating, ""},
		{"reverted before the recreation", "", nil, nil, consent, true, false, None, "", "", ""},
		{"a new claim, with consent", "the successor cannot adopt the pods", withoutStorage, nil, consent, false, false, Update, v1alpha1.ReasonImmutableField, "", "kubectl delete -n shop statefulset/sessions"},
	} {
		t.Run(c.name, func(t *testing.T) {
			live := storedBy(t, find(t, stored(t, c.before), setKey))
			if c.deleting {
				live.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(0, 0)})
			}
			e := entry(setKey, live)
			e.Recreating = c.noted
			o := Owner{Mark: owner.Mark, Inventory: []v1alpha1.InventoryEntry{e}, Policies: c.policies}
			step := decide(*find(t, stored(t, c.next), setKey), live, &o, nil)
			if step.Action != c.action {
				t.Errorf("%s: %s, want %s", c.why, step.Action, c.action)
			}
			if got := reasonOf(step.Retained); got != c.retained {
				t.Errorf("retained: %q, want %q", got, c.retained)
			}
			if got := reasonOf(step.Failure); got != c.failure {
				t.Errorf("failure: %q, want %q", got, c.failure)
			}
			said := ""
			for _, f := range []*failure.Failure{step.Retained, step.Failure} {
				if f != nil {
					said += f.Error()
				}
			}
			if !strings.Contains(said, c.text) {
				t.Errorf("the failure is %q, want %q in it", said, c.text)
			}
		})
	}
}

// The note in the inventory outlives the manager, which then knows why the child is absent.
func TestDecide_RecreatedChildIsNoDrift(t *testing.T) {
	d := find(t, stored(t, nil), setKey)
	e := v1alpha1.InventoryEntry{Group: "apps", Kind: "StatefulSet", Name: "sessions", UID: "old", Recreating: true}
	step := decide(*d, nil, &Owner{Mark: owner.Mark, Inventory: []v1alpha1.InventoryEntry{e}}, nil)
	if step.Action != Create || step.Deleted {
		t.Errorf("%s, deleted by another client %t", step.Action, step.Deleted)
	}
	live := storedBy(t, d)
	for _, c := range []struct {
		observed int64
		noted    bool
	}{{0, true}, {1, false}} {
		set(live, c.observed, "status", "observedGeneration")
		step := decide(*d, live, &Owner{Mark: owner.Mark, Inventory: []v1alpha1.InventoryEntry{e}}, nil)
		if noted := step.resultWith(live).Entry; noted.Recreating != c.noted || noted.UID != live.GetUID() {
			t.Errorf("observed generation %d: noted %t, want %t", c.observed, noted.Recreating, c.noted)
		}
	}
}
