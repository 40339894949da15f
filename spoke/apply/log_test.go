package apply

import (
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

func TestExecute_LogsOneLineForEachWrite(t *testing.T) {
	all := desired(t)
	replicasPath := fieldpath.MakePathOrDie("spec", "replicas")
	live := liveOf(t, all)
	live[setKey] = with(ownedAlsoBy(t, applied(t, &all[1], replicasPath), "kubectl", replicasPath), int64(7), "spec", "replicas")
	annotate(live[budgetKey], v1alpha1.AnnotationOwner, "other/member-1")
	o := owner
	o.Inventory = inventoryOf(live)
	m := &member{objects: map[Key]*unstructured.Unstructured{budgetKey: live[budgetKey].(*unstructured.Unstructured)}}
	for _, c := range []struct {
		name      string
		verbosity int
		want      []string
	}{
		{"writes only", 0, []string{`"action"="correct" "kind"="StatefulSet" "child"={"name"="sessions" "namespace"="shop"} "cause"="drift" "fields"="spec.replicas" "manager"="kubectl"`}},
		{"refusals too", levelNotWritten, []string{`"action"="correct"`, `"action"="refuse" "kind"="PodDisruptionBudget"`}},
		{"unchanged children too", levelUnchanged, []string{`"action"="none" "kind"="Service"`, `"action"="correct"`, `"action"="refuse"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var lines []string
			logger := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{Verbosity: c.verbosity})
			New(Options{Client: m, Namespace: "shop"}).Apply(log.IntoContext(t.Context(), logger), Decide(all, live, o, nil))
			if len(lines) != len(c.want) {
				t.Fatalf("%d lines, want %d:\n%s", len(lines), len(c.want), strings.Join(lines, "\n"))
			}
			for i, want := range c.want {
				if !strings.Contains(lines[i], want) {
					t.Errorf("line %q, want %q in it", lines[i], want)
				}
			}
		})
	}
}
