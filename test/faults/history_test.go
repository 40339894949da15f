//go:build faults

package faults

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/test/harness"
)

var (
	cacheNames  = []string{"alpha", "beta", "gamma"}
	memberNames = []string{one, two, three}
	images      = []string{"", "memcached:1.6.37", "memcached:1.6.38"}
	memories    = []string{"64Mi", "96Mi", "128Mi"}
	oneGi       = resource.MustParse("1Gi")
)

// step is one thing that happens. What its fields mean depends on Do; all are drawn
// each time, so that a smaller history has the same steps.
type step struct {
	Do            string
	Cache, Member string
	N             int
}

func (s step) String() string { return fmt.Sprintf("%s(%s, %s, %d)", s.Do, s.Cache, s.Member, s.N) }

// happenings, those that happen more often more than once.
var happenings = []string{
	"create", "create", "create", "create", "scale", "scale", "image", "image", "memory", "place", "place", "policy", "delete", "recreate",
	"edit", "edit", "edit", "remove", "remove", "annotate", "foreign",
	"close", "swallow", "forward", "forward", "leave", "join",
	"lie", "lie", "restart", "kill", "clock", "wait", "wait",
}

func steps() *rapid.Generator[[]step] {
	one := rapid.Custom(func(t *rapid.T) step {
		return step{
			Do:    rapid.SampledFrom(happenings).Draw(t, "do"),
			Cache: rapid.SampledFrom(cacheNames).Draw(t, "cache"), Member: rapid.SampledFrom(memberNames).Draw(t, "member"),
			N: rapid.IntRange(0, 255).Draw(t, "n"),
		}
	})
	return rapid.SliceOfN(one, 8, 30)
}

// all is the number of histories. A sample has a few of them.
const all = 60

