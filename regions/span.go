// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// How regions of one thread nest.

// span is a complete region of a thread.
type span struct {
	start, stop uint64
	region      otf2.RegionRef
	by          describer // nil: it has no attributes
	unfinished  bool      // its describer adds it as an attribute
}

// describer adds the attributes of a region; events implement it, so that a span needs no memory of its own.
type describer interface {
	addAttributes(b *board, a *otf2.AttributeList, unfinished bool)
}

// describerFunc is a function that implements describer.
type describerFunc func(a *otf2.AttributeList)

func (d describerFunc) addAttributes(_ *board, a *otf2.AttributeList, _ bool) { d(a) }

// writeNested writes regions of one thread in order of their starts, each inside the region in which it starts; of
// equal starts the first one given is outside. A region that exceeds its outer one ends with it: the calls of one
// thread nest, so only clock errors make it appear otherwise.
func (b *board) writeNested(loc *location, spans []span) {
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	open := b.nested[:0]
	leave := func() {
		s := open[len(open)-1]
		open = open[:len(open)-1]
		b.keepError(loc.w.Leave(loc.raiseTime(s.stop), nil, s.region))
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
			s.by.addAttributes(b, b.attributes, s.unfinished)
		}
		b.keepError(loc.w.Enter(loc.raiseTime(s.start), b.attributes, s.region))
		open = append(open, s)
	}
	for len(open) > 0 {
		leave()
	}
	b.nested = clearSpans(open)
}

// mostReused is the largest number of spans whose memory is reused.
const mostReused = 32

// clearSpans clears spans for reuse, so that they keep nothing alive.
func clearSpans(spans []span) []span {
	if cap(spans) > mostReused {
		return nil
	}
	clear(spans[:cap(spans)])
	return spans[:0]
}
