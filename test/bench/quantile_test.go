package main

import (
	"testing"
	"time"
)

func TestQuantileIsTheLeastValueThatEnoughDoNotExceed(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[99-i] = time.Duration(i + 1)
	}
	for _, tc := range []struct {
		reason string
		all    []time.Duration
		q      float64
		want   time.Duration
	}{
		{"none at all", nil, .5, 0},
		{"one is every quantile", []time.Duration{7}, .01, 7},
		{"the median of an even number is the lower middle", []time.Duration{4, 1, 3, 2}, .5, 2},
		{"of a hundred in any order", hundred, .5, 50},
		{"of a hundred in any order", hundred, .99, 99},
		{"all", hundred, 1, 100},
		{"the least", hundred, 0, 1},
	} {
		if got := quantile(tc.all, tc.q); got != tc.want {
			t.Errorf("%s: q=%v is %d, want %d", tc.reason, tc.q, got, tc.want)
		}
	}
}
