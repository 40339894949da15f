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

	"github.com/reconcile-lab/reconcile-lab/internal/apirequest"
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

// Event reports whether the point is an event of a watch, not a request.
func (p Place) Event() bool { return p.Verb == strings.ToUpper(p.Verb) }

// Mutates reports whether a request at this place changes something.
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
	request := apirequest.Parse(r)
	switch namespace = request.Namespace; {
	case request.Verb == "watch":
		return "", p, false
	case namespace != "" || request.Resource != "namespaces":
	case request.Verb == "create":
		namespace = nameIn(r)
	default:
		namespace = request.Name
	}
	if namespace == "" {
		return "", p, false
	}
	p = Place{Server: server, Verb: request.Verb, Kind: request.Resource, Name: request.Name}
	if request.Subresource != "" {
		p.Kind += "." + strings.ReplaceAll(request.Subresource, "/", ".")
	}
	switch {
	case request.Apply:
		p.Verb = "apply"
	case request.Verb == "deletecollection":
		p.Verb = "delete"
	case request.Verb == "create" && p.Name == "" && p.Kind != "events":
		p.Name = nameIn(r)
	}
	if p.Kind == "events" {
		// Names of events are generated.
		p.Name = ""
	}
	if request.DryRun {
		p.Verb = "dry-" + p.Verb
		// A preflight checks the successor of a recreated child under a random name.
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
