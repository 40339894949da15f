package apply

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
)

var (
	statefulSet = render.StatefulSetKind.Kind
	rigidFields = fieldpath.NewSet(
		fieldpath.MakePathOrDie("spec", "serviceName"),
		fieldpath.MakePathOrDie("spec", "podManagementPolicy"),
		fieldpath.MakePathOrDie("spec", "selector"),
		fieldpath.MakePathOrDie("spec", "clusterIP"),
		claimsPath,
	)
)

// hold gives the intent with the values that the live object has where it cannot
// have others, so that everything else can be applied, and names those fields. What
// is held is not ours to put right, so it counts as no drift. The intent's hash
// stays: it names the wish.
func hold(d Desired, live metav1.Object) (Desired, []Stuck) {
	wanted, is := rigidOf(d.Intent), rigidOf(live)
	claims := setsClaims(wanted, is, live)
	stuck := compare(wanted, is, claims)
	claims = claims && !sameClaims(wanted.claims, is.claims)
	if len(stuck) == 0 && !claims {
		return d, nil
	}
	intent := d.Intent.DeepCopy()
	for _, s := range stuck {
		switch s.Path {
		case "spec.serviceName":
			set(intent, is.serviceName, "spec", "serviceName")
		case "spec.podManagementPolicy":
			set(intent, is.management, "spec", "podManagementPolicy")
		case "spec.clusterIP":
			set(intent, is.clusterIP, "spec", "clusterIP")
		case "spec.selector":
			holdSelector(intent, is.selector)
		}
	}
	if claims {
		holdClaims(intent, wanted.claims, is.claims)
	}
	held := d
	held.Intent = intent
	if fields, err := drift.Wanted(d.typer, intent); err == nil {
		held.Wanted = fields.Difference(rigidFields)
	}
	return held, stuck
}

func set(intent *unstructured.Unstructured, value any, path ...string) {
	// It fails only for a parent that is no object, and spec always is one.
	_ = unstructured.SetNestedField(intent.Object, value, path...)
}

// holdSelector keeps the live selector, and the pods' labels so that it goes on
// matching them.
func holdSelector(intent *unstructured.Unstructured, selector *metav1.LabelSelector) {
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(selector)
	if err != nil {
		return
	}
	set(intent, raw, "spec", "selector")
	for key, value := range selector.MatchLabels {
		set(intent, value, "spec", "template", "metadata", "labels", key)
	}
}

// holdClaims keeps the live claim templates, and the cache container's mount and
// arguments in line with them: a pod that mounts what it does not have, or is told
// to write there, does not start.
func holdClaims(intent *unstructured.Unstructured, wanted, is []corev1.PersistentVolumeClaim) {
	templates := make([]any, 0, len(is))
	for i := range is {
		raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&is[i])
		if err != nil {
			return
		}
		templates = append(templates, raw)
	}
	if len(templates) > 0 {
		set(intent, templates, "spec", "volumeClaimTemplates")
	} else {
		unstructured.RemoveNestedField(intent.Object, "spec", "volumeClaimTemplates")
	}
	named := func(c corev1.PersistentVolumeClaim) bool { return c.Name == render.DataVolume }
	had, has := slices.ContainsFunc(wanted, named), slices.ContainsFunc(is, named)
	if had == has {
		return
	}
	containers, _, _ := unstructured.NestedSlice(intent.Object, "spec", "template", "spec", "containers")
	for _, c := range containers {
		container, ok := c.(map[string]any)
		if !ok || container["name"] != render.CacheContainer {
			continue
		}
		if has {
			container["volumeMounts"] = []any{map[string]any{"name": render.DataVolume, "mountPath": render.DataPath}}
		} else {
			delete(container, "volumeMounts")
			container["args"] = withoutVolume(container["args"])
		}
	}
	set(intent, containers, "spec", "template", "spec", "containers")
}

// withoutVolume are memcached's arguments less the extended options that name a
// place on the volume.
func withoutVolume(arguments any) any {
	list, _ := arguments.([]any)
	var kept []any
	for _, a := range list {
		text, _ := a.(string)
		if options, extended := strings.CutPrefix(text, "--extended="); extended {
			rest := slices.DeleteFunc(strings.Split(options, ","), func(o string) bool { return strings.Contains(o, "="+render.DataPath+"/") })
			if len(rest) == 0 {
				continue
			}
			text = "--extended=" + strings.Join(rest, ",")
		}
		kept = append(kept, text)
	}
	return kept
}

// mostFields bounds how many fields a message names.
const mostFields = 8

// immutable says which fields are stuck, and the way out; nil if none is.
func immutable(key Key, namespace string, stuck []Stuck) *failure.Failure {
	if len(stuck) == 0 {
		return nil
	}
	fields, barred := make([]string, 0, len(stuck)), ""
	for i, s := range stuck {
		if i == mostFields {
			fields = append(fields, fmt.Sprintf("and %d more", len(stuck)-i))
			break
		}
		fields = append(fields, s.String())
	}
	for _, s := range stuck {
		if s.Barred != "" && barred == "" {
			barred = s.Path + ": " + s.Barred
		}
	}
	f := &failure.Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonImmutableField,
		Message: fmt.Sprintf("%s: %s in place; everything else is applied", key, strings.Join(fields, "; "))}
	object := strings.ToLower(key.String())
	switch {
	case barred != "":
		f.Hint = fmt.Sprintf("put the field back, or delete it in the member, which restarts its pods and keeps their claims: kubectl delete -n %s %s; it cannot be recreated around them (%s)", namespace, object, barred)
	case key.Kind == render.StatefulSetKind:
		f.Hint = "set spec.recreate: OrphanPods, which recreates the StatefulSet around its running pods, or put the field back"
	default:
		f.Hint = "set spec.recreate: OrphanPods, which deletes and creates the object, or put the field back"
	}
	return f
}

// mayRecreate says whether the user consents to what can be done about stuck fields.
func (o Owner) mayRecreate(stuck []Stuck) bool {
	return len(stuck) > 0 && o.Policies.Recreate == v1alpha1.RecreateOrphanPods &&
		!slices.ContainsFunc(stuck, func(s Stuck) bool { return s.Barred != "" })
}

func recreating(key Key) *failure.Failure {
	how := "is deleted and created anew"
	if key.Kind == render.StatefulSetKind {
		how = "is recreated around its running pods"
	}
	return &failure.Failure{Class: v1alpha1.ClassTransient, Reason: v1alpha1.ReasonRecreating, Message: fmt.Sprintf("%s %s", key, how)}
}
