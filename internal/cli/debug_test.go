package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hubKubeconfig writes a kubeconfig for an API server.
func hubKubeconfig(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	content := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: hub, contexts: [{name: hub, context: {cluster: hub, user: hub}}],
clusters: [{name: hub, cluster: {server: %q}}], users: [{name: hub, user: {}}]}`, server)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDebugCache_ReadsManager(t *testing.T) {
	const namespace = "/api/v1/namespaces/reconcile-lab-system/pods/hub-1"
	record := func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		fmt.Fprintf(w, `{"path": %q, "query": "%s/%s/%s"}`, r.URL.Path, q.Get("namespace"), q.Get("name"), q.Get("member"))
	}
	manager := httptest.NewServer(http.HandlerFunc(record))
	defer manager.Close()
	holder := "hub-1_uid"
	apiServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/apis/coordination.k8s.io/v1/namespaces/reconcile-lab-system/leases/hub.cache.reconcile-lab.io":
			fmt.Fprintf(w, `{"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "spec": {"holderIdentity": %q}}`, holder)
		case namespace:
			fmt.Fprint(w, `{"kind": "Pod", "apiVersion": "v1", "spec": {"containers": [{"ports": [{"name": "probes", "containerPort": 1}, {"name": "metrics", "containerPort": 8080}]}]}}`)
		case "/api/v1/namespaces/reconcile-lab-system/pods/http:hub-1:8080/proxy/debug/caches":
			record(w, r)
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "message": "not found"}`)
		}
	}))
	defer apiServer.Close()
	address := strings.TrimPrefix(manager.URL, "http://")

	for _, tc := range []struct {
		name, holder string
		args         []string
		code         int
		out, err     string
	}{
		{"the pod with the lease", "hub-1_uid", []string{"sessions", "-n", "shop"}, exitOK, "path: /api/v1/namespaces/reconcile-lab-system/pods/http:hub-1:8080/proxy/debug/caches\nquery: shop/sessions/\n", ""},
		{"a process, as JSON", "", []string{"sessions", "--member", "eu-1", "--address", address, "-o", "json"}, exitOK, `"query": "default/sessions/eu-1"`, ""},
		{"no leader", "", []string{"sessions"}, exitError, "", "no leader"},
		{"a leader that is not a pod", "laptop_uid", []string{"sessions"}, exitError, "", "laptop: the leader is not a pod of the hub; pass --address"},
		{"an address where nothing listens", "", []string{"sessions", "--address", "127.0.0.1:1"}, exitError, "", "hub manager: 127.0.0.1:1: unreachable"},
		{"no name", "", nil, exitUsage, "", "accepts 1 arg"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			holder = tc.holder
			var out, errOut bytes.Buffer
			args := append([]string{"reconcile-lab", "debug", "cache", "--kubeconfig", hubKubeconfig(t, apiServer.URL)}, tc.args...)
			code := run(t.Context(), args, strings.NewReader(""), &out, &errOut)
			if code != tc.code || !strings.Contains(out.String(), tc.out) || !strings.Contains(errOut.String(), tc.err) {
				t.Errorf("exit code %d, want %d\nstdout %s\nstderr %s", code, tc.code, out.String(), errOut.String())
			}
		})
	}
}
