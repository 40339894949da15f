package v1alpha1

import "testing"

func TestDriftFindingFieldList_CountsOmittedFields(t *testing.T) {
	for _, c := range []struct {
		name    string
		finding DriftFinding
		want    string
	}{
		{"a deleted object", DriftFinding{Deleted: true}, ""},
		{"every field is named", DriftFinding{Fields: []string{"spec.replicas", "spec.serviceName"}}, "spec.replicas, spec.serviceName"},
		{"three fields are omitted", DriftFinding{Fields: []string{"spec.replicas", "spec.serviceName"}, OmittedFields: 3}, "spec.replicas, spec.serviceName and 3 more"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.finding.FieldList(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
