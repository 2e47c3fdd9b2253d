// SPDX-License-Identifier: Apache-2.0

package bandwidth

import (
	"cmp"
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/timing"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Row sums up the operations of one function, datatype and size on one communicator that also have the same root,
// algorithm, protocol, buffers and kind of launch.
//
// A collective is one operation for all members; its time is the mean of its members' intervals, as nccl-tests
// averages over ranks. Send and Recv are operations of their own, one per call. An operation that some member with
// data has not ended is only counted.
type Row struct {
	Communicator string       `json:"communicator"`
	Comm         otf2.CommRef `json:"comm"`
	Role         string       `json:"role"` // likely purpose of the communicator
	Ranks        int          `json:"ranks"`
	Operation    string       `json:"operation"`
	Root         *int         `json:"root"` // nil: none
	Datatype     string       `json:"datatype"`
	Size         uint64       `json:"size"` // bytes, as nccl-tests counts them; the mean of a class
	// Class is the size class that the row sums up, and MinSize and MaxSize are the least and greatest sizes in it;
	// nil: all operations of the row have one size.
	Class    *analysis.SizeClass `json:"size_class,omitempty"`
	MinSize  *uint64             `json:"min_size,omitempty"`
	MaxSize  *uint64             `json:"max_size,omitempty"`
	Elements *uint64             `json:"elements"` // as given in the call; nil: unknown, or a class
	// Grouped: launched together with others by one kernel plan. NCCL takes timestamps only for a whole plan, so Time
	// is the plan's and there is no bandwidth. If all operations of the plan are equal (Equal), Time is the plan's
	// divided by their number.
	Grouped bool `json:"grouped"`
	Equal   int  `json:"launched_together"` // operations in such a launch; 0: none
	// Device: a buffer is known to be in a GPU's memory.
	Device bool `json:"device"`
	// InPlace: send and receive buffer are the same, as NCCL defines it; nil: unknown or undefined.
	InPlace  *bool `json:"in_place"`
	Replayed bool  `json:"replayed"` // from a CUDA graph
	// TimingSource is "gpu", "network", "enqueue" (not the execution), "duration" (begin and end are unknown), or "".
	// It is the weakest source of the members.
	TimingSource string   `json:"timing_source"`
	Algorithms   []string `json:"algorithms"`
	Protocols    []string `json:"protocols"`
	Variants     []string `json:"variants"`     // symmetric kernels, or how copy engines synchronize
	MinChannels  uint32   `json:"min_channels"` // 0: unknown
	MaxChannels  uint32   `json:"max_channels"`

	Calls           uint64 `json:"calls"` // of all ranks
	MinCallsPerRank uint64 `json:"min_calls_per_rank"`
	MaxCallsPerRank uint64 `json:"max_calls_per_rank"`
	Count           uint64 `json:"operations"` // that every member has ended
	// StartUp counts operations in the first launch of a communicator: like Mixed ones, they only count in the total
	// time.
	StartUp uint64 `json:"start_up"`
	Mixed   uint64 `json:"mixed_sources"` // members' times have different sources
	Timed   uint64 `json:"timed"`         // all others
	// Time is the time of the operations. Transfer is from the last arrival to the end: what an operation takes if
	// nobody is late. Time's total includes all operations.
	Time          analysis.Times  `json:"time"`
	Transfer      *analysis.Times `json:"transfer"`       // nil: unknown
	TransferTimed uint64          `json:"transfer_timed"` // operations in Transfer
	Members       *MemberTimes    `json:"member_time"`    // nil: unknown, or messages
	// Approximate: percentiles and values derived from them are accurate to 2 %. With few operations they are exact.
	Approximate bool `json:"approximate"`
	// CallTime is how long the calls took on the application's threads, in ns: the median over operations of the mean
	// over members; 0: unknown.
	CallTime float64 `json:"-"`
	// AlgBW is in GB/s, size / median time; 0: unknown. For a class it is total bytes / total time, each operation
	// counting with the median of its size.
	AlgBW float64 `json:"algbw"`
	BusBW float64 `json:"busbw"` // GB/s, algbw × nccl-tests' factor; 0: unknown
	// The bandwidths with Transfer instead of Time.
	AlgBWNobodyLate float64 `json:"algbw_nobody_late"`
	BusBWNobodyLate float64 `json:"busbw_nobody_late"`
}

// MemberTimes are an operation's times on single members, medians over the operations: what nccl-tests shows with -a
// 0, 2 and 3.
type MemberTimes struct {
	Rank0 *float64 `json:"rank_0_ns"` // nil: it has no data
	Min   float64  `json:"min_ns"`    // on the fastest member
	Max   float64  `json:"max_ns"`
}

// Names resolves what events only refer to.
type Names struct {
	Defs  *otf2.Definitions
	Comms map[otf2.CommRef]*membership.Communicator
	Roles map[otf2.CommRef]string
}

// Table returns the rows, ordered by communicator, operation, datatype, size and the rest of their keys. classOf
// returns the class that a size is summed up in; with nil, each size has rows of its own.
func (r *Rows) Table(n *Names, classOf func(uint64) *analysis.SizeClass) []Row {
	sums := r.classes(classOf)
	rows := make([]Row, 0, len(sums))
	for key, s := range sums {
		rows = append(rows, s.row(&key, n))
	}
	slices.SortFunc(rows, func(a, b Row) int { return a.compare(&b) })
	return rows
}

func (r *Row) compare(b *Row) int {
	return cmp.Or(cmp.Compare(r.Comm, b.Comm), cmp.Compare(r.Operation, b.Operation),
		cmp.Compare(r.Datatype, b.Datatype),
		r.Class.Compare(b.Class), cmp.Compare(r.Size, b.Size), compareOptional(r.Root, b.Root),
		flags(r.Grouped, b.Grouped),
		cmp.Compare(r.Equal, b.Equal), cmp.Compare(r.TimingSource, b.TimingSource), flags(r.Device, b.Device),
		flags(r.Replayed, b.Replayed),
		flags(r.InPlace != nil, b.InPlace != nil),
		flags(r.InPlace != nil && *r.InPlace, b.InPlace != nil && *b.InPlace),
		slices.Compare(r.Algorithms, b.Algorithms), slices.Compare(r.Protocols, b.Protocols),
		slices.Compare(r.Variants, b.Variants))
}

func compareOptional(a, b *int) int {
	value := func(p *int) int {
		if p == nil {
			return -1
		}
		return *p
	}
	return cmp.Compare(value(a), value(b))
}

func flags(a, b bool) int {
	number := map[bool]int{true: 1}
	return cmp.Compare(number[a], number[b])
}

// row returns the row of a sum.
func (s *classSum) row(key *classKey, n *Names) Row {
	comm := n.Comms[key.Comm]
	out := Row{
		Communicator: comm.Name, Comm: key.Comm, Role: n.Roles[key.Comm], Ranks: comm.Size(), Operation: key.Function,
		Datatype: n.Defs.String(key.Datatype), Size: key.Size, Class: key.class, Grouped: key.Grouped,
		Equal: int(key.Equal), Device: key.Device,
		Replayed: key.Graph, TimingSource: key.Source.String(),
		Algorithms: names(n.Defs, key.Algo), Protocols: names(n.Defs, key.Proto), Variants: names(n.Defs, key.Variant),
		MinChannels: s.min, MaxChannels: s.max,
		Count: s.speed.Count, StartUp: s.speed.StartUp, Mixed: s.speed.Mixed, Timed: s.speed.Times.Count,
		MinCallsPerRank: math.MaxUint64,
	}
	if key.Root >= 0 {
		root := int(key.Root)
		out.Root = &root
	}
	if key.InPlace != facts.InPlaceUnknown {
		same := key.InPlace == facts.InPlaceOnly
		out.InPlace = &same
	}
	if key.class != nil {
		out.Size = uint64(math.Round(s.bytes / float64(max(s.speed.Count, 1))))
		out.MinSize, out.MaxSize = &s.smallest, &s.largest
	} else {
		out.Elements = s.elements(key, n, comm.Size())
	}
	s.times(&out)
	s.countCalls(&out, comm.Size())
	s.bandwidths(&out, &key.Key, comm.Size())
	return out
}

func (s *classSum) elements(key *classKey, n *Names, ranks int) *uint64 {
	bytes, share := facts.ElementSize(n.Defs, key.Datatype), key.Size
	if bytes == 0 {
		return nil
	}
	if s.collective != nil {
		share = s.collective.Share(key.Size, uint64(ranks))
	}
	share /= bytes
	return &share
}

func (s *classSum) times(out *Row) {
	out.Time, out.Approximate = analysis.TimesOf(&s.speed.Times)
	out.Time.Total = s.speed.Total()
	if out.TransferTimed = s.speed.Transfers.Count; out.TransferTimed > 0 {
		t, _ := analysis.TimesOf(&s.speed.Transfers)
		out.Transfer = &t
	}
	out.CallTime = s.called.Percentile(50)
	if s.least.Count > 0 {
		out.Members = &MemberTimes{Min: s.least.Percentile(50), Max: s.most.Percentile(50)}
		if s.rank0.Count > 0 {
			at := s.rank0.Percentile(50)
			out.Members.Rank0 = &at
		}
	}
}

func (s *classSum) countCalls(out *Row, ranks int) {
	called := 0
	s.calls.each(func(n uint64) {
		called++
		out.Calls += n
		out.MinCallsPerRank, out.MaxCallsPerRank = min(out.MinCallsPerRank, n), max(out.MaxCallsPerRank, n)
	})
	if called < ranks {
		out.MinCallsPerRank = 0
	}
}

func (s *classSum) bandwidths(out *Row, key *Key, ranks int) {
	if !timing.HasBandwidth(key.Source, key.Grouped, int(key.Equal)) {
		return
	}
	factor := (&facts.Operation{Collective: s.collective}).BusFactor(ranks)
	out.AlgBW, out.AlgBWNobodyLate = s.late.Bandwidth(), s.nobodyLate.Bandwidth()
	out.BusBW, out.BusBWNobodyLate = out.AlgBW*factor, out.AlgBWNobodyLate*factor
}
