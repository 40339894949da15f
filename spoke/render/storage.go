package render

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

const (
	// CacheContainer is the name of the container that runs the cache.
	CacheContainer = "memcached"
	// DataVolume is the name of the claim of each pod.
	DataVolume = "data"
	// DataPath is where it is mounted.
	DataPath = "/data"
)

// store gives a StatefulSet's pods a claim each. The retention is always stated: a
// member whose Kubernetes has another default must not delete what shall stay.
func store(in input, spec *appsv1ac.StatefulSetSpecApplyConfiguration) {
	if in.storage == nil {
		return
	}
	claim := corev1ac.PersistentVolumeClaimSpec().
		WithAccessModes(corev1.ReadWriteOnce).
		WithResources(corev1ac.VolumeResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceStorage: in.storage.Size}))
	claim.StorageClassName = in.storage.StorageClassName
	// Namespace and name of a claim derive from its pod's.
	template := corev1ac.PersistentVolumeClaim(DataVolume, "").WithLabels(in.labels()).WithSpec(claim)
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

// mounts of the cache container.
func mounts(in input) []*corev1ac.VolumeMountApplyConfiguration {
	if in.storage == nil {
		return nil
	}
	return []*corev1ac.VolumeMountApplyConfiguration{corev1ac.VolumeMount().WithName(DataVolume).WithMountPath(DataPath)}
}
