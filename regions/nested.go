// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// span is one region of a thread that is known whole.
type span struct {
	start, stop uint64
	region      otf2.RegionRef
	attributes  func(a *otf2.AttributeList) // nil: none
}

// writeNested writes regions of one thread in order of their starts, each inside those that it starts in; of
// equal starts, the one given first is outside. What reaches beyond the region around it ends with that one:
// the calls of one thread nest, so only clocks can make it seem otherwise.
func (b *board) writeNested(loc *location, spans []span) {
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	var open []span
	leave := func() {
		s := open[len(open)-1]
		open = open[:len(open)-1]
		b.fail(loc.w.Leave(loc.at(s.stop), nil, s.region))
	}
	for _, s := range spans {
		for len(open) > 0 && open[len(open)-1].stop <= s.start {
			leave()
		}
		if len(open) > 0 {
			s.stop = min(s.stop, open[len(open)-1].stop)
		}
		b.attributes.Reset()
		if s.attributes != nil {
			s.attributes(b.attributes)
		}
		b.fail(loc.w.Enter(loc.at(s.start), b.attributes, s.region))
		open = append(open, s)
	}
	for len(open) > 0 {
		leave()
	}
}
