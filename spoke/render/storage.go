package render

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/children"
)

// addStorage adds the volume claim template. It always states the retention: another
// default in a member must not delete claims that the spec retains.
func addStorage(in input, spec *appsv1ac.StatefulSetSpecApplyConfiguration) {
	if in.storage == nil {
		return
	}
	claim := corev1ac.PersistentVolumeClaimSpec().
		WithAccessModes(corev1.ReadWriteOnce).
		WithResources(corev1ac.VolumeResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceStorage: in.storage.Size}))
	claim.StorageClassName = in.storage.StorageClassName
	// The StatefulSet controller derives the namespace of a claim from its pod.
	template := corev1ac.PersistentVolumeClaim(children.DataVolume, "").WithLabels(in.labels()).WithSpec(claim)
	template.Namespace = nil
	spec.WithVolumeClaimTemplates(template).
		WithPersistentVolumeClaimRetentionPolicy(appsv1ac.StatefulSetPersistentVolumeClaimRetentionPolicy().
			WithWhenDeleted(retention(in.storage.WhenDeleted)).
			WithWhenScaled(retention(in.storage.WhenScaled)))
}

func retention(r v1alpha1.ClaimRetention) appsv1.PersistentVolumeClaimRetentionPolicyType {
	if r == v1alpha1.ClaimDelete {
		return appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	}
	return appsv1.RetainPersistentVolumeClaimRetentionPolicyType
}

// volumeMounts returns the mounts of the cache container.
func volumeMounts(in input) []*corev1ac.VolumeMountApplyConfiguration {
	if in.storage == nil {
		return nil
	}
	return []*corev1ac.VolumeMountApplyConfiguration{corev1ac.VolumeMount().WithName(children.DataVolume).WithMountPath(children.DataPath)}
}
