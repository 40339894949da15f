package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var gr = schema.GroupResource{Group: "cache.reconcile-lab.io", Resource: "cacheclusters"}

func TestExitCode_DependsOnError(t *testing.T) {
	refused := &url.Error{Op: "Get", URL: "https://hub", Err: syscall.ECONNREFUSED}
	for _, tc := range []struct {
		reason string
		err    error
		want   int
	}{
		{"no error", nil, 0},
		{"any other error", errors.New("x"), 1},
		{"an error with an exit code", badInput("x"), 2},
		{"an error with an exit code and more context", fmt.Errorf("more: %w", withCode(exitNotReady, errors.New("x"))), 3},
		{"a refused object", apierrors.NewInvalid(schema.GroupKind{Kind: "CacheCluster"}, "a", nil), 2},
		{"an unknown field", apierrors.NewBadRequest("x"), 2},
		{"a missing permission is neither usage nor unreachable", apierrors.NewForbidden(gr, "a", nil), 1},
		{"no connection", fmt.Errorf("hub: %w", refused), 5},
		{"a hub that is not serving", apierrors.NewServiceUnavailable("x"), 5},
		{"a request that was cancelled is an interruption", &url.Error{Op: "Get", URL: "https://hub", Err: context.Canceled}, 130},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if got := exitCode(tc.err); got != tc.want {
				t.Errorf("exit code %d, want %d", got, tc.want)
			}
		})
	}
}

func TestExitCodes_AreUniqueAndDescribed(t *testing.T) {
	seen := map[int]bool{}
	for _, e := range exitCodes {
		if seen[e.code] || e.meaning == "" {
			t.Errorf("exit code %d is listed twice or has no description", e.code)
		}
		seen[e.code] = true
	}
}

func invalid(causes ...metav1.StatusCause) error {
	err := apierrors.NewInvalid(schema.GroupKind{Kind: "CacheCluster"}, "a", nil)
	err.ErrStatus.Details.Causes = causes
	return err
}

func TestFormatError_PrintsOneLinePerField(t *testing.T) {
	for _, tc := range []struct {
		reason string
		err    error
		want   string
	}{
		{"another error is unchanged", errors.New("x"), "x"},
		{"a list prints one error after the other", newErrorList(errors.New("x"), errors.New("y")), "x\ny"},
		{"a list with an exit code", withCode(2, newErrorList(errors.New("x"), errors.New("y"))), "x\ny"},
		{"an error that wraps two is one error", fmt.Errorf("%w eu-1: %w", errors.New("member"), errors.New("x")), "member eu-1: x"},
		{
			"one line per cause; a schema message only without a validation rule for the field",
			fmt.Errorf("f.yaml document 1: %w", invalid(
				metav1.StatusCause{Field: "spec.replicas", Message: `Invalid value: -1: replicas must be 0 or more`},
				metav1.StatusCause{Field: ".spec.replicas", Message: `Invalid value: -1: should be a non-negative integer`},
				metav1.StatusCause{Field: "spec.memory", Message: `Invalid value: "lots": spec.memory in body should match 'x'`},
				metav1.StatusCause{Field: "spec.placement", Message: `Invalid value: "object": placement must name clusters`},
				metav1.StatusCause{Field: "spec.placement", Message: `Invalid value: "object": placement must name clusters`},
				metav1.StatusCause{Field: "<nil>", Message: `Invalid value: "null": some validation rules were not checked because the object was invalid`},
			)),
			`f.yaml document 1:
  spec.memory: "lots": spec.memory in body should match 'x'
  spec.placement: placement must name clusters
  spec.replicas: -1: replicas must be 0 or more`,
		},
		{
			"an unknown field, as server-side apply words it",
			apierrors.NewInternalError(errors.New("failed to create typed patch object (a; CacheCluster): .spec.replica: field not declared in schema")),
			"rejected by the API server:\n  spec.replica: unknown field; correct its spelling or indentation (see kubectl explain cachecluster.spec)",
		},
		{
			"unknown fields, as strict decoding words them",
			apierrors.NewBadRequest(`strict decoding error: unknown field "spec.a", unknown field "spec.b.c"`),
			`rejected by the API server:
  spec.a: unknown field; correct its spelling or indentation (see kubectl explain cachecluster.spec)
  spec.b.c: unknown field; correct its spelling or indentation (see kubectl explain cachecluster.spec)`,
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if got := formatError(tc.err); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}
