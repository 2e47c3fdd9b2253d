// SPDX-License-Identifier: Apache-2.0

package analysis

import "github.com/nccl-otf2/nccl-otf2/otf2"

// CallKey identifies a call: ids of events are unique within a process.
type CallKey struct {
	Process otf2.LocationGroupRef
	Event   uint64
}

// CallTable maps calls to values, such as the phase in which they were made, until their operation ends. It forgets
// the oldest calls whose operation never comes.
type CallTable[T any] struct{ young, old map[CallKey]T }

const maxYoungCalls = 1 << 18

// Put sets the value of a call.
func (t *CallTable[T]) Put(k CallKey, v T) {
	if t.young == nil || len(t.young) >= maxYoungCalls {
		t.young, t.old = make(map[CallKey]T), t.young
	}
	t.young[k] = v
}

// Peek returns the value of a call, or the zero value if there is none.
func (t *CallTable[T]) Peek(k CallKey) T {
	if v, known := t.young[k]; known {
		return v
	}
	return t.old[k]
}

// Take returns the same as Peek, and forgets the call.
func (t *CallTable[T]) Take(k CallKey) T {
	v := t.Peek(k)
	delete(t.young, k)
	delete(t.old, k)
	return v
}
