package apply

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/reconcile-lab/reconcile-lab/spoke/drift"
	"github.com/reconcile-lab/reconcile-lab/spoke/render"
)

// Encoded holds desired children between two reconciles, with each intent as JSON. A
// decoded intent needs six times as much memory.
type Encoded []encodedChild

type encodedChild struct {
	intent []byte
	hash   string
	fields *drift.Fields
}

// Encode returns the desired children in their encoded form.
func Encode(desired []Desired) (Encoded, error) {
	encoded := make(Encoded, 0, len(desired))
	for i := range desired {
		d := &desired[i]
		intent, err := json.Marshal(d.Intent.Object)
		if err != nil {
			return nil, fmt.Errorf("encode the intent of %s: %w", d.Key(), err)
		}
		encoded = append(encoded, encodedChild{intent: intent, hash: d.Hash, fields: d.Fields})
	}
	return encoded, nil
}

// Decode returns the desired children. The caller may change their intents, but not their
// fields.
func (e Encoded) Decode(t drift.Typer) ([]Desired, error) {
	desired := make([]Desired, 0, len(e))
	for i := range e {
		intent := &unstructured.Unstructured{}
		if err := json.Unmarshal(e[i].intent, &intent.Object); err != nil {
			return nil, fmt.Errorf("decode an intent: %w", err)
		}
		desired = append(desired, Desired{Child: render.Child{Intent: intent, Hash: e[i].hash}, Fields: e[i].fields, typer: t})
	}
	return desired, nil
}
