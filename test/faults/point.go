package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// Place is where a fault can be injected, but for which time it is met.
type Place struct {
	// Server is "hub" or the name of a member.
	Server string
	// Verb of a request (get, list, create, apply, patch, update, delete, and the same
	// with "dry-"), or the type of an event: ADDED, MODIFIED, DELETED.
	Verb string
	// Kind is the resource in a request, and its subresource after a dot; the kind in
	// an event.
	Kind string
	// Name of the object, or empty.
	Name string
}

// Point is the nth time that a place is met since the scenario's action.
type Point struct {
	Place
	N int
}

// byChance is how k8s.io/apimachinery makes names by chance.
var byChance = regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{5}$`)

// String is what a case names a point by; Parse reads it.
func (p Point) String() string {
	return fmt.Sprintf("%s:%s:%s:%s:%d", p.Server, p.Verb, p.Kind, p.Name, p.N)
}

// Event says that the point is an event of a watch, not a request.
func (p Place) Event() bool { return p.Verb == strings.ToUpper(p.Verb) }

// Mutates says that a request at this place changes something.
func (p Place) Mutates() bool {
	switch p.Verb {
	case "create", "apply", "patch", "update", "delete":
		return true
	}
	return false
}

// Request finds a request's namespace and place; ok is false for what is about no
// namespace, and for watches.
func Request(server string, r *http.Request) (namespace string, p Place, ok bool) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return "", p, false
	}
	p.Server = server
	if parts[0] == "namespaces" && len(parts) > 2 {
		namespace, parts = parts[1], parts[2:]
	} else if parts[0] == "namespaces" {
		// The namespace itself.
		if len(parts) == 2 {
			namespace = parts[1]
		} else if r.Method == http.MethodPost {
			namespace = nameIn(r)
		}
	}
	if namespace == "" {
		return "", p, false
	}
	p.Kind = parts[0]
	if len(parts) > 1 {
		p.Name = parts[1]
	}
	if len(parts) > 2 {
		p.Kind += "." + strings.Join(parts[2:], ".")
	}
	query := r.URL.Query()
	switch r.Method {
	case http.MethodGet:
		if query.Get("watch") != "" {
			return "", p, false
		}
		p.Verb = "get"
		if p.Name == "" {
			p.Verb = "list"
		}
	case http.MethodPost:
		p.Verb = "create"
		if p.Name == "" && p.Kind != "events" {
			p.Name = nameIn(r)
		}
	case http.MethodPut:
		p.Verb = "update"
	case http.MethodPatch:
		p.Verb = "patch"
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch") {
			p.Verb = "apply"
		}
	case http.MethodDelete:
		p.Verb = "delete"
	}
	if p.Kind == "events" {
		// Names of events are generated.
		p.Name = ""
	}
	if query.Get("dryRun") != "" {
		p.Verb = "dry-" + p.Verb
		// The successor of a child that is recreated is checked under a name by chance.
		p.Name = byChance.ReplaceAllString(p.Name, "-(any)")
	}
	return namespace, p, true
}

// nameIn reads the name of the object in a body, which stays readable.
func nameIn(r *http.Request) string {
	if r.Body == nil {
		return ""
	}
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	r.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil {
		return ""
	}
	if object, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil); err == nil {
		if o, ok := object.(metav1.Object); ok {
			return o.GetName()
		}
	}
	// Kinds that client-go does not know come as JSON.
	var partial metav1.PartialObjectMetadata
	if json.Unmarshal(body, &partial) != nil {
		return ""
	}
	return partial.Name
}
