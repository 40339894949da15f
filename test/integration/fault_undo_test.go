package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	cluster "github.com/reconcile-lab/reconcile-lab/internal/lab"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/fault"
	"github.com/reconcile-lab/reconcile-lab/test/harness"
)

// provided stands in for a lab's provider: faults of children and credentials ask it
// for nothing.
type provided struct{ cluster.Provider }

// asLab returns the test's fleet the folder of a lab.
func asLab(t *testing.T) *cluster.Lab {
	t.Helper()
	l := &cluster.Lab{Name: "test", Dir: t.TempDir()}
	config := clientcmdapi.NewConfig()
	add := func(name string, c *rest.Config) {
		config.Clusters[name] = &clientcmdapi.Cluster{Server: c.Host, CertificateAuthorityData: c.CAData}
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: c.CertData, ClientKeyData: c.KeyData}
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	add(cluster.Hub, lab.Hub.Config)
	for name, m := range lab.Members {
		add(name, m.Config)
	}
	if err := clientcmd.WriteToFile(*config, l.Kubeconfig()); err != nil {
		t.Fatal(err)
	}
	state, err := json.Marshal(cluster.State{Provider: "embedded", Members: []string{one, two}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(l.Dir, "lab.json"), state, 0o600); err != nil {
		t.Fatal(err)
	}
	return l
}

// newInjector returns an injector of its own, as another process would have.
func newInjector(t *testing.T, l *cluster.Lab) *fault.Injector {
	t.Helper()
	i, err := fault.New(fault.Options{Lab: l, Provider: provided{}})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// wanted is an object without what the API server and controllers write by
// themselves; who owns which field belongs to it.
func wanted(t *testing.T, s *harness.Server, kind schema.GroupVersionKind, namespace, name string) map[string]any {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, u); err != nil {
		t.Fatal(err)
	}
	var owners []metav1.ManagedFieldsEntry
	for _, e := range u.GetManagedFields() {
		if e.Subresource == "" {
			e.Time = nil
			owners = append(owners, e)
		}
	}
	u.SetManagedFields(owners)
	for _, of := range []string{"uid", "resourceVersion", "generation", "creationTimestamp"} {
		unstructured.RemoveNestedField(u.Object, "metadata", of)
	}
	delete(u.Object, "status")
	// The API server assigned another address.
	if ip, _, _ := unstructured.NestedString(u.Object, "spec", "clusterIP"); ip != "None" {
		unstructured.RemoveNestedField(u.Object, "spec", "clusterIP")
		unstructured.RemoveNestedField(u.Object, "spec", "clusterIPs")
	}
	return u.Object
}

func TestFaultUndo_RestoresObjectFromAnotherProcess(t *testing.T) {
	ns := namespace(t, "inject")
	isReady(t, create(t, cache(ns, "sessions", one, two)))
	// The hub would correct the fault first.
	if err := lab.stopManager(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := lab.startManager(); err != nil {
			t.Error(err)
		}
	}()
	l := asLab(t)
	injector := func() *fault.Injector { return newInjector(t, l) }

	set := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}
	service := schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	budget := schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}
	secret := schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	for _, test := range []struct {
		name    string
		request fault.Request
		kind    schema.GroupVersionKind
	}{
		{"replicas", fault.Request{Fault: fault.Drift}, set},
		{"an image", fault.Request{Fault: fault.Drift, Field: `spec.template.spec.containers[name="memcached"].image`, Value: "memcached:1.5"}, set},
		{"a label", fault.Request{Fault: fault.Drift, Kind: "service"}, service},
		{"a new field", fault.Request{Fault: fault.Drift, Field: "metadata.labels.example.com/new", Value: "x", Manager: "other-client"}, set},
		{"a deleted StatefulSet", fault.Request{Fault: fault.Delete}, set},
		{"a deleted Service", fault.Request{Fault: fault.Delete, Kind: "Service"}, service},
		{"a deleted budget", fault.Request{Fault: fault.Delete, Kind: "PodDisruptionBudget/sessions"}, budget},
		{"a foreign variable", fault.Request{Fault: fault.Foreign}, set},
		{"a foreign container", fault.Request{Fault: fault.Foreign, Add: "sidecar"}, set},
		{"a credential", fault.Request{Fault: fault.ExpiredCredential, Member: two}, secret},
	} {
		t.Run(test.name, func(t *testing.T) {
			read := func() map[string]any {
				if test.kind == secret {
					return wanted(t, lab.Hub, secret, v1alpha1.InventoryNamespace, credentialNameOf(t, two))
				}
				return wanted(t, lab.Members[two].Server, test.kind, ns, "sessions")
			}
			before := read()
			r := test.request
			r.Namespace, r.Cache, r.Member = ns, "sessions", two
			f, err := injector().Inject(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if r.Fault != fault.Delete && cmp.Diff(before, read()) == "" {
				t.Fatal("nothing was changed")
			}
			there, err := fault.List(l)
			if err != nil || len(there) != 1 || there[0].ID != f.ID {
				t.Fatalf("recorded are %v, %v", there, err)
			}
			if _, err := injector().Undo(t.Context(), f.ID); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, read()); diff != "" {
				t.Errorf("after the undo (-before +after):\n%s", diff)
			}
			if left, err := fault.List(l); err != nil || len(left) > 0 {
				t.Errorf("still recorded: %v, %v", left, err)
			}
		})
	}

	t.Run("but not the owner of a field that another spec changed meanwhile, since the hub would miss the difference", func(t *testing.T) {
		r := fault.Request{Fault: fault.Drift, Namespace: ns, Cache: "sessions", Member: two}
		if _, err := injector().Inject(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		member := lab.Members[two].Client
		live := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sessions"}}
		wish := []byte(`{"metadata":{"annotations":{"` + v1alpha1.AnnotationIntent + `":"another"}}}`)
		if err := member.Patch(t.Context(), live, client.RawPatch(types.MergePatchType, wish), client.FieldOwner("test")); err != nil {
			t.Fatal(err)
		}
		if _, err := injector().Undo(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		reload(t, member, live)
		for _, e := range live.ManagedFields {
			owns := strings.Contains(string(e.FieldsV1.GetRawBytes()), `"f:replicas"`) && e.Subresource == ""
			if owns && e.Manager == v1alpha1.FieldManager {
				t.Errorf("%s owns the field again, though its wish is another", e.Manager)
			}
		}
	})
}

func credentialNameOf(t *testing.T, member string) string {
	t.Helper()
	var secrets corev1.SecretList
	if err := lab.Hub.Client.List(t.Context(), &secrets, client.InNamespace(v1alpha1.InventoryNamespace),
		client.MatchingLabels{v1alpha1.LabelCredentialOf: member}); err != nil || len(secrets.Items) != 1 {
		t.Fatalf("%d credentials of %s: %v", len(secrets.Items), member, err)
	}
	return secrets.Items[0].Name
}

func TestFaultInject_RefusesWrongTargetWithAlternatives(t *testing.T) {
	ns := namespace(t, "inject-input")
	isReady(t, create(t, cache(ns, "sessions", one)))
	l := asLab(t)
	for _, test := range []struct {
		name    string
		request fault.Request
		want    string
	}{
		{"another fault", fault.Request{Fault: "earthquake"}, "must be one of: drift, delete"},
		{"another member", fault.Request{Fault: fault.Hang, Member: "member-9"}, "use one of: member-1, member-2"},
		{"no member", fault.Request{Fault: fault.Hang}, "MEMBER is missing; use one of: member-1, member-2"},
		{"another cache", fault.Request{Fault: fault.Drift, Cache: "nope"}, "use one of: sessions"},
		{"a member without it", fault.Request{Fault: fault.Drift, Member: two}, "is not placed in member-2"},
		{"another child", fault.Request{Fault: fault.Drift, Kind: "Pod"}, "StatefulSet/sessions"},
		{"another field", fault.Request{Fault: fault.Drift, Field: "spec.nothing.below"}, `unknown field "spec.nothing"`},
		{"a value of another type", fault.Request{Fault: fault.Drift, Value: "many"}, `value "many"`},
		{"an addition that there is not", fault.Request{Fault: fault.Foreign, Add: "volume"}, "must be one of: env, annotation, sidecar"},
		{"an addition to a Service", fault.Request{Fault: fault.Foreign, Kind: "Service"}, "has no pod template"},
		{"a conflict without an interval", fault.Request{Fault: fault.Fight, Every: 1}, "must be at least 10ms"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := test.request
			r.Namespace = ns
			_, err := newInjector(t, l).Inject(t.Context(), r)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if left, _ := fault.List(l); len(left) > 0 {
				t.Errorf("recorded: %v", left)
			}
		})
	}
}
