package main

import "context"

// operation is what one operation cost, or several: what changed something at the
// API servers of the hub and of all members, and all that the manager sent to them.
type operation struct {
	Hub     counts `json:"hub"`
	Members counts `json:"members"`
	Manager counts `json:"manager"`
}

func (o operation) minus(before operation) operation {
	return operation{o.Hub.minus(before.Hub), o.Members.minus(before.Members), o.Manager.minus(before.Manager)}
}

func (o operation) per(n int) operation {
	return operation{o.Hub.per(n), o.Members.per(n), o.Manager.per(n)}
}

// snapshot asks every cluster and the manager what they counted so far.
func (f *fleet) snapshot(ctx context.Context) (operation, error) {
	o := operation{Members: counts{}}
	hosts := map[string]string{}
	for _, c := range f.clusters {
		where := "members"
		if c == f.hub() {
			where = "hub"
		}
		hosts[c.host] = where
		got, err := f.mutations(ctx, c)
		if err != nil {
			return o, err
		}
		if c == f.hub() {
			o.Hub = got
		} else {
			o.Members = o.Members.plus(got)
		}
	}
	var err error
	o.Manager, err = f.manager.requests(ctx, hosts)
	return o, err
}

func (o operation) plus(other operation) operation {
	return operation{o.Hub.plus(other.Hub), o.Members.plus(other.Members), o.Manager.plus(other.Manager)}
}
