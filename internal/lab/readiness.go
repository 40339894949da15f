package lab

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// AcceptsPods reports whether a cluster accepts pods and can run them: it has at least this
// number of ready nodes, and the ServiceAccount without which the API server refuses pods.
func AcceptsPods(ctx context.Context, c kubernetes.Interface, nodes int) bool {
	list, err := c.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false
	}
	ready := 0
	for _, node := range list.Items {
		if nodeReady(node) {
			ready++
		}
	}
	if ready < nodes {
		return false
	}
	_, err = c.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	return err == nil
}

func nodeReady(node corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
