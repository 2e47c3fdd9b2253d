// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"reflect"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// The parts of the model stand in an order: each knows those that its fields name, and none of these knows it. The
// model knows all.
func TestPartsStandInNoCircle(t *testing.T) {
	parts := []any{setup{}, ledger{}, board{}, ranks{}, metrics{}, timing{}, planWriter{}, operations{}, threads{},
		network{}, streams{}}
	names := make(map[reflect.Type]bool)
	for _, p := range parts {
		names[reflect.TypeOf(p)] = true
	}
	reached := make(map[reflect.Type]bool)
	var visit func(part reflect.Type, path []reflect.Type)
	visit = func(part reflect.Type, path []reflect.Type) {
		for _, p := range path {
			testkit.Require(t, p != part, "a circle: %v, %v", path, part)
		}
		reached[part] = true
		for i := range part.NumField() {
			f := part.Field(i).Type
			if f.Kind() != reflect.Pointer {
				continue
			}
			switch f = f.Elem(); {
			case f == reflect.TypeFor[Model]():
				t.Errorf("%v knows the model", part)
			case names[f]:
				visit(f, append(path, part))
			}
		}
	}
	for _, p := range parts {
		visit(reflect.TypeOf(p), nil)
	}
	clear(reached)
	visit(reflect.TypeFor[Model](), nil)
	for part := range names {
		if !reached[part] && part != reflect.TypeFor[streams]() { // which package cuda knows
			t.Errorf("the model does not know %v", part)
		}
	}
}
