// SPDX-License-Identifier: Apache-2.0

package bandwidth

import (
	"math"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/stats"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// What is kept of operations: one sum for each kind, of bounded size.

// Key is what operations of one row have in common.
type Key struct {
	Comm     otf2.CommRef
	Function string
	Datatype otf2.StringRef
	Size     uint64
	Root     int32 // −1: none
	Grouped  bool
	Equal    int32 // operations of a launch that are all equal, see facts.Operation; 0: not of such a launch
	Source   facts.Source
	Device   bool
	Graph    bool
	InPlace  facts.InPlace
	Algo     otf2.StringRef
	Proto    otf2.StringRef
	Variant  otf2.StringRef
}

// sum is what is known of the operations of a key.
type sum struct {
	collective *regions.Collective
	speed      facts.Speed
	rank0      stats.Distribution[float64] // time on the communicator's first rank
	least      stats.Distribution[float64] // on the rank that had the least, and the most
	most       stats.Distribution[float64]
	called     stats.Distribution[float64] // how long the members' calls took, the mean of each operation
	min, max   uint32                      // channels
	calls      counts                      // by rank
}

// keptOfRanks is how many of an operation's times of single ranks are kept one by one.
const keptOfRanks = 1024

func newSum(c *regions.Collective) *sum {
	kept := stats.Distribution[float64]{Keep: keptOfRanks}
	return &sum{collective: c, speed: facts.NewSpeed(), rank0: kept, least: kept, most: kept, called: kept,
		min: math.MaxUint32}
}

// merge adds o; left out, its operations are counted only.
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

// Rows brings operations together. Unstated is set before the first one.
type Rows struct {
	Unstated bool // the archive does not state sources of times: they are all of one kind
	First    bool // the table counts operations of start-up as others

	sums map[sumKey]*sum
	op   instance
}

// sumKey keeps operations of start-up apart, so that a table can be with or without them.
type sumKey struct {
	Key
	startUp bool
}

// NewRows is a table of no operations.
func NewRows() *Rows { return &Rows{sums: make(map[sumKey]*sum)} }

// instance is the operation that is being added.
type instance struct {
	key         Key
	timing      facts.Timing
	collective  *regions.Collective
	members     []int // their ranks
	algoOf      int   // rank that algorithm and protocol are of
	min, max    uint32
	rank0       float64
	least, most float64
	calls       int     // members whose call is known
	called      float64 // ns that these took together
}

// Member adds what one member of an operation recorded; End is called after the last one.
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
	if rank < x.algoOf { // members agree; where they do not, one of them tells
		x.algoOf, k.Algo, k.Proto, k.Variant = rank, o.Algo, o.Proto, o.Variant
	}
	x.place(o, rank)
	x.min, x.max = min(x.min, o.Channels), max(x.max, o.Channels)
	x.least, x.most = min(x.least, time), max(x.most, time)
	if rank == 0 {
		x.rank0 = time
	}
}

// call adds how long the call took that asked for the member's part that was added last, ns.
func (r *Rows) call(took uint64) {
	r.op.calls++
	r.op.called += float64(took)
}

// place reports whether the operation is in place: where it has a root that is, elsewhere all members are.
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

// End takes the operation of the members that were added last.
func (r *Rows) End() {
	x := &r.op
	x.timing.Close(r.Unstated)
	k := &x.key
	k.Source, k.Grouped, k.Equal = x.timing.Source, x.timing.Grouped, int32(x.timing.Equal)
	of := sumKey{*k, x.timing.StartUp}
	s := r.sums[of]
	if s == nil {
		s = newSum(x.collective)
		r.sums[of] = s
	}
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

// Functions tells which functions communicators have.
func (r *Rows) Functions() map[otf2.CommRef]map[string]bool {
	used := make(map[otf2.CommRef]map[string]bool)
	for key := range r.sums {
		if used[key.Comm] == nil {
			used[key.Comm] = make(map[string]bool)
		}
		used[key.Comm][key.Function] = true
	}
	return used
}

// Totals adds up all rows: parts of all ranks; operations and their sizes, of which messages count at their sender.
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

// bySize adds up those of start-up and the others.
func (r *Rows) bySize() map[Key]*sum {
	sums := make(map[Key]*sum)
	for key, s := range r.sums {
		if sums[key.Key] == nil {
			sums[key.Key] = newSum(s.collective)
		}
		sums[key.Key].merge(s, key.startUp && !r.First)
	}
	return sums
}

// classes adds up rows of one class of sizes.
func (r *Rows) classes(classOf func(uint64) *analysis.SizeClass) map[classKey]*classSum {
	sums := make(map[classKey]*classSum)
	for key, s := range r.bySize() {
		k := classKey{Key: key}
		if classOf != nil {
			k.class, k.Size = classOf(key.Size), 0
		}
		c := sums[k]
		if c == nil {
			c = &classSum{sum: newSum(s.collective), smallest: key.Size, largest: key.Size}
			sums[k] = c
		}
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

// classSum is of one size, or of several.
type classSum struct {
	*sum
	bytes             float64 // of all operations
	late, nobodyLate  facts.Moved
	smallest, largest uint64
}

// names is the text of a reference, if it is defined.
func names(defs *otf2.Definitions, ref otf2.StringRef) []string {
	if d := defs.StringDef(ref); d != nil && d.Text != "" {
		return []string{d.Text}
	}
	return []string{}
}
