// SPDX-License-Identifier: Apache-2.0

package bandwidth

import (
	"math"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/timing"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/internal/stats"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Operations are kept as one sum of bounded size for each kind.

// Key identifies a row: what all its operations have in common.
type Key struct {
	Comm     otf2.CommRef
	Function string
	Datatype otf2.StringRef
	Size     uint64
	Root     int32 // −1: none
	Grouped  bool
	Equal    int32 // operations in a launch of equal ones, see facts.Operation; 0: not in such a launch
	Source   facts.Source
	Device   bool
	Graph    bool
	InPlace  facts.InPlace
	Algo     otf2.StringRef
	Proto    otf2.StringRef
	Variant  otf2.StringRef
}

// sum is what is kept of the operations of a key.
type sum struct {
	collective *regions.Collective
	speed      timing.Speed
	rank0      stats.Distribution[float64] // time on the communicator's first rank
	least      stats.Distribution[float64] // least and greatest time on any rank
	most       stats.Distribution[float64]
	called     stats.Distribution[float64] // means over the members of an operation's call times
	min, max   uint32                      // channels
	calls      counts                      // by rank
}

// keptOfRanks limits the times of single ranks that are kept individually, for each operation.
const keptOfRanks = 1024

func newSum(c *regions.Collective) *sum {
	kept := stats.Distribution[float64]{Keep: keptOfRanks}
	return &sum{collective: c, speed: timing.NewSpeed(), rank0: kept, least: kept, most: kept, called: kept,
		min: math.MaxUint32}
}

// merge adds o. With leftOut, o's operations are counted but add no times.
func (s *sum) merge(o *sum, leftOut bool) {
	if leftOut {
		s.speed.MergeStartUp(&o.speed)
	} else {
		s.speed.Merge(&o.speed)
		s.rank0.Merge(&o.rank0)
		s.least.Merge(&o.least)
		s.most.Merge(&o.most)
		s.called.Merge(&o.called)
	}
	s.min, s.max = min(s.min, o.min), max(s.max, o.max)
	s.calls.merge(&o.calls)
}

// Rows groups operations into rows. Unstated must be set before the first operation.
type Rows struct {
	Unstated bool // the archive does not state sources of times, so all times count as one kind
	First    bool // the table includes start-up operations in the times

	sums map[sumKey]*sum
	op   instance
}

// sumKey separates start-up operations, so that a table can include them or not.
type sumKey struct {
	Key
	startUp bool
}

// NewRows returns an empty table.
func NewRows() *Rows { return &Rows{sums: make(map[sumKey]*sum)} }

// instance is the operation that is being added.
type instance struct {
	key         Key
	timing      timing.Whole
	collective  *regions.Collective
	members     []int // their ranks
	algoOf      int   // rank that algorithm and protocol are taken from
	min, max    uint32
	rank0       float64
	least, most float64
	calls       int     // members with a known call
	called      float64 // total time of these calls, ns
}

// Member adds one member's part of an operation. Call End after the last one.
func (r *Rows) Member(o *facts.Operation, rank int) {
	x := &r.op
	if len(x.members) == 0 {
		root := int32(-1)
		if o.Collective != nil && o.Collective.Rooted() {
			root = int32(o.Root)
		}
		*x = instance{
			key: Key{Comm: o.Comm, Function: o.Function, Datatype: o.Datatype, Root: root, InPlace: o.InPlace,
				Algo: o.Algo, Proto: o.Proto, Variant: o.Variant},
			members: x.members, collective: o.Collective, algoOf: rank, min: math.MaxUint32, rank0: -1,
			least: math.Inf(1),
		}
	}
	x.members = append(x.members, rank)
	x.timing.Add(o)
	k, time := &x.key, o.TimeOf()
	k.Size, k.Device, k.Graph = max(k.Size, o.Size), k.Device || o.Device, k.Graph || o.Graph
	if rank < x.algoOf { // members normally agree; if not, the lowest rank decides
		x.algoOf, k.Algo, k.Proto, k.Variant = rank, o.Algo, o.Proto, o.Variant
	}
	x.place(o, rank)
	x.min, x.max = min(x.min, o.Channels), max(x.max, o.Channels)
	x.least, x.most = min(x.least, time), max(x.most, time)
	if rank == 0 {
		x.rank0 = time
	}
}

// call adds the time, in ns, of the call for the member added last.
func (r *Rows) call(took uint64) {
	r.op.calls++
	r.op.called += float64(took)
}

// place reports whether the operation is in place: at its root if it has one, otherwise on all members.
func (x *instance) place(o *facts.Operation, rank int) {
	k := &x.key
	switch {
	case k.Root >= 0:
		if int(k.Root) == rank {
			k.InPlace = o.InPlace
		}
	case o.InPlace == facts.OutOfPlace || k.InPlace != facts.OutOfPlace && o.InPlace == facts.InPlaceUnknown:
		k.InPlace = o.InPlace
	}
}

// End adds the operation with the members added since the last call.
func (r *Rows) End() {
	x := &r.op
	x.timing.Close(r.Unstated)
	k := &x.key
	k.Source, k.Grouped, k.Equal = x.timing.Source, x.timing.Grouped, int32(x.timing.Equal)
	of := sumKey{*k, x.timing.StartUp}
	s := keyed.EntryMade(r.sums, of, func() *sum { return newSum(x.collective) })
	timed := s.speed.Times.Count
	s.speed.Add(&x.timing, true)
	if x.calls == len(x.members) && s.speed.Times.Count > timed {
		s.called.Add(x.called / float64(x.calls) / float64(max(k.Equal, 1)))
	}
	if len(x.members) > 1 && s.speed.Times.Count > timed {
		s.least.Add(x.least)
		s.most.Add(x.most)
		if x.rank0 >= 0 {
			s.rank0.Add(x.rank0)
		}
	}
	for _, rank := range x.members {
		s.calls.add(rank)
	}
	s.min, s.max = min(s.min, x.min), max(s.max, x.max)
	x.members = x.members[:0]
}

// Functions returns the functions used on each communicator.
func (r *Rows) Functions() map[otf2.CommRef]map[string]bool {
	used := make(map[otf2.CommRef]map[string]bool)
	for key := range r.sums {
		keyed.Map(used, key.Comm)[key.Function] = true
	}
	return used
}

// Totals adds up all rows: calls counts the parts of all ranks; operations and bytes count messages at their sender.
func (r *Rows) Totals() (calls, operations, bytes uint64) {
	for key, s := range r.sums {
		calls += s.calls.sum()
		if key.Function == "Recv" {
			continue
		}
		operations += s.speed.Count
		bytes += key.Size * s.speed.Count
	}
	return calls, operations, bytes
}

// bySize returns the sums by key, with start-up and other operations together.
func (r *Rows) bySize() map[Key]*sum {
	sums := make(map[Key]*sum)
	for key, s := range r.sums {
		all := keyed.EntryMade(sums, key.Key, func() *sum { return newSum(s.collective) })
		all.merge(s, key.startUp && !r.First)
	}
	return sums
}

// classes adds up rows of one size class.
func (r *Rows) classes(classOf func(uint64) *analysis.SizeClass) map[classKey]*classSum {
	sums := make(map[classKey]*classSum)
	for key, s := range r.bySize() {
		k := classKey{Key: key}
		if classOf != nil {
			k.class, k.Size = classOf(key.Size), 0
		}
		c := keyed.EntryMade(sums, k, func() *classSum {
			return &classSum{sum: newSum(s.collective), smallest: key.Size, largest: key.Size}
		})
		c.merge(s, false)
		size := float64(key.Size)
		c.bytes += size * float64(s.speed.Count)
		c.late.Add(s.speed.Times.Count, size, s.speed.Median())
		c.nobodyLate.Add(s.speed.Transfers.Count, size, s.speed.NobodyLate())
		c.smallest, c.largest = min(c.smallest, key.Size), max(c.largest, key.Size)
	}
	return sums
}

type classKey struct {
	Key
	class *analysis.SizeClass
}

// classSum is the sum for one size, or for a class of sizes.
type classSum struct {
	*sum
	bytes             float64 // sum over all operations
	late, nobodyLate  timing.Moved
	smallest, largest uint64
}

// names returns the text of a reference as a list; it is empty if there is none.
func names(defs *otf2.Definitions, ref otf2.StringRef) []string {
	if d := defs.StringDef(ref); d != nil && d.Text != "" {
		return []string{d.Text}
	}
	return []string{}
}
