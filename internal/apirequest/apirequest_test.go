package apirequest

import (
	"net/http/httptest"
	"testing"
)

func TestParse_FollowsTheAPIServer(t *testing.T) {
	for _, test := range []struct {
		method, url, contentType string
		want                     Request
	}{
		{"GET", "/readyz", "", Request{Verb: "get"}},
		{"GET", "/apis", "", Request{Verb: "get"}},
		{"OPTIONS", "/api", "", Request{Verb: "connect"}},
		{"GET", "/apis/apps/v1", "", Request{Verb: "get"}},
		{"GET", "/api/v1/pods?watch=true&x=1", "", Request{Verb: "watch", Resource: "pods"}},
		{"GET", "/api/v1/pods?watch=1", "", Request{Verb: "watch", Resource: "pods"}},
		{"GET", "/api/v1/namespaces/shop/pods", "", Request{Verb: "list", Resource: "pods", Namespace: "shop"}},
		{"GET", "/api/v1/namespaces", "", Request{Verb: "list", Resource: "namespaces"}},
		{"GET", "/api/v1/namespaces/shop", "", Request{Verb: "get", Resource: "namespaces", Name: "shop"}},
		{"PUT", "/api/v1/namespaces/shop/finalize", "", Request{Verb: "update", Resource: "namespaces", Subresource: "finalize", Name: "shop"}},
		{"PATCH", "/apis/apps/v1/namespaces/shop/statefulsets/a?dryRun=All", "application/apply-patch+yaml", Request{Verb: "patch", Resource: "statefulsets", Namespace: "shop", Name: "a", Apply: true, DryRun: true}},
		{"PATCH", "/apis/apps/v1/namespaces/shop/statefulsets/a/status", "application/merge-patch+json", Request{Verb: "patch", Resource: "statefulsets", Subresource: "status", Namespace: "shop", Name: "a"}},
		{"POST", "/apis/apps/v1/namespaces/shop/statefulsets", "", Request{Verb: "create", Resource: "statefulsets", Namespace: "shop"}},
		{"DELETE", "/api/v1/namespaces/shop/services/a", "", Request{Verb: "delete", Resource: "services", Namespace: "shop", Name: "a"}},
		{"DELETE", "/api/v1/namespaces/shop/services", "", Request{Verb: "deletecollection", Resource: "services", Namespace: "shop"}},
		{"OPTIONS", "/api/v1/namespaces/shop/services", "", Request{Verb: "connect", Resource: "services", Namespace: "shop"}},
	} {
		r := httptest.NewRequest(test.method, test.url, nil)
		r.Header.Set("Content-Type", test.contentType)
		if got := Parse(r); got != test.want {
			t.Errorf("%s %s: %+v, want %+v", test.method, test.url, got, test.want)
		}
	}
}
