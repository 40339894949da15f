// Package override computes the template of a member: the template of the CacheCluster
// with the overrides that name or select the member, in their order.
//
// It is pure and changes none of its inputs. It checks the result as well: a template that
// the member could not run is a problem that names the field and the index of the override,
// before anything is written.
package override
