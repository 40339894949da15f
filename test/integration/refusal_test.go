package integration

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// inMember creates an object in a member that goes when the test ends.
func inMember(t *testing.T, member string, object client.Object) {
	t.Helper()
	mustCreate(t, lab.Members[member].Server, object)
	t.Cleanup(func() {
		if err := lab.Members[member].Client.Delete(context.Background(), object); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
}

// refuses waits until a member refuses a StatefulSet in a namespace: its API server
// learns of policies, webhooks and quotas by watches of its own.
func refuses(t *testing.T, member, namespace string) {
	t.Helper()
	labels := map[string]string{"a": "b"}
	eventually(t, "a StatefulSet is refused", func(ctx context.Context) error {
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "try"},
			Spec: appsv1.StatefulSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}}}
		if lab.Members[member].Client.Create(ctx, set, client.DryRunAll) == nil {
			return errors.New("it is accepted")
		}
		return nil
	})
}

// inNamespace selects one by the label that every API server sets.
func inNamespace(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: name}}
}

var statefulSets = admissionv1.RuleWithOperations{Operations: []admissionv1.OperationType{admissionv1.OperationAll},
	Rule: admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"statefulsets"}}}

// policy denies every StatefulSet of a namespace.
func policy(t *testing.T, member, namespace string) {
	t.Helper()
	name := "no-caches-in-" + namespace
	inMember(t, member, &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{NamespaceSelector: inNamespace(namespace),
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: statefulSets}}},
			Validations: []admissionv1.Validation{{Expression: "false", Message: "caches are not allowed here", Reason: ptr.To(metav1.StatusReasonForbidden)}},
		}})
	inMember(t, member, &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}})
}

