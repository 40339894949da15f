package drift_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

func object(spec map[string]any, entries ...metav1.ManagedFieldsEntry) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"kind": "StatefulSet", "spec": spec}}
	u.SetManagedFields(entries)
	return u
}

func port(n int64, name string, more ...string) map[string]any {
	p := map[string]any{"name": name, "port": n, "protocol": "TCP"}
	for _, field := range more {
		p[field] = "other"
	}
	return p
}

func portKey(n int64) any { return fieldpath.KeyByFields("port", n, "protocol", "TCP") }

func TestRekeyedItems_MatchByNameOnlyWhereNamesAreUnique(t *testing.T) {
	client := path("spec", "ports", portKey(11211))
	mount := func(mountPath string) map[string]any { return map[string]any{"name": "data", "mountPath": mountPath} }
	mountItem := path("spec", "mounts", fieldpath.KeyByFields("mountPath", "/data"))
	list := func(name string, items ...any) map[string]any { return map[string]any{name: items} }
	for _, c := range []struct {
		name         string
		intent, live map[string]any
		entries      []metav1.ManagedFieldsEntry
		item         fieldpath.Path
		want         []drift.Edit
	}{
		{"another port number", list("ports", port(11211, "client")), list("ports", port(11300, "client")), nil, client, []drift.Edit{{Pointer: "/spec/ports/0/port", Value: int64(11211)}}},
		{"another port number and a foreign field", list("ports", port(11211, "client")), list("ports", port(9, "debug"), port(11300, "client", "appProtocol")), nil, client,
			[]drift.Edit{{Pointer: "/spec/ports/1/port", Value: int64(11211)}}},
		{"removed item", list("ports", port(11211, "client")), list("ports", port(9, "debug")), nil, client, nil},
		{"item present, with its name in another item", list("ports", port(11211, "client")), list("ports", port(11211, "x"), port(9, "client")), nil, client, nil},
		{"item of an earlier intent", list("ports", port(11211, "client")), list("ports", port(9, "client")),
			[]metav1.ManagedFieldsEntry{portEntry(portKey(9))}, client, nil},
		{"two mounts of one volume", list("mounts", mount("/data")), list("mounts", mount("/backup")), nil, mountItem, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var edits []drift.Edit
			for _, m := range drift.RekeyedItems(object(c.intent), object(c.live, c.entries...), drift.NewFields(c.item)) {
				edits = append(edits, m.Edits...)
			}
			if diff := cmp.Diff(c.want, edits); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSiblingEdits_RemoveSiblingsOfLatestManager(t *testing.T) {
	tcp, exec, delay := path("spec", "probe", "tcpSocket", "port"), path("spec", "probe", "exec", "command"), path("spec", "probe", "initialDelaySeconds")
	limit, image := path("spec", "limit"), path("spec", "image")
	intent := object(map[string]any{"image": "memcached:1", "probe": map[string]any{"tcpSocket": map[string]any{"port": int64(1)}}})
	live := object(map[string]any{"image": "evil", "limit": int64(3), "probe": map[string]any{"exec": map[string]any{"command": "true"}, "initialDelaySeconds": int64(9)}},
		by("team", noon, delay), by("scaler", noon, limit), by("kubectl", noon.Add(time.Minute), exec, image))
	intentFields := drift.NewFields(tcp, image)
	drifted := drift.NewFields(tcp, image)
	restored := []drift.Edit{{Pointer: "/spec/image", Value: "memcached:1"}, {Pointer: "/spec/probe/tcpSocket", Value: map[string]any{"port": int64(1)}}}
	for _, c := range []struct {
		name     string
		policy   drift.Policy
		rejected []string
		want     []drift.Edit
	}{
		{"the probe's handler", drift.Policy{}, []string{"spec.probe.tcpSocket"}, append([]drift.Edit{{Pointer: "/spec/probe/exec"}}, restored...)},
		{"a handler that a rule covers", drift.Policy{Ignore: []drift.Rule{{Manager: "kubectl"}}}, []string{"spec.probe.tcpSocket"},
			append([]drift.Edit{{Pointer: "/spec/probe/initialDelaySeconds"}}, restored...)},
		{"a rejected field elsewhere", drift.Policy{}, []string{"metadata.labels"}, nil},
		{"no rejected field", drift.Policy{}, nil, nil},
		{"the parent struct, where the latest manager owns no other field", drift.Policy{Ignore: []drift.Rule{{Manager: "scaler"}}}, []string{"spec"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.policy.SiblingEdits(intent, live, intentFields, drifted, c.rejected)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// portEntry returns an entry of the hub that owns one port.
func portEntry(key any) metav1.ManagedFieldsEntry {
	return ours(drift.NewFields(path("spec", "ports", key), path("spec", "ports", key, "port")))
}
