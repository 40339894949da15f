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

	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

// Stuck is a field of an intent that the API server would not change on the live
// object.
type Stuck struct {
	// Path of the field, as drift writes it, with the value that it has and the one
	// that is wanted.
	Path, Was, Wanted string
	// Barred says why the object cannot be recreated around its running pods, or is
	// empty where it can.
	Barred string
}

func (s Stuck) String() string {
	return fmt.Sprintf("%s is %s and cannot become %s", s.Path, s.Was, s.Wanted)
}

// rigid is what an object has of the fields that no update changes.
type rigid struct {
	serviceName, management string
	selector                *metav1.LabelSelector
	claims                  []corev1.PersistentVolumeClaim
	clusterIP, serviceType  string
}

// Immutable names the fields of an intent that cannot be changed in place on the
// live object, sorted by path. Only what the intent sets is compared, by meaning:
// 1Gi is 1024Mi, and what the API server fills in is no difference. Leaving out a
// claim that we asked for before is a change too.
func Immutable(intent *unstructured.Unstructured, live metav1.Object) []Stuck {
	wanted, is := rigidOf(intent), rigidOf(live)
	return compare(wanted, is, setsClaims(wanted, is, live))
}

// setsClaims says whether applying the intent sets or removes claim templates.
func setsClaims(wanted, is rigid, live metav1.Object) bool {
	return len(wanted.claims) > 0 || len(is.claims) > 0 && drift.Owns(live, claimsPath)
}

func compare(wanted, is rigid, claims bool) []Stuck {
	var stuck []Stuck
	add := func(path, was, want, barred string) {
		stuck = append(stuck, Stuck{Path: path, Was: was, Wanted: want, Barred: barred})
	}
	if wanted.serviceName != "" && wanted.serviceName != is.serviceName {
		add("spec.serviceName", quoted(is.serviceName), quoted(wanted.serviceName), "")
	}
	if wanted.management != "" && wanted.management != is.management {
		add("spec.podManagementPolicy", quoted(is.management), quoted(wanted.management), "")
	}
	if wanted.selector != nil && metav1.FormatLabelSelector(wanted.selector) != metav1.FormatLabelSelector(is.selector) {
		add("spec.selector", quoted(metav1.FormatLabelSelector(is.selector)), quoted(metav1.FormatLabelSelector(wanted.selector)),
			"a StatefulSet adopts only pods that its selector matches")
	}
	switch {
	case is.serviceType == string(corev1.ServiceTypeExternalName):
		// From this type, and only from it, every change is allowed.
	case wanted.clusterIP != "" && wanted.clusterIP != is.clusterIP:
		add("spec.clusterIP", quoted(is.clusterIP), quoted(wanted.clusterIP), "")
	case wanted.clusterIP == "" && wanted.serviceType == string(corev1.ServiceTypeClusterIP) && is.clusterIP == corev1.ClusterIPNone:
		add("spec.clusterIP", quoted(is.clusterIP), "an address", "")
	}
	if claims {
		compareClaims(wanted.claims, is.claims, add)
	}
	slices.SortFunc(stuck, func(a, b Stuck) int { return strings.Compare(a.Path, b.Path) })
	return stuck
}

func compareClaims(wanted, is []corev1.PersistentVolumeClaim, add func(path, was, want, barred string)) {
	for i := range wanted {
		want := &wanted[i]
		at := slices.IndexFunc(is, func(c corev1.PersistentVolumeClaim) bool { return c.Name == want.Name })
		if at < 0 {
			add(claimPath(want.Name), "absent", describe(want), "a running pod cannot get another volume")
			continue
		}
		compareClaim(want, &is[at], func(field, was, want string) { add(claimPath(is[at].Name)+field, was, want, "") })
	}
	for i := range is {
		if !slices.ContainsFunc(wanted, func(c corev1.PersistentVolumeClaim) bool { return c.Name == is[i].Name }) {
			add(claimPath(is[i].Name), describe(&is[i]), "absent", "")
		}
	}
}

