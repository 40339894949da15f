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
		p[field] = "theirs"
	}
	return p
}

func portKey(n int64) any { return fieldpath.KeyByFields("port", n, "protocol", "TCP") }

func TestAnItemUnderAnotherKeyIsOursOnlyWhereNamesAreUnique(t *testing.T) {
	client := path("spec", "ports", portKey(11211))
	mount := func(at string) map[string]any { return map[string]any{"name": "data", "mountPath": at} }
	ourMount := path("spec", "mounts", fieldpath.KeyByFields("mountPath", "/data"))
	list := func(name string, items ...any) map[string]any { return map[string]any{name: items} }
	for _, c := range []struct {
		name         string
		intent, live map[string]any
		entries      []metav1.ManagedFieldsEntry
		item         fieldpath.Path
		want         []drift.Edit
	}{
		{"another number", list("ports", port(11211, "client")), list("ports", port(11300, "client")), nil, client, []drift.Edit{{Pointer: "/spec/ports/0/port", Value: int64(11211)}}},
		{"another number, with what others added", list("ports", port(11211, "client")), list("ports", port(9, "debug"), port(11300, "client", "appProtocol")), nil, client,
			[]drift.Edit{{Pointer: "/spec/ports/1/port", Value: int64(11211)}}},
		{"gone", list("ports", port(11211, "client")), list("ports", port(9, "debug")), nil, client, nil},
		{"there, beside one that took its name", list("ports", port(11211, "client")), list("ports", port(11211, "x"), port(9, "client")), nil, client, nil},
		{"ours of an earlier wish", list("ports", port(11211, "client")), list("ports", port(9, "client")),
			[]metav1.ManagedFieldsEntry{oursHolds(portKey(9))}, client, nil},
		{"two mounts of one volume", list("mounts", mount("/data")), list("mounts", mount("/backup")), nil, ourMount, nil},
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

func TestOnlyWhatTheLastComerPutBesideARefusedFieldMakesRoom(t *testing.T) {
	tcp, exec, delay := path("spec", "probe", "tcpSocket", "port"), path("spec", "probe", "exec", "command"), path("spec", "probe", "initialDelaySeconds")
	limit, image := path("spec", "limit"), path("spec", "image")
	intent := object(map[string]any{"image": "memcached:1", "probe": map[string]any{"tcpSocket": map[string]any{"port": int64(1)}}})
	live := object(map[string]any{"image": "evil", "limit": int64(3), "probe": map[string]any{"exec": map[string]any{"command": "true"}, "initialDelaySeconds": int64(9)}},
		by("team", noon, delay), by("scaler", noon, limit), by("kubectl", noon.Add(time.Minute), exec, image))
	wanted := drift.NewFields(tcp, image)
	missing := drift.NewFields(tcp, image)
	putBack := []drift.Edit{{Pointer: "/spec/image", Value: "memcached:1"}, {Pointer: "/spec/probe/tcpSocket", Value: map[string]any{"port": int64(1)}}}
	for _, c := range []struct {
		name    string
		policy  drift.Policy
		refused []string
		want    []drift.Edit
	}{
		{"the probe's handler", drift.Policy{}, []string{"spec.probe.tcpSocket"}, append([]drift.Edit{{Pointer: "/spec/probe/exec"}}, putBack...)},
		{"a rule keeps it", drift.Policy{Ignore: []drift.Rule{{Manager: "kubectl"}}}, []string{"spec.probe.tcpSocket"},
			append([]drift.Edit{{Pointer: "/spec/probe/initialDelaySeconds"}}, putBack...)},
		{"something elsewhere", drift.Policy{}, []string{"metadata.labels"}, nil},
		{"nothing is named", drift.Policy{}, nil, nil},
		{"the struct above, of which the last comer holds nothing else", drift.Policy{Ignore: []drift.Rule{{Manager: "scaler"}}}, []string{"spec"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.policy.SiblingEdits(intent, live, wanted, missing, c.refused)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// oursHolds is an entry of ours that holds one port.
func oursHolds(key any) metav1.ManagedFieldsEntry {
	return ours(drift.NewFields(path("spec", "ports", key), path("spec", "ports", key, "port")))
}