// webhook denies every StatefulSet of a namespace.
func webhook(t *testing.T, member, namespace string) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, uid, _ := strings.Cut(string(body), `"uid":"`)
		uid, _, _ = strings.Cut(uid, `"`)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"allowed":false,"status":{"message":"not on a Friday"}}}`, uid)
	}))
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	inMember(t, member, &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "no-caches-in-" + namespace},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "fridays.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(admissionv1.SideEffectClassNone),
			NamespaceSelector: inNamespace(namespace), Rules: []admissionv1.RuleWithOperations{statefulSets},
			ClientConfig: admissionv1.WebhookClientConfig{URL: ptr.To(server.URL), CABundle: authority},
		}}})
}

// exhausted is a quota that lets nothing more of a resource in, as its controller reports
// it.
func exhausted(t *testing.T, member, namespace, of string) *corev1.ResourceQuota {
	t.Helper()
	none := corev1.ResourceList{corev1.ResourceName(of): resource.MustParse("0")}
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "small"}, Spec: corev1.ResourceQuotaSpec{Hard: none}}
	inMember(t, member, q)
	q.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none}
	if err := lab.Members[member].Client.Status().Update(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	return q
}

func TestRefusal_ByMemberAdmissionIsBlockedAndRetried(t *testing.T) {
	for name, c := range map[string]struct {
		refuse func(t *testing.T, member, namespace string)
		reason string
		says   []string
	}{
		"policy":  {policy, v1alpha1.ReasonRejectedByPolicy, []string{"ValidatingAdmissionPolicy", "caches are not allowed here", "exempt the namespace from the policy", "kubectl get validatingadmissionpolicybindings"}},
		"webhook": {webhook, v1alpha1.ReasonRejectedByPolicy, []string{"fridays.example.com", "not on a Friday", "exempt the namespace from the webhook", "kubectl get validatingwebhookconfigurations"}},
		"quota": {func(t *testing.T, member, namespace string) {
			exhausted(t, member, namespace, "count/statefulsets.apps")
		},
			v1alpha1.ReasonQuotaExceeded, []string{"exceeded quota: small", "ResourceQuota"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := namespace(t, "refused-by-"+name)
			mustCreate(t, lab.Members[one].Server, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
			// What refuses goes before the CacheCluster does.
			t.Run("refused", func(t *testing.T) {
				c.refuse(t, one, ns)
				refuses(t, one, ns)
				cc := create(t, cache(ns, "sessions", one, two))
				entry := inState(t, cc, one, v1alpha1.MemberBlocked, c.reason)
				contains(t, "message and hint", entry.Message+" "+entry.Hint, c.says...)
				if entry.Class != v1alpha1.ClassBlocked || entry.Attempt == 0 || entry.RetryAt == nil || strings.Contains(entry.Hint, "the right that") {
					t.Errorf("class %s, attempt %d, retry at %v, hint %q", entry.Class, entry.Attempt, entry.RetryAt, entry.Hint)
				}
				since, attempt := entry.Since, entry.Attempt
				other := inState(t, cc, two, v1alpha1.MemberReady, v1alpha1.ReasonPodsReady).DeepCopy()
				becomes(t, cc, "is retried", func(cc *v1alpha1.CacheCluster) error {
					entry, err := statusOf(cc, one)
					if err == nil && entry.Attempt <= attempt {
						err = fmt.Errorf("attempt %d", entry.Attempt)
					}
					return err
				})
				entry, _ = statusOf(cc, one)
				if !entry.Since.Equal(since) {
					t.Errorf("since %v, was %v: a try more is no new state", entry.Since, since)
				}
				if now, err := statusOf(cc, two); err != nil || !now.ObservedAt.Equal(other.ObservedAt) || now.State != other.State || !now.Since.Equal(other.Since) {
					t.Errorf("the other member's entry changed: %+v, was %+v (%v)", now, other, err)
				}
			})
			cc := cache(ns, "sessions")
			isReady(t, cc)
			if entry, err := statusOf(cc, one); err != nil || entry.Attempt != 0 || entry.RetryAt != nil || entry.Class != "" {
				t.Errorf("the failure ended, but the entry is %+v (%v)", entry, err)
			}
		})
	}
}

// controller does what the StatefulSet controller does with a pod: it tries to make
// it, and reports a refusal in the controller's words.
func controller(t *testing.T, member string, set *appsv1.StatefulSet) error {
	t.Helper()
	c := lab.Members[member].Client
	reload(t, c, set)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name + "-0", Labels: set.Spec.Template.Labels}, Spec: set.Spec.Template.Spec}
	refusal := c.Create(t.Context(), pod)
	reason, message := "SuccessfulCreate", fmt.Sprintf("Create Pod %s in StatefulSet %s successful", pod.Name, set.Name)
	if refusal != nil {
		reason, message = "FailedCreate", fmt.Sprintf("Create Pod %s in StatefulSet %s failed error: %v", pod.Name, set.Name, refusal)
	}
	now := metav1.Now()
	mustCreate(t, lab.Members[member].Server, &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, GenerateName: set.Name + "."},
		InvolvedObject: corev1.ObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: set.Namespace, Name: set.Name, UID: set.UID},
		Reason:         reason, Message: message, FirstTimestamp: now, LastTimestamp: now, Count: 1, Type: corev1.EventTypeWarning})
	return refusal
}

func TestRefusal_OfPodsIsReportedWithCause(t *testing.T) {
	for name, c := range map[string]struct {
		// refuse returns what ends the refusal.
		refuse func(t *testing.T, namespace *corev1.Namespace) (relent func())
		change func(*v1alpha1.CacheCluster)
		says   []string
	}{
		"quota": {refuse: func(t *testing.T, namespace *corev1.Namespace) func() {
			q := exhausted(t, one, namespace.Name, "pods")
			return func() {
				if err := lab.Members[one].Client.Delete(t.Context(), q); err != nil {
					t.Fatal(err)
				}
			}
		}, says: []string{"exceeded quota: small", "ResourceQuota"}},
		"pod-security": {change: func(cc *v1alpha1.CacheCluster) {
			cc.Spec.Pod = &v1alpha1.PodSpec{SecurityContext: &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](0)}}
		}, refuse: func(t *testing.T, namespace *corev1.Namespace) func() {
			set := func(level string) {
				namespace.Labels["pod-security.kubernetes.io/enforce"] = level
				if err := lab.Members[one].Client.Update(t.Context(), namespace); err != nil {
					t.Fatal(err)
				}
			}
			set("restricted")
			return func() { set("privileged") }
		}, says: []string{`violates PodSecurity "restricted`, "Pod Security level"}},
		"priority": {change: func(cc *v1alpha1.CacheCluster) {
			cc.Spec.Pod = &v1alpha1.PodSpec{PriorityClassName: "of-test-priority"}
		},
			refuse: func(t *testing.T, _ *corev1.Namespace) func() {
				return func() {
					inMember(t, one, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "of-test-priority"}, Value: 1})
				}
			}, says: []string{"no PriorityClass with name of-test-priority", "spec.pod.priorityClassName"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := namespace(t, "pods-refused-by-"+name)
			there := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}
			mustCreate(t, lab.Members[one].Server, there)
			mustCreate(t, lab.Members[one].Server, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "default"}})
			lab.Members[one].StandIn.Hold(ns)
			relent := c.refuse(t, there)
			cc := cache(ns, "sessions", one)
			if c.change != nil {
				c.change(cc)
			}
			create(t, cc)
			inState(t, cc, one, v1alpha1.MemberProgressing, v1alpha1.ReasonPodsStarting)

			set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sessions"}}
			eventually(t, "the pod is refused", func(context.Context) error {
				if controller(t, one, set) == nil {
					return errors.New("it was made")
				}
				return nil
			})
			set.Status.ObservedGeneration = set.Generation
			if err := lab.Members[one].Client.Status().Update(t.Context(), set); err != nil {
				t.Fatal(err)
			}
			entry := inState(t, cc, one, v1alpha1.MemberDegraded, v1alpha1.ReasonPodsRefused)
			contains(t, "message and hint", entry.Message+" "+entry.Hint, c.says...)
			if strings.Contains(entry.Message, "sessions-0") {
				t.Errorf("a pod's name in %q", entry.Message)
			}
			if c := meta.FindStatusCondition(cc.Status.Conditions, v1alpha1.ConditionDegraded); c == nil || c.Status != metav1.ConditionTrue {
				t.Errorf("Degraded: %+v", c)
			}

			relent()
			eventually(t, "the pod is made", func(context.Context) error { return controller(t, one, set) })
			lab.Members[one].StandIn.Release(ns)
			isReady(t, cc)
		})
	}
}

