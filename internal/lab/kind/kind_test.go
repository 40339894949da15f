package kind

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/reconcile-lab/reconcile-lab/internal/lab/nodeimage"
)

func TestConfigFor_PatchesTheKubeletOnlyWhereNeeded(t *testing.T) {
	tests := []struct {
		name  string
		image nodeimage.Image
		host  host
		want  map[string]any // nil: no patch at all
	}{
		{name: "published image on an ordinary host"},
		{
			name: "published image where cgroup v1 is mounted",
			host: host{cgroupV1: true},
			want: map[string]any{"kind": "KubeletConfiguration", "failCgroupV1": false},
		},
		{
			name:  "built image on an ordinary host",
			image: nodeimage.Image{Built: true},
			want: map[string]any{
				"kind": "KubeletConfiguration", "cgroupDriver": "cgroupfs", "cgroupRoot": "/",
				"localStorageCapacityIsolation": false, "resolvConf": "/kind/resolv.conf",
			},
		},
		{
			name:  "built image where cgroup v1 is mounted and CAP_SYS_RESOURCE is missing",
			image: nodeimage.Image{Built: true},
			host:  host{cgroupV1: true, noSysResource: true},
			want: map[string]any{
				"kind": "KubeletConfiguration", "cgroupDriver": "cgroupfs", "cgroupRoot": "/",
				"localStorageCapacityIsolation": false, "resolvConf": "/kind/resolv.conf",
				"failCgroupV1": false, "oomScoreAdj": 0.0,
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			config := configFor(test.image, test.host)
			if len(config.Nodes) != 1 {
				t.Fatalf("%d nodes, want 1", len(config.Nodes))
			}
			if got := config.Networking.DisableDefaultCNI; got != test.image.Built {
				t.Errorf("default CNI disabled is %v, want %v: only the built image contains a network", got, test.image.Built)
			}
			var got map[string]any
			for _, patch := range config.Nodes[0].KubeadmConfigPatches {
				if err := yaml.Unmarshal([]byte(patch), &got); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConfigFor_PatchesAreValidYAML(t *testing.T) {
	for _, patch := range configFor(nodeimage.Image{}, host{}).KubeadmConfigPatches {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(patch), &object); err != nil || object["kind"] != "ClusterConfiguration" {
			t.Errorf("patch of kind %v, error %v:\n%s", object["kind"], err, patch)
		}
	}
}

func TestLacksSysResource_ReadsTheBoundingSet(t *testing.T) {
	tests := map[string]struct {
		status string
		want   bool
	}{
		"all capabilities":          {"Name:\tx\nCapBnd:\t000001ffffffffff\n", false},
		"all but CAP_SYS_RESOURCE":  {"Name:\tx\nCapBnd:\t000001fffeffffff\n", true},
		"no such line, as on macOS": {"", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := lacksSysResource(test.status); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestLabCluster_ExcludesOtherLabs(t *testing.T) {
	p := New("kind")
	tests := map[string]struct {
		cluster, want string
		belongs       bool
	}{
		"the hub":                              {"rl-kind-hub", "hub", true},
		"a member":                             {"rl-kind-member-12", "member-12", true},
		"a lab whose name has the same prefix": {"rl-kind-two-hub", "two-hub", false},
		"a lab that is named like a member of this one": {"rl-kind-member-1-hub", "member-1-hub", false},
		"a cluster of no lab":                           {"kind", "kind", false},
		"a lab whose name has the same suffix":          {"rl-my-kind-hub", "rl-my-kind-hub", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, belongs := p.labCluster(test.cluster)
			if got != test.want || belongs != test.belongs {
				t.Errorf("%s is %q, in the lab %v; want %q, %v", test.cluster, got, belongs, test.want, test.belongs)
			}
		})
	}
	if got := p.clusterName("hub"); got != "rl-kind-hub" {
		t.Errorf("the hub is named %s", got)
	}
}

func TestLogger_ReportsStepsWithoutPictograms(t *testing.T) {
	var got []string
	log := logger{report: func(step string) { got = append(got, step) }}
	log.V(0).Infof(" • %s  ...\n", "Preparing nodes 📦 ")
	log.V(0).Infof(" ✓ %s\n", "Preparing nodes 📦 ")
	log.V(0).Info("Have a nice day!")
	log.V(1).Infof(" • %s  ...\n", "Detail")
	log.Warn("cgroup v1 is deprecated")
	logger{}.V(0).Info(" • Nothing listens ...")
	if diff := cmp.Diff([]string{"preparing nodes"}, got); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}
