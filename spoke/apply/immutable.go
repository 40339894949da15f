package apply

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/reconcile-lab/reconcile-lab/internal/children"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

var (
	statefulSet = children.StatefulSetKind.Kind
	claimsPath  = fieldpath.MakePathOrDie("spec", "volumeClaimTemplates")

	immutableFields = fieldpath.NewSet(
		fieldpath.MakePathOrDie("spec", "serviceName"),
		fieldpath.MakePathOrDie("spec", "podManagementPolicy"),
		fieldpath.MakePathOrDie("spec", "selector"),
		fieldpath.MakePathOrDie("spec", "clusterIP"),
		claimsPath,
	)
)

// immutableChange is a field of an intent that the API server does not change on the live
// object.
type immutableChange struct {
	// path is the field, as package drift writes it. live and desired are its values.
	path, live, desired string
	// obstacle is the reason why the object cannot be recreated around its running pods, or
	// is empty.
	obstacle string
}

// String returns a clause that names the field and both values.
func (c immutableChange) String() string {
	return fmt.Sprintf("%s cannot change from %s to %s", c.path, c.live, c.desired)
}

func pathsOf(changes []immutableChange) []string {
	fields := make([]string, 0, len(changes))
	for _, c := range changes {
		fields = append(fields, c.path)
	}
	return fields
}

// immutableValues are the immutable fields of an object.
type immutableValues struct {
	serviceName, podManagement string
	selector                   *metav1.LabelSelector
	claims                     []corev1.PersistentVolumeClaim
	clusterIP, serviceType     string
}

// immutableChanges returns the changed immutable fields, sorted by path. Only fields that
// the intent sets are compared, by meaning: 1Gi equals 1024Mi, and defaults of the API
// server are no change. The removal of a claim that the hub applied is a change.
func immutableChanges(intent *unstructured.Unstructured, live metav1.Object) []immutableChange {
	desired, observed := immutableValuesOf(intent), immutableValuesOf(live)
	return compareImmutable(desired, observed, setsClaims(desired, observed, live))
}

// setsClaims reports whether applying the intent sets or removes claim templates.
func setsClaims(desired, observed immutableValues, live metav1.Object) bool {
	return len(desired.claims) > 0 || len(observed.claims) > 0 && drift.Owns(live, claimsPath)
}

func compareImmutable(desired, observed immutableValues, claims bool) []immutableChange {
	var changes []immutableChange
	add := func(path, from, to, obstacle string) {
		changes = append(changes, immutableChange{path: path, live: from, desired: to, obstacle: obstacle})
	}
	if desired.serviceName != "" && desired.serviceName != observed.serviceName {
		add("spec.serviceName", quoted(observed.serviceName), quoted(desired.serviceName), "")
	}
	if desired.podManagement != "" && desired.podManagement != observed.podManagement {
		add("spec.podManagementPolicy", quoted(observed.podManagement), quoted(desired.podManagement), "")
	}
	if desired.selector != nil && metav1.FormatLabelSelector(desired.selector) != metav1.FormatLabelSelector(observed.selector) {
		add("spec.selector", quoted(metav1.FormatLabelSelector(observed.selector)), quoted(metav1.FormatLabelSelector(desired.selector)),
			"a StatefulSet adopts only pods that its selector matches")
	}
	switch {
	case observed.serviceType == string(corev1.ServiceTypeExternalName):
		// The address of an ExternalName Service, and of no other, is mutable.
	case desired.clusterIP != "" && desired.clusterIP != observed.clusterIP:
		add("spec.clusterIP", quoted(observed.clusterIP), quoted(desired.clusterIP), "")
	case desired.clusterIP == "" && desired.serviceType == string(corev1.ServiceTypeClusterIP) && observed.clusterIP == corev1.ClusterIPNone:
		add("spec.clusterIP", quoted(observed.clusterIP), "an address", "")
	}
	if claims {
		compareClaims(desired.claims, observed.claims, add)
	}
	slices.SortFunc(changes, func(a, b immutableChange) int { return strings.Compare(a.path, b.path) })
	return changes
}

func compareClaims(desired, observed []corev1.PersistentVolumeClaim, add func(path, from, to, obstacle string)) {
	for i := range desired {
		claim := &desired[i]
		index := slices.IndexFunc(observed, func(c corev1.PersistentVolumeClaim) bool { return c.Name == claim.Name })
		if index < 0 {
			add(claimPath(claim.Name), "absent", describeClaim(claim), "a running pod cannot get another volume")
			continue
		}
		compareClaim(claim, &observed[index], func(field, from, to string) { add(claimPath(claim.Name)+field, from, to, "") })
	}
	for i := range observed {
		if !slices.ContainsFunc(desired, func(c corev1.PersistentVolumeClaim) bool { return c.Name == observed[i].Name }) {
			add(claimPath(observed[i].Name), describeClaim(&observed[i]), "absent", "")
		}
	}
}

