package failure

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/yaml"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// source parses a file of apimachinery in the version of go.mod.
func source(t *testing.T, path string) *ast.File {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/apimachinery").Output()
	if err != nil {
		t.Fatalf("find apimachinery: %v", err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(strings.TrimSpace(string(dir)), path), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestByReason_ContainsEveryStatusReason(t *testing.T) {
	known := map[metav1.StatusReason]bool{}
	ast.Inspect(source(t, "pkg/apis/meta/v1/types.go"), func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "StatusReason") {
			return true
		}
		literal, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			return true
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		if value != "" {
			known[metav1.StatusReason(value)] = true
		}
		return true
	})
	if len(known) < 18 {
		t.Fatalf("found %d reasons in types.go, want at least 18", len(known))
	}
	for reason := range known {
		if byReason[reason] == nil {
			t.Errorf("StatusReason %s has no class", reason)
		}
	}
	for reason := range byReason {
		if !known[reason] {
			t.Errorf("StatusReason %s does not exist", reason)
		}
	}
}

// A new constructor in apimachinery is a new kind of response, which needs a class.
func TestOf_ClassifiesEveryConstructorOfAPIErrors(t *testing.T) {
	constructed := map[string]error{
		"NewNotFound": apierrors.NewNotFound(sets, "x"), "NewAlreadyExists": apierrors.NewAlreadyExists(sets, "x"),
		"NewGenerateNameConflict": apierrors.NewGenerateNameConflict(sets, "x", 1), "NewUnauthorized": apierrors.NewUnauthorized("x"),
		"NewForbidden": apierrors.NewForbidden(sets, "x", errors.New("x")), "NewConflict": apierrors.NewConflict(sets, "x", errors.New("x")),
		"NewApplyConflict": apierrors.NewApplyConflict([]metav1.StatusCause{{Type: metav1.CauseTypeFieldManagerConflict}}, "x"),
		//nolint:staticcheck // Older API servers still return it.
		"NewGone":            apierrors.NewGone("x"),
		"NewResourceExpired": apierrors.NewResourceExpired("x"), "NewInvalid": apierrors.NewInvalid(kind, "x", nil),
		"NewBadRequest": apierrors.NewBadRequest("x"), "NewTooManyRequests": apierrors.NewTooManyRequests("x", 1),
		"NewServiceUnavailable": apierrors.NewServiceUnavailable("x"), "NewMethodNotSupported": apierrors.NewMethodNotSupported(sets, "x"),
		"NewServerTimeout": apierrors.NewServerTimeout(sets, "x", 1), "NewServerTimeoutForKind": apierrors.NewServerTimeoutForKind(kind, "x", 1),
		"NewInternalError": apierrors.NewInternalError(errors.New("x")), "NewTimeoutError": apierrors.NewTimeoutError("x", 1),
		"NewTooManyRequestsError": apierrors.NewTooManyRequestsError("x"), "NewRequestEntityTooLargeError": apierrors.NewRequestEntityTooLargeError("x"),
		"NewGenericServerResponse": apierrors.NewGenericServerResponse(http.StatusTeapot, "GET", sets, "x", "", 0, true),
	}
	want := map[string]v1alpha1.ErrorClass{
		"NewAlreadyExists": v1alpha1.ClassBlocked, "NewUnauthorized": v1alpha1.ClassUnreachable, "NewForbidden": v1alpha1.ClassBlocked,
		"NewApplyConflict": v1alpha1.ClassBlocked, "NewInvalid": v1alpha1.ClassInvalid, "NewBadRequest": v1alpha1.ClassInvalid,
		"NewMethodNotSupported": v1alpha1.ClassBlocked, "NewRequestEntityTooLargeError": v1alpha1.ClassInvalid,
	}
	for _, d := range source(t, "pkg/api/errors/errors.go").Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "New") || f.Name.Name == "NewClientErrorReporter" {
			continue
		}
		err := constructed[f.Name.Name]
		if err == nil {
			t.Errorf("the test does not call %s", f.Name.Name)
			continue
		}
		class := want[f.Name.Name]
		if class == "" {
			class = v1alpha1.ClassTransient
		}
		if got := Of(err, "apply", "x"); got.Class != class {
			t.Errorf("%s is %s, want %s", f.Name.Name, got.Class, class)
		}
	}
}

