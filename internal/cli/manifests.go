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
	"strings"

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
// "-" for in. It returns all problems at once.
func readManifests(paths []string, in io.Reader) ([]manifest, error) {
	var all []manifest
	var errs []error
	for _, path := range paths {
		files, err := listFiles(path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, f := range files {
			manifests, err := readFile(f, in)
			all = append(all, manifests...)
			errs = append(errs, err)
		}
	}
	if err := newErrorList(errs...); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no CacheCluster found; pass a file that contains one", strings.Join(paths, ", "))
	}
	return all, nil
}

func listFiles(path string) ([]string, error) {
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
		return nil, fmt.Errorf("%s: the folder has no .yaml, .yml or .json file; pass another folder, or a file", path)
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
	return decodeFile(name, in)
}

// decodeFile decodes the documents of one file. Empty documents are counted, and
// skipped.
func decodeFile(name string, in io.Reader) ([]manifest, error) {
	var all []manifest
	var errs []error
	reader := utilyaml.NewYAMLReader(bufio.NewReader(in))
	for n := 1; ; n++ {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, newErrorList(errs...)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		source := fmt.Sprintf("%s document %d", name, n)
		objects, err := decodeDocument(doc)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", source, err))
		}
		for _, o := range objects {
			all = append(all, manifest{source, o})
		}
	}
}

// decodeDocument decodes one document: empty, a CacheCluster, or a list of them.
func decodeDocument(doc []byte) ([]*unstructured.Unstructured, error) {
	if len(bytes.TrimSpace(doc)) == 0 {
		return nil, nil
	}
	// Strict decoding refuses a repeated key. Otherwise the last one would win silently.
	data, err := yaml.YAMLToJSONStrict(doc)
	if err != nil {
		return nil, err
	}
	if string(data) == "null" {
		return nil, nil
	}
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(data, &u.Object); err != nil {
		return nil, errors.New("not a Kubernetes object; set apiVersion, kind, metadata and spec")
	}
	if !u.IsList() {
		return []*unstructured.Unstructured{u}, prepare(u)
	}
	var objects []*unstructured.Unstructured
	items, _, _ := unstructured.NestedSlice(u.Object, "items")
	for i, item := range items {
		fields, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("items[%d]: not an object; set apiVersion, kind, metadata and spec", i)
		}
		o := &unstructured.Unstructured{Object: fields}
		if err := prepare(o); err != nil {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
		objects = append(objects, o)
	}
	return objects, nil
}

// prepare refuses an object that is not a CacheCluster with a name. It removes the
// fields that a server sets, so that the output of `get -o yaml` can be applied.
func prepare(u *unstructured.Unstructured) error {
	if err := validateKind(u); err != nil {
		return err
	}
	if u.GetName() == "" {
		return errors.New("metadata.name: required; set a name")
	}
	delete(u.Object, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	return nil
}

func validateKind(u *unstructured.Unstructured) error {
	got := schema.FromAPIVersionAndKind(u.GetAPIVersion(), u.GetKind())
	want := v1alpha1.GroupVersion.WithKind("CacheCluster")
	switch {
	case got == want:
		return nil
	case got.Kind == "":
		return fmt.Errorf("kind: required; set apiVersion: %s and kind: %s", v1alpha1.GroupVersion, want.Kind)
	case got.Kind == want.Kind:
		return fmt.Errorf("apiVersion: %q: not a version of %s; use %s", u.GetAPIVersion(), want.Kind, v1alpha1.GroupVersion)
	case got.Group == want.Group && got.Kind != "MemberCache":
		return fmt.Errorf("kind: %s: unknown kind in %s; use %s", got.Kind, want.Group, want.Kind)
	case got.Group == want.Group:
		return fmt.Errorf("kind: %s: only the hub manager writes this kind; apply the %s that owns it", got.Kind, want.Kind)
	}
	version := u.GetAPIVersion()
	if version == "" {
		version = "no apiVersion"
	}
	return fmt.Errorf("kind: %s (%s): must be %s (%s); use kubectl for other kinds", got.Kind, version, want.Kind, v1alpha1.GroupVersion)
}

// setNamespaces sets the namespace of each manifest that has none, and refuses two
// manifests with the same name. explicit means that --namespace is set.
func setNamespaces(manifests []manifest, namespace string, explicit bool) error {
	first := map[string]string{}
	var errs []error
	for _, m := range manifests {
		switch own := m.object.GetNamespace(); {
		case own == "":
			m.object.SetNamespace(namespace)
		case explicit && own != namespace:
			errs = append(errs, fmt.Errorf("%s: metadata.namespace: %s: differs from --namespace %s; change one of them", m.source, own, namespace))
		}
		key := m.object.GetNamespace() + "/" + m.object.GetName()
		if other, ok := first[key]; ok {
			errs = append(errs, fmt.Errorf("%s: CacheCluster %s: also defined in %s; remove one of them", m.source, key, other))
		}
		first[key] = m.source
	}
	return newErrorList(errs...)
}
