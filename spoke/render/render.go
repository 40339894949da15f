package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/validation"
)

// Child is one desired object in a member.
type Child struct {
	// Intent is the server-side apply configuration: the owned fields and nothing else.
	Intent *unstructured.Unstructured
	// Hash is the hash of the intent, which its annotation v1alpha1.AnnotationIntent holds too.
	Hash string
}

// Render returns the children of a MemberCache, or the problems of its spec. It never
// returns both.
func Render(mc *v1alpha1.MemberCache) ([]Child, []validation.Problem) {
	if problems := append(validation.Template(&mc.Spec.Template), validation.Policies(&mc.Spec.Policies)...); len(problems) > 0 {
		return nil, problems
	}
	in := newInput(mc)
	configurations := []any{headlessService(in)}
	if in.clientService {
		configurations = append(configurations, clientService(in))
	}
	configurations = append(configurations, statefulSet(in), disruptionBudget(in))

	rendered := make([]Child, 0, len(configurations))
	for _, c := range configurations {
		child, err := withHash(c)
		if err != nil {
			return nil, []validation.Problem{{Field: "spec", Value: mc.Name, Fix: "report this as a bug: " + err.Error()}}
		}
		rendered = append(rendered, child)
	}
	return rendered, nil
}

// withHash returns an apply configuration as an intent, with its hash in an annotation.
func withHash(configuration any) (Child, error) {
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
