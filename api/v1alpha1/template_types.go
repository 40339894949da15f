package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Engine is the cache server that runs in the pods.
// +kubebuilder:validation:Enum=Memcached
type Engine string

// EngineMemcached is memcached, https://memcached.org.
const EngineMemcached Engine = "Memcached"

// CacheTemplate is the cache in one member cluster.
//
// The limits of memory and item size are those of memcached. It refuses to start if
// the item size is below 1 KiB, above 1 GiB, or above half of its memory. The item
// size must also be a multiple of slab_chunk_max, by default 512 KiB.
//
// +kubebuilder:validation:XValidation:rule="!has(self.memcached) || !has(self.memcached.maxItemSize) || !has(self.memory) || !isQuantity(string(self.memory)) || !isQuantity(string(self.memcached.maxItemSize)) || quantity(string(self.memory)).compareTo(quantity(string(self.memcached.maxItemSize)).add(quantity(string(self.memcached.maxItemSize)))) >= 0",message="memcached.maxItemSize may be at most half of memory: lower maxItemSize or raise memory",fieldPath=".memcached.maxItemSize"
// +kubebuilder:validation:XValidation:rule="!has(self.memcached) || !has(self.memcached.maxItemSize) || !isQuantity(string(self.memcached.maxItemSize)) || (quantity(string(self.memcached.maxItemSize)).compareTo(quantity('1Ki')) >= 0 && quantity(string(self.memcached.maxItemSize)).compareTo(quantity('1Gi')) <= 0)",message="maxItemSize must be between 1Ki and 1Gi; did you leave out the unit (1Mi)?",fieldPath=".memcached.maxItemSize"
// +kubebuilder:validation:XValidation:rule="!has(self.memcached) || !has(self.memcached.maxItemSize) || !isQuantity(string(self.memcached.maxItemSize)) || (has(self.memcached.extended) && self.memcached.extended.exists(e, e.contains('slab_chunk_max='))) || !quantity(string(self.memcached.maxItemSize)).isInteger() || quantity(string(self.memcached.maxItemSize)).asInteger() % 524288 == 0",message="maxItemSize must be a multiple of 512Ki, or memcached refuses to start: round it up (512Ki, 1Mi, 1536Ki), or set slab_chunk_max in extended",fieldPath=".memcached.maxItemSize"
type CacheTemplate struct {
	// Engine is the cache server. Memcached is the only value.
	// +kubebuilder:default=Memcached
	// +optional
	Engine Engine `json:"engine,omitempty"`

	// Version is the version of the engine. It selects the default image,
	// memcached:<version>.
	// +kubebuilder:default="1.6"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_][A-Za-z0-9_.-]*$')",message="version must be an image tag such as 1.6 or 1.6.39-alpine"
	// +optional
	Version string `json:"version,omitempty"`

	// Image replaces the image that version selects.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^((([A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)([.][A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)*|[[][0-9A-Fa-f:]+[]])(:[0-9]+)?/)?[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*(/[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@[A-Za-z][A-Za-z0-9]*([-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?$')",message="image must be a reference such as memcached:1.6.39 or mirror.example:5000/memcached@sha256:...: no scheme, no spaces, the repository in lower case"
	// +optional
	Image string `json:"image,omitempty"`

	// Replicas is the number of cache pods in each member cluster.
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="replicas must be 0 or more; 0 stops every pod and keeps the objects"
	// +kubebuilder:validation:XValidation:rule="self <= 1000",message="replicas must be at most 1000 in each member"
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Memory is the size of the cache in each pod, in whole MiB (memcached -m), 8Mi to
	// 4Ti. The memory request and limit of the container are 1.2 times this size,
	// rounded to MiB, unless resources sets them.
	// +kubebuilder:default="64Mi"
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self))",message="memory must be a quantity such as 64Mi or 8Gi"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('8Mi')) >= 0",message="memory must be at least 8Mi, the minimum for the slabs of memcached; did you leave out the unit (64Mi)?"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('4Ti')) <= 0",message="memory must be at most 4Ti in each pod; use more replicas"
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`

	// Memcached contains the options of memcached.
	// +optional
	Memcached *MemcachedSpec `json:"memcached,omitempty"`

	// Resources are the requests and limits of the cache container. Omitted memory
	// values derive from spec.memory.
	// +optional
	Resources *Resources `json:"resources,omitempty"`

	// Exporter is a sidecar that exports the metrics of the cache to Prometheus.
	// +optional
	Exporter *ExporterSpec `json:"exporter,omitempty"`

	// Service configures the Services for the clients in a member.
	// +optional
	Service *ServiceSpec `json:"service,omitempty"`

	// Storage is the PersistentVolumeClaim of each pod, mounted at /data. An example is
	// extstore (memcached.extended: ["ext_path=/data/extstore:8G"]). Default: no claim.
	// +optional
	Storage *StorageSpec `json:"storage,omitempty"`

	// Pod contains settings that are copied to the pods and their StatefulSet.
	// +optional
	Pod *PodSpec `json:"pod,omitempty"`
}

// StorageSpec is the volume of each pod. Size and class are immutable; see recreate.
// An existing claim keeps its size.
type StorageSpec struct {
	// Size is the size of the volume of each pod, such as 10Gi.
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('1Mi')) >= 0",message="storage.size must be a quantity of at least 1Mi, such as 10Gi; did you leave out the unit?"
	Size resource.Quantity `json:"size"`

	// StorageClassName is the name of a StorageClass in the member. Default: the default
	// class of the member.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`

	// WhenDeleted is the action on the claims when the cache is deleted.
	// +kubebuilder:default=Retain
	// +optional
	WhenDeleted ClaimRetention `json:"whenDeleted,omitempty"`

	// WhenScaled is the action on the claims of pods that a scale-down removes.
	// +kubebuilder:default=Retain
	// +optional
	WhenScaled ClaimRetention `json:"whenScaled,omitempty"`
}

