// SPDX-License-Identifier: Apache-2.0

package bandwidth

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/timing"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// A report's rows in the form of nccl-tests: a table for each operation, with out of place and in place side by side.

// Test is one table as an nccl-tests program prints it, for one operation on one communicator, called or replayed,
// launched alone or with others.
type Test struct {
	Communicator string       `json:"communicator"`
	Comm         otf2.CommRef `json:"comm"`
	Ranks        int          `json:"ranks"`
	Operation    string       `json:"operation"`
	Replayed     bool         `json:"replayed"` // from a CUDA graph
	// Grouped: launched together with others. If these differ there are no times.
	Grouped bool `json:"grouped"`
	// Equal is the number of equal operations in a launch, by which its time is divided; 0: not in such a launch.
	Equal  int  `json:"launched_together"`
	Device bool `json:"device"` // a buffer is known to be in a GPU's memory
	// TimingSource is as in a Row. With "enqueue", only times of calls are given.
	TimingSource string    `json:"timing_source"`
	Rows         []TestRow `json:"rows"`
	// Average has the mean bus bandwidths of all rows, out of place and in place, as in the last line of nccl-tests.
	// All of them are nil if none is known.
	Average Averages `json:"average_busbw"`
}

// Averages has a mean for each figure of a Side, in GB/s.
type Averages struct {
	Avg        *float64 `json:"avg"`
	Rank0      *float64 `json:"rank_0"`
	Min        *float64 `json:"min"`
	Max        *float64 `json:"max"`
	NobodyLate *float64 `json:"nobody_late"`
}

// TestRow has the operations of one size, type, root, algorithm and protocol.
type TestRow struct {
	Size      uint64  `json:"size"` // bytes
	Elements  *uint64 `json:"elements"`
	Datatype  string  `json:"datatype"`
	Reduction *string `json:"reduction"` // "none" for operations without one; nil: unknown, as NCCL does not report it
	Root      *int    `json:"root"`
	Algorithm string  `json:"algorithm"` // "" if unknown
	Protocol  string  `json:"protocol"`
	Variant   string  `json:"variant"`
	// MinChannels and MaxChannels are the least and the greatest number of channels; 0: unknown.
	MinChannels uint32 `json:"min_channels"`
	MaxChannels uint32 `json:"max_channels"`
	// OutOfPlace, InPlace and Unknown separate operations by their buffers. Unknown has messages, which have a single
	// buffer, and operations with unknown addresses.
	OutOfPlace *Side `json:"out_of_place"`
	InPlace    *Side `json:"in_place"`
	Unknown    *Side `json:"buffers_unknown"`
}

// Side has a row's figures for one kind of buffers.
type Side struct {
	Operations  uint64 `json:"operations"`
	Timed       uint64 `json:"timed"` // operations in the figures
	Approximate bool   `json:"approximate"`
	// nccl-tests shows the mean over ranks (-a 1), or the time on rank 0 (-a 0), on the fastest (-a 2) or slowest rank
	// (-a 3). Each figure is the median over operations; nil: unknown.
	Avg   *Figure `json:"avg"`
	Rank0 *Figure `json:"rank_0"`
	Min   *Figure `json:"min"`
	Max   *Figure `json:"max"`
	// NobodyLate is from the last arrival to the end.
	NobodyLate *Figure `json:"nobody_late"`
	// CallTime is how long the calls took on the application's threads, nccl-tests' cputime (-C 1); nil: unknown.
	CallTime *float64 `json:"call_time_ns"`
}

// Figure is a time and its bandwidth. The bandwidth is 0 if it is unknown because the time is that of a launch of
// several.
type Figure struct {
	Time  float64 `json:"time_ns"`
	AlgBW float64 `json:"algbw"` // GB/s
	BusBW float64 `json:"busbw"`
}

// Tests makes the tables of rows that stand for one size each, in the order of the rows.
func Tests(rows []Row) []Test {
	type table struct {
		comm                     otf2.CommRef
		operation, source        string
		replayed, grouped, known bool
		equal                    int
	}
	tests := []Test{}
	index := make(map[table]int)
	for i := range rows {
		r := &rows[i]
		key := table{r.Comm, r.Operation, r.TimingSource, r.Replayed, r.Grouped, r.Device, r.Equal}
		at := keyed.EntryMade(index, key, func() int {
			tests = append(tests, Test{
				Communicator: r.Communicator, Comm: r.Comm, Ranks: r.Ranks, Operation: r.Operation,
				Replayed: r.Replayed,
				Grouped:  r.Grouped, Equal: r.Equal, Device: r.Device, TimingSource: r.TimingSource,
			})
			return len(tests) - 1
		})
		tests[at].add(r)
	}
	for i := range tests {
		t := &tests[i]
		slices.SortStableFunc(t.Rows, TestRow.compare)
		t.average()
	}
	return tests
}

