package lab

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// fakeProvider is a provider whose clusters consist of a name.
type fakeProvider struct {
	Provider
	mu        sync.Mutex
	clusters  map[string]bool  // readiness by name
	failures  map[string]error // by cluster, or "prepare"
	footprint Footprint
}

func (*fakeProvider) Name() string { return "memory" }

func (m *fakeProvider) Footprint() Footprint { return m.footprint }

func (m *fakeProvider) List(context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for name := range m.clusters {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

func (m *fakeProvider) Prepare(context.Context, Report) error { return m.failures["prepare"] }

func (m *fakeProvider) Ready(_ context.Context, cluster string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clusters[cluster]
}

func (m *fakeProvider) Create(_ context.Context, cluster string, _ Role, _ Report) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clusters[cluster] = m.failures[cluster] == nil
	return m.failures[cluster]
}

func (m *fakeProvider) Delete(_ context.Context, cluster string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.failures[cluster]; err != nil {
		return err
	}
	delete(m.clusters, cluster)
	return nil
}

func silent(string, string) {}

// stateRoot sets the directory of all labs to one that does not exist yet.
func stateRoot(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "labs")
	t.Setenv(StateVariable, dir)
	return dir
}

func open(t *testing.T, name string) *Lab {
	t.Helper()
	l, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLoad_ReadsSavedStateAndReportsDamage(t *testing.T) {
	stateRoot(t)
	l := open(t, "a")
	if got, err := l.Load(); err != nil || !reflect.DeepEqual(got, State{}) {
		t.Errorf("state of a lab that does not exist: %v, %v", got, err)
	}
	if err := os.MkdirAll(l.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	want := State{Provider: "embedded", Members: []string{"member-1"}, Manager: &Manager{PID: 7, Binary: "/bin/hub", Server: "https://127.0.0.1:1"}}
	if err := l.save(want); err != nil {
		t.Fatal(err)
	}
	if got, err := l.Load(); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if err := os.WriteFile(l.path("lab.json"), []byte(`{"provider`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Load(); err == nil || !strings.Contains(err.Error(), "down --name a") {
		t.Errorf("error %v must contain the remedy", err)
	}
}

func TestOpen_RejectsInvalidNames(t *testing.T) {
	stateRoot(t)
	for _, name := range []string{"", "A", "a/b", "..", "-a", "a-", strings.Repeat("a", 31)} {
		if _, err := Open(name); err == nil {
			t.Errorf("%q was accepted", name)
		}
	}
}

func TestCurrent_IsTheLabOfTheLastUpWhileItExists(t *testing.T) {
	dir := stateRoot(t)
	if path, name, err := ResolveKubeconfig(""); err != nil || path != "" || name != "" {
		t.Errorf("without labs: %q, %q, %v; want nothing", path, name, err)
	}
	if _, _, err := ResolveKubeconfig("b"); err == nil || !strings.Contains(err.Error(), "up --name b") {
		t.Errorf("error %v must contain the remedy", err)
	}
	for _, name := range []string{"a", "c", "b"} {
		l := open(t, name)
		if err := os.MkdirAll(l.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(l.makeCurrent(), os.WriteFile(l.Kubeconfig(), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct{ asked, want string }{{"", "b"}, {"a", "a"}, {"b", "b"}} {
		path, name, err := ResolveKubeconfig(test.asked)
		if err != nil || name != test.want || path != filepath.Join(dir, test.want, "kubeconfig") {
			t.Errorf("asked for %q: %q, %q, %v; want lab %s", test.asked, path, name, err, test.want)
		}
	}
	if err := open(t, "b").remove(); err != nil {
		t.Fatal(err)
	}
	if current, err := Current(); err == nil || !strings.Contains(err.Error(), "--lab: a, c") {
		t.Errorf("current is %q, %v; want an error, since two labs remain", current, err)
	}
	if err := open(t, "c").remove(); err != nil {
		t.Fatal(err)
	}
	if current, err := Current(); err != nil || current != "a" {
		t.Errorf("current is %q, %v; want the only remaining lab, since its processes run", current, err)
	}
	if err := open(t, "a").remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s remains after the last lab", dir)
	}
}

func TestUp_RefusedLabLeavesNoFile(t *testing.T) {
	for _, test := range []struct {
		name     string
		provider *fakeProvider
		want     string
	}{
		{"too little memory or disk", &fakeProvider{footprint: Footprint{Memory: 1 << 60, Disk: 1 << 60}}, "--members"},
		{"preparation fails", &fakeProvider{failures: map[string]error{"prepare": errors.New("no binaries")}}, "no binaries"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := stateRoot(t)
			err := Up(t.Context(), open(t, "a"), test.provider, Options{Members: 1, Report: silent})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v must contain %q", err, test.want)
			}
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s remains", dir)
			}
		})
	}
}

func TestUp_RefusesAnotherProvider(t *testing.T) {
	stateRoot(t)
	l := open(t, "a")
	if err := os.MkdirAll(l.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := l.save(State{Provider: "kind"}); err != nil {
		t.Fatal(err)
	}
	err := Up(t.Context(), l, &fakeProvider{}, Options{Members: 1, Report: silent})
	if err == nil || !strings.Contains(err.Error(), "down --name a") {
		t.Errorf("error %v must contain the remedy", err)
	}
	if s, err := l.Load(); err != nil || s.Provider != "kind" {
		t.Errorf("state is %+v, %v", s, err)
	}
}

func TestDown_RemovesTheClustersOfAnInterruptedUp(t *testing.T) {
	dir := stateRoot(t)
	l := open(t, "a")
	p := &fakeProvider{clusters: map[string]bool{}, failures: map[string]error{"hub": context.Canceled}}
	if err := Up(t.Context(), l, p, Options{Members: 2, Report: silent}); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	if s, err := l.Load(); err != nil || s.Provider != "memory" || !slices.Equal(s.Members, []string{"member-1", "member-2"}) {
		t.Errorf("saved is %+v, %v", s, err)
	}
	clusters, err := Clusters(t.Context(), l, p)
	if err != nil {
		t.Fatal(err)
	}
	if len(clusters) != 3 || clusters[0].Name != Hub || clusters[0].Role != RoleHub || clusters[0].Ready || clusters[2].Name != "member-2" || clusters[2].Role != RoleMember {
		t.Errorf("clusters are %+v", clusters)
	}

	p.failures = map[string]error{"hub": errors.New("busy")}
	if err := Down(t.Context(), l, p, silent); err == nil {
		t.Error("Down returned no error for a cluster that it could not remove")
	}
	if _, err := os.Stat(l.path("lab.json")); err != nil {
		t.Errorf("lab.json was removed while a cluster remains: %v", err)
	}
	p.failures = nil
	if err := Down(t.Context(), l, p, silent); err != nil {
		t.Fatal(err)
	}
	if left, _ := p.List(t.Context()); len(left) > 0 {
		t.Errorf("remaining clusters: %v", left)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s remains", dir)
	}
}

func TestUp_IncompleteLabDoesNotBecomeCurrent(t *testing.T) {
	stateRoot(t)
	other := open(t, "b")
	if err := os.MkdirAll(other.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := other.makeCurrent(); err != nil {
		t.Fatal(err)
	}
	p := &fakeProvider{clusters: map[string]bool{}, failures: map[string]error{"hub": context.Canceled}}
	if err := Up(t.Context(), open(t, "a"), p, Options{Members: 1, Report: silent}); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	if current, err := Current(); err != nil || current != "b" {
		t.Errorf("current is %q, %v", current, err)
	}
}

func TestClusters_AreSortedByNumber(t *testing.T) {
	stateRoot(t)
	p := &fakeProvider{clusters: map[string]bool{"member-10": true, "member-9": true, "hub": true, "member-1": false}}
	clusters, err := Clusters(t.Context(), open(t, "a"), p)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range clusters {
		names = append(names, c.Name)
	}
	if want := []string{"hub", "member-1", "member-9", "member-10"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	encoded, err := json.Marshal(clusters[1])
	if err != nil {
		t.Fatal(err)
	}
	want := `{"name":"member-1","role":"member","provider":"memory","kubeconfig":"` + open(t, "a").Kubeconfig() + `","context":"member-1","ready":false}`
	if string(encoded) != want {
		t.Errorf("JSON is\n%s, want\n%s", encoded, want)
	}
}

func TestLabels_SpreadMembersOverRegionsAndZones(t *testing.T) {
	zones := map[string]bool{}
	for i := range 6 {
		l := labels("embedded", i)
		zone, region := l["topology.kubernetes.io/zone"], l["topology.kubernetes.io/region"]
		if !strings.HasPrefix(zone, region+"-") || l["tier"] != "lab" || l["cache.reconcile-lab.io/provider"] != "embedded" {
			t.Errorf("labels of member %d: %v", i+1, l)
		}
		zones[zone] = true
	}
	if len(zones) != 6 {
		t.Errorf("6 members are in zones %v", zones)
	}
	if first := labels("kind", 0)["topology.kubernetes.io/region"]; first != "eu" {
		t.Errorf("the first member is in %s", first)
	}
}

func TestMergeKubeconfigs_HasAContextForEachCluster(t *testing.T) {
	config := func(server string) []byte {
		c := clientcmdapi.NewConfig()
		c.Clusters["kind-x"] = &clientcmdapi.Cluster{Server: server}
		c.AuthInfos["admin"] = &clientcmdapi.AuthInfo{Token: server}
		c.Contexts["any"] = &clientcmdapi.Context{Cluster: "kind-x", AuthInfo: "admin"}
		c.CurrentContext = "any"
		content, err := clientcmd.Write(*c)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	merged, err := mergeKubeconfigs(map[string][]byte{Hub: config("https://h"), "member-1": config("https://m")})
	if err != nil {
		t.Fatal(err)
	}
	got, err := clientcmd.Load(merged)
	if err != nil {
		t.Fatal(err)
	}
	if got.CurrentContext != Hub {
		t.Errorf("current context is %q", got.CurrentContext)
	}
	for name, server := range map[string]string{Hub: "https://h", "member-1": "https://m"} {
		c := got.Contexts[name]
		if c == nil || got.Clusters[c.Cluster].Server != server || got.AuthInfos[c.AuthInfo].Token != server {
			t.Errorf("context %s is %+v", name, c)
		}
	}
	if _, err := mergeKubeconfigs(map[string][]byte{Hub: []byte("{}")}); err == nil {
		t.Error("a kubeconfig without a context was merged")
	}
}
