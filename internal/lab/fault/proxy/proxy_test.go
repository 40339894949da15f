package proxy_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/reconcile-lab/reconcile-lab/internal/lab/fault/proxy"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/fault/rules"
)

// member is an API server that returns the credential of the request, and streams watches.
type member struct {
	*httptest.Server
	reached atomic.Int64
}

func newMember(t *testing.T) *member {
	t.Helper()
	m := &member{}
	m.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.reached.Add(1)
		_, _ = fmt.Fprintf(w, "%s %s %s\n", r.Proto, r.Method, r.Header.Get("Authorization"))
		if r.URL.Query().Get("watch") == "true" {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	m.EnableHTTP2 = true
	m.StartTLS()
	t.Cleanup(m.Close)
	return m
}

func certificate(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// start starts a proxy to the member. The returned client trusts only its authority.
func start(t *testing.T, m *member) (*proxy.Proxy, *http.Client) {
	t.Helper()
	p, err := proxy.Start(proxy.Options{Host: "127.0.0.1", Seed: 1, Member: &rest.Config{Host: m.URL, BearerToken: "the proxy's own",
		TLSClientConfig: rest.TLSClientConfig{CAData: certificate(m.Server)}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	client, err := rest.HTTPClientFor(&rest.Config{Host: p.Address(), BearerToken: "the hub's",
		TLSClientConfig: rest.TLSClientConfig{CAData: p.Authority()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return p, client
}

func request(ctx context.Context, client *http.Client, method, url string) (int, string, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	response, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

const path = "/apis/apps/v1/namespaces/shop/statefulsets/a"

func TestProxy_ForwardsTheCredentialOfTheCaller(t *testing.T) {
	p, client := start(t, newMember(t))
	code, body, err := request(t.Context(), client, http.MethodGet, "https://"+p.Address()+path)
	if err != nil || code != http.StatusOK || body != "HTTP/2.0 GET Bearer the hub's\n" {
		t.Errorf("%d %q %v", code, body, err)
	}
}

func TestProxy_DoesNotForwardToAnUntrustedMember(t *testing.T) {
	m, other := newMember(t), newMember(t)
	p, err := proxy.Start(proxy.Options{Host: "127.0.0.1", Seed: 1, Member: &rest.Config{Host: m.URL, TLSClientConfig: rest.TLSClientConfig{ServerName: "another.example", CAData: certificate(other.Server)}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	client, err := rest.HTTPClientFor(&rest.Config{Host: p.Address(), TLSClientConfig: rest.TLSClientConfig{CAData: p.Authority()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	if code, _, err := request(t.Context(), client, http.MethodGet, "https://"+p.Address()+path); err != nil || code != http.StatusBadGateway {
		t.Errorf("%d, %v", code, err)
	}
	if m.reached.Load() > 0 {
		t.Error("the request reached an untrusted server")
	}
}

func TestStart_RequiresTheAddressOfOneInterface(t *testing.T) {
	for _, host := range []string{"0.0.0.0", "::", "", "localhost"} {
		if p, err := proxy.Start(proxy.Options{Host: host, Seed: 1, Member: &rest.Config{Host: "https://127.0.0.1:1"}}); err == nil {
			_ = p.Close()
			t.Errorf("the proxy listens on %q", host)
		}
	}
}

func TestProxy_AppliesRules(t *testing.T) {
	m := newMember(t)
	p, client := start(t, m)
	url := "https://" + p.Address() + path
	set := func(rule rules.Rule) {
		t.Helper()
		if err := p.Set(t.Context(), proxy.Behavior{Rules: []rules.Rule{rule}}); err != nil {
			t.Fatal(err)
		}
	}
	set(rules.Rule{Match: rules.Match{Verbs: []string{"patch"}}, Action: rules.Action{Code: http.StatusTooManyRequests}})
	if code, body, err := request(t.Context(), client, http.MethodPatch, url); err != nil || code != http.StatusTooManyRequests || !strings.Contains(body, "TooManyRequests") {
		t.Errorf("a patch got %d %q, %v", code, body, err)
	}
	if m.reached.Load() > 0 {
		t.Error("a request that failed reached the member")
	}
	if code, _, err := request(t.Context(), client, http.MethodGet, url); err != nil || code != http.StatusOK {
		t.Errorf("a get got %d, %v", code, err)
	}
	set(rules.Rule{Action: rules.Action{LoseResponse: true}})
	before := m.reached.Load()
	// The HTTP client does not retry a POST.
	if code, _, err := request(t.Context(), client, http.MethodPost, url); err == nil {
		t.Errorf("a lost response has status %d", code)
	}
	if m.reached.Load() != before+1 {
		t.Errorf("the request reached the member %d times", m.reached.Load()-before)
	}
	if use := p.Use(); len(use.Acted) != 1 || use.Acted[0] != 1 {
		t.Errorf("acted on %v", use.Acted)
	}
}

func TestProxy_ServesAgainAfterDropAndReset(t *testing.T) {
	p, client := start(t, newMember(t))
	url := "https://" + p.Address() + path
	if _, _, err := request(t.Context(), client, http.MethodGet, url); err != nil {
		t.Fatal(err)
	}
	for name, network := range map[string]proxy.Network{"drop": {Drop: true}, "reset": {Reset: true}} {
		if err := p.Set(t.Context(), proxy.Behavior{Network: network}); err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, _, err := request(short, client, http.MethodGet, url)
		if err == nil {
			t.Errorf("%s: got a response", name)
		}
		if hung := errors.Is(err, context.DeadlineExceeded); network.Drop && !hung {
			t.Errorf("%s: the request did not hang: %v", name, err)
		}
		cancel()
		if err := p.Set(t.Context(), proxy.Behavior{}); err != nil {
			t.Fatal(err)
		}
		deadline, stop := context.WithTimeout(t.Context(), 30*time.Second)
		for {
			// The proxy first closes connections that have lost bytes.
			if _, _, err = request(deadline, client, http.MethodGet, url); err == nil || deadline.Err() != nil {
				break
			}
		}
		stop()
		if err != nil {
			t.Errorf("%s: after its end: %v", name, err)
		}
	}
}

func TestProxy_DelaysResponses(t *testing.T) {
	p, client := start(t, newMember(t))
	url := "https://" + p.Address() + path
	if _, _, err := request(t.Context(), client, http.MethodGet, url); err != nil {
		t.Fatal(err)
	}
	const latency = 200 * time.Millisecond
	if err := p.Set(t.Context(), proxy.Behavior{Network: proxy.Network{Latency: latency, Bandwidth: 1000}}); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if _, _, err := request(t.Context(), client, http.MethodGet, url); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < latency {
		t.Errorf("the response took %s", took)
	}
}

func TestProxy_StreamsAndCountsWatches(t *testing.T) {
	p, client := start(t, newMember(t))
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+p.Address()+"/api/v1/pods?watch=true", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 4)
	if _, err := io.ReadFull(response.Body, first); err != nil {
		t.Fatal("the first bytes of an open watch did not arrive:", err)
	}
	if use := p.Use(); use.Watches != 1 || use.Requests != 1 {
		t.Errorf("%+v", use)
	}
	cancel()
	_ = response.Body.Close()
	for deadline := time.Now().Add(30 * time.Second); p.Use().Watches > 0; {
		if time.Now().After(deadline) {
			t.Fatal("a closed watch is still counted")
		}
	}
}

// TestUse_CountsProbesWhileAWatchIsOpen covers the signal that the hub has switched to the
// proxy: a probe after its caches are filled.
func TestUse_CountsProbesWhileAWatchIsOpen(t *testing.T) {
	p, client := start(t, newMember(t))
	probe := func() {
		t.Helper()
		if _, _, err := request(t.Context(), client, http.MethodGet, "https://"+p.Address()+"/readyz"); err != nil {
			t.Fatal(err)
		}
	}
	probe()
	if use := p.Use(); use.Probes != 0 {
		t.Errorf("before a watch: %+v", use)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+p.Address()+"/api/v1/pods?watch=true", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	if use := p.Use(); use.Probes != 0 || use.Watches != 1 {
		t.Errorf("with a watch: %+v", use)
	}
	probe()
	if use := p.Use(); use.Probes != 1 {
		t.Errorf("after it: %+v", use)
	}
	_ = response.Body.Close()
	for deadline := time.Now().Add(30 * time.Second); p.Use().Probes > 0; {
		if time.Now().After(deadline) {
			t.Fatalf("after the end of the watch: %+v", p.Use())
		}
	}
}

func TestControl_RequiresTheSecret(t *testing.T) {
	p, client := start(t, newMember(t))
	control := httptest.NewServer(p.Control("secret"))
	t.Cleanup(control.Close)
	put := func(secret, body string) int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, control.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+secret)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	rule, err := json.Marshal(proxy.Behavior{Rules: []rules.Rule{{Action: rules.Action{Code: http.StatusForbidden}}}})
	if err != nil {
		t.Fatal(err)
	}
	if code := put("guess", string(rule)); code != http.StatusUnauthorized {
		t.Errorf("a wrong secret got %d", code)
	}
	if code := put("secret", "{"); code != http.StatusBadRequest {
		t.Errorf("an incomplete document got %d", code)
	}
	if code, _, err := request(t.Context(), client, http.MethodGet, "https://"+p.Address()+path); err != nil || code != http.StatusOK {
		t.Errorf("before: %d, %v", code, err)
	}
	if code := put("secret", string(rule)); code != http.StatusOK {
		t.Errorf("the right secret got %d", code)
	}
	if code, _, err := request(t.Context(), client, http.MethodGet, "https://"+p.Address()+path); err != nil || code != http.StatusForbidden {
		t.Errorf("after: %d, %v", code, err)
	}
}

func TestClose_ReleasesTheAddress(t *testing.T) {
	p, _ := start(t, newMember(t))
	address := p.Address()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
}