// add puts a row beside the one that differs only in its buffers.
func (t *Test) add(r *Row) {
	x := TestRow{
		Size: r.Size, Elements: r.Elements, Datatype: r.Datatype, Reduction: reductionOf(r.Operation), Root: r.Root,
		Algorithm: strings.Join(r.Algorithms, ","), Protocol: strings.Join(r.Protocols, ","),
		Variant:     strings.Join(r.Variants, ","),
		MinChannels: r.MinChannels, MaxChannels: r.MaxChannels,
	}
	at := slices.IndexFunc(t.Rows, func(y TestRow) bool { return x.compare(y) == 0 })
	if at < 0 {
		at = len(t.Rows)
		t.Rows = append(t.Rows, x)
	}
	row := &t.Rows[at]
	row.MinChannels, row.MaxChannels = min(row.MinChannels, x.MinChannels), max(row.MaxChannels, x.MaxChannels)
	switch {
	case r.InPlace == nil:
		row.Unknown = r.side()
	case *r.InPlace:
		row.InPlace = r.side()
	default:
		row.OutOfPlace = r.side()
	}
}

func (x TestRow) compare(y TestRow) int {
	return cmp.Or(cmp.Compare(x.Datatype, y.Datatype), compareOptional(x.Root, y.Root), cmp.Compare(x.Size, y.Size),
		cmp.Compare(x.Algorithm, y.Algorithm),
		cmp.Compare(x.Protocol, y.Protocol), cmp.Compare(x.Variant, y.Variant))
}

// reductionOf returns "none" for operations that reduce nothing, otherwise nil: NCCL does not report the reduction to
// a profiler, and its kernels' names do not show it, because one kernel serves several reductions.
func reductionOf(operation string) *string {
	if c := regions.CollectiveNamed(operation); c != nil && c.Reduces || c == nil && !facts.IsMessage(operation) {
		return nil
	}
	none := "none"
	return &none
}

// side returns what nccl-tests shows for a row.
func (r *Row) side() *Side {
	s := &Side{Operations: r.Count, Timed: r.Timed, Approximate: r.Approximate}
	if r.Timed == 0 {
		return s
	}
	if r.CallTime > 0 {
		s.CallTime = &r.CallTime
	}
	if !facts.SourceOf(r.TimingSource).HasLength() {
		return s
	}
	s.Avg = r.figure(r.Time.P50)
	if m := r.Members; m != nil {
		s.Min, s.Max = r.figure(m.Min), r.figure(m.Max)
		if m.Rank0 != nil {
			s.Rank0 = r.figure(*m.Rank0)
		}
	}
	if r.Transfer != nil {
		s.NobodyLate = r.figure(r.Transfer.P50)
	}
	return s
}

// figure returns a time of the row's operations, with bandwidths if the row has any.
func (r *Row) figure(ns float64) *Figure {
	f := &Figure{Time: ns}
	if r.AlgBW > 0 {
		f.AlgBW = timing.Bandwidth(float64(r.Size), ns)
		f.BusBW = f.AlgBW * (r.BusBW / r.AlgBW)
	}
	return f
}

// sides returns the sides that exist, in the order of nccl-tests' columns.
func (x *TestRow) sides() []*Side {
	return slices.DeleteFunc([]*Side{x.OutOfPlace, x.InPlace, x.Unknown}, func(s *Side) bool { return s == nil })
}

func (t *Test) average() {
	mean := func(of func(*Side) *Figure) *float64 {
		sum, n := 0.0, 0
		for i := range t.Rows {
			for _, s := range t.Rows[i].sides() {
				if f := of(s); f != nil && f.AlgBW > 0 {
					sum, n = sum+f.BusBW, n+1
				}
			}
		}
		if n == 0 {
			return nil
		}
		sum /= float64(n)
		return &sum
	}
	t.Average = Averages{
		Avg: mean(func(s *Side) *Figure { return s.Avg }), Rank0: mean(func(s *Side) *Figure { return s.Rank0 }),
		Min: mean(func(s *Side) *Figure { return s.Min }), Max: mean(func(s *Side) *Figure { return s.Max }),
		NobodyLate: mean(func(s *Side) *Figure { return s.NobodyLate }),
	}
}
