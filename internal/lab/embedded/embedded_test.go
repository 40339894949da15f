package embedded

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/binaries"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/process"
)

func clusterFiles(t *testing.T) files {
	t.Helper()
	f := files{dir: filepath.Join(t.TempDir(), "hub")}
	if err := os.MkdirAll(f.path("logs"), 0o700); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestArguments_NameTheDirectoryAndListenOnLoopback(t *testing.T) {
	f := files{dir: "/state/clusters/hub"}
	p := ports{APIServer: 20001, Etcd: 20002, EtcdPeer: 20003}
	for _, program := range programs {
		args := arguments(program, f, p)
		if !slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "/state/clusters/hub/") }) {
			t.Errorf("%s cannot be found by its arguments %v", program, args)
		}
		if text := strings.Join(args, " "); strings.Contains(text, "0.0.0.0") {
			t.Errorf("%s listens on every interface: %s", program, text)
		}
		if got := clusterOf("/state/clusters", append([]string{program}, args...)); got != "hub" {
			t.Errorf("%s is attributed to cluster %q", program, got)
		}
	}
}

func TestChoosePorts_ReturnsDistinctPortsBelowTheEphemeralRange(t *testing.T) {
	seen := map[int]bool{}
	for range 20 {
		p, err := choosePorts()
		if err != nil {
			t.Fatal(err)
		}
		for _, port := range []int{p.APIServer, p.Etcd, p.EtcdPeer} {
			if seen[port] || port < firstPort || port >= lastPort {
				t.Errorf("port %d was chosen twice or is out of range", port)
			}
			seen[port] = true
		}
	}
}

func TestLoadPorts_ReadsSavedPortsAndIgnoresADamagedFile(t *testing.T) {
	f := clusterFiles(t)
	want := ports{APIServer: 1, Etcd: 2, EtcdPeer: 3}
	if err := savePorts(f, want); err != nil {
		t.Fatal(err)
	}
	if got, exists, err := loadPorts(f); err != nil || !exists || got != want {
		t.Errorf("got %+v, %v, %v", got, exists, err)
	}
	for _, content := range []string{"", "{", `{"apiServer":1}`} {
		if err := os.WriteFile(f.config(), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, exists, err := loadPorts(f); err != nil || exists {
			t.Errorf("%q counts as saved ports: %v", content, err)
		}
	}
}

func TestEnsurePorts_ChangesAPortThatAnotherProgramUses(t *testing.T) {
	f := clusterFiles(t)
	chosen, err := choosePorts()
	if err != nil {
		t.Fatal(err)
	}
	if err := savePorts(f, chosen); err != nil {
		t.Fatal(err)
	}
	if kept, err := ensurePorts(t.Context(), f, func(string) {}); err != nil || kept != chosen {
		t.Errorf("free ports were changed: %+v to %+v, %v", chosen, kept, err)
	}
	listener := listen(t, chosen.Etcd)
	defer listener()
	reported := ""
	changed, err := ensurePorts(t.Context(), f, func(step string) { reported = step })
	if err != nil || changed.Etcd == chosen.Etcd || !strings.Contains(reported, "another program uses port") {
		t.Errorf("got %+v, %v, reported %q", changed, err, reported)
	}
}

// listen occupies a port, as another program does.
func listen(t *testing.T, port int) func() {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		t.Fatal(err)
	}
	return func() { _ = listener.Close() }
}

