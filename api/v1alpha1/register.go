package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is cache.reconcile-lab.io/v1alpha1.
	GroupVersion = schema.GroupVersion{Group: "cache.reconcile-lab.io", Version: "v1alpha1"}

	schemeBuilder = runtime.NewSchemeBuilder(func(s *runtime.Scheme) error {
		s.AddKnownTypes(GroupVersion, &CacheCluster{}, &CacheClusterList{}, &MemberCache{}, &MemberCacheList{})
		metav1.AddToGroupVersion(s, GroupVersion)
		return nil
	})

	// AddToScheme registers the kinds of this package.
	AddToScheme = schemeBuilder.AddToScheme
)
