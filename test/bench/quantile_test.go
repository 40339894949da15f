package main

import (
	"testing"
	"time"
)

func TestQuantile_ReturnsTheNearestRank(t *testing.T) {
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
		{"no durations", nil, .5, 0},
		{"one duration is every quantile", []time.Duration{7}, .01, 7},
		{"the median of an even number is the lower of the middle two", []time.Duration{4, 1, 3, 2}, .5, 2},
		{"the median of a hundred in any order", hundred, .5, 50},
		{"the 99th of a hundred in any order", hundred, .99, 99},
		{"the maximum", hundred, 1, 100},
		{"the minimum", hundred, 0, 1},
	} {
		if got := quantile(tc.all, tc.q); got != tc.want {
			t.Errorf("%s: q=%v is %d, want %d", tc.reason, tc.q, got, tc.want)
		}
	}
}