// Without a reason the code decides, also for a page that is not a Status.
func TestOf_ClassifiesEveryHTTPCode(t *testing.T) {
	blocked, invalid, unreachable := v1alpha1.ClassBlocked, v1alpha1.ClassInvalid, v1alpha1.ClassUnreachable
	want := map[int]v1alpha1.ErrorClass{
		400: invalid, 401: unreachable, 402: blocked, 403: blocked, 404: blocked, 405: blocked, 406: blocked, 407: unreachable,
		413: invalid, 414: invalid, 415: blocked, 421: unreachable, 422: invalid, 426: unreachable, 431: invalid, 451: blocked,
	}
	for code := 200; code < 600; code++ {
		class := want[code]
		switch {
		case class != "":
		case code < 400:
			class = unreachable
		default:
			class = v1alpha1.ClassTransient
		}
		bare := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Message: "m"}}
		page := apierrors.NewGenericServerResponse(code, "PATCH", sets, "sessions", "a page", 0, true)
		for _, err := range []error{bare, page} {
			if f := Of(err, "apply", "x"); f.Class != class {
				t.Errorf("%d: %s, want %s (%v)", code, f.Class, class, err)
			}
		}
	}
}

func TestOf_ReturnsRetryAfterForTransientCodes(t *testing.T) {
	for _, code := range []int{429, 500, 502, 503, 504, 507} {
		err := apierrors.NewGenericServerResponse(code, "PATCH", sets, "sessions", "", 7, true)
		if got := Of(err, "apply", "x"); got.RetryAfter != 7*time.Second {
			t.Errorf("%d: retry after %s", code, got.RetryAfter)
		}
	}
}

