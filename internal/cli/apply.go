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
)

const (
	// applyManager owns the fields that `apply` sets.
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
		Short: "Apply CacheClusters to the hub and wait until their caches are ready",
		Long: "apply reads CacheClusters from files, folders and - (standard input), checks all of them\n" +
			"against the hub, and only when all are right applies them and waits until each is ready.\n" +
			"It waits 5 minutes, or --timeout, also for what is in the way and passes by itself.\n\n" +
			"It exits with 0 when all are ready, 2 if anything was refused (nothing was changed then),\n" +
			"3 if some were not ready in time, 4 if some cannot become ready before somebody acts.",
		Example: "  reconcile-lab apply examples/cache-cluster.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.apply(cmd.Context(), args, f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.forceConflicts, "force-conflicts", false, "take over fields that somebody else has set")
	flags.BoolVar(&f.createNamespace, "create-namespace", false, "create namespaces that the hub lacks")
	return cmd
}

// applied is one CacheCluster that was applied and what became of it.
type applied struct {
	name       string // namespace/name
	before     *v1alpha1.CacheCluster
	generation int64
	change     change
	// now is the latest sight of it; nil if it was deleted meanwhile.
	now *v1alpha1.CacheCluster
}

func (ap *applied) verdict() verdict {
	if ap.now == nil {
		return verdictStalled
	}
	return judge(ap.now, ap.generation)
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
	if err := place(manifests, h.namespace, a.hub.namespace != ""); err != nil {
		return withCode(exitUsage, err)
	}
	missing, err := h.missingNamespaces(ctx, manifests)
	if err != nil {
		return err
	}
	if len(missing) > 0 && !f.createNamespace {
		return badInput("the hub has no namespace %s: pass --create-namespace, or correct the name", missing[0])
	}
	if err := h.validate(ctx, manifests, missing, f.forceConflicts); err != nil {
		return err
	}
	ctx, cancel := a.deadline(ctx, applyTimeout)
	defer cancel()
	for _, ns := range missing {
		err := h.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating namespace %s: %w", ns, h.explain(err))
		}
	}
	all := make([]*applied, 0, len(manifests))
	for _, m := range manifests {
		ap, err := h.applyOne(ctx, m, f.forceConflicts)
		if err != nil {
			return err
		}
		all = append(all, ap)
	}
	return a.reportApplied(all, a.await(ctx, h, all))
}

// missingNamespaces of the manifests on the hub, each once.
func (h *hub) missingNamespaces(ctx context.Context, manifests []manifest) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var missing []string
	seen := map[string]bool{}
	for _, m := range manifests {
		name := m.object.GetNamespace()
		if seen[name] {
			continue
		}
		seen[name] = true
		err := h.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
		switch {
		case apierrors.IsNotFound(err):
			missing = append(missing, name)
		case apierrors.IsForbidden(err):
			// Whoever may not read namespaces learns it from the dry run.
		case err != nil:
			return nil, h.explain(err)
		}
	}
	return missing, nil
}

// validate has the hub check every manifest without writing any, checks what
// admission leaves to the hub's controllers, and reports all that is wrong with
// all of them.
func (h *hub) validate(ctx context.Context, manifests []manifest, missing []string, force bool) error {
	var errs []error
	members := h.members(ctx)
	for _, m := range manifests {
		refuse := func(err error) {
			errs = append(errs, fmt.Errorf("%s: CacheCluster %s/%s: %w", m.source, m.object.GetNamespace(), m.object.GetName(), err))
		}
		obj, force := m.object.DeepCopy(), force
		moved := slices.Contains(missing, obj.GetNamespace())
		if moved {
			// The rules are the same in every namespace, and this one is always there.
			obj.SetNamespace(metav1.NamespaceDefault)
			// An object of that name there is another one.
			force = true
		}
		err := h.serverApply(ctx, obj, force, client.DryRunAll)
		if isUnreachable(err) || isNoKind(err) {
			return h.explain(err)
		}
		if err != nil {
			refuse(advise(err))
		}
		if err != nil || moved {
			// The hub's answer is none, or is mixed with the other object.
			obj = m.object
		}
		var cc v1alpha1.CacheCluster
		if converting := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &cc); converting != nil {
			if err == nil {
				refuse(converting)
			}
			continue
		}
		problems := unreadable(&cc)
		if err == nil && len(problems) == 0 {
			problems = unrunnable(&cc, members)
		}
		for _, p := range problems {
			refuse(errors.New(p))
		}
	}
	return withCode(exitUsage, errors.Join(errs...))
}

// advise adds to a refusal the way out that is this program's.
func advise(err error) error {
	if apierrors.IsConflict(err) {
		return fmt.Errorf("pass --force-conflicts to take these fields over, or leave them out of the file: %w", err)
	}
	return err
}

// serverApply makes obj what the hub answers.
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
	// Client.Apply cannot ask for strict validation.
	return h.Patch(ctx, obj, client.RawPatch(types.ApplyPatchType, data), opts...)
}

func (h *hub) applyOne(ctx context.Context, m manifest, force bool) (*applied, error) {
	key := client.ObjectKeyFromObject(m.object)
	ap := &applied{name: key.String(), before: &v1alpha1.CacheCluster{}, now: &v1alpha1.CacheCluster{}}
	if err := h.Get(ctx, key, ap.before); apierrors.IsNotFound(err) {
		ap.before = nil
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", m.source, h.explain(err))
	}
	obj := m.object.DeepCopy()
	if err := h.serverApply(ctx, obj, force); err != nil {
		return nil, fmt.Errorf("%s: CacheCluster %s: %w", m.source, key, advise(h.explain(err)))
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, ap.now); err != nil {
		return nil, fmt.Errorf("%s: the hub's answer: %w", m.source, err)
	}
	ap.generation = ap.now.Generation
	ap.change = compare(ap.before, ap.now)
	return ap, nil
}
