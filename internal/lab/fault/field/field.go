// Package field finds a field of an object by its path, in the notation of statuses and
// kubectl explain: spec.replicas, spec.template.spec.containers[name="memcached"].image,
// metadata.labels.app.kubernetes.io/name. It does no I/O.
package field

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// Field is a field of an object. It need not be set.
type Field struct {
	parent map[string]any
	key    string
}

// Value returns the value of the field, and reports whether it is set.
func (f Field) Value() (any, bool) {
	value, ok := f.parent[f.key]
	return value, ok
}

// Set sets the field.
func (f Field) Set(value any) { f.parent[f.key] = value }

// Remove unsets the field.
func (f Field) Remove() { delete(f.parent, f.key) }

// element matches the selector of a list item, such as [name="memcached"].
var element = regexp.MustCompile(`^\[([A-Za-z]+)="?([^"\]]*)"?\]`)

// Find returns the field at the path. Its parents must exist. The Field refers to the
// object: Set and Remove change the object.
func Find(object map[string]any, path string) (Field, error) {
	current, rest := object, strings.TrimPrefix(path, ".")
	for {
		if rest == "" {
			return Field{}, fmt.Errorf("field %q: incomplete path; use a path such as spec.replicas", path)
		}
		key, after := nextKey(current, rest)
		if after == "" {
			return Field{parent: current, key: key}, nil
		}
		next, ok := current[key]
		if !ok {
			return Field{}, fmt.Errorf("field %q: unknown field %q", path, strings.TrimSuffix(path, after))
		}
		var err error
		if current, rest, err = descend(next, after); err != nil {
			return Field{}, fmt.Errorf("field %q: %w", path, err)
		}
	}
}

// nextKey returns the longest key of the map that is a prefix of the path, since keys of
// labels contain dots. Without such a key it returns a new one: the whole path in a map of
// labels or annotations, else the path up to the next dot.
func nextKey(parent map[string]any, rest string) (key, after string) {
	found := false
	for k := range parent {
		if len(k) > len(key) && strings.HasPrefix(rest, k) && (len(rest) == len(k) || strings.ContainsRune(".[", rune(rest[len(k)]))) {
			key, found = k, true
		}
	}
	if found {
		return key, rest[len(key):]
	}
	if containsOnlyStrings(parent) {
		return rest, ""
	}
	end := strings.IndexAny(rest, ".[")
	if end < 0 {
		return rest, ""
	}
	return rest[:end], rest[end:]
}

// containsOnlyStrings reports whether the map has the form of labels or annotations.
func containsOnlyStrings(m map[string]any) bool {
	if len(m) == 0 {
		return false
	}
	for _, v := range m {
		if _, ok := v.(string); !ok {
			return false
		}
	}
	return true
}

// descend returns the map in a value, or the selected item of a list, and the remaining
// path.
func descend(next any, after string) (map[string]any, string, error) {
	if match := element.FindStringSubmatch(after); match != nil {
		list, ok := next.([]any)
		if !ok {
			return nil, "", fmt.Errorf("%s selects an item, but the field is not a list", match[0])
		}
		for _, e := range list {
			if m, ok := e.(map[string]any); ok && fmt.Sprint(m[match[1]]) == match[2] {
				return m, strings.TrimPrefix(after[len(match[0]):], "."), nil
			}
		}
		return nil, "", fmt.Errorf("no list item matches %s", match[0])
	}
	m, ok := next.(map[string]any)
	if !ok {
		return nil, "", fmt.Errorf("%q: the parent is not an object", strings.TrimPrefix(after, "."))
	}
	return m, strings.TrimPrefix(after, "."), nil
}

// Parse parses a value of a command line. It must have the type of the old value.
func Parse(text string, old any) (any, error) {
	if _, ok := old.(string); ok {
		return text, nil
	}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("value %q: %w", text, err)
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, fmt.Errorf("value %q: %w", text, err)
	}
	if old != nil && value != nil && fmt.Sprintf("%T", old) != fmt.Sprintf("%T", value) {
		return nil, fmt.Errorf("value %q: must have the type of the current value, %v", text, old)
	}
	return value, nil
}

// Different returns another value of the same type.
func Different(old any) (any, error) {
	switch v := old.(type) {
	case int64:
		return v + 1, nil
	case bool:
		return !v, nil
	case string:
		return v + "-drifted", nil
	}
	return nil, fmt.Errorf("no default for a value like %v; set one with --value", old)
}