// ClaimRetention is an action on claims that no pod uses any more.
// +kubebuilder:validation:Enum=Retain;Delete
type ClaimRetention string

// The retentions.
const (
	ClaimRetain ClaimRetention = "Retain"
	ClaimDelete ClaimRetention = "Delete"
)

// MemcachedSpec contains the command line options of memcached.
type MemcachedSpec struct {
	// MaxItemSize is the size of the largest item (-I), 1Ki to 1Gi. It must be a multiple
	// of 512Ki, unless extended sets slab_chunk_max. Default: 1Mi.
	// +optional
	MaxItemSize *resource.Quantity `json:"maxItemSize,omitempty"`

	// MaxConnections is the maximum number of simultaneous connections (-c). Default:
	// 1024, the default of memcached.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	MaxConnections *int32 `json:"maxConnections,omitempty"`

	// Threads is the number of worker threads (-t). Default: 4, the default of
	// memcached.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	// +optional
	Threads *int32 `json:"threads,omitempty"`

	// Extended lists the extended options (--extended=), such as
	// ext_path=/data/extstore:8G.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=128
	// +listType=atomic
	// +optional
	Extended []string `json:"extended,omitempty"`

	// Args lists arguments that are appended to the command line, such as -vv.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.all(a, !a.matches('^(-[AMkhiVvdrCFXLS]*[mIctp].*|--(memory-limit|max-item-size|conn-limit|threads|port|extended)(=.*)?)$'))",message="args may not set -m, -I, -c, -t, -p or --extended: use memory, memcached.maxItemSize, maxConnections, threads and extended; the port is always 11211"
	// +listType=atomic
	// +optional
	Args []string `json:"args,omitempty"`
}

// Resources are the requests and limits of one container.
type Resources struct {
	// Requests are the minimum resources, such as cpu: 50m.
	// +optional
	Requests corev1.ResourceList `json:"requests,omitempty"`

	// Limits are the maximum resources, such as memory: 250Mi.
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`
}

// ExporterSpec is the metrics sidecar (prom/memcached-exporter, port 9150).
type ExporterSpec struct {
	// Enabled adds the sidecar. Default: false.
	// +optional
	Enabled bool `json:"enabled,omitempty"`

	// Image replaces the default image of the exporter.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^((([A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)([.][A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)*|[[][0-9A-Fa-f:]+[]])(:[0-9]+)?/)?[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*(/[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@[A-Za-z][A-Za-z0-9]*([-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?$')",message="image must be a reference such as memcached:1.6.39 or mirror.example:5000/memcached@sha256:...: no scheme, no spaces, the repository in lower case"
	// +optional
	Image string `json:"image,omitempty"`

	// Resources are the requests and limits of the sidecar. Default: requests of 50m CPU
	// and 50Mi memory, a limit of 250Mi memory.
	// +optional
	Resources *Resources `json:"resources,omitempty"`
}

// ServiceType determines the Services in a member.
// +kubebuilder:validation:Enum=Headless;ClusterIP
type ServiceType string

const (
	// ServiceHeadless is one headless Service: clients find each pod by DNS and
	// distribute keys over the pods, as memcached clients do.
	ServiceHeadless ServiceType = "Headless"
	// ServiceClusterIP adds a second Service, <name>-client, with one virtual IP.
	ServiceClusterIP ServiceType = "ClusterIP"
)

// ServiceSpec configures the Services for the clients in a member.
type ServiceSpec struct {
	// Type determines the Services. Headless: the headless Service <name>. ClusterIP: also
	// <name>-client, with one virtual IP.
	// +kubebuilder:default=Headless
	// +optional
	Type ServiceType `json:"type,omitempty"`

	// Annotations are the annotations of the Services.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// PodManagement is the StatefulSet's podManagementPolicy.
// +kubebuilder:validation:Enum=Parallel;OrderedReady
type PodManagement string

const (
	// PodManagementParallel starts and stops all pods at once. Cache pods do not depend
	// on each other.
	PodManagementParallel PodManagement = "Parallel"
	// PodManagementOrderedReady starts pods one after the other.
	PodManagementOrderedReady PodManagement = "OrderedReady"
)

// PodSpec contains settings that are copied to the pods and their StatefulSet.
type PodSpec struct {
	// MinReadySeconds is the time in seconds that a pod must be ready before it is
	// available. Default: 0.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// Management is the order in which pods start and stop. Parallel: all at once.
	// OrderedReady: one after the other.
	// +kubebuilder:default=Parallel
	// +optional
	Management PodManagement `json:"management,omitempty"`

	// PriorityClassName is the name of the PriorityClass of the pods. The class must exist
	// in the member.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// NodeSelector is the node selector of the pods.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Tolerations are the tolerations of the pods.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// SecurityContext replaces the security context of the pods. Default: runAsNonRoot,
	// uid, gid and fsGroup 10001, seccomp profile RuntimeDefault.
	// +optional
	SecurityContext *corev1.PodSecurityContext `json:"securityContext,omitempty"`

	// Labels are additional labels of the pods.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations are additional annotations of the pods.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}
