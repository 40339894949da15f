// Package field finds one field of an object by a path as statuses and kubectl
// explain print it: spec.replicas, spec.template.spec.containers[name="memcached"].image,
// metadata.labels.app.kubernetes.io/name. It is pure.
package field

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// Field is a place in an object, which need not hold a value yet.
type Field struct {
	parent map[string]any
	key    string
}

// Value is what stands there, if anything.
func (f Field) Value() (any, bool) {
	value, ok := f.parent[f.key]
	return value, ok
}

// Set puts a value there.
func (f Field) Set(value any) { f.parent[f.key] = value }

// Remove leaves nothing there.
func (f Field) Remove() { delete(f.parent, f.key) }

// element of a list, chosen by the value of one of its fields.
var element = regexp.MustCompile(`^\[([A-Za-z]+)="?([^"\]]*)"?\]`)

// Find follows the path in an object, which the Field then refers to. The maps and
// lists on the way must be there; only the last key may be new.
func Find(object map[string]any, path string) (Field, error) {
	at, rest := object, strings.TrimPrefix(path, ".")
	for {
		if rest == "" {
			return Field{}, fmt.Errorf("field %q ends too early: name a field, such as spec.replicas", path)
		}
		key, after := nextKey(at, rest)
		if after == "" {
			return Field{parent: at, key: key}, nil
		}
		next, ok := at[key]
		if !ok {
			return Field{}, fmt.Errorf("field %q: there is no %q", path, strings.TrimSuffix(path, after))
		}
		var err error
		if at, rest, err = descend(next, after); err != nil {
			return Field{}, fmt.Errorf("field %q: %w", path, err)
		}
	}
}

// nextKey is the longest key of the map with which the path goes on: keys of labels
// hold dots. Where there is none of them, it is a new key: everything, or up to the
// next dot if the map holds other things than text.
func nextKey(at map[string]any, rest string) (key, after string) {
	found := false
	for k := range at {
		if len(k) > len(key) && strings.HasPrefix(rest, k) && (len(rest) == len(k) || strings.ContainsRune(".[", rune(rest[len(k)]))) {
			key, found = k, true
		}
	}
	if found {
		return key, rest[len(key):]
	}
	if texts(at) {
		return rest, ""
	}
	end := strings.IndexAny(rest, ".[")
	if end < 0 {
		return rest, ""
	}
	return rest[:end], rest[end:]
}

// texts says that a map is one of labels or annotations.
func texts(m map[string]any) bool {
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

// descend goes into what a key holds, and into an element if it is a list.
func descend(next any, after string) (map[string]any, string, error) {
	if match := element.FindStringSubmatch(after); match != nil {
		list, ok := next.([]any)
		if !ok {
			return nil, "", fmt.Errorf("%s is not in a list", match[0])
		}
		for _, e := range list {
			if m, ok := e.(map[string]any); ok && fmt.Sprint(m[match[1]]) == match[2] {
				return m, strings.TrimPrefix(after[len(match[0]):], "."), nil
			}
		}
		return nil, "", fmt.Errorf("no element of the list is %s", match[0])
	}
	m, ok := next.(map[string]any)
	if !ok {
		return nil, "", fmt.Errorf("nothing lies below it at %q", strings.TrimPrefix(after, "."))
	}
	return m, strings.TrimPrefix(after, "."), nil
}

// Parse reads a value as somebody types it, of the type that stood there before.
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
		return nil, fmt.Errorf("value %q is not of the type of the present one, %v", text, old)
	}
	return value, nil
}

// Another is a value of the same type that differs.
func Another(old any) (any, error) {
	switch v := old.(type) {
	case int64:
		return v + 1, nil
	case bool:
		return !v, nil
	case string:
		return v + "-drifted", nil
	}
	return nil, fmt.Errorf("no other value of %v can be guessed: name one", old)
}
