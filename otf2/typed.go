// SPDX-License-Identifier: Apache-2.0

package otf2

import "fmt"

// fields returns Args for the typed record of a kind with at least n fields.
func (e *Event) fields(kind EventKind, n int) []uint64 {
	if e.Kind != kind || len(e.Args) < n {
		panic(e.mistaken(kind))
	}
	return e.Args
}

func (e *Event) mistaken(kind EventKind) string {
	return fmt.Sprintf("otf2: event of kind %v with %d fields taken as %v", e.Kind, len(e.Args), kind)
}
