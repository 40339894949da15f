package lab

import (
	"strings"
	"testing"
)

func TestParseAvailable_ReadsMemAvailable(t *testing.T) {
	if got, known := parseAvailable("MemTotal:  100 kB\nMemAvailable:    2048 kB\n"); !known || got != 2<<20 {
		t.Errorf("got %d, %v", got, known)
	}
	if _, known := parseAvailable("MemTotal: 100 kB\n"); known {
		t.Error("a meminfo without MemAvailable was accepted")
	}
}

func TestEnough_NamesTheAmountsAndTheRemedy(t *testing.T) {
	if err := enough("memory", "close programs", 600<<20, 1800<<20, 3); err != nil {
		t.Errorf("an exact fit was refused: %v", err)
	}
	err := enough("memory", "close programs", 600<<20, 1799<<20, 3)
	for _, part := range []string{"memory", "1800 MB", "1799 MB", "close programs"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v must contain %q", err, part)
		}
	}
}
