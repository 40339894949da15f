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

// CacheTemplate describes the cache as it runs in one member cluster.
//
// Limits on memory and item size are memcached's own: it refuses to start with
// an item size below 1 KiB, above 1 GiB, above half of its memory, or that is no
// multiple of slab_chunk_max, which is 512 KiB where extended does not set it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.memcached) || !has(self.memcached.maxItemSize) || !has(self.memory) || !isQuantity(string(self.memory)) || !isQuantity(string(self.memcached.maxItemSize)) || quantity(string(self.memory)).compareTo(quantity(string(self.memcached.maxItemSize)).add(quantity(string(self.memcached.maxItemSize)))) >= 0",message="memcached.maxItemSize may be at most half of memory: lower maxItemSize or raise memory",fieldPath=".memcached.maxItemSize"
// +kubebuilder:validation:XValidation:rule="!has(self.memcached) || !has(self.memcached.maxItemSize) || !isQuantity(string(self.memcached.maxItemSize)) || (quantity(string(self.memcached.maxItemSize)).compareTo(quantity('1Ki')) >= 0 && quantity(string(self.memcached.maxItemSize)).compareTo(quantity('1Gi')) <= 0)",message="maxItemSize must be between 1Ki and 1Gi; did you leave out the unit (1Mi)?",fieldPath=".memcached.maxItemSize"
// +kubebuilder:validation:XValidation:rule="!has(self.memcached) || !has(self.memcached.maxItemSize) || !isQuantity(string(self.memcached.maxItemSize)) || (has(self.memcached.extended) && self.memcached.extended.exists(e, e.contains('slab_chunk_max='))) || !quantity(string(self.memcached.maxItemSize)).isInteger() || quantity(string(self.memcached.maxItemSize)).asInteger() % 524288 == 0",message="maxItemSize must be a multiple of 512Ki, or memcached refuses to start: round it up (512Ki, 1Mi, 1536Ki), or set slab_chunk_max in extended",fieldPath=".memcached.maxItemSize"
type CacheTemplate struct {
	// Engine is the cache server.
	// +kubebuilder:default=Memcached
	// +optional
	Engine Engine `json:"engine,omitempty"`

	// Version of the engine. It picks the default image: memcached:<version>.
	// +kubebuilder:default="1.6"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_][A-Za-z0-9_.-]*$')",message="version must be an image tag such as 1.6 or 1.6.39-alpine"
	// +optional
	Version string `json:"version,omitempty"`

	// Image overrides the image that version picks.
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

	// Memory of the cache in each pod, passed to memcached in whole MiB (-m).
	// The container's memory request and limit are 1.2 times as much, rounded to
	// MiB, unless resources says otherwise.
	// +kubebuilder:default="64Mi"
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self))",message="memory must be a quantity such as 64Mi or 8Gi"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('8Mi')) >= 0",message="memory must be at least 8Mi, the least that memcached can divide into slabs; did you leave out the unit (64Mi)?"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('4Ti')) <= 0",message="memory must be at most 4Ti in each pod; use more replicas"
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`

	// Memcached holds what only memcached understands.
	// +optional
	Memcached *MemcachedSpec `json:"memcached,omitempty"`

	// Resources of the cache container. Memory that is left out derives from
	// memory above.
	// +optional
	Resources *Resources `json:"resources,omitempty"`

	// Exporter is a sidecar that exposes the cache's metrics to Prometheus.
	// +optional
	Exporter *ExporterSpec `json:"exporter,omitempty"`

	// Service is how clients in a member reach the cache.
	// +optional
	Service *ServiceSpec `json:"service,omitempty"`

	// Storage gives each pod a PersistentVolumeClaim, mounted at /data, such as for
	// memcached's extstore (memcached.extended: ["ext_path=/data/extstore:8G"]). None
	// if left out.
	// +optional
	Storage *StorageSpec `json:"storage,omitempty"`

	// Pod holds what the pods and their StatefulSet take as is.
	// +optional
	Pod *PodSpec `json:"pod,omitempty"`
}

// StorageSpec is the volume of each pod. Size and class cannot change in place: see
// recreate. A claim that exists already keeps its size.
type StorageSpec struct {
	// Size of each pod's volume.
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('1Mi')) >= 0",message="storage.size must be a quantity of at least 1Mi, such as 10Gi; did you leave out the unit?"
	Size resource.Quantity `json:"size"`

	// StorageClassName in the member; the member's default class if left out.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`

	// WhenDeleted says what becomes of the claims when the cache is deleted.
	// +kubebuilder:default=Retain
	// +optional
	WhenDeleted ClaimRetention `json:"whenDeleted,omitempty"`

	// WhenScaled says what becomes of the claims of pods that are scaled away.
	// +kubebuilder:default=Retain
	// +optional
	WhenScaled ClaimRetention `json:"whenScaled,omitempty"`
}

