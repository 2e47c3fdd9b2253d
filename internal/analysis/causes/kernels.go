// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"cmp"
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// What a GPU computed before an operation began on it: kernels of the application, if the archive has rows of CUDA
// streams.

// Kernel is how long kernels of one name ran, in ns; concurrent kernels each count.
type Kernel struct {
	Region otf2.RegionRef
	Time   uint64
}

// Kernels are the kernels on a rank's GPU between the call of an operation (or the end of the previous one, if later)
// and its begin, the longest first. The first one without a time ends the list.
type Kernels [mostKernels]Kernel

// mostKernels limits the names that are distinguished for one operation.
const mostKernels = 8

// most returns the longest time that kernels of a region can have run.
func (k *Kernels) most(region otf2.RegionRef) uint64 {
	if k == nil {
		return 0
	}
	for i := range k {
		if k[i].Region == region && k[i].Time > 0 {
			return k[i].Time
		}
	}
	return k[mostKernels-1].Time // a kernel that is not listed ran no longer
}

// beyond returns how much longer kernels ran than before another operation.
func (k *Kernels) beyond(o *Kernels) (more Kernels) {
	if k == nil {
		return more
	}
	for i, x := range k {
		other := o.most(x.Region)
		more[i] = Kernel{x.Region, x.Time - min(x.Time, other)}
	}
	more.sort()
	return more
}

func (k *Kernels) sort() {
	slices.SortFunc(k[:], func(a, b Kernel) int {
		return cmp.Or(
			cmp.Compare(b.Time, a.Time), cmp.Compare(a.Region, b.Region))
	})
}

// gpu follows the kernels on one GPU of a process since the last operation of its rank ended.
type gpu struct {
	streams []*stream
	spans   []span // in order of time; the last one is open
	spare   []map[otf2.RegionRef]uint64
}

// stream is a row of kernels.
type stream struct {
	gpu   *gpu
	depth int            // open kernels
	what  otf2.RegionRef // the outermost kernel
	since otf2.Timestamp // its time has been added up to here
}

// span is a time in which no call returned.
type span struct {
	from    otf2.Timestamp
	kernels map[otf2.RegionRef]uint64 // ns
}

// mostSpans limits the spans that are kept. Beyond it the oldest are merged, so an operation called in that time also
// includes earlier kernels.
const mostSpans = 64

func (s *stream) enter(r *facts.Region) {
	if s.depth == 0 {
		s.what, s.since = r.Region, r.Begin
	}
	s.depth++
}

func (s *stream) leave(r *facts.Region) {
	if s.depth == 0 {
		return
	}
	s.addUp(r.End)
	s.depth--
}

// addUp adds what runs up to a moment.
func (s *stream) addUp(now otf2.Timestamp) {
	if s.depth == 0 || now <= s.since {
		return
	}
	if g := s.gpu; len(g.spans) > 0 {
		g.spans[len(g.spans)-1].kernels[s.what] += uint64(now - s.since)
	}
	s.since = now
}

func (g *gpu) addUp(now otf2.Timestamp) {
	for _, s := range g.streams {
		s.addUp(now)
	}
}

// restart forgets everything before the end of an operation of the rank.
func (g *gpu) restart(now otf2.Timestamp) {
	if g == nil {
		return
	}
	g.addUp(now)
	for i := range g.spans {
		g.returnMap(g.spans[i].kernels)
	}
	g.spans = append(g.spans[:0], span{now, g.takeMap()})
}

// cut begins a new span because a call has returned.
func (g *gpu) cut(now otf2.Timestamp) {
	if len(g.spans) == 0 || now <= g.spans[len(g.spans)-1].from {
		return
	}
	g.addUp(now)
	if len(g.spans) == mostSpans {
		old, next := g.spans[0].kernels, g.spans[1].kernels
		for region, ns := range next {
			old[region] += ns
		}
		g.returnMap(next)
		g.spans = slices.Delete(g.spans, 1, 2)
	}
	g.spans = append(g.spans, span{now, g.takeMap()})
}

// ran returns what ran between two moments, the second of which is now; nil if nothing did.
func (g *gpu) ran(from, now otf2.Timestamp) *Kernels {
	if g == nil || from >= now {
		return nil
	}
	g.addUp(now)
	sums := g.takeMap()
	for i := range g.spans {
		if i+1 == len(g.spans) || g.spans[i+1].from > from {
			for region, ns := range g.spans[i].kernels {
				sums[region] += ns
			}
		}
	}
	defer g.returnMap(sums)
	if len(sums) == 0 {
		return nil
	}
	all := make([]Kernel, 0, len(sums))
	for region, ns := range sums {
		all = append(all, Kernel{region, ns})
	}
	slices.SortFunc(all, func(a, b Kernel) int {
		return cmp.Or(
			cmp.Compare(b.Time, a.Time), cmp.Compare(a.Region, b.Region))
	})
	k := new(Kernels)
	copy(k[:], all)
	return k
}

func (g *gpu) takeMap() map[otf2.RegionRef]uint64 {
	n := len(g.spare)
	if n == 0 {
		return make(map[otf2.RegionRef]uint64)
	}
	m := g.spare[n-1]
	g.spare = g.spare[:n-1]
	return m
}

func (g *gpu) returnMap(m map[otf2.RegionRef]uint64) {
	clear(m)
	g.spare = append(g.spare, m)
}

// Busy is a kernel that a rank's GPU was busy with.
type Busy struct {
	Region otf2.RegionRef
	Share  float64 // of the time by which operations began late, at most 1
}

// leastBusy is the share below which a kernel explains nothing.
const leastBusy = 0.05

// BusyWith returns the kernels that ran longer before late operations than before those that they are compared with,
// the longest first. If the latter have no kernels, all kernels before late operations count.
func BusyWith(all []Occurrence) (busy []Busy) {
	late := 0.0
	sums := make(map[otf2.RegionRef]float64)
	for i := range all {
		o := &all[i]
		late += o.Late
		for _, k := range o.late.beyond(o.early) {
			if k.Time > 0 {
				sums[k.Region] += math.Min(float64(k.Time), o.Late)
			}
		}
	}
	for region, ns := range sums {
		if ns >= leastBusy*late {
			busy = append(busy, Busy{region, min(ns/late, 1)})
		}
	}
	slices.SortFunc(busy, func(a, b Busy) int {
		return cmp.Or(
			cmp.Compare(b.Share, a.Share), cmp.Compare(a.Region, b.Region))
	})
	return busy
}
