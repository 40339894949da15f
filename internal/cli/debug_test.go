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

func TestDebugCache_PrintsRecords(t *testing.T) {
	const pod = "/api/v1/namespaces/reconcile-lab-system/pods/"
	records := func(w http.ResponseWriter, r *http.Request, path string) {
		q := r.URL.Query()
		switch {
		case path == "/debug/caches" && q.Get("namespace") == "old":
			http.NotFound(w, r)
		case q.Get("name") == "none":
			fmt.Fprint(w, "[]")
		default:
			fmt.Fprintf(w, `[{"path": %q, "query": "%s/%s/%s"}]`, path, q.Get("namespace"), q.Get("name"), q.Get("member"))
		}
	}
	manager := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { records(w, r, r.URL.Path) }))
	defer manager.Close()
	var holder string
	apiServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		path, isProxy := strings.CutPrefix(r.URL.Path, pod+"http:hub-1:8080/proxy")
		switch {
		case isProxy:
			records(w, r, path)
		case r.URL.Path == "/apis/coordination.k8s.io/v1/namespaces/reconcile-lab-system/leases/hub.cache.reconcile-lab.io":
			fmt.Fprintf(w, `{"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "spec": {"holderIdentity": %q}}`, holder)
		case r.URL.Path == pod+"hub-1":
			fmt.Fprint(w, `{"kind": "Pod", "apiVersion": "v1", "spec": {"containers": [{"ports": [{"name": "probes", "containerPort": 1}, {"name": "metrics", "containerPort": 8080}]}]}}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "message": "not found"}`)
		}
	}))
	defer apiServer.Close()
	process := []string{"--address", strings.TrimPrefix(manager.URL, "http://")}

	for _, tc := range []struct {
		name, holder string
		args         []string
		code         int
		out, err     string
	}{
		{"the pod with the lease", "hub-1_uid", []string{"sessions", "-n", "shop"}, exitOK,
			"cacheClusters:\n- path: /debug/cacheclusters\n  query: shop/sessions/\nmemberCaches:\n- path: /debug/caches\n  query: shop/sessions/\n", ""},
		{"a process, as JSON", "", append(process, "sessions", "--member", "eu-1", "-o", "json"), exitOK, `"query": "default/sessions/eu-1"`, ""},
		{"a process that serves one path only", "", append(process, "sessions", "-n", "old"), exitOK, "cacheClusters:\n", "does not serve /debug/caches"},
		{"a pod that serves one path only", "hub-1_uid", []string{"sessions", "-n", "old"}, exitOK, "cacheClusters:\n", "does not serve /debug/caches"},
		{"no record", "", append(process, "none"), exitError, "", "CacheCluster: none: the hub manager has no record in namespace default"},
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
