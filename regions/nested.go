// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// How regions of one thread nest.

// span is one region of a thread that is known whole.
type span struct {
	start, stop uint64
	region      otf2.RegionRef
	by          describer // nil: it has no attributes
	unfinished  bool      // to be told by its describer
}

// describer says what a region is of: an event, as a rule, so that a span needs no memory of its own.
type describer interface {
	describe(b *board, a *otf2.AttributeList, unfinished bool)
}

// description is a describer that is a function.
type description func(a *otf2.AttributeList)

func (d description) describe(_ *board, a *otf2.AttributeList, _ bool) { d(a) }

// writeNested writes regions of one thread in order of their starts, each inside those that it starts in; of
// equal starts, the one given first is outside. What reaches beyond the region around it ends with that one:
// the calls of one thread nest, so only clocks can make it seem otherwise.
func (b *board) writeNested(loc *location, spans []span) {
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	open := b.nested[:0]
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
		if s.by != nil {
			s.by.describe(b, b.attributes, s.unfinished)
		}
		b.fail(loc.w.Enter(loc.at(s.start), b.attributes, s.region))
		open = append(open, s)
	}
	for len(open) > 0 {
		leave()
	}
	b.nested = reusable(open)
}

// mostReused is how many spans' memory is used again, and with that emptied each time.
const mostReused = 32

// reusable empties spans whose memory is used again, so that they keep nothing alive.
func reusable(spans []span) []span {
	if cap(spans) > mostReused {
		return nil
	}
	clear(spans[:cap(spans)])
	return spans[:0]
}
