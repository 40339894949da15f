package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
)

func TestRequest_FindsNamespaceAndPlace(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	info, _ := runtime.SerializerInfoForMediaType(clientgoscheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	protobuf, err := runtime.Encode(clientgoscheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), namespace)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, method, url, contentType, body, namespace, point string }{
		{"a read", "GET", "/apis/apps/v1/namespaces/shop/statefulsets/cache", "", "", "shop", "m:get:statefulsets:cache:1"},
		{"a list", "GET", "/api/v1/namespaces/shop/services?labelSelector=x", "", "", "shop", "m:list:services::1"},
		{"an apply", "PATCH", "/apis/apps/v1/namespaces/shop/statefulsets/cache?force=true", "application/apply-patch+yaml", "{}", "shop", "m:apply:statefulsets:cache:1"},
		{"a dry run", "PATCH", "/apis/apps/v1/namespaces/shop/statefulsets/cache?dryRun=All", "application/apply-patch+cbor", "", "shop", "m:dry-apply:statefulsets:cache:1"},
		{"a status", "PATCH", "/apis/cache.reconcile-lab.io/v1alpha1/namespaces/shop/membercaches/cache.m/status", "application/merge-patch+json", "{}", "shop", "m:patch:membercaches.status:cache.m:1"},
		{"a creation", "POST", "/apis/cache.reconcile-lab.io/v1alpha1/namespaces/shop/membercaches", "application/json", `{"metadata":{"name":"cache.m"}}`, "shop", "m:create:membercaches:cache.m:1"},
		{"a namespace in protobuf", "POST", "/api/v1/namespaces", runtime.ContentTypeProtobuf, string(protobuf), "shop", "m:create:namespaces:shop:1"},
		{"an event", "POST", "/apis/events.k8s.io/v1/namespaces/shop/events", "application/json", `{"metadata":{"name":"cache.18f"}}`, "shop", "m:create:events::1"},
		{"a deletion", "DELETE", "/api/v1/namespaces/shop/services/cache", "", "", "shop", "m:delete:services:cache:1"},
		{"a watch is about no namespace", "GET", "/api/v1/namespaces/shop/services?watch=true", "", "", "", ""},
		{"nor is a list of all", "GET", "/api/v1/services", "", "", "", ""},
		{"nor a probe", "GET", "/readyz", "", "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), c.method, c.url, strings.NewReader(c.body))
			r.Header.Set("Content-Type", c.contentType)
			namespace, place, ok := Request("m", r)
			if ok != (c.namespace != "") || namespace != c.namespace {
				t.Fatalf("namespace %q, %t", namespace, ok)
			}
			if ok && (Point{place, 1}).String() != c.point {
				t.Errorf("point %s, want %s", Point{place, 1}, c.point)
			}
			if body, _ := io.ReadAll(r.Body); string(body) != c.body {
				t.Errorf("the body is %q afterwards", body)
			}
		})
	}
}

func TestParse_ReadsNameOfCase(t *testing.T) {
	for _, c := range Cases("create", []Point{{Place{"hub", "patch", "cacheclusters.status", "cache"}, 2}, {Place{"member-1", "MODIFIED", "statefulset", "cache"}, 1}}) {
		if got, err := Parse(c.String()); err != nil || got != c {
			t.Errorf("%s is read as %v (%v)", c, got, err)
		}
	}
	for _, name := range []string{"", "create", "create/hub:get/409", "create/hub:get:x:y:z/409"} {
		if _, err := Parse(name); err == nil {
			t.Errorf("%q is read as a case", name)
		}
	}
}

type serverFunc func(*http.Request) (*http.Response, error)