func TestEnsurePKI_IssuesCertificatesOnce(t *testing.T) {
	f := clusterFiles(t)
	if err := ensurePKI(f); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(f.pki("ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if err := ensurePKI(f); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(f.pki("ca.crt")); err != nil || string(after) != string(before) {
		t.Error("the second call created a new authority")
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(before)
	for name, usage := range map[string]x509.ExtKeyUsage{"server": x509.ExtKeyUsageServerAuth, "admin": x509.ExtKeyUsageClientAuth} {
		if _, err := tls.LoadX509KeyPair(f.pki(name+".crt"), f.pki(name+".key")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		content, err := os.ReadFile(f.pki(name + ".crt"))
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(content)
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := certificate.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if name == "server" && certificate.VerifyHostname("127.0.0.1") != nil {
			t.Error("the certificate of the server is not valid for 127.0.0.1")
		}
	}
	content, err := kubeconfig(f, "https://127.0.0.1:1", "hub")
	if err != nil {
		t.Fatal(err)
	}
	if config, err := clientcmd.RESTConfigFromKubeConfig(content); err != nil || config.Host != "https://127.0.0.1:1" {
		t.Errorf("kubeconfig: %+v, %v", config, err)
	}
}

func TestNode_HasRoomForTheLargestCachesOfTheExamples(t *testing.T) {
	need := resource.MustParse("9830Mi")
	size := node(1).Status.Allocatable
	if memory := size[corev1.ResourceMemory]; memory.Value() < 4*need.Value() {
		t.Errorf("a node has %s, four pods of %s need more", memory.String(), need.String())
	}
}

func TestStages_AreValidYAML(t *testing.T) {
	for _, document := range strings.Split(string(stages), "\n---\n") {
		var stage struct {
			Kind     string
			Metadata metav1.ObjectMeta
		}
		if err := yaml.Unmarshal([]byte(document), &stage); err != nil || stage.Kind != "Stage" || stage.Metadata.Name == "" {
			t.Errorf("%+v, %v in:\n%s", stage, err, document)
		}
	}
}

func TestExplain_NamesTheCauseOfAnExit(t *testing.T) {
	for _, test := range []struct{ name, log, want string }{
		{"full disk", "write /x: no space left on device\n", "disk is full"},
		{"port in use", "listen tcp 127.0.0.1:1: bind: address already in use\n", "uses its port"},
		{"killed for memory", "", "memory"},
		{"anything else", "starting\nunknown flag --x\n", "unknown flag --x"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := clusterFiles(t)
			if err := os.WriteFile(f.log(etcd), []byte(test.log), 0o600); err != nil {
				t.Fatal(err)
			}
			s := starter{files: f}
			if err := s.explain(etcd); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v must contain %q", err, test.want)
			}
		})
	}
}

// TestProvider_CreatesRepairsAndDeletesACluster runs one real cluster. It is skipped where
// the programs are not in the cache; the end-to-end suites create whole labs.
func TestProvider_CreatesRepairsAndDeletesACluster(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server")
	}
	for _, program := range programs {
		if _, found, err := binaries.Find(program); err != nil || !found {
			t.Skipf("%s is not in the cache: run go run ./hack/binaries ensure %s", program, program)
		}
	}
	ctx := t.Context()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := New(dir)
	t.Cleanup(func() { _ = p.Delete(context.Background(), "hub") })
	create := func() {
		t.Helper()
		if err := p.Create(ctx, "hub", lab.RoleHub, func(step string) { t.Log(step) }); err != nil {
			t.Fatal(err)
		}
		if !p.Ready(ctx, "hub") {
			t.Fatal("not ready after Create")
		}
	}

	// An interruption as soon as the first programs run.
	interrupted, cancel := context.WithCancel(ctx)
	if err := p.Create(interrupted, "hub", lab.RoleHub, func(string) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	if p.Ready(ctx, "hub") {
		t.Error("an incomplete cluster is ready")
	}
	if names, err := p.List(ctx); err != nil || !slices.Equal(names, []string{"hub"}) {
		t.Errorf("List = %v, %v", names, err)
	}
	create()

	clusterDir := filepath.Join(dir, "clusters", "hub")
	if err := process.Stop(ctx, 0, clusterDir, controllerManager, kwok); err != nil {
		t.Fatal(err)
	}
	if p.Ready(ctx, "hub") {
		t.Error("ready without a controller manager")
	}
	create()

	if err := p.Delete(ctx, "hub"); err != nil {
		t.Fatal(err)
	}
	if found, err := process.Find(clusterDir, programs...); err != nil || len(found) > 0 {
		t.Errorf("still running: %v, %v", found, err)
	}
	if names, err := p.List(ctx); err != nil || len(names) > 0 {
		t.Errorf("List = %v, %v after Delete", names, err)
	}
}
