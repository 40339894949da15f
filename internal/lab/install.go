package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/deploy"
)

// fieldManager is the field manager of the objects that a lab applies to its hub.
const fieldManager = client.FieldOwner("reconcile-lab-up")

// newClient returns a client for the objects that a lab reads and writes on the hub.
func newClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, apiextensionsv1.AddToScheme, inventoryv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return client.New(config, client.Options{Scheme: scheme})
}

// install applies the inventory namespace and the CRDs to the hub, and waits until the CRDs
// are established.
func install(ctx context.Context, hub *rest.Config) error {
	c, err := newClient(hub)
	if err != nil {
		return err
	}
	namespace := corev1apply.Namespace(v1alpha1.InventoryNamespace)
	if err := c.Apply(ctx, namespace, fieldManager, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply namespace %s: %w", v1alpha1.InventoryNamespace, err)
	}
	files, err := fs.Glob(deploy.CRDs, "crd/*.yaml")
	if err != nil {
		return err
	}
	var names []string
	for _, file := range files {
		content, err := deploy.CRDs.ReadFile(file)
		if err != nil {
			return err
		}
		var crd unstructured.Unstructured
		if err := yaml.Unmarshal(content, &crd.Object); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(&crd), fieldManager, client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s: %w", file, err)
		}
		names = append(names, crd.GetName())
	}
	return waitForCRDs(ctx, c, names)
}

// waitForCRDs waits until the API server serves the resources of the CRDs.
func waitForCRDs(ctx context.Context, c client.Client, names []string) error {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		for _, name := range names {
			var crd apiextensionsv1.CustomResourceDefinition
			if err := c.Get(ctx, client.ObjectKey{Name: name}, &crd); err != nil {
				return false, err
			}
			if ok, err := established(&crd); !ok {
				return false, err
			}
		}
		return true, nil
	})
}

// established reports whether the API server serves the resource of the CRD. It returns an
// error if the names conflict with those of another CRD.
func established(crd *apiextensionsv1.CustomResourceDefinition) (bool, error) {
	served := false
	for _, condition := range crd.Status.Conditions {
		switch {
		case condition.Type == apiextensionsv1.NamesAccepted && condition.Status == apiextensionsv1.ConditionFalse:
			return false, errors.New("CustomResourceDefinition " + crd.Name + " is not accepted: " + condition.Message)
		case condition.Type == apiextensionsv1.Established:
			served = condition.Status == apiextensionsv1.ConditionTrue
		}
	}
	return served, nil
}
