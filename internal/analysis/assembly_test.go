// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// The room of a large operation is not reused for small ones: with many pending communicators that would take their
// number times its size.
func TestAssemblyKeepsRoomByMagnitude(t *testing.T) {
	as := NewAssembly(func([]Operation) {}, func([]Operation) {})
	const large, small = 4096, 8
	for range 3 {
		for k := range large {
			as.Add(PartKey{Sequence: "large", Ordinal: 1}, &Operation{Rank: k}, large)
		}
		for c := range otf2.CommRef(100) {
			as.Add(PartKey{Comm: c + 1, Sequence: "small"}, &Operation{}, small)
		}
		as.End()
	}
	room := 0
	for _, free := range as.free {
		for _, p := range free {
			room += cap(p.members)
		}
	}
	most := 2*large + 100*2*small
	testkit.Check(t, room <= most, "room for %d members is kept, %d at most is needed", room, most)
}
