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

// memory is a provider of clusters that are only names.
type memory struct {
	Provider
	mu        sync.Mutex
	clusters  map[string]bool // whether ready
	refuse    map[string]error
	footprint Footprint
}

func (*memory) Name() string { return "memory" }

func (m *memory) Footprint() Footprint { return m.footprint }

func (m *memory) List(context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for name := range m.clusters {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

func (m *memory) Prepare(context.Context, Report) error { return m.refuse["prepare"] }

func (m *memory) Ready(_ context.Context, cluster string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clusters[cluster]
}

func (m *memory) Create(_ context.Context, cluster string, _ Role, _ Report) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clusters[cluster] = m.refuse[cluster] == nil
	return m.refuse[cluster]
}

func (m *memory) Delete(_ context.Context, cluster string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.refuse[cluster]; err != nil {
		return err
	}
	delete(m.clusters, cluster)
	return nil
}

func silent(string, string) {}

// root makes a folder for labs, which is not there yet.
func root(t *testing.T) string {
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

func TestStateSurvivesARoundTripAndDamageIsTold(t *testing.T) {
	root(t)
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
		t.Errorf("error %v should name the remedy", err)
	}
}

func TestNamesThatCannotNameALabAreRefused(t *testing.T) {
	root(t)
	for _, name := range []string{"", "A", "a/b", "..", "-a", "a-", strings.Repeat("a", 31)} {
		if _, err := Open(name); err == nil {
			t.Errorf("%q was accepted", name)
		}
	}
}

func TestTheLabUsedLastIsTheDefaultAsLongAsItExists(t *testing.T) {
	dir := root(t)
	if path, name, err := ResolveKubeconfig(""); err != nil || path != "" || name != "" {
		t.Errorf("without labs: %q, %q, %v; want nothing", path, name, err)
	}
	if _, _, err := ResolveKubeconfig("b"); err == nil || !strings.Contains(err.Error(), "up --name b") {
		t.Errorf("error %v should name the remedy", err)
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
		t.Errorf("current is %q, %v: of two labs that are left none may be guessed", current, err)
	}
	if err := open(t, "c").remove(); err != nil {
		t.Fatal(err)
	}
	if current, err := Current(); err != nil || current != "a" {
		t.Errorf("current is %q, %v: the only lab that is left must not be forgotten, its processes run", current, err)
	}
	if err := open(t, "a").remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the last lab left %s", dir)
	}
}

func TestAnUpThatIsRefusedLeavesNothing(t *testing.T) {
	for _, test := range []struct {
		name     string
		provider *memory
		want     string
	}{
		{"too little memory or disk", &memory{footprint: Footprint{Memory: 1 << 60, Disk: 1 << 60}}, "--members"},
		{"preparation fails", &memory{refuse: map[string]error{"prepare": errors.New("no binaries")}}, "no binaries"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := root(t)
			err := Up(t.Context(), open(t, "a"), test.provider, Options{Members: 1, Report: silent})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v should hold %q", err, test.want)
			}
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is left", dir)
			}
		})
	}
}

func TestALabKeepsItsProvider(t *testing.T) {
	root(t)
	l := open(t, "a")
	if err := os.MkdirAll(l.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := l.save(State{Provider: "kind"}); err != nil {
		t.Fatal(err)
	}
	err := Up(t.Context(), l, &memory{}, Options{Members: 1, Report: silent})
	if err == nil || !strings.Contains(err.Error(), "down --name a") {
		t.Errorf("error %v should name the remedy", err)
	}
	if s, err := l.Load(); err != nil || s.Provider != "kind" {
		t.Errorf("state is %+v, %v", s, err)
	}
}

func TestWhatAnInterruptedUpMadeIsRecordedListedAndRemoved(t *testing.T) {
	dir := root(t)
	l := open(t, "a")
	p := &memory{clusters: map[string]bool{}, refuse: map[string]error{"hub": context.Canceled}}
	if err := Up(t.Context(), l, p, Options{Members: 2, Report: silent}); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	if s, err := l.Load(); err != nil || s.Provider != "memory" || !slices.Equal(s.Members, []string{"member-1", "member-2"}) {
		t.Errorf("recorded is %+v, %v", s, err)
	}
	clusters, err := Clusters(t.Context(), l, p)
	if err != nil {
		t.Fatal(err)
	}
	if len(clusters) != 3 || clusters[0].Name != Hub || clusters[0].Role != RoleHub || clusters[0].Ready || clusters[2].Name != "member-2" || clusters[2].Role != RoleMember {
		t.Errorf("clusters are %+v", clusters)
	}

	p.refuse = map[string]error{"hub": errors.New("busy")}
	if err := Down(t.Context(), l, p, silent); err == nil {
		t.Error("Down said nothing of a cluster that it could not remove")
	}
	if _, err := os.Stat(l.path("lab.json")); err != nil {
		t.Errorf("the record is gone while a cluster is left: %v", err)
	}
	p.refuse = nil
	if err := Down(t.Context(), l, p, silent); err != nil {
		t.Fatal(err)
	}
	if left, _ := p.List(t.Context()); len(left) > 0 {
		t.Errorf("clusters left: %v", left)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left", dir)
	}
}

func TestALabThatIsNotMadeCompletelyDoesNotTakeTheOthersPlace(t *testing.T) {
	root(t)
	other := open(t, "b")
	if err := os.MkdirAll(other.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := other.makeCurrent(); err != nil {
		t.Fatal(err)
	}
	p := &memory{clusters: map[string]bool{}, refuse: map[string]error{"hub": context.Canceled}}
	if err := Up(t.Context(), open(t, "a"), p, Options{Members: 1, Report: silent}); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	if current, err := Current(); err != nil || current != "b" {
		t.Errorf("current is %q, %v", current, err)
	}
}

func TestClustersAreListedInTheOrderOfTheirNumbers(t *testing.T) {
	root(t)
	p := &memory{clusters: map[string]bool{"member-10": true, "member-9": true, "hub": true, "member-1": false}}
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
		t.Errorf("scripts read\n%s, want\n%s", encoded, want)
	}
}

func TestMembersAreSpreadOverRegionsAndZones(t *testing.T) {
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

func TestTheMergedKubeconfigHasAContextForEachCluster(t *testing.T) {
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
	merged, err := merge(map[string][]byte{Hub: config("https://h"), "member-1": config("https://m")})
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
	if _, err := merge(map[string][]byte{Hub: []byte("{}")}); err == nil {
		t.Error("a kubeconfig without a context was merged")
	}
}
