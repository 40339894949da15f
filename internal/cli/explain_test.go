package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

func explained(t *testing.T, args ...string) (out, errOut string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), append([]string{"reconcile-lab", "explain"}, args...), strings.NewReader(""), &o, &e)
	return o.String(), e.String(), code
}

func TestExplain_PrintsMeaningAndRemedy(t *testing.T) {
	out, _, code := explained(t, "quotaexceeded")
	reason, class := lookupTerm("QuotaExceeded")[0], lookupTerm("Blocked")
	retry := class[slices.IndexFunc(class, func(t v1alpha1.Term) bool { return t.Kind == v1alpha1.TermClass })].Retry
	want := "QuotaExceeded (reason of a member, class Blocked)\n" +
		"  " + reason.Meaning + "\n  what to do: " + reason.Remedy + "\n  retry: " + retry + "\n"
	if code != 0 || out != want {
		t.Errorf("exit %d, got\n%s\nwant\n%s", code, out, want)
	}
}

func TestExplain_KnowsEveryKindOfTerm(t *testing.T) {
	for word, says := range map[string][]string{
		"Deleting":    {"Deleting (state of a member)", "Deleting (reason of a CacheCluster)", `" in docs/conditions.md`},
		"Transient":   {"(error class of a member)", "who acts: no one; the hub retries", "retry: after 100 ms"},
		"reachable":   {"cache.reconcile-lab.io/Reachable (condition type of a ClusterProfile)", "Reachable (reason of a ClusterProfile)"},
		"Reconciling": {"(condition type of a CacheCluster and a MemberCache)", "(kstatus shows InProgress)"},
	} {
		out, _, code := explained(t, word)
		for _, s := range says {
			if code != 0 || !strings.Contains(out, s) {
				t.Errorf("%s: exit %d, %q is not in\n%s", word, code, s, out)
			}
		}
		if strings.ContainsAny(out, "`[") {
			t.Errorf("%s: Markdown in\n%s", word, out)
		}
	}
}

func TestExplain_WithoutTermListsAll(t *testing.T) {
	out, _, code := explained(t)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != 0 || len(lines) != len(v1alpha1.Glossary())+1 {
		t.Errorf("exit %d, %d lines for %d terms", code, len(lines), len(v1alpha1.Glossary()))
	}
	out, _, code = explained(t, "Forbidden", "-o", "json")
	if code != 0 || !strings.Contains(out, `"class": "Blocked"`) {
		t.Errorf("exit %d, %s", code, out)
	}
}

func TestExplain_SuggestsNearestTerm(t *testing.T) {
	for word, want := range map[string]string{"QuotaExeeded": "QuotaExceeded", "podrefused": "PodsRefused", "Unreachible": "Unreachable"} {
		_, errOut, code := explained(t, word)
		if code != exitUsage || !strings.Contains(errOut, "did you mean "+want+"?") {
			t.Errorf("%s: exit %d, %s", word, code, errOut)
		}
	}
}