func compareClaim(want, is *corev1.PersistentVolumeClaim, add func(field, was, want string)) {
	for _, key := range slices.Sorted(maps.Keys(want.Labels)) {
		if is.Labels[key] != want.Labels[key] {
			add(".metadata.labels."+key, quoted(is.Labels[key]), quoted(want.Labels[key]))
		}
	}
	if !slices.Equal(want.Spec.AccessModes, is.Spec.AccessModes) {
		add(".spec.accessModes", fmt.Sprint(is.Spec.AccessModes), fmt.Sprint(want.Spec.AccessModes))
	}
	for _, name := range slices.Sorted(maps.Keys(want.Spec.Resources.Requests)) {
		wanted, has := want.Spec.Resources.Requests[name], is.Spec.Resources.Requests[name]
		if wanted.Cmp(has) != 0 {
			add(".spec.resources.requests."+string(name), has.String(), wanted.String())
		}
	}
	// No API server fills a class in here, so that none means the member's default.
	if !ptr.Equal(want.Spec.StorageClassName, is.Spec.StorageClassName) {
		add(".spec.storageClassName", class(is), class(want))
	}
}

var claimsPath = fieldpath.MakePathOrDie("spec", "volumeClaimTemplates")

func claimPath(name string) string { return fmt.Sprintf("spec.volumeClaimTemplates[name=%q]", name) }

func describe(c *corev1.PersistentVolumeClaim) string {
	size := c.Spec.Resources.Requests[corev1.ResourceStorage]
	return fmt.Sprintf("a claim of %s", size.String())
}

func class(c *corev1.PersistentVolumeClaim) string {
	if c.Spec.StorageClassName == nil {
		return "the default class"
	}
	return quoted(*c.Spec.StorageClassName)
}

func quoted(s string) string { return fmt.Sprintf("%q", s) }

// rigidOf reads an object as a cache holds it, typed, or as it is applied. What it
// cannot read counts as not there.
func rigidOf(object metav1.Object) rigid {
	switch o := object.(type) {
	case *appsv1.StatefulSet:
		return rigid{serviceName: o.Spec.ServiceName, management: string(o.Spec.PodManagementPolicy), selector: o.Spec.Selector,
			claims: o.Spec.VolumeClaimTemplates}
	case *corev1.Service:
		return rigid{clusterIP: o.Spec.ClusterIP, serviceType: string(o.Spec.Type)}
	case *unstructured.Unstructured:
		return rigidOfUnstructured(o)
	default:
		return rigid{}
	}
}

func rigidOfUnstructured(u *unstructured.Unstructured) rigid {
	var r rigid
	r.serviceName, _, _ = unstructured.NestedString(u.Object, "spec", "serviceName")
	r.management, _, _ = unstructured.NestedString(u.Object, "spec", "podManagementPolicy")
	r.clusterIP, _, _ = unstructured.NestedString(u.Object, "spec", "clusterIP")
	r.serviceType, _, _ = unstructured.NestedString(u.Object, "spec", "type")
	if u.GetKind() != statefulSet {
		return r
	}
	if selector, found, _ := unstructured.NestedMap(u.Object, "spec", "selector"); found {
		r.selector = &metav1.LabelSelector{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(selector, r.selector) != nil {
			r.selector = nil
		}
	}
	claims, _, _ := unstructured.NestedSlice(u.Object, "spec", "volumeClaimTemplates")
	for _, c := range claims {
		claim := corev1.PersistentVolumeClaim{}
		if fields, ok := c.(map[string]any); ok && runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &claim) == nil {
			r.claims = append(r.claims, claim)
		}
	}
	return r
}

// sameClaims says whether an API server would take the one list for the other.
func sameClaims(one, other []corev1.PersistentVolumeClaim) bool {
	return slices.EqualFunc(one, other, func(a, b corev1.PersistentVolumeClaim) bool {
		return equality.Semantic.DeepEqual(bare(a), bare(b))
	})
}

// bare is a claim template without what an API server fills in.
func bare(c corev1.PersistentVolumeClaim) corev1.PersistentVolumeClaim {
	c.TypeMeta, c.Status = metav1.TypeMeta{}, corev1.PersistentVolumeClaimStatus{}
	if c.Spec.VolumeMode == nil {
		c.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeFilesystem)
	}
	return c
}