func (f serverFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestTransport_InjectsFaultOnce(t *testing.T) {
	for _, c := range []struct {
		fault   Fault
		carried int
		code    int
		err     error
		dead    bool
	}{
		{Refused, 0, 0, syscall.ECONNREFUSED, false},
		{Reset, 0, 0, syscall.ECONNRESET, false},
		{Lost, 1, 0, syscall.ECONNRESET, false},
		{Conflict, 0, 409, nil, false},
		{TooMany, 0, 429, nil, false},
		{Internal, 0, 500, nil, false},
		{Unavailable, 0, 503, nil, false},
		{Forbidden, 0, 403, nil, false},
		{KillBefore, 0, 0, errKilled, true},
		{KillAfter, 1, 0, errKilled, true},
	} {
		t.Run(string(c.fault), func(t *testing.T) {
			carried := 0
			process := &Process{Board: &Board{}}
			transport := process.Transport("m", serverFunc(func(r *http.Request) (*http.Response, error) {
				carried++
				return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(nil)), Request: r}, nil
			}))
			trace := process.Board.Open("shop")
			trace.Arm(Case{"s", Point{Place{"m", "delete", "services", "cache"}, 1}, c.fault})
			trace.Begin()
			send := func() (*http.Response, error) {
				return transport.RoundTrip(httptest.NewRequestWithContext(t.Context(), "DELETE", "http://m/api/v1/namespaces/shop/services/cache", nil))
			}
			response, err := send()
			if !errors.Is(err, c.err) || carried != c.carried {
				t.Fatalf("error %v, carried out %d times", err, carried)
			}
			if response != nil {
				_ = response.Body.Close()
				if response.StatusCode != c.code {
					t.Errorf("answer %d", response.StatusCode)
				}
			}
			if trace.Hit().IsZero() || trace.Writes() != c.carried {
				t.Errorf("hit %v, %d writes", trace.Hit(), trace.Writes())
			}
			second, err := send()
			if second != nil {
				_ = second.Body.Close()
			}
			if dead := err != nil; dead != c.dead {
				t.Errorf("the next request: %v", err)
			}
			trace.Revive()
			third, err := send()
			if err != nil {
				t.Fatal(err)
			}
			_ = third.Body.Close()
		})
	}
}

func TestNormalise_IgnoresWhatDiffersByRun(t *testing.T) {
	object := func(namespace, uid, at string, generation, seen int64, conditions ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "X",
			"metadata": map[string]any{"name": "cache", "namespace": namespace, "uid": uid, "resourceVersion": "7", "generation": generation},
			"status":   map[string]any{"owner": uid + "/m", "since": at, "observedGeneration": seen, "conditions": conditions},
		}}
	}
	a, b := map[string]any{"type": "A", "lastTransitionTime": "2026-01-01T00:00:00Z"}, map[string]any{"type": "B"}
	first := object("space-000001", "11111111-2222-3333-4444-555555555555", "2026-01-01T00:00:00Z", 1, 1, a, b)
	same := object("space-000002", "99999999-2222-3333-4444-555555555555", "2027-02-02T01:02:03Z", 3, 3, b, a)
	other := object("space-000002", "99999999-2222-3333-4444-555555555555", "2027-02-02T01:02:03Z", 3, 2, b, a)
	if diff := Differ(map[string]string{"x": Normalise(first)}, map[string]string{"x": Normalise(same)}); diff != "" {
		t.Errorf("they differ:%s", diff)
	}
	if Normalise(first) == Normalise(other) {
		t.Error("a status about an older generation is the same as one about the present one")
	}
}

// The informer begins its next watch after the version it got last. An event that is delayed
// back for one case must not make it see again what it has seen of the others.
func TestInformer_KeepsVersionAfterDelayedEvent(t *testing.T) {
	process := &Process{Board: &Board{}}
	trace := process.Board.Open("late")
	trace.Arm(Case{"s", Point{Place{"m", string(watch.Modified), "configmap", "cache"}, 1}, Delayed})
	trace.Begin()
	server := watch.NewFake()
	tapped := &tap{process: process, server: "m", kind: "configmap", stale: map[string]bool{}, inner: &toolscache.ListWatch{
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return server, nil }}}
	w, err := tapped.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	object := func(namespace, version string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cache", ResourceVersion: version}}
	}
	go func() {
		server.Modify(object("late", "5"))
		server.Modify(object("another", "10"))
	}()
	for _, want := range []string{"MODIFIED another 10", "MODIFIED late 5", "BOOKMARK  10"} {
		var e watch.Event
		select {
		case e = <-w.ResultChan():
		case <-time.After(30 * time.Second):
			t.Fatalf("%q does not come", want)
		}
		cm, ok := e.Object.(*corev1.ConfigMap)
		if !ok {
			t.Fatalf("%v", e)
		}
		if got := fmt.Sprintf("%s %s %s", e.Type, cm.Namespace, cm.ResourceVersion); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
