package main

import (
	"io"
	"slices"
	"testing"
)

func TestParseOptions_RefusesBadValues(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"an unknown stage", []string{"--only", "drift,burst"},
			`--only: "burst": must be one of: create, bare, createAll, drift, idle, memory, restart, hung, heap, growth`},
		{"sizes that descend", []string{"--sizes", "200,50"}, `--sizes: "200,50": must be ascending positive numbers, such as 50,200,800`},
		{"a size that is no number", []string{"--sizes", "50,many"}, `--sizes: "50,many": must be ascending positive numbers, such as 50,200,800`},
		{"no trials", []string{"--trials", "0"}, "--caches, --trials, --heap-caches, --idle: must be greater than zero"},
		{"a binary for a lab that runs", []string{"--lab", "x", "--manager", "hub"},
			"--manager: cannot be combined with --lab; start the lab with RECONCILE_LAB_HUB"},
	} {
		if _, err := parseOptions(c.args, io.Discard); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	o, err := parseOptions([]string{"--only", "growth", "--sizes", "5, 10"}, io.Discard)
	if err != nil || !slices.Equal(o.sizes, []int{5, 10}) || !slices.Equal(o.only, []string{"growth"}) {
		t.Errorf("%+v (%v)", o, err)
	}
}

func TestSelectStages_AddsTheCachesThatAStageNeeds(t *testing.T) {
	all := []stage{{name: "create"}, {name: createAllStage}, {name: "drift", needsCaches: true}, {name: "growth"}}
	for _, c := range []struct {
		name       string
		only, want []string
	}{
		{"all stages without a selection", nil, []string{"create", createAllStage, "drift", "growth"}},
		{"a stage with caches of its own", []string{"growth"}, []string{"growth"}},
		{"a stage that needs the caches", []string{"drift"}, []string{createAllStage, "drift"}},
		{"stages in the order of the run", []string{"growth", "create"}, []string{"create", "growth"}},
	} {
		var got []string
		for _, s := range selectStages(all, c.only) {
			got = append(got, s.name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
