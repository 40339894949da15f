package render

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

// podSecurity returns the security context of the spec, or a default that passes the
// Restricted Pod Security Standard.
func podSecurity(in input) *corev1ac.PodSecurityContextApplyConfiguration {
	if in.pod.SecurityContext != nil {
		return convert[corev1ac.PodSecurityContextApplyConfiguration](in.pod.SecurityContext)
	}
	return corev1ac.PodSecurityContext().
		WithRunAsNonRoot(true).
		WithRunAsUser(cacheUser).
		WithRunAsGroup(cacheUser).
		WithFSGroup(cacheUser).
		WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
}

func toleration(t *corev1.Toleration) *corev1ac.TolerationApplyConfiguration {
	return convert[corev1ac.TolerationApplyConfiguration](t)
}

// convert converts an API type to its apply configuration, which has the same JSON.
// Neither direction can fail for the plain types of its callers. The golden files would
// show a part that is missing.
func convert[T any](from any) *T {
	to := new(T)
	if raw, err := json.Marshal(from); err == nil {
		_ = json.Unmarshal(raw, to)
	}
	return to
}
