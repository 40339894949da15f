package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// Child is one object that the member shall hold.
type Child struct {
	// Intent is the server-side-apply configuration.
	Intent *unstructured.Unstructured
	// Hash of the intent, also in its annotation v1alpha1.AnnotationIntent.
	Hash string
}

// Kinds that Render can give, in the order in which they are applied where that is
// one after the other: what a StatefulSet's pods are found by comes first.
var (
	ServiceKind     = schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	StatefulSetKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}
	BudgetKind      = schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}

	Kinds = []schema.GroupVersionKind{ServiceKind, StatefulSetKind, BudgetKind}
)

// Render gives the children of a MemberCache, or what is wrong with its template.
func Render(mc *v1alpha1.MemberCache) ([]Child, []Problem) {
	if problems := append(Check(&mc.Spec.Template), CheckPolicies(&mc.Spec.Policies)...); len(problems) > 0 {
		return nil, problems
	}
	in := newInput(mc)
	configurations := []any{headlessService(in)}
	if in.clientService {
		configurations = append(configurations, clientService(in))
	}
	configurations = append(configurations, statefulSet(in), disruptionBudget(in))

	children := make([]Child, 0, len(configurations))
	for _, c := range configurations {
		child, err := seal(c)
		if err != nil {
			return nil, []Problem{{Field: "spec", Value: mc.Name, Fix: "report this as a bug: " + err.Error()}}
		}
		children = append(children, child)
	}
	return children, nil
}

// OwnerMark is carried by every child of a MemberCache: the UID of its
// CacheCluster, so that a namesake of another hub or another life is told apart,
// and the member, so that a cluster which is a member under two names is not
// fought over by both.
func OwnerMark(mc *v1alpha1.MemberCache) string {
	uid := mc.Spec.CacheClusterUID
	if uid == "" {
		// Made by hand, without a CacheCluster.
		uid = string(mc.UID)
	}
	return uid + "/" + mc.Spec.Cluster
}

// seal turns an apply configuration into an intent that carries its own hash.
func seal(configuration any) (Child, error) {
	raw, err := json.Marshal(configuration)
	if err != nil {
		return Child{}, fmt.Errorf("encode %T: %w", configuration, err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		return Child{}, fmt.Errorf("decode %T: %w", configuration, err)
	}
	sum := sha256.Sum256(raw)
	hash := hex.EncodeToString(sum[:8])
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.AnnotationIntent] = hash
	u.SetAnnotations(annotations)
	return Child{Intent: u, Hash: hash}, nil
}
