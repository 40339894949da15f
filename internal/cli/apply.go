package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/hub/placement"
)

const (
	// applyManager is the field manager of `apply`.
	applyManager = "reconcile-lab-cli"
	applyTimeout = 5 * time.Minute
)

type applyFlags struct {
	forceConflicts, createNamespace bool
}

func (a *app) applyCommand() *cobra.Command {
	var f applyFlags
	cmd := &cobra.Command{
		Use:   "apply FILE...",
		Short: "Apply CacheClusters to the hub and wait until they are ready",
		Long: "Read CacheClusters from files, folders and - (standard input), and validate all of them\n" +
			"against the hub. If all are valid, apply them and wait until each is ready: 5 minutes, or\n" +
			"--timeout. apply also waits for obstacles that clear by themselves.\n\n" +
			"The exit code is 0 if all are ready, 2 if one is refused (nothing is changed then), 3 if\n" +
			"one is not ready in time, 4 if one is blocked until someone acts.",
		Example: "  reconcile-lab apply examples/cache-cluster.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.apply(cmd.Context(), args, f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.forceConflicts, "force-conflicts", false, "take ownership of fields that another field manager set")
	flags.BoolVar(&f.createNamespace, "create-namespace", false, "create namespaces that do not exist on the hub")
	return cmd
}

// appliedCache is the result of applying one CacheCluster.
type appliedCache struct {
	name       string                 // namespace/name
	before     *v1alpha1.CacheCluster // nil if apply created it
	generation int64
	change     change
	// latest is the last observed object; nil once another client deleted it.
	latest *v1alpha1.CacheCluster
}

func (ac *appliedCache) readiness() readiness {
	if ac.latest == nil {
		return readinessStalled
	}
	return readinessOf(ac.latest, ac.generation)
}

func (a *app) apply(ctx context.Context, paths []string, f applyFlags) error {
	manifests, err := readManifests(paths, a.in)
	if err != nil {
		return withCode(exitUsage, err)
	}
	h, err := a.connect()
	if err != nil {
		return err
	}
	if err := setNamespaces(manifests, h.namespace, a.hub.namespace != ""); err != nil {
		return withCode(exitUsage, err)
	}
	missing, err := h.missingNamespaces(ctx, manifests)
	if err != nil {
		return err
	}
	if len(missing) > 0 && !f.createNamespace {
		return badInput("metadata.namespace: %s: not found on the hub; pass --create-namespace, or correct the name", missing[0])
	}
	if err := h.validate(ctx, manifests, missing, f.forceConflicts); err != nil {
		return err
	}
	ctx, cancel := a.withTimeout(ctx, applyTimeout)
	defer cancel()
	for _, ns := range missing {
		err := h.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create namespace %s: %w", ns, h.wrapError(err))
		}
	}
	caches := make([]*appliedCache, 0, len(manifests))
	for _, m := range manifests {
		ac, err := h.applyOne(ctx, m, f.forceConflicts)
		if err != nil {
			return err
		}
		caches = append(caches, ac)
	}
	return a.reportApplied(caches, a.awaitReady(ctx, h, caches))
}

// missingNamespaces returns the namespaces of the manifests that do not exist on
// the hub, each once.
func (h *hub) missingNamespaces(ctx context.Context, manifests []manifest) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var missing []string
	checked := map[string]bool{}
	for _, m := range manifests {
		name := m.object.GetNamespace()
		if checked[name] {
			continue
		}
		checked[name] = true
		err := h.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
		switch {
		case apierrors.IsNotFound(err):
			missing = append(missing, name)
		case apierrors.IsForbidden(err):
			// Without the right to read namespaces, the dry run reports a missing one.
		case err != nil:
			return nil, h.wrapError(err)
		}
	}
	return missing, nil
}

// validate checks every manifest without a write: by a dry run on the hub, then by
// the rules that only the hub manager checks. It returns all problems of all
// manifests.
func (h *hub) validate(ctx context.Context, manifests []manifest, missing []string, force bool) error {
	var errs []error
	members := h.members(ctx)
	for _, m := range manifests {
		problems, err := h.validateOne(ctx, m, members, slices.Contains(missing, m.object.GetNamespace()), force)
		if err != nil {
			return err
		}
		for _, p := range problems {
			errs = append(errs, fmt.Errorf("%s: CacheCluster %s/%s: %w", m.source, m.object.GetNamespace(), m.object.GetName(), p))
		}
	}
	return withCode(exitUsage, newErrorList(errs...))
}

// validateOne returns the problems of one manifest. An error means that the hub
// could not be asked.
func (h *hub) validateOne(ctx context.Context, m manifest, members []placement.Member, namespaceMissing, force bool) ([]error, error) {
	obj := m.object.DeepCopy()
	if namespaceMissing {
		// The validation rules are the same in every namespace, and this one exists.
		obj.SetNamespace(metav1.NamespaceDefault)
		// An unrelated object with the same name may own the fields there.
		force = true
	}
	err := h.serverApply(ctx, obj, force, client.DryRunAll)
	if isUnreachable(err) || isUnknownKind(err) {
		return nil, h.wrapError(err)
	}
	var problems []error
	if err != nil {
		problems = append(problems, withConflictHint(err))
	}
	if err != nil || namespaceMissing {
		// The response is missing, or is merged with the unrelated object.
		obj = m.object
	}
	var cc v1alpha1.CacheCluster
	if converting := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &cc); converting != nil {
		if err == nil {
			problems = append(problems, converting)
		}
		return problems, nil
	}
	texts := validateSpec(&cc)
	if err == nil && len(texts) == 0 {
		texts = validateTemplates(&cc, members)
	}
	for _, text := range texts {
		problems = append(problems, errors.New(text))
	}
	return problems, nil
}

// withConflictHint adds to a conflict how apply can resolve it.
func withConflictHint(err error) error {
	if apierrors.IsConflict(err) {
		return fmt.Errorf("conflict with another field manager; pass --force-conflicts to take ownership of the fields, or remove them from the file: %w", err)
	}
	return err
}

// serverApply applies obj and replaces its content with the response of the hub.
func (h *hub) serverApply(ctx context.Context, obj *unstructured.Unstructured, force bool, opts ...client.PatchOption) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	data, err := obj.MarshalJSON()
	if err != nil {
		return err
	}
	opts = append(opts, client.FieldOwner(applyManager), client.FieldValidation(metav1.FieldValidationStrict))
	if force {
		opts = append(opts, client.ForceOwnership)
	}
	// Client.Apply has no option for strict validation.
	return h.Patch(ctx, obj, client.RawPatch(types.ApplyPatchType, data), opts...)
}

func (h *hub) applyOne(ctx context.Context, m manifest, force bool) (*appliedCache, error) {
	key := client.ObjectKeyFromObject(m.object)
	ac := &appliedCache{name: key.String(), before: &v1alpha1.CacheCluster{}, latest: &v1alpha1.CacheCluster{}}
	if err := h.Get(ctx, key, ac.before); apierrors.IsNotFound(err) {
		ac.before = nil
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", m.source, h.wrapError(err))
	}
	obj := m.object.DeepCopy()
	if err := h.serverApply(ctx, obj, force); err != nil {
		return nil, fmt.Errorf("%s: CacheCluster %s: %w", m.source, key, withConflictHint(h.wrapError(err)))
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, ac.latest); err != nil {
		return nil, fmt.Errorf("%s: decode the response of the hub: %w", m.source, err)
	}
	ac.generation = ac.latest.Generation
	ac.change = compare(ac.before, ac.latest)
	return ac, nil
}
