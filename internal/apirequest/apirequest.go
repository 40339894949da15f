// Package apirequest parses HTTP requests to a Kubernetes API server.
//
// [Parse] reads method, path, query and the Content-Type header, never the body. It follows
// the rules of k8s.io/apiserver (RequestInfo), without that module's dependencies.
package apirequest

import (
	"net/http"
	"slices"
	"strings"
)

// Request describes a request in the terms of RBAC.
type Request struct {
	// Verb is get, list, watch, create, update, patch, delete or deletecollection, or connect
	// for any other method.
	Verb string
	// Resource is the plural name, such as "statefulsets". It is empty for a path without a
	// resource, such as /readyz.
	Resource, Subresource string
	// Namespace is empty for cluster-scoped resources. For a request to a namespace itself,
	// it is empty and Name is the namespace.
	Namespace, Name string
	// Apply is true for a patch by server-side apply.
	Apply bool
	// DryRun is true if the API server does not persist the change.
	DryRun bool
}

// Parse returns the description of a request.
func Parse(r *http.Request) Request {
	request := Request{Verb: verb(r, true), DryRun: r.URL.Query().Get("dryRun") != ""}
	parts := resourcePath(r.URL.Path)
	if len(parts) == 0 {
		return request
	}
	// namespaces/NAME/status and namespaces/NAME/finalize are subresources of a namespace.
	if parts[0] == "namespaces" && len(parts) > 2 && !slices.Contains([]string{"status", "finalize"}, parts[2]) {
		request.Namespace, parts = parts[1], parts[2:]
	}
	request.Resource = parts[0]
	if len(parts) > 1 {
		request.Name = parts[1]
	}
	if len(parts) > 2 {
		request.Subresource = strings.Join(parts[2:], "/")
	}
	request.Verb = verb(r, request.Name != "")
	request.Apply = request.Verb == "patch" && strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch")
	return request
}

// resourcePath returns the part of the path after /api/VERSION or /apis/GROUP/VERSION, or
// nil if there is none.
func resourcePath(path string) []string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		return parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		return parts[3:]
	}
	return nil
}

// verb returns the verb of a request for a collection or, if named, for one object.
func verb(r *http.Request, named bool) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		if named {
			return "get"
		}
		if watch := r.URL.Query().Get("watch"); watch == "true" || watch == "1" {
			return "watch"
		}
		return "list"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if named {
			return "delete"
		}
		return "deletecollection"
	}
	return "connect"
}
