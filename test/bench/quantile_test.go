package main

import (
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"k8s.io/utils/ptr"
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

func TestHistogramQuantileInterpolatesInItsBucket(t *testing.T) {
	histogram := func(total uint64, buckets ...*dto.Bucket) *dto.Histogram {
		return &dto.Histogram{SampleCount: &total, Bucket: buckets}
	}
	bucket := func(count uint64, bound float64) *dto.Bucket {
		return &dto.Bucket{CumulativeCount: &count, UpperBound: ptr.To(bound)}
	}
	for _, tc := range []struct {
		reason string
		h      *dto.Histogram
		q      float64
		want   float64
	}{
		{"half of the first bucket", histogram(10, bucket(10, 2)), .5, 1},
		{"between two bounds", histogram(10, bucket(4, 1), bucket(8, 3)), .5, 1.5},
		{"an empty bucket in between", histogram(4, bucket(2, 1), bucket(2, 2), bucket(4, 4)), .75, 3},
		{"beyond the last bound", histogram(10, bucket(1, 1)), .99, 1},
	} {
		if got := histogramQuantile(tc.h, tc.q); got != tc.want {
			t.Errorf("%s: q=%v is %v, want %v", tc.reason, tc.q, got, tc.want)
		}
	}
}