// status returns the error of a Status with a message of admission.
func status(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

func TestAdmission_IsNotForbidden(t *testing.T) {
	policy := `statefulsets.apps "sessions" is forbidden: ValidatingAdmissionPolicy 'no-caches' with binding 'all' denied request: no`
	for _, c := range []struct {
		name    string
		code    int32
		reason  metav1.StatusReason
		message string
		want    string
	}{
		{"a webhook", 403, metav1.StatusReasonForbidden, `admission webhook "v.kyverno.svc" denied the request: no`, v1alpha1.ReasonRejectedByPolicy},
		{"a webhook without a code", 400, metav1.StatusReasonBadRequest, `admission webhook "v.kyverno.svc" denied the request without explanation`, v1alpha1.ReasonRejectedByPolicy},
		{"a webhook that chose 401", 401, metav1.StatusReasonUnauthorized, `admission webhook "v" denied the request: who are you`, v1alpha1.ReasonRejectedByPolicy},
		{"a policy", 422, metav1.StatusReasonInvalid, policy, v1alpha1.ReasonRejectedByPolicy},
		{"a policy that chose Forbidden", 403, metav1.StatusReasonForbidden, policy, v1alpha1.ReasonRejectedByPolicy},
		{"a policy that chose Unauthorized", 401, metav1.StatusReasonUnauthorized, policy, v1alpha1.ReasonRejectedByPolicy},
		{"a policy that chose 413", 413, metav1.StatusReasonRequestEntityTooLarge, policy, v1alpha1.ReasonRejectedByPolicy},
		{"Pod Security", 403, metav1.StatusReasonForbidden, `pods "x" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true`, v1alpha1.ReasonRejectedByPolicy},
		{"a LimitRange", 403, metav1.StatusReasonForbidden, `pods "x" is forbidden: maximum memory usage per Container is 64Mi, but limit is 77Mi`, v1alpha1.ReasonRejectedByPolicy},
		{"a priority class", 403, metav1.StatusReasonForbidden, `pods "x" is forbidden: no PriorityClass with name high was found`, v1alpha1.ReasonRejectedByPolicy},
		{"a quota that requires limits", 403, metav1.StatusReasonForbidden, `pods "x" is forbidden: failed quota: small: must specify limits.memory for: memcached`, v1alpha1.ReasonQuotaExceeded},
		{"OpenShift", 403, metav1.StatusReasonForbidden, `pods "x" is forbidden: unable to validate against any security context constraint: []`, v1alpha1.ReasonRejectedByPolicy},
	} {
		f := Of(status(c.code, c.reason, c.message), "apply", "x")
		if f.Class != v1alpha1.ClassBlocked || f.Reason != c.want || strings.Contains(f.Hint, "right") || f.Hint == "" {
			t.Errorf("%s: %s/%s (%s), want Blocked/%s", c.name, f.Class, f.Reason, f.Hint, c.want)
		}
	}
	f := Of(status(500, metav1.StatusReasonInternalError, `Internal error occurred: failed calling webhook "v": no endpoints`), "apply", "x")
	if f.Class != v1alpha1.ClassTransient || !strings.Contains(f.Hint, "webhook") {
		t.Errorf("a webhook without endpoints: %s (%s)", f.Class, f.Hint)
	}
	f = Of(status(500, "", `failed to create typed patch object (shop/x; apps/v1, Kind=StatefulSet): .spec.new: field not declared in schema`), "apply", "x")
	if f.Class != v1alpha1.ClassBlocked || f.Reason != v1alpha1.ReasonKindMissing {
		t.Errorf("a field unknown to the member: %s/%s", f.Class, f.Reason)
	}
}

func TestOf_ClassifiesTransportErrorsAsUnreachable(t *testing.T) {
	link := func(err error) error { return &url.Error{Op: "Patch", URL: "https://member-1:6443/apis", Err: err} }
	var broken map[string]any
	syntax := json.Unmarshal([]byte("<html>"), &broken)
	page := yaml.Unmarshal([]byte("a: [<html>"), &broken)
	if syntax == nil || page == nil {
		t.Fatal("no syntax error")
	}
	_, _, undecoded := runtime.NewScheme().ObjectKinds(&runtime.Unknown{})
	for _, c := range []struct {
		name   string
		err    error
		reason string
		text   string
	}{
		{"GOAWAY", http2.GoAwayError{LastStreamID: 5, ErrCode: http2.ErrCodeNo}, "", "the connection to the member's API server failed"},
		{"a stream's end", http2.StreamError{StreamID: 17, Code: http2.ErrCodeRefusedStream}, "", "the connection to the member's API server failed"},
		{"a connection's end", http2.ConnectionError(http2.ErrCodeProtocol), "", "the connection to the member's API server failed"},
		{"a lost connection", errors.New("http2: client connection lost"), "", "the connection to the member's API server failed"},
		{"an idle connection", errors.New("http: server closed idle connection"), "", "the connection to the member's API server failed"},
		{"a body that ends", fmt.Errorf("unexpected error when reading response body. Please retry. Original error: %w", errors.New("x")), "", "the connection to the member's API server failed"},
		{"a closed connection", net.ErrClosed, "", "the connection to the member's API server failed"},
		{"a broken pipe", syscall.EPIPE, "", "the connection to the member's API server failed"},
		{"slow DNS", link(&net.DNSError{Name: "member-1", IsTimeout: true}), "", "cannot be resolved"},
		{"an unreachable proxy", link(&net.OpError{Op: "proxyconnect", Err: syscall.ECONNREFUSED}), "", "proxy"},
		{"a slow handshake", link(errTimeout{}), "", "in time"},
		{"an exec plugin", link(errors.New("getting credentials: exec: executable aws not found")), v1alpha1.ReasonUnauthorized, "credential"},
		{"a refused client certificate", link(&net.OpError{Op: "remote error", Err: errors.New("tls: expired certificate")}), v1alpha1.ReasonUnauthorized, "client certificate"},
		{"a missing client certificate", link(errors.New("remote error: tls: certificate required")), v1alpha1.ReasonUnauthorized, "client certificate"},
		{"no roots", x509.SystemRootsError{}, "", "TLS connection"},
		{"a weak algorithm", x509.InsecureAlgorithmError(x509.MD5WithRSA), "", "TLS connection"},
		{"a constraint", x509.ConstraintViolationError{}, "", "TLS connection"},
		{"an extension", x509.UnhandledCriticalExtension{}, "", "TLS connection"},
		{"an algorithm", x509.ErrUnsupportedAlgorithm, "", "TLS connection"},
		{"ECH", &tls.ECHRejectionError{}, "", "TLS connection"},
		{"a page instead of JSON", fmt.Errorf("couldn't get version/kind; json parse error: %w", syntax), "", "not a Kubernetes API server"},
		{"a page instead of YAML", page, "", "not a Kubernetes API server"},
		{"an unknown content type", errors.New("serializer for text/html doesn't exist"), "", "not a Kubernetes API server"},
		{"a page of a proxy", apierrors.NewGenericServerResponse(403, "PATCH", sets, "x", "<html>Access denied</html>", 0, true), "", "not a Kubernetes API server"},
		{"attempts until the deadline", fmt.Errorf("client rate limiter Wait returned an error: %w - error from a previous attempt: read tcp 10.0.0.1:1->10.0.0.2:6443: read: connection reset by peer", context.DeadlineExceeded), "", "the connection to the member's API server failed"},
		{"no kind", runtime.NewMissingKindErr("{}"), "", "not a Kubernetes API server"},
	} {
		reason := c.reason
		if reason == "" {
			reason = v1alpha1.ReasonMemberUnreachable
		}
		f := Of(c.err, "apply", "x")
		if f.Class != v1alpha1.ClassUnreachable || f.Reason != reason || !strings.Contains(f.Message, c.text) || f.Hint == "" {
			t.Errorf("%s: %s/%s %q, want Unreachable/%s with %q", c.name, f.Class, f.Reason, f.Message, reason, c.text)
		}
	}
	for name, err := range map[string]error{
		"the rate limiter":   fmt.Errorf("client rate limiter Wait returned an error: %w", context.DeadlineExceeded),
		"an unknown Go type": undecoded,
		"another object":     &apierrors.UnexpectedObjectError{Object: &metav1.List{}},
		"a watch's end":      errors.New("watch closed before UntilWithoutRetry timeout"),
		"a version too old":  apierrors.FromObject(&metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired}),
		"an old version":     apierrors.NewResourceExpired("too old resource version: 12 (34)"),
	} {
		if f := Of(err, "apply", "x"); f.Class != v1alpha1.ClassTransient {
			t.Errorf("%s: %s (%v)", name, f.Class, err)
		}
	}
}