// ClaimRetention is what becomes of claims that no pod uses any more.
// +kubebuilder:validation:Enum=Retain;Delete
type ClaimRetention string

// The retentions.
const (
	ClaimRetain ClaimRetention = "Retain"
	ClaimDelete ClaimRetention = "Delete"
)

// MemcachedSpec sets memcached's command line.
type MemcachedSpec struct {
	// MaxItemSize is the largest item that can be stored (-I), a multiple of 512Ki
	// unless extended sets slab_chunk_max. 1Mi if left out.
	// +optional
	MaxItemSize *resource.Quantity `json:"maxItemSize,omitempty"`

	// MaxConnections is the number of simultaneous connections (-c).
	// 1024 if left out, memcached's own default.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	MaxConnections *int32 `json:"maxConnections,omitempty"`

	// Threads is the number of worker threads (-t). 4 if left out, memcached's
	// own default.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	// +optional
	Threads *int32 `json:"threads,omitempty"`

	// Extended options, passed as one comma-separated list (--extended=).
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=128
	// +listType=atomic
	// +optional
	Extended []string `json:"extended,omitempty"`

	// Args are added to the end of the command line as they are.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.all(a, !a.matches('^(-[AMkhiVvdrCFXLS]*[mIctp].*|--(memory-limit|max-item-size|conn-limit|threads|port|extended)(=.*)?)$'))",message="args may not set -m, -I, -c, -t, -p or --extended: use memory, memcached.maxItemSize, maxConnections, threads and extended; the port is always 11211"
	// +listType=atomic
	// +optional
	Args []string `json:"args,omitempty"`
}

// Resources are requests and limits of one container.
type Resources struct {
	// +optional
	Requests corev1.ResourceList `json:"requests,omitempty"`
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`
}

// ExporterSpec is the metrics sidecar (prom/memcached-exporter, port 9150).
type ExporterSpec struct {
	// Enabled adds the sidecar.
	// +optional
	Enabled bool `json:"enabled,omitempty"`

	// Image overrides the exporter's default image.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^((([A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)([.][A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)*|[[][0-9A-Fa-f:]+[]])(:[0-9]+)?/)?[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*(/[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@[A-Za-z][A-Za-z0-9]*([-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?$')",message="image must be a reference such as memcached:1.6.39 or mirror.example:5000/memcached@sha256:...: no scheme, no spaces, the repository in lower case"
	// +optional
	Image string `json:"image,omitempty"`

	// Resources of the sidecar; requests 50m and 50Mi, limit 250Mi if left out.
	// +optional
	Resources *Resources `json:"resources,omitempty"`
}

// ServiceType says which Services a member gets.
// +kubebuilder:validation:Enum=Headless;ClusterIP
type ServiceType string

const (
	// ServiceHeadless is one headless Service: clients find every pod by DNS and
	// spread keys over them, as memcached clients do.
	ServiceHeadless ServiceType = "Headless"
	// ServiceClusterIP adds a second Service, <name>-client, with one virtual IP.
	ServiceClusterIP ServiceType = "ClusterIP"
)

// ServiceSpec is how clients in a member reach the cache.
type ServiceSpec struct {
	// Type Headless gives the Service <name>; ClusterIP gives <name>-client too.
	// +kubebuilder:default=Headless
	// +optional
	Type ServiceType `json:"type,omitempty"`

	// Annotations of the Services.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// PodManagement is the StatefulSet's podManagementPolicy.
// +kubebuilder:validation:Enum=Parallel;OrderedReady
type PodManagement string

const (
	// PodManagementParallel starts and stops all pods at once: cache pods do not
	// depend on each other.
	PodManagementParallel PodManagement = "Parallel"
	// PodManagementOrderedReady starts pods one after the other.
	PodManagementOrderedReady PodManagement = "OrderedReady"
)

// PodSpec holds what the pods and their StatefulSet take as is.
type PodSpec struct {
	// MinReadySeconds is how long a pod must be ready to count as available.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// Management is the order in which pods start and stop.
	// +kubebuilder:default=Parallel
	// +optional
	Management PodManagement `json:"management,omitempty"`

	// PriorityClassName of the pods; it must exist in the member.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// NodeSelector of the pods.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Tolerations of the pods.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// SecurityContext replaces the pods' default: not root, uid, gid and fsGroup
	// 10001, seccomp RuntimeDefault.
	// +optional
	SecurityContext *corev1.PodSecurityContext `json:"securityContext,omitempty"`

	// Labels are added to the pods.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations are added to the pods.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}