func TestHistories_KeepInvariants(t *testing.T) {
	if settings.Case != nil && settings.Case.Scenario != Histories {
		t.Skip("CASE selects a scenario")
	}
	first, count := uint64(settings.Seed)*1000+1, 4
	chosen := settings.Case != nil
	whole := settings.Full || settings.Parts > 1 || chosen
	switch {
	case chosen && settings.Case.History != nil:
		first, count, whole = *settings.Case.History, 1, false
	case whole:
		// Each part has its share.
		first, count = first+uint64((settings.Part-1)*all/settings.Parts), settings.Part*all/settings.Parts-(settings.Part-1)*all/settings.Parts
	}
	if settings.Histories >= 0 {
		count = settings.Histories
	}
	if count == 0 {
		if chosen {
			t.Fatalf("CASE: %q: no history is left with PART %d/%d and FAULTS_HISTORIES %d, so nothing was tested; unset them", settings.Case, settings.Part, settings.Parts, settings.Histories)
		}
		t.Skipf("no history is left with PART %d/%d and FAULTS_HISTORIES %d", settings.Part, settings.Parts, settings.Histories)
	}
	if lab.manager != nil {
		if err := lab.manager.Stop(); err != nil {
			t.Error(err)
		}
		lab.manager = nil
	}
	gates, err := lab.gated(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	shrink := "0s"
	if whole || count == 1 {
		shrink = "3m"
	}
	for name, value := range map[string]string{"rapid.checks": "1", "rapid.shrinktime": shrink, "rapid.nofailfile": "true"} {
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	begun := time.Now()
	for i := range count {
		n := first + uint64(i)
		if !whole && time.Since(begun) > time.Minute {
			t.Logf("%d of %d histories in a minute", i, count)
			break
		}
		ok := t.Run(fmt.Sprint(n), func(t *testing.T) {
			if err := flag.Set("rapid.seed", fmt.Sprint(n)); err != nil {
				t.Fatal(err)
			}
			at := time.Now()
			length := 0
			defer func() {
				out.history(historyReport{Seed: n, Steps: length, Seconds: time.Since(at).Seconds(), Failed: t.Failed()})
			}()
			rapid.Check(t, func(rt *rapid.T) {
				drawn := steps().Draw(rt, "steps")
				length = max(length, len(drawn))
				if err := live(t.Context(), gates, drawn); err != nil {
					rt.Fatalf("%v\nreplay: make faults CASE=history/%d", err, n)
				}
			})
		})
		if !ok {
			out.problem("history %d failed; replay: make faults CASE=history/%d", n, n)
		}
	}
}

// live lets a history happen and looks at what is left when it is over.
func live(ctx context.Context, gates map[string]*harness.Gate, drawn []step) error {
	w, err := newWorld(ctx, lab, gates)
	if err != nil {
		return err
	}
	var passed []string
	for _, s := range drawn {
		begun := time.Now()
		if err := w.do(s); err != nil {
			err = fmt.Errorf("%s: %w\nafter:\n  %s", s, err, strings.Join(passed, "\n  "))
			// The next history must not find this one's noise.
			return errors.Join(err, w.heal(), w.end())
		}
		passed = append(passed, fmt.Sprintf("%s in %s", s, time.Since(begun).Round(time.Millisecond)))
	}
	err = w.heal()
	if err == nil {
		err = w.settles()
	}
	if err == nil {
		err = w.end()
	} else {
		err = errors.Join(err, w.end())
	}
	if err != nil {
		return fmt.Errorf("%w\nafter:\n  %s", err, strings.Join(passed, "\n  "))
	}
	return nil
}

// do makes a step happen. What cannot happen, such as the change of a cache that
// there is not, does not.
func (w *world) do(s step) error {
	cc := w.caches[s.Cache]
	switch s.Do {
	case "create":
		if cc != nil {
			return nil
		}
		return w.create(s)
	case "delete", "recreate":
		if cc == nil {
			return nil
		}
		delete(w.caches, s.Cache)
		if err := w.Hub.Client.Delete(w.ctx, cc); client.IgnoreNotFound(err) != nil || s.Do == "delete" {
			return client.IgnoreNotFound(err)
		}
		return w.create(s)
	case "scale", "image", "memory", "place", "policy":
		if cc == nil {
			return nil
		}
		return w.change(cc, func() { s.edit(cc) })
	case "edit", "remove", "annotate":
		return w.drift(s)
	case "foreign":
		return w.intrude(s)
	case "close":
		w.gates[s.Member].Close()
	case "swallow":
		return w.gates[s.Member].Swallow(w.ctx)
	case "forward":
		return w.gates[s.Member].Forward(w.ctx)
	case "leave":
		return w.leave(s.Member)
	case "join":
		return w.join(s.Member)
	case "lie":
		server := s.Member
		if s.N%4 == 0 {
			server = hub
		}
		w.board.Lie(server, RequestFaults[s.N%len(RequestFaults)], 1+s.N%3, time.Duration(300+s.N*4)*time.Millisecond)
	case "restart":
		if err := w.manager.Stop(); err != nil {
			return err
		}
		return w.boot()
	case "kill":
		w.manager.kill()
		return w.boot()
	case "clock":
		w.clock.offset.Add(int64(time.Duration(s.N-128) * time.Minute))
	case "wait":
		return w.pause(time.Duration(s.N*3) * time.Millisecond)
	}
	return w.pause(20 * time.Millisecond)
}

func (w *world) pause(how time.Duration) error {
	select {
	case <-time.After(how):
		return nil
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
}

// create makes the cache that a step describes, unless its namesake is still there.
func (w *world) create(s step) error {
	cc := &v1alpha1.CacheCluster{ObjectMeta: w.at(s.Cache), Spec: v1alpha1.CacheClusterSpec{
		CacheTemplate: v1alpha1.CacheTemplate{Replicas: ptr.To(int32(s.N % 4)), Memory: ptr.To(resource.MustParse(memories[s.N%3]))},
		Placement:     v1alpha1.Placement{Clusters: membersOf(s)},
	}}
	err := w.Hub.Client.Create(w.ctx, cc)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err == nil {
		w.caches[s.Cache] = cc
	}
	return err
}

func membersOf(s step) []string {
	var members []string
	for i, name := range memberNames {
		if s.N>>i&1 == 1 {
			members = append(members, name)
		}
	}
	if len(members) == 0 {
		members = []string{s.Member}
	}
	return members
}

func (s step) edit(cc *v1alpha1.CacheCluster) {
	switch s.Do {
	case "scale":
		cc.Spec.Replicas = ptr.To(int32(s.N % 5))
	case "image":
		cc.Spec.Image = images[s.N%len(images)]
	case "memory":
		cc.Spec.Memory = ptr.To(resource.MustParse(memories[s.N%len(memories)]))
	case "place":
		cc.Spec.Placement.Clusters = membersOf(s)
	case "policy":
		cc.Spec.Policies.Recreate = []v1alpha1.Recreate{v1alpha1.RecreateNever, v1alpha1.RecreateOrphanPods}[s.N%2]
		cc.Spec.Policies.Takeover = []v1alpha1.Takeover{v1alpha1.TakeoverNever, v1alpha1.TakeoverIfMatching}[s.N/2%2]
	}
}

func (w *world) change(cc *v1alpha1.CacheCluster, how func()) error {
	return wait.PollUntilContextTimeout(w.ctx, 10*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		if err := w.Hub.Client.Get(ctx, client.ObjectKeyFromObject(cc), cc); err != nil {
			return false, err
		}
		before := cc.DeepCopy()
		how()
		err := w.Hub.Client.Patch(ctx, cc, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner("kubectl-edit"))
		if apierrors.IsConflict(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// drift changes or removes a child in a member, or adds to its metadata.
func (w *world) drift(s step) error {
	at := w.at(s.Cache)
	object := []client.Object{&appsv1.StatefulSet{ObjectMeta: at}, &corev1.Service{ObjectMeta: at}, &policyv1.PodDisruptionBudget{ObjectMeta: at}}[s.N%3]
	c := w.Members[s.Member].Client
	if err := c.Get(w.ctx, client.ObjectKeyFromObject(object), object); err != nil || w.foreign[place{s.Member, s.Cache}] {
		return client.IgnoreNotFound(err)
	}
	before, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return nil
	}
	switch s.Do {
	case "remove":
		return client.IgnoreNotFound(c.Delete(w.ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	case "annotate":
		object.SetAnnotations(with(object.GetAnnotations(), "example.org/note", fmt.Sprint(s.N)))
	default:
		if s.N >= 200 {
			labels := object.GetLabels()
			delete(labels, v1alpha1.LabelCacheCluster)
			object.SetLabels(labels)
			break
		}
		switch o := object.(type) {
		case *appsv1.StatefulSet:
			if s.N%2 == 0 {
				o.Spec.Replicas = ptr.To(int32(7 + s.N%3))
			} else {
				o.Spec.Template.Spec.Containers[0].Image = "memcached:evil"
			}
		case *corev1.Service:
			o.Spec.Ports[0].TargetPort = intstr.FromInt32(int32(1 + s.N))
		case *policyv1.PodDisruptionBudget:
			o.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(int32(2 + s.N)))
		}
	}
	// Not always the same one: that would be a conflict, which is corrected with backoff.
	editor := fmt.Sprintf("editor-%d", s.N)
	return client.IgnoreNotFound(c.Patch(w.ctx, object, client.MergeFrom(before), client.FieldOwner(editor)))
}

func with(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}

// intrude makes an object of another owner where a cache's Service would be, if
// nothing is there.
func (w *world) intrude(s step) error {
	service := &corev1.Service{ObjectMeta: w.at(s.Cache), Spec: corev1.ServiceSpec{
		Ports: []corev1.ServicePort{{Port: 4242, TargetPort: intstr.FromInt32(1)}}}}
	err := w.keep(s.Member, service)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err == nil {
		w.foreign[place{s.Member, s.Cache}] = true
	}
	return err
}
