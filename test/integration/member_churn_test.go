package integration

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/hub/membership"
)

// rounds of joining and leaving, after some that fill what is filled once.
const warmUp, rounds = 5, 50

// footprint holds the resources of the hub's process that a removed member may leak.
type footprint struct {
	goroutines, connections int
	heap                    uint64
}

func footprintOf(t *testing.T, host string) footprint {
	t.Helper()
	runtime.GC()
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return footprint{goroutines: runtime.NumGoroutine(), connections: connectionsTo(t, host), heap: memory.HeapAlloc}
}

// connectionsTo counts this machine's established connections to an API server, from
// the client's side.
func connectionsTo(t *testing.T, host string) int {
	t.Helper()
	address, err := url.Parse(host)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(address.Port())
	if err != nil {
		t.Fatal(err)
	}
	const established = "01"
	n := 0
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(text), "\n") {
			fields := strings.Fields(line)
			if len(fields) > 3 && fields[3] == established && strings.HasSuffix(fields[2], fmt.Sprintf(":%04X", port)) {
				n++
			}
		}
	}
	return n
}

func seriesOf(t *testing.T, cluster string) (found []string) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "cluster" && l.GetValue() == cluster {
					found = append(found, family.GetName())
				}
			}
		}
	}
	return found
}

// Not parallel: it counts what the whole process has. One member hangs all the time,
// which must not keep another from joining and leaving.
func TestMemberChurn_LeaksNothingInHubProcess(t *testing.T) {
	hole := behindAGate(t, "abyss", lab.Members[two])
	if err := hole.Swallow(t.Context()); err != nil {
		t.Fatal(err)
	}
	guest := startAPIServer(t)
	issueTokens(t, guest)
	ns := namespace(t, "churn")
	t.Cleanup(func() {
		// The cache could not go otherwise.
		if err := hole.Forward(context.Background()); err != nil {
			t.Error(err)
		}
	})
	cc := cache(ns, "guest", "abyss")
	cc.Spec.Placement.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"guest": "yes"}}
	create(t, cc)

	var last types.UID
	round := func() {
		t.Helper()
		if err := membership.Join(t.Context(), lab.Hub.Config, guest.Config, "guest", membership.Options{Labels: map[string]string{"guest": "yes"}}); err != nil {
			t.Fatal(err)
		}
		// The CacheCluster reports progress every two seconds only.
		eventually(t, "the guest is ready", func(ctx context.Context) error {
			mc := &v1alpha1.MemberCache{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: cc.Name + ".guest"}}
			if err := lab.Hub.Client.Get(ctx, client.ObjectKeyFromObject(mc), mc); err != nil {
				return err
			}
			if mc.UID == last || mc.Status.State != v1alpha1.MemberReady {
				return fmt.Errorf("state %q (%s), %s after %s", mc.Status.State, mc.Status.Reason, mc.UID, last)
			}
			last = mc.UID
			return nil
		})
		if err := membership.Leave(t.Context(), lab.Hub.Config, "guest", membership.LeaveOptions{Abandon: true}); err != nil {
			t.Fatal(err)
		}
	}
	for range warmUp {
		round()
	}
	settle := func() (is footprint) {
		eventually(t, "the guest has no series", func(context.Context) error {
			if left := seriesOf(t, "guest"); len(left) > 0 {
				return fmt.Errorf("there are %v", left)
			}
			return nil
		})
		is = footprintOf(t, guest.Config.Host)
		return is
	}
	before := settle()
	for range rounds {
		round()
	}
	var after footprint
	eventually(t, "goroutines, connections and memory are as before", func(context.Context) error {
		after = settle()
		if after.goroutines > before.goroutines+10 || after.connections > before.connections+2 || after.heap > before.heap+before.heap/4+(4<<20) {
			return fmt.Errorf("%+v, then %+v", before, after)
		}
		return nil
	})
	t.Logf("before %d rounds %+v, after %+v", rounds, before, after)
}
