package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// manifest is one CacheCluster from a file.
type manifest struct {
	source string // such as "caches.yaml document 2"
	object *unstructured.Unstructured
}

// readManifests reads files, folders (their *.yaml, *.yml and *.json, sorted) and
// "-" for in. It reports all that is wrong with them at once.
func readManifests(paths []string, in io.Reader) ([]manifest, error) {
	var all []manifest
	var errs []error
	for _, path := range paths {
		files, err := expand(path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, f := range files {
			ms, err := readFile(f, in)
			all = append(all, ms...)
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, errors.New("there is no CacheCluster in what was given")
	}
	return all, nil
}

func expand(path string) ([]string, error) {
	if path == "-" {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var files []string
	for _, ext := range []string{"yaml", "yml", "json"} {
		found, err := filepath.Glob(filepath.Join(path, "*."+ext))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("folder %s holds no .yaml, .yml or .json file", path)
	}
	sort.Strings(files)
	return files, nil
}

func readFile(path string, in io.Reader) ([]manifest, error) {
	name := path
	if path == "-" {
		name = "standard input"
	} else {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	return split(name, in)
}

// split reads the documents of one file; empty ones are skipped but counted.
func split(name string, in io.Reader) ([]manifest, error) {
	var all []manifest
	var errs []error
	reader := utilyaml.NewYAMLReader(bufio.NewReader(in))
	for n := 1; ; n++ {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, errors.Join(errs...)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		source := fmt.Sprintf("%s document %d", name, n)
		objs, err := decode(doc)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", source, err))
		}
		for _, o := range objs {
			all = append(all, manifest{source, o})
		}
	}
}

// decode reads one document: nothing, a CacheCluster, or a list of them.
func decode(doc []byte) ([]*unstructured.Unstructured, error) {
	if len(bytes.TrimSpace(doc)) == 0 {
		return nil, nil
	}
	// Strict: of two equal keys, one would silently win.
	data, err := yaml.YAMLToJSONStrict(doc)
	if err != nil {
		return nil, err
	}
	if string(data) == "null" {
		return nil, nil
	}
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(data, &u.Object); err != nil {
		return nil, errors.New("it is no Kubernetes object: give apiVersion, kind, metadata and spec")
	}
	if u.IsList() {
		var objs []*unstructured.Unstructured
		items, _, _ := unstructured.NestedSlice(u.Object, "items")
		for i, item := range items {
			fields, ok := item.(map[string]any)
			if !ok {
				return nil, fmt.Errorf("item %d of the list is no object", i+1)
			}
			o := &unstructured.Unstructured{Object: fields}
			if err := accept(o); err != nil {
				return nil, fmt.Errorf("item %d of the list: %w", i+1, err)
			}
			objs = append(objs, o)
		}
		return objs, nil
	}
	return []*unstructured.Unstructured{u}, accept(u)
}

// accept refuses what is no CacheCluster, and removes what a server writes, so
// that the output of `get -o yaml` can be applied again.
func accept(u *unstructured.Unstructured) error {
	gvk := schema.FromAPIVersionAndKind(u.GetAPIVersion(), u.GetKind())
	want := v1alpha1.GroupVersion.WithKind("CacheCluster")
	switch {
	case gvk == want:
	case gvk.Kind == "":
		return fmt.Errorf("it has no kind: give apiVersion: %s and kind: %s", v1alpha1.GroupVersion, want.Kind)
	case gvk.Kind == want.Kind:
		return fmt.Errorf("apiVersion is %q: for a %s it must be %s", u.GetAPIVersion(), want.Kind, v1alpha1.GroupVersion)
	case gvk.Group == want.Group && gvk.Kind != "MemberCache":
		return fmt.Errorf("kind %q is unknown in %s: use %s", gvk.Kind, want.Group, want.Kind)
	case gvk.Group == want.Group:
		return fmt.Errorf("kind %s is written by the hub's controllers only: apply the %s that it belongs to", gvk.Kind, want.Kind)
	default:
		version := u.GetAPIVersion()
		if version == "" {
			version = "no apiVersion"
		}
		return fmt.Errorf("kind %s (%s) is not applied here, only %s (%s): use kubectl for it", gvk.Kind, version, want.Kind, v1alpha1.GroupVersion)
	}
	if u.GetName() == "" {
		return errors.New("it has no metadata.name")
	}
	delete(u.Object, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	return nil
}

// place gives each manifest its namespace and refuses two of the same name.
func place(ms []manifest, namespace string, explicit bool) error {
	first := map[string]string{}
	var errs []error
	for _, m := range ms {
		switch own := m.object.GetNamespace(); {
		case own == "":
			m.object.SetNamespace(namespace)
		case explicit && own != namespace:
			errs = append(errs, fmt.Errorf("%s: it is for namespace %s, but -n says %s: change one of them", m.source, own, namespace))
		}
		key := m.object.GetNamespace() + "/" + m.object.GetName()
		if other, ok := first[key]; ok {
			errs = append(errs, fmt.Errorf("%s: CacheCluster %s is in %s as well: remove one of them", m.source, key, other))
		}
		first[key] = m.source
	}
	return errors.Join(errs...)
}