func compareClaim(desired, observed *corev1.PersistentVolumeClaim, add func(field, from, to string)) {
	for _, key := range slices.Sorted(maps.Keys(desired.Labels)) {
		if observed.Labels[key] != desired.Labels[key] {
			add(".metadata.labels."+key, quoted(observed.Labels[key]), quoted(desired.Labels[key]))
		}
	}
	if !slices.Equal(desired.Spec.AccessModes, observed.Spec.AccessModes) {
		add(".spec.accessModes", fmt.Sprint(observed.Spec.AccessModes), fmt.Sprint(desired.Spec.AccessModes))
	}
	for _, name := range slices.Sorted(maps.Keys(desired.Spec.Resources.Requests)) {
		to, from := desired.Spec.Resources.Requests[name], observed.Spec.Resources.Requests[name]
		if to.Cmp(from) != 0 {
			add(".spec.resources.requests."+string(name), from.String(), to.String())
		}
	}
	// The API server sets no default class in a claim template, so an absent class means
	// the default class of the member.
	if !ptr.Equal(desired.Spec.StorageClassName, observed.Spec.StorageClassName) {
		add(".spec.storageClassName", storageClass(observed), storageClass(desired))
	}
}

func claimPath(name string) string { return fmt.Sprintf("spec.volumeClaimTemplates[name=%q]", name) }

func describeClaim(c *corev1.PersistentVolumeClaim) string {
	size := c.Spec.Resources.Requests[corev1.ResourceStorage]
	return fmt.Sprintf("a claim of %s", size.String())
}

func storageClass(c *corev1.PersistentVolumeClaim) string {
	if c.Spec.StorageClassName == nil {
		return "the default class"
	}
	return quoted(*c.Spec.StorageClassName)
}

func quoted(s string) string { return fmt.Sprintf("%q", s) }

// immutableValuesOf reads a typed object from a cache, or an intent. A value that cannot be
// read counts as absent.
func immutableValuesOf(object metav1.Object) immutableValues {
	switch o := object.(type) {
	case *appsv1.StatefulSet:
		return immutableValues{serviceName: o.Spec.ServiceName, podManagement: string(o.Spec.PodManagementPolicy), selector: o.Spec.Selector,
			claims: o.Spec.VolumeClaimTemplates}
	case *corev1.Service:
		return immutableValues{clusterIP: o.Spec.ClusterIP, serviceType: string(o.Spec.Type)}
	case *unstructured.Unstructured:
		return immutableValuesOfUnstructured(o)
	default:
		return immutableValues{}
	}
}

func immutableValuesOfUnstructured(u *unstructured.Unstructured) immutableValues {
	var values immutableValues
	values.serviceName, _, _ = unstructured.NestedString(u.Object, "spec", "serviceName")
	values.podManagement, _, _ = unstructured.NestedString(u.Object, "spec", "podManagementPolicy")
	values.clusterIP, _, _ = unstructured.NestedString(u.Object, "spec", "clusterIP")
	values.serviceType, _, _ = unstructured.NestedString(u.Object, "spec", "type")
	if u.GetKind() != statefulSet {
		return values
	}
	if selector, found, _ := unstructured.NestedMap(u.Object, "spec", "selector"); found {
		values.selector = &metav1.LabelSelector{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(selector, values.selector) != nil {
			values.selector = nil
		}
	}
	claims, _, _ := unstructured.NestedSlice(u.Object, "spec", "volumeClaimTemplates")
	for _, c := range claims {
		claim := corev1.PersistentVolumeClaim{}
		if fields, ok := c.(map[string]any); ok && runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &claim) == nil {
			values.claims = append(values.claims, claim)
		}
	}
	return values
}

// equalClaims reports whether two lists of claim templates are equal but for the defaults
// of the API server.
func equalClaims(one, other []corev1.PersistentVolumeClaim) bool {
	return slices.EqualFunc(one, other, func(a, b corev1.PersistentVolumeClaim) bool {
		return equality.Semantic.DeepEqual(withClaimDefaults(a), withClaimDefaults(b))
	})
}

// withClaimDefaults returns a claim template with the defaults of the API server and
// without the fields that only the API server sets.
func withClaimDefaults(c corev1.PersistentVolumeClaim) corev1.PersistentVolumeClaim {
	c.TypeMeta, c.Status = metav1.TypeMeta{}, corev1.PersistentVolumeClaimStatus{}
	if c.Spec.VolumeMode == nil {
		c.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeFilesystem)
	}
	return c
}
