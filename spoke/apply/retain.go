package apply

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/children"
	"github.com/reconcile-lab/reconcile-lab/internal/failure"
	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
)

// retainImmutable returns the desired child with the live values of its changed immutable
// fields, so that all other fields can be applied, and those changes. A retained field is no
// drift. The hash of the intent stays, because it identifies what is desired.
func retainImmutable(d Desired, live metav1.Object) (Desired, []immutableChange) {
	desired, observed := immutableValuesOf(d.Intent), immutableValuesOf(live)
	claims := setsClaims(desired, observed, live)
	changes := compareImmutable(desired, observed, claims)
	claims = claims && !equalClaims(desired.claims, observed.claims)
	if len(changes) == 0 && !claims {
		return d, nil
	}
	intent := d.Intent.DeepCopy()
	for _, c := range changes {
		switch c.path {
		case "spec.serviceName":
			set(intent, observed.serviceName, "spec", "serviceName")
		case "spec.podManagementPolicy":
			set(intent, observed.podManagement, "spec", "podManagementPolicy")
		case "spec.clusterIP":
			set(intent, observed.clusterIP, "spec", "clusterIP")
		case "spec.selector":
			retainSelector(intent, observed.selector)
		}
	}
	if claims {
		retainClaims(intent, desired.claims, observed.claims)
	}
	retained := d
	retained.Intent = intent
	if fields, err := drift.IntentFields(d.typer, intent); err == nil {
		retained.Fields = fields.Difference(immutableFields)
	}
	return retained, changes
}

func set(intent *unstructured.Unstructured, value any, path ...string) {
	// It fails only for a parent that is not an object, and spec always is one.
	_ = unstructured.SetNestedField(intent.Object, value, path...)
}

// retainSelector sets the live selector, and the pod labels that it must match.
func retainSelector(intent *unstructured.Unstructured, selector *metav1.LabelSelector) {
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(selector)
	if err != nil {
		return
	}
	set(intent, raw, "spec", "selector")
	for key, value := range selector.MatchLabels {
		set(intent, value, "spec", "template", "metadata", "labels", key)
	}
}

// retainClaims sets the live claim templates, and adapts the mount and the arguments of the
// cache container. A pod that mounts a volume without a claim, or writes to one, does not
// start.
func retainClaims(intent *unstructured.Unstructured, desired, observed []corev1.PersistentVolumeClaim) {
	templates := make([]any, 0, len(observed))
	for i := range observed {
		raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&observed[i])
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
	isData := func(c corev1.PersistentVolumeClaim) bool { return c.Name == children.DataVolume }
	desiresData, hasData := slices.ContainsFunc(desired, isData), slices.ContainsFunc(observed, isData)
	if desiresData == hasData {
		return
	}
	containers, _, _ := unstructured.NestedSlice(intent.Object, "spec", "template", "spec", "containers")
	for _, c := range containers {
		container, ok := c.(map[string]any)
		if !ok || container["name"] != children.CacheContainer {
			continue
		}
		if hasData {
			container["volumeMounts"] = []any{map[string]any{"name": children.DataVolume, "mountPath": children.DataPath}}
		} else {
			delete(container, "volumeMounts")
			container["args"] = withoutDataPath(container["args"])
		}
	}
	set(intent, containers, "spec", "template", "spec", "containers")
}

// withoutDataPath returns the arguments of memcached without the extended options that name
// a path on the data volume.
func withoutDataPath(arguments any) any {
	list, _ := arguments.([]any)
	var kept []any
	for _, a := range list {
		text, _ := a.(string)
		if options, extended := strings.CutPrefix(text, "--extended="); extended {
			rest := slices.DeleteFunc(strings.Split(options, ","), func(o string) bool { return strings.Contains(o, "="+children.DataPath+"/") })
			if len(rest) == 0 {
				continue
			}
			text = "--extended=" + strings.Join(rest, ",")
		}
		kept = append(kept, text)
	}
	return kept
}

// maxNamedFields is the largest number of fields that a message names.
const maxNamedFields = 8

// retainedFailure returns the failure that names the changed immutable fields and the ways
// out, or nil if there are no changes.
func retainedFailure(key Key, namespace string, changes []immutableChange) *failure.Failure {
	if len(changes) == 0 {
		return nil
	}
	fields, obstacle := make([]string, 0, len(changes)), ""
	for i, c := range changes {
		if i == maxNamedFields {
			fields = append(fields, fmt.Sprintf("%d more fields cannot change", len(changes)-i))
			break
		}
		fields = append(fields, c.String())
	}
	for _, c := range changes {
		if c.obstacle != "" && obstacle == "" {
			obstacle = c.path + ": " + c.obstacle
		}
	}
	f := &failure.Failure{Class: v1alpha1.ClassBlocked, Reason: v1alpha1.ReasonImmutableField,
		Message: fmt.Sprintf("%s has immutable fields: %s; all other fields are applied", key, strings.Join(fields, "; "))}
	switch {
	case obstacle != "":
		f.Hint = fmt.Sprintf("revert the field, or delete the object in the member, which restarts its pods and keeps their claims: kubectl delete -n %s %s; spec.recreate cannot keep the pods (%s)",
			namespace, strings.ToLower(key.String()), obstacle)
	case key.Kind == children.StatefulSetKind:
		f.Hint = "set spec.recreate: OrphanPods to recreate the StatefulSet and keep its running pods, or revert the field"
	default:
		f.Hint = "set spec.recreate: OrphanPods to delete and recreate the object, or revert the field"
	}
	return f
}
