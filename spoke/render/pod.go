package render

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

// podSecurity is the user's own, or that of a pod that passes the Restricted Pod
// Security Standard.
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

// convert goes through JSON, which an API type and its apply configuration share.
// Neither side can fail for the plain types that it is used for; if one ever
// did, the part would be left out and the golden files would show it.
func convert[T any](from any) *T {
	to := new(T)
	if raw, err := json.Marshal(from); err == nil {
		_ = json.Unmarshal(raw, to)
	}
	return to
}
