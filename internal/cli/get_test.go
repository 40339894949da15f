package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

func TestPrintStatus_ShowsMembersWithHints(t *testing.T) {
	since := metav1.NewTime(noon.Add(-3 * time.Minute))
	ready := drifted(4, noon.Add(-12*time.Second))
	ready.Since = &since
	failing := member("member-2", v1alpha1.MemberDegraded, 1, v1alpha1.ReasonImagePullFailing)
	failing.Since, failing.Message, failing.Hint = &since, `pod x-0: cannot pull "memcached:9"`, "check spec.image"
	blocked := member("member-3", v1alpha1.MemberBlocked, 0, v1alpha1.ReasonQuotaExceeded)
	retry := metav1.NewTime(noon.Add(12 * time.Second))
	blocked.Since, blocked.Message, blocked.Attempt, blocked.RetryAt = &since, "exceeded quota: small", 4, &retry
	unreachable := member("member-10", v1alpha1.MemberUnreachable, 0, "")
	unreachable.Revision = ""
	cc := sampleCache(ready, failing, blocked, unreachable)
	cc.Status.Members = "1/4"
	cc.Generation = 2

	var out bytes.Buffer
	if err := printStatus(&out, cc, noon); err != nil {
		t.Fatal(err)
	}
	want := `default/cache-cluster: NotReady 1/4 members MembersNotReady
  not all members are ready
  the hub manager has not observed the latest change; the status below is of an earlier generation
MEMBER      STATE         READY   REVISION   REASON             SINCE   DRIFTS
member-1    Ready         3/3     r1         PodsReady          3m      4 (12s ago)
  corrected in 38ms: StatefulSet/cache-cluster spec.replicas (was changed by kubectl-edit)
member-2    Degraded      1/3     r1         ImagePullFailing   3m      -
  pod x-0: cannot pull "memcached:9"
  hint: check spec.image
member-3    Blocked       0/3     r1         QuotaExceeded      3m      -
  exceeded quota: small
  4 attempts, next retry in 12s
member-10   Unreachable   0/3     -          -                  -       -
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestCacheRows_MatchPrinterColumns(t *testing.T) {
	cc := sampleCache(member("member-1", v1alpha1.MemberReady, 3, ""))
	cc.Spec.Engine, cc.Status.Members = v1alpha1.EngineMemcached, "1/1"
	cc.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour))
	unseen := v1alpha1.CacheCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "b"}}
	header, rows := cacheRows([]v1alpha1.CacheCluster{*cc, unseen}, true, true, noon)
	var out bytes.Buffer
	if err := table(&out, header, rows); err != nil {
		t.Fatal(err)
	}
	want := `NAMESPACE   NAME            ENGINE      MEMBERS   READY     STATUS            REVISION   AGE   MESSAGE
default     cache-cluster   Memcached   1/1       True      AllMembersReady   r1         60m   -
shop        b               -           -         Unknown   NotObserved       -          -     the hub manager has not observed this CacheCluster yet; check that it runs
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestPrintable_CanBeAppliedAgain(t *testing.T) {
	cc := *sampleCache(member("member-1", v1alpha1.MemberReady, 3, ""))
	cc.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x"}}
	for name, v := range map[string]any{
		"one": printable([]v1alpha1.CacheCluster{cc}, true), "a list": printable([]v1alpha1.CacheCluster{cc}, false),
	} {
		data, err := yaml.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		ms, err := decodeFile(name, bytes.NewReader(data))
		if err != nil || len(ms) != 1 || ms[0].object.GetName() != "cache-cluster" {
			t.Errorf("%s cannot be applied again: %v\n%s", name, err, data)
		}
	}
	if data, err := yaml.Marshal(printable(nil, false)); err != nil || !strings.Contains(string(data), "items: []") {
		t.Errorf("an empty list is a list: %v, %s", err, data)
	}
}

func TestRun_ChecksUsage(t *testing.T) {
	for _, tc := range []struct {
		reason   string
		args     []string
		wantCode int
		wantOut  string
		wantErr  string
	}{
		{"help lists the exit codes", []string{"reconcile-lab", "--help"}, 0, "  130  interrupted", ""},
		{"an unknown command", []string{"reconcile-lab", "frobnicate"}, 2, "", `unknown command "frobnicate"`},
		{"an unknown flag", []string{"reconcile-lab", "get", "--frob"}, 2, "", "see 'reconcile-lab get --help'"},
		{"an unknown output format", []string{"reconcile-lab", "get", "-o", "xml"}, 2, "", "must be one of: json, yaml, wide"},
		{"a negative timeout", []string{"reconcile-lab", "get", "--timeout", "-5s"}, 2, "", "--timeout: -5s: must be 0 or more"},
		{"no file to apply", []string{"reconcile-lab", "apply"}, 2, "", "at least 1 arg"},
		{"the plugin uses its name in kubectl", []string{"/usr/bin/kubectl-cachecluster", "apply", "--help"}, 0, "kubectl cachecluster apply FILE...", ""},
		{"an invalid name of a member", []string{"reconcile-lab", "join", "EU_1", "--kubeconfig", "x"}, 2, "", `such as "eu-1"`},
		{"a member without a kubeconfig", []string{"reconcile-lab", "join", "eu-1"}, 2, "", "--kubeconfig FILE"},
		{"two hubs", []string{"reconcile-lab", "get", "--lab", "a", "--context", "b"}, 2, "", "one or the other"},
		{"no hub", []string{"reconcile-lab", "get"}, 5, "", "reconcile-lab up"},
		{"version", []string{"reconcile-lab", "version", "-o", "json"}, 0, `"version":`, ""},
		{"completion", []string{"reconcile-lab", "completion", "bash"}, 0, "bash completion", ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			t.Setenv("RECONCILE_LAB_STATE", t.TempDir())
			t.Setenv("KUBECONFIG", t.TempDir()+"/none")
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			var out, errOut bytes.Buffer
			code := run(context.Background(), tc.args, strings.NewReader(""), &out, &errOut)
			if code != tc.wantCode || !strings.Contains(out.String(), tc.wantOut) || !strings.Contains(errOut.String(), tc.wantErr) {
				t.Errorf("exit code %d, want %d\nstdout %s\nstderr %s", code, tc.wantCode, out.String(), errOut.String())
			}
		})
	}
}
