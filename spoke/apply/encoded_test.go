package apply

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
)

func TestEncoded_DecodesEqualChildren(t *testing.T) {
	want := desired(t)
	encoded, err := Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := encoded.Decode(typer)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Fatalf("%d children, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i].Hash != want[i].Hash || !got[i].Fields.Equals(want[i].Fields) || !equality.Semantic.DeepEqual(got[i].Intent, want[i].Intent) {
			t.Errorf("%s: got %v, want %v", want[i].Key(), got[i].Intent, want[i].Intent)
		}
	}
}

// One reconcile may change an intent, such as its retained values. The next one must not
// see the change.
func TestEncoded_DecodesCopies(t *testing.T) {
	encoded, err := Encode(desired(t))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got, err := encoded.Decode(typer)
		if err != nil {
			t.Fatal(err)
		}
		if got[0].Intent.GetName() != "sessions" {
			t.Fatalf("name %q", got[0].Intent.GetName())
		}
		got[0].Intent.SetName("changed")
	}
}

// BenchmarkEncoded_Decode is what each reconcile costs because its record holds JSON.
func BenchmarkEncoded_Decode(b *testing.B) {
	encoded, err := Encode(desired(b))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := encoded.Decode(typer); err != nil {
			b.Fatal(err)
		}
	}
}
