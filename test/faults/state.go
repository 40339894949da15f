package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

var (
	uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	times = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
)

// Normalise returns an object as text without what differs from run to run: UIDs,
// versions, times, the name of its namespace. Of managedFields it keeps who owns
// which fields.
func Normalise(u *unstructured.Unstructured) string {
	object := u.DeepCopy()
	namespace, generation := object.GetNamespace(), object.GetGeneration()
	metadata, _ := object.Object["metadata"].(map[string]any)
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "namespace", "selfLink"} {
		delete(metadata, field)
	}
	if metadata["managedFields"] != nil {
		metadata["managedFields"] = owners(object)
	}
	if object.GetAnnotations()[v1alpha1.AnnotationIntent] != "" {
		// It is over the owner's UID too.
		_ = unstructured.SetNestedField(object.Object, "HASH", "metadata", "annotations", v1alpha1.AnnotationIntent)
	}
	walk(object.Object["status"], generation)
	raw, err := json.MarshalIndent(object.Object, "", " ")
	if err != nil {
		return err.Error()
	}
	text := uuids.ReplaceAllString(string(raw), "UID")
	text = times.ReplaceAllString(text, "TIME")
	if namespace != "" {
		text = strings.ReplaceAll(text, namespace, "NAMESPACE")
	}
	return text
}

// Essence is what an object asks for and how far it is, without who asked. ready is
// false for a StatefulSet that is not where its spec wants it.
func Essence(u *unstructured.Unstructured) (text string, ready bool) {
	object := u.DeepCopy()
	ready = object.GetDeletionTimestamp() == nil
	if object.GetKind() == "StatefulSet" {
		wanted, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
		has, _, _ := unstructured.NestedInt64(object.Object, "status", "readyReplicas")
		seen, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
		ready = ready && wanted == has && seen == object.GetGeneration()
	}
	delete(object.Object, "status")
	object.SetManagedFields(nil)
	return Normalise(object), ready
}

// owners has a line for each field that another client owns.
func owners(object *unstructured.Unstructured) []any {
	found := map[string]bool{}
	for _, e := range object.GetManagedFields() {
		who := strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Manager, e.Operation, e.Subresource))
		found[who] = true
		fields := &fieldpath.Set{}
		if e.FieldsV1 == nil || fields.FromJSON(bytes.NewReader(e.FieldsV1.GetRawBytes())) != nil {
			continue
		}
		fields.Iterate(func(p fieldpath.Path) { found[who+": "+p.String()] = true })
	}
	all := make([]any, 0, len(found))
	for _, line := range slices.Sorted(maps.Keys(found)) {
		all = append(all, line)
	}
	return all
}

// walk makes generations relative, sorts conditions by type and drops durations.
func walk(value any, generation int64) {
	switch v := value.(type) {
	case map[string]any:
		delete(v, "repairedIn")
		if seen, ok := v["observedGeneration"].(int64); ok {
			v["observedGeneration"] = "older"
			if seen == generation {
				v["observedGeneration"] = "current"
			}
		}
		if conditions, ok := v["conditions"].([]any); ok {
			slices.SortFunc(conditions, func(a, b any) int { return strings.Compare(kindOf(a), kindOf(b)) })
		}
		for _, inner := range v {
			walk(inner, generation)
		}
	case []any:
		for _, inner := range v {
			walk(inner, generation)
		}
	}
}

func kindOf(condition any) string {
	c, _ := condition.(map[string]any)
	kind, _ := c["type"].(string)
	return kind
}

// shownLine is how much of a line a difference shows: those of managedFields are long.
const shownLine = 240

// Differ shows the lines in which two states differ, or nothing.
func Differ(a, b map[string]string) string {
	keys := map[string]bool{}
	for key := range a {
		keys[key] = true
	}
	for key := range b {
		keys[key] = true
	}
	text := ""
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if a[key] == b[key] {
			continue
		}
		text += "\n" + key
		for _, side := range []struct{ sign, has, lacks string }{{"-", a[key], b[key]}, {"+", b[key], a[key]}} {
			other := strings.Split(side.lacks, "\n")
			for _, line := range strings.Split(side.has, "\n") {
				if !slices.Contains(other, line) {
					text += "\n  " + side.sign + strings.TrimSpace(line[:min(len(line), shownLine)])
				}
			}
			if side.has == "" {
				text += "\n  " + side.sign + " (none)"
			}
		}
	}
	return text
}

// WithoutLastDrift leaves out which drift was corrected last. A process that is
// killed between a repair and its report takes that with it: it is over, and in the
// member nothing of it is left to be seen.
func WithoutLastDrift(state map[string]string) map[string]string {
	left := map[string]string{}
	for key, text := range state {
		var lines []string
		end := ""
		for _, line := range strings.Split(text, "\n") {
			switch body := strings.TrimLeft(line, " "); {
			case end != "":
				if strings.TrimSuffix(line, ",") == end {
					end = ""
				}
			case body == `"lastDrift": {`:
				end = line[:len(line)-len(body)] + "}"
			case !strings.Contains(line, "lastDrift"):
				lines = append(lines, strings.TrimSuffix(line, ","))
			}
		}
		left[key] = strings.Join(lines, "\n")
	}
	return left
}
