package embedded

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/reconcile-lab/reconcile-lab/internal/lab/process"
)

// nodeCount is the number of nodes. Each has a zone of its own, so that topology spread
// and anti-affinity have an effect.
const nodeCount = 3

// node returns a simulated node with room for the largest caches of the examples.
func node(i int) *corev1.Node {
	name := fmt.Sprintf("node-%d", i)
	size := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("64"),
		corev1.ResourceMemory:           resource.MustParse("512Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
		corev1.ResourcePods:             resource.MustParse("500"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname:     name,
				corev1.LabelOSStable:     "linux",
				corev1.LabelArchStable:   "amd64",
				corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", i),
				"type":                   "kwok",
			},
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
		Status: corev1.NodeStatus{
			Capacity:    size,
			Allocatable: size,
			NodeInfo:    corev1.NodeSystemInfo{KubeletVersion: "fake", OperatingSystem: "linux", Architecture: "amd64"},
		},
	}
}

// ensureNodes creates missing nodes.
func ensureNodes(ctx context.Context, c kubernetes.Interface) error {
	for i := 1; i <= nodeCount; i++ {
		_, err := c.CoreV1().Nodes().Create(ctx, node(i), metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create node-%d: %w", i, err)
		}
	}
	return nil
}

// deleteNodeLeases deletes the leases of a kwok that has ended. A new kwok would otherwise
// ignore the pods of these nodes until the leases expire, up to 20 minutes later.
func (s *starter) deleteNodeLeases(ctx context.Context, c kubernetes.Interface) error {
	found, err := process.Find(s.files.dir, kwok)
	if err != nil || len(found) > 0 {
		return err
	}
	err = c.CoordinationV1().Leases(corev1.NamespaceNodeLease).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the node leases: %w", err)
	}
	return nil
}
