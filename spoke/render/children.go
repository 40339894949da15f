package render

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/internal/children"
)

func (in input) labels() map[string]string { return children.Labels(in.name, in.cluster) }

func (in input) ownerMark() map[string]string {
	return map[string]string{v1alpha1.AnnotationOwner: in.owner}
}

// headlessService returns the Service of the DNS names of the pods. Memcached clients distribute keys over the
// pods that the name resolves to.
func headlessService(in input) *corev1ac.ServiceApplyConfiguration {
	return service(in, in.name).WithSpec(corev1ac.ServiceSpec().
		WithType(corev1.ServiceTypeClusterIP).
		WithClusterIP(corev1.ClusterIPNone).
		WithSelector(children.Selector(in.name)).
		WithPorts(servicePorts(in)...))
}

func clientService(in input) *corev1ac.ServiceApplyConfiguration {
	return service(in, in.name+"-client").WithSpec(corev1ac.ServiceSpec().
		WithType(corev1.ServiceTypeClusterIP).
		WithSelector(children.Selector(in.name)).
		WithPorts(servicePorts(in)...))
}

func service(in input, name string) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(name, in.namespace).
		WithLabels(in.labels()).
		WithAnnotations(in.serviceAnnotations).
		WithAnnotations(in.ownerMark())
}

func servicePorts(in input) []*corev1ac.ServicePortApplyConfiguration {
	ports := []*corev1ac.ServicePortApplyConfiguration{servicePort("client", clientPort)}
	if in.exporter != nil {
		ports = append(ports, servicePort("http-metrics", metricsPort))
	}
	return ports
}

func servicePort(name string, port int32) *corev1ac.ServicePortApplyConfiguration {
	return corev1ac.ServicePort().WithName(name).WithPort(port).
		WithProtocol(corev1.ProtocolTCP).WithTargetPort(intstr.FromString(name))
}

func statefulSet(in input) *appsv1ac.StatefulSetApplyConfiguration {
	spec := appsv1ac.StatefulSetSpec().
		WithReplicas(in.replicas).
		WithServiceName(in.name).
		WithPodManagementPolicy(appsv1.PodManagementPolicyType(in.pod.Management)).
		WithUpdateStrategy(appsv1ac.StatefulSetUpdateStrategy().WithType(appsv1.RollingUpdateStatefulSetStrategyType)).
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(children.Selector(in.name))).
		WithTemplate(podTemplate(in))
	if in.pod.MinReadySeconds > 0 {
		spec.WithMinReadySeconds(in.pod.MinReadySeconds)
	}
	addStorage(in, spec)
	return appsv1ac.StatefulSet(in.name, in.namespace).
		WithLabels(in.labels()).
		WithAnnotations(in.ownerMark()).
		WithSpec(spec)
}

func podTemplate(in input) *corev1ac.PodTemplateSpecApplyConfiguration {
	spec := corev1ac.PodSpec().
		WithAutomountServiceAccountToken(false).
		WithEnableServiceLinks(false).
		WithSecurityContext(podSecurity(in)).
		WithTopologySpreadConstraints(corev1ac.TopologySpreadConstraint().
			WithMaxSkew(1).
			WithTopologyKey(corev1.LabelHostname).
			WithWhenUnsatisfiable(corev1.ScheduleAnyway).
			WithLabelSelector(metav1ac.LabelSelector().WithMatchLabels(children.Selector(in.name)))).
		WithContainers(cacheContainer(in))
	if in.exporter != nil {
		spec.WithContainers(exporterContainer(in))
	}
	if in.pod.PriorityClassName != "" {
		spec.WithPriorityClassName(in.pod.PriorityClassName)
	}
	if len(in.pod.NodeSelector) > 0 {
		spec.WithNodeSelector(in.pod.NodeSelector)
	}
	for i := range in.pod.Tolerations {
		spec.WithTolerations(toleration(&in.pod.Tolerations[i]))
	}
	return corev1ac.PodTemplateSpec().
		WithLabels(in.pod.Labels).
		WithLabels(in.labels()).
		WithAnnotations(in.pod.Annotations).
		WithSpec(spec)
}

func cacheContainer(in input) *corev1ac.ContainerApplyConfiguration {
	return corev1ac.Container().
		WithName(children.CacheContainer).
		WithImage(in.image).
		WithArgs(in.args...).
		WithPorts(containerPort("client", clientPort)).
		WithResources(requirements(&in.resources)).
		WithSecurityContext(containerSecurity()).
		WithVolumeMounts(volumeMounts(in)...).
		WithReadinessProbe(corev1ac.Probe().
			WithTCPSocket(corev1ac.TCPSocketAction().WithPort(intstr.FromString("client"))).
			WithPeriodSeconds(5).WithTimeoutSeconds(3).WithFailureThreshold(3))
}

func exporterContainer(in input) *corev1ac.ContainerApplyConfiguration {
	return corev1ac.Container().
		WithName("exporter").
		WithImage(in.exporter.Image).
		WithArgs(fmt.Sprintf("--memcached.address=localhost:%d", clientPort), fmt.Sprintf("--web.listen-address=0.0.0.0:%d", metricsPort)).
		WithPorts(containerPort("http-metrics", metricsPort)).
		WithResources(requirements(in.exporter.Resources)).
		WithSecurityContext(containerSecurity())
}

func containerPort(name string, port int32) *corev1ac.ContainerPortApplyConfiguration {
	return corev1ac.ContainerPort().WithName(name).WithContainerPort(port).WithProtocol(corev1.ProtocolTCP)
}

func requirements(r *v1alpha1.Resources) *corev1ac.ResourceRequirementsApplyConfiguration {
	out := corev1ac.ResourceRequirements()
	if len(r.Requests) > 0 {
		out.WithRequests(r.Requests)
	}
	if len(r.Limits) > 0 {
		out.WithLimits(r.Limits)
	}
	return out
}

func containerSecurity() *corev1ac.SecurityContextApplyConfiguration {
	return corev1ac.SecurityContext().
		WithAllowPrivilegeEscalation(false).
		WithReadOnlyRootFilesystem(true).
		WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))
}

func disruptionBudget(in input) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	return policyv1ac.PodDisruptionBudget(in.name, in.namespace).
		WithLabels(in.labels()).
		WithAnnotations(in.ownerMark()).
		WithSpec(policyv1ac.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(1)).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(children.Selector(in.name))))
}
