package rules

import (
	"net/http"
	"strings"
)

// Request is what an HTTP request asks of an API server.
type Request struct {
	// Verb as RBAC has it: get, list, watch, create, update, patch, delete,
	// deletecollection.
	Verb string
	// Resource is empty for paths such as /readyz. A subresource follows a slash.
	Resource        string
	Namespace, Name string
}

// Parse reads method, path and query, by the layout of the Kubernetes API.
func Parse(r *http.Request) Request {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return Request{Verb: strings.ToLower(r.Method)}
	}
	var of Request
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		of.Namespace, parts = parts[1], parts[2:]
	}
	of.Resource = parts[0]
	if len(parts) > 1 {
		of.Name = parts[1]
	}
	if len(parts) > 2 {
		of.Resource += "/" + parts[2]
	}
	of.Verb = verb(r, of.Name != "")
	return of
}

func verb(r *http.Request, named bool) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		switch {
		case named:
			return "get"
		case r.URL.Query().Get("watch") == "true" || r.URL.Query().Get("watch") == "1":
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
		if !named {
			return "deletecollection"
		}
		return "delete"
	}
	return strings.ToLower(r.Method)
}
