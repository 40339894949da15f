package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// patience bounds every wait. It is far longer than anything takes, so that a busy
// machine fails no test.
const patience = 2 * time.Minute

// eventually waits until check returns nil.
func eventually(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	within(t.Context(), t, patience, what, check)
}

// within waits until check returns nil, and fails the test with the last error of check
// after the limit. The context that check gets ends then too.
func within(ctx context.Context, t *testing.T, limit time.Duration, what string, check func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	gomega.NewWithT(t).Eventually(ctx, check).WithTimeout(limit).WithPolling(100*time.Millisecond).Should(gomega.Succeed(), what)
}

// namespace makes one on the hub that goes with its caches when the test ends.
func namespace(t *testing.T, name string) string {
	t.Helper()
	mustCreate(t, lab.Hub, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	t.Cleanup(func() {
		// The context of a test has ended when its cleanup runs.
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := lab.Hub.Client.DeleteAllOf(ctx, &v1alpha1.CacheCluster{}, client.InNamespace(name)); err != nil {
			t.Error(err)
		}
		within(context.Background(), t, patience, "the CacheClusters of "+name+" are deleted", func(ctx context.Context) error {
			var left v1alpha1.CacheClusterList
			if err := lab.Hub.Client.List(ctx, &left, client.InNamespace(name)); err != nil {
				return err
			}
			if len(left.Items) > 0 {
				return fmt.Errorf("%d CacheClusters are left, such as %s with the finalizers %v", len(left.Items), left.Items[0].Name, left.Items[0].Finalizers)
			}
			return nil
		})
	})
	return name
}

// cache is a CacheCluster of two pods in the named members.
func cache(namespace, name string, members ...string) *v1alpha1.CacheCluster {
	return &v1alpha1.CacheCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.CacheClusterSpec{
			CacheTemplate: v1alpha1.CacheTemplate{Replicas: ptr.To[int32](2), Memory: ptr.To(resource.MustParse("64Mi"))},
			Placement:     v1alpha1.Placement{Clusters: members},
		},
	}
}

func create(t *testing.T, cc *v1alpha1.CacheCluster) *v1alpha1.CacheCluster {
	t.Helper()
	mustCreate(t, lab.Hub, cc)
	return cc
}

// change patches a CacheCluster's spec.
func change(t *testing.T, cc *v1alpha1.CacheCluster, how func(*v1alpha1.CacheCluster)) {
	t.Helper()
	reload(t, lab.Hub.Client, cc)
	before := cc.DeepCopy()
	how(cc)
	if err := lab.Hub.Client.Patch(t.Context(), cc, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func reload(t *testing.T, c client.Client, object client.Object) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
}

// statusOf returns a member's entry, or an error with the number of entries.
func statusOf(cc *v1alpha1.CacheCluster, member string) (*v1alpha1.ClusterStatus, error) {
	for i := range cc.Status.Clusters {
		if cc.Status.Clusters[i].Name == member {
			return &cc.Status.Clusters[i], nil
		}
	}
	return nil, fmt.Errorf("no entry of %s among %d", member, len(cc.Status.Clusters))
}

// has returns an error if a CacheCluster does not have a condition with a reason.
func has(cc *v1alpha1.CacheCluster, condition string, status metav1.ConditionStatus, reason string) error {
	c := meta.FindStatusCondition(cc.Status.Conditions, condition)
	if c == nil {
		return fmt.Errorf("no condition %s", condition)
	}
	if c.Status != status || c.Reason != reason || c.ObservedGeneration != cc.Generation {
		return fmt.Errorf("%s is %s/%s %q at generation %d of %d, want %s/%s", condition, c.Status, c.Reason, c.Message, c.ObservedGeneration, cc.Generation, status, reason)
	}
	return nil
}

// becomes waits until check finds nothing wrong with the CacheCluster.
func becomes(t *testing.T, cc *v1alpha1.CacheCluster, what string, check func(*v1alpha1.CacheCluster) error) {
	t.Helper()
	eventually(t, cc.Name+" "+what, func(ctx context.Context) error {
		if err := lab.Hub.Client.Get(ctx, client.ObjectKeyFromObject(cc), cc); err != nil {
			return err
		}
		return check(cc)
	})
}

// isReady waits until every member is ready.
func isReady(t *testing.T, cc *v1alpha1.CacheCluster) {
	t.Helper()
	becomes(t, cc, "is ready", func(cc *v1alpha1.CacheCluster) error {
		return has(cc, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonAllMembersReady)
	})
}

// inState waits until a member's entry has a state and a reason.
func inState(t *testing.T, cc *v1alpha1.CacheCluster, member string, state v1alpha1.MemberState, reason string) *v1alpha1.ClusterStatus {
	t.Helper()
	var entry *v1alpha1.ClusterStatus
	becomes(t, cc, fmt.Sprintf("is %s (%s) in %s", state, reason, member), func(cc *v1alpha1.CacheCluster) (err error) {
		if entry, err = statusOf(cc, member); err != nil {
			return err
		}
		if entry.State != state || entry.Reason != reason {
			return fmt.Errorf("it is %s (%s): %s", entry.State, entry.Reason, entry.Message)
		}
		return nil
	})
	return entry
}

// childKinds of a headless cache.
func childKinds(namespace, name string) []client.Object {
	at := metav1.ObjectMeta{Namespace: namespace, Name: name}
	return []client.Object{&corev1.Service{ObjectMeta: at}, &appsv1.StatefulSet{ObjectMeta: at}, &policyv1.PodDisruptionBudget{ObjectMeta: at}}
}

// versionsOf the children of a cache in a member, by kind.
func versionsOf(t *testing.T, member, namespace, name string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, object := range childKinds(namespace, name) {
		reload(t, lab.Members[member].Client, object)
		found[fmt.Sprintf("%T", object)] = fmt.Sprintf("%s/%s", object.GetUID(), object.GetResourceVersion())
	}
	return found
}

// gone waits until a member has none of a cache's children.
func gone(t *testing.T, member, namespace, name string) {
	t.Helper()
	eventually(t, fmt.Sprintf("the children of %s/%s leave %s", namespace, name, member), func(ctx context.Context) error {
		for _, object := range childKinds(namespace, name) {
			if err := lab.Members[member].Client.Get(ctx, client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%T is there (%v), finalizers %v", object, err, object.GetFinalizers())
			}
		}
		return nil
	})
}

func contains(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s is %q, which should hold %q", what, text, part)
		}
	}
}

func quantity(s string) *resource.Quantity { return ptr.To(resource.MustParse(s)) }