type errTimeout struct{}

func (errTimeout) Error() string { return "net/http: TLS handshake timeout" }
func (errTimeout) Timeout() bool { return true }

func TestOf_ReturnsMostSevereOfJoinedErrors(t *testing.T) {
	busy := apierrors.NewTooManyRequests("slow down", 7)
	forbidden := apierrors.NewForbidden(sets, "x", errors.New("no right"))
	bad := apierrors.NewBadRequest("x")
	group := schema.GroupVersion{Group: "apps", Version: "v1"}
	for _, c := range []struct {
		name string
		err  error
		want v1alpha1.ErrorClass
	}{
		{"errors.Join", errors.Join(busy, forbidden, io.EOF), v1alpha1.ClassBlocked},
		{"in the other order", errors.Join(io.EOF, forbidden, busy), v1alpha1.ClassBlocked},
		{"wrapped", fmt.Errorf("a: %w", errors.Join(busy, io.EOF)), v1alpha1.ClassUnreachable},
		{"two %w", fmt.Errorf("%w: %w", errors.New("unknown"), bad), v1alpha1.ClassInvalid},
		{"an Aggregate", utilerrors.NewAggregate([]error{busy, bad}), v1alpha1.ClassInvalid},
		{"joined in joined", errors.Join(errors.Join(busy, io.EOF), bad), v1alpha1.ClassInvalid},
		{"a Failure among them", errors.Join(busy, &Failure{Class: v1alpha1.ClassConflict, Message: "m"}), v1alpha1.ClassConflict},
		{"by group", discoveryFailed{group: io.EOF}, v1alpha1.ClassUnreachable},
	} {
		if f := Of(c.err, "apply", "x"); f.Class != c.want {
			t.Errorf("%s: %s, want %s", c.name, f.Class, c.want)
		}
	}
	if f := Of(errors.Join(forbidden, busy), "apply", "x"); f.RetryAfter != 7*time.Second {
		t.Errorf("retry after %s, want the 7s of the less severe error", f.RetryAfter)
	}
}

// discoveryFailed has the structure of the discovery error of controller-runtime.
type discoveryFailed map[schema.GroupVersion]error

func (discoveryFailed) Error() string { return "discovery" }
func (d discoveryFailed) Unwrap() []error {
	var all []error
	for _, err := range d {
		all = append(all, err)
	}
	return all
}

func TestStable_RemovesPartsThatDifferBetweenRetries(t *testing.T) {
	for _, c := range [][2]string{
		{"exceeded quota: small, requested: pods=1, used: pods=4,memory=1Gi, limited: pods=5", "exceeded quota: small, requested: pods=1, used: pods=5,memory=2Gi, limited: pods=5"},
		{"x - error from a previous attempt: read tcp", "x - error from a previous attempt: EOF"},
		{"stream error: stream ID 17; x", "stream error: stream ID 19; x"},
		{"took too long: 1.234s", "took too long: 1.5s"},
		{"request 6ba7b810-9dad-11d1-80b4-00c04fd430c8 failed", "request 7ba7b810-9dad-11d1-80b4-00c04fd430c8 failed"},
		{"too old resource version: 12 (34)", "too old resource version: 13 (99)"},
		{"since 2026-11-30T03:00:00+01:00", "since 2026-11-30 04:00:00.123 +0000"},
	} {
		if first, second := Stable(c[0]), Stable(c[1]); first != second {
			t.Errorf("%q and %q differ", first, second)
		}
	}
}
