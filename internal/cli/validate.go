package cli

import (
	"context"
	"fmt"
	"slices"

	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
	"github.com/reconcile-lab/reconcile-lab/hub/override"
	"github.com/reconcile-lab/reconcile-lab/hub/placement"
	"github.com/reconcile-lab/reconcile-lab/internal/validation"
)

// validateSpec returns the problems of paths and selectors in a CacheCluster that
// admission does not check, each with field, value and fix.
func validateSpec(cc *v1alpha1.CacheCluster) []string {
	var problems []string
	for _, p := range validation.Policies(&cc.Spec.Policies) {
		problems = append(problems, "spec."+p.String())
	}
	if p := placement.Place(cc.Spec.Placement, nil).Problem; p != "" {
		problems = append(problems, p)
	}
	for i, o := range cc.Spec.Overrides {
		if _, err := placement.Selector(o.ClusterSelector); err != nil {
			problems = append(problems, fmt.Sprintf("spec.overrides[%d].clusterSelector: %v; use matchLabels, or matchExpressions with In, NotIn (both with values), Exists or DoesNotExist (both without)", i, err))
		}
	}
	return problems
}

// validateTemplates returns the problems of the template in each selected member.
// An override is merged into the template per member, so it can only be checked there.
func validateTemplates(cc *v1alpha1.CacheCluster, members []placement.Member) []string {
	selected := placement.Place(cc.Spec.Placement, members).Chosen
	if len(cc.Spec.Overrides) == 0 {
		// All members get the same template, including members that join later.
		selected = []placement.Member{{}}
	}
	var problems []string
	for _, m := range selected {
		_, found := override.Apply(cc.Spec.CacheTemplate, cc.Spec.Overrides, m)
		for _, p := range found {
			if !slices.Contains(problems, p) {
				problems = append(problems, p)
			}
		}
	}
	return problems
}

// members returns the members that the hub may place caches on, and none if they
// cannot be listed: a user who may apply a cache may lack the right to list them,
// and the hub manager repeats the check.
func (h *hub) members(ctx context.Context) []placement.Member {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var profiles inventoryv1alpha1.ClusterProfileList
	if err := h.List(ctx, &profiles, client.InNamespace(v1alpha1.InventoryNamespace)); err != nil {
		return nil
	}
	var members []placement.Member
	for i := range profiles.Items {
		p := &profiles.Items[i]
		if _, usable := placement.Usable(p.Name); usable && p.DeletionTimestamp == nil {
			members = append(members, placement.Member{Name: p.Name, Labels: p.Labels})
		}
	}
	return members
}