func TestRefusal_TooManyRequestsHonorsRetryAfter(t *testing.T) {
	t.Parallel()
	const wait = 3 * time.Second
	ns := namespace(t, "busy")
	type asked struct{ first, again time.Time }
	var (
		mu    sync.Mutex
		tries = map[string]*asked{}
	)
	intercept(t, "/namespaces/"+ns+"/", func(r *http.Request) *http.Response {
		mu.Lock()
		defer mu.Unlock()
		if r.Method == http.MethodGet {
			return nil
		}
		now := time.Now()
		by := tries[r.URL.Host]
		switch {
		case by == nil:
			tries[r.URL.Host] = &asked{first: now}
		case now.Sub(by.first) > wait/2:
			// The other children of the first try are over.
			if by.again.IsZero() {
				by.again = now
			}
			return nil
		}
		return &http.Response{StatusCode: http.StatusTooManyRequests, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"Retry-After": {fmt.Sprint(int(wait.Seconds()))}, "Content-Type": {"text/plain"}},
			Body:   io.NopCloser(strings.NewReader("Too many requests, please try again later."))}
	})
	isReady(t, create(t, cache(ns, "sessions", one, two)))
	mu.Lock()
	defer mu.Unlock()
	if len(tries) != 2 {
		t.Fatalf("%d members were asked", len(tries))
	}
	for host, by := range tries {
		if again := by.again.Sub(by.first); again < wait {
			t.Errorf("%s was asked again after %s, and had asked for %s", host, again, wait)
		}
	}
}
