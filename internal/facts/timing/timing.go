// SPDX-License-Identifier: Apache-2.0

// Package timing makes one time of the times of an operation's members: how long did an operation take, and what is its
// bandwidth?
package timing

import (
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/stats"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// The one definition of the time and speed of operations for all products: from the members' intervals to the time of
// the operation, from many operations to their median, and from a time to bandwidths as nccl-tests defines them
// (doc/PERFORMANCE.md there).

// Whole is the time of one operation, combined from its members. The zero value has no members.
type Whole struct {
	// Time is the mean of the members' intervals, ns; for equal operations of one launch each one's share of the
	// launch.
	Time float64
	// Transfer is the time from the last arrival to the last end, ns: the operation's time without late members. It is
	// a share as Time is.
	Transfer      float64
	TransferKnown bool
	Source        facts.Source // of the times, the weakest of the members'
	Mixed         bool         // members' sources differ: their times are of different things
	StartUp       bool         // it is the first launch of the communicator for a member, see Operation.StartUp
	Grouped       bool         // launched together with others
	Equal         int          // number of operations that share the launch's time; 0: they differ, Time is that of all

	members   int
	sum       float64
	lastBegin otf2.Timestamp
	lastEnd   otf2.Timestamp
}

// Add takes what a member says. After the last one Close works out the times.
func (t *Whole) Add(o *facts.Operation) {
	if t.members++; t.members == 1 {
		t.Source, t.Equal, t.lastBegin = o.Source, o.Equal, o.Begin
	}
	t.sum += float64(o.Duration())
	t.Mixed = t.Mixed || o.Source != t.Source
	t.Source = min(t.Source, o.Source)
	t.StartUp = t.StartUp || o.StartUp
	t.Grouped = t.Grouped || o.Grouped
	if o.Equal != t.Equal {
		t.Equal = 0
	}
	t.lastBegin, t.lastEnd = max(t.lastBegin, o.Begin), max(t.lastEnd, o.End)
}

// Close works out the times. unstated: the archive does not state sources, so that all times are of one kind.
func (t *Whole) Close(unstated bool) {
	part := float64(max(t.Equal, 1))
	t.Time = t.sum / float64(max(t.members, 1)) / part
	if t.TransferKnown = t.members > 1 && !t.Mixed && (unstated || t.Source.HasPlace()); t.TransferKnown {
		t.Transfer = float64(t.lastEnd-min(t.lastBegin, t.lastEnd)) / part
	}
}

// HasBandwidth reports whether the time is how long this operation ran, and no other.
func (t *Whole) HasBandwidth() bool { return HasBandwidth(t.Source, t.Grouped, t.Equal) }

// HasBandwidth reports whether a time is how long an operation ran: that of its launch alone, or its part of one with
// equal ones.
func HasBandwidth(s facts.Source, grouped bool, equal int) bool {
	return s.HasLength() && (!grouped || equal > 0)
}

// Bandwidth is bytes in a time, GB/s (10⁹ bytes); 0 if the time is none.
func Bandwidth(bytes, ns float64) float64 {
	if ns <= 0 {
		return 0
	}
	return bytes / ns // bytes per ns are GB/s
}

// Speed sums up operations of one kind and size. Their time is the median; what is not to be compared is counted and in
// no figure but the total.
type Speed struct {
	Count   uint64 // of all operations
	StartUp uint64 // of them, in the first launch of a communicator
	Mixed   uint64 // of the others, with members' times of different sources
	// Times are of all others, Transfers of those of which the last arrival is known; see Timing. LeftOut are the times
	// of start-up and of mixed sources.
	Times, Transfers, LeftOut stats.Distribution[float64]
}

// keptTimes is how many times of a row are kept one by one, for exact percentiles.
const keptTimes = 4096

// NewSpeed is one of no operations.
func NewSpeed() Speed {
	kept := stats.Distribution[float64]{Keep: keptTimes}
	return Speed{Times: kept, Transfers: kept, LeftOut: kept}
}

// Add takes an operation. first: those of start-up count as others do.
func (s *Speed) Add(t *Whole, first bool) {
	s.Count++
	startUp := t.StartUp && !first
	if startUp || t.Mixed {
		s.LeftOut.Add(t.Time)
		if startUp {
			s.StartUp++
		} else {
			s.Mixed++
		}
		return
	}
	s.Times.Add(t.Time)
	if t.TransferKnown {
		s.Transfers.Add(t.Transfer)
	}
}

// Merge adds all of o.
func (s *Speed) Merge(o *Speed) {
	s.Count += o.Count
	s.StartUp += o.StartUp
	s.Mixed += o.Mixed
	s.LeftOut.Merge(&o.LeftOut)
	s.Times.Merge(&o.Times)
	s.Transfers.Merge(&o.Transfers)
}

// MergeStartUp adds what o has as operations of start-up, o being one that was given these as others.
func (s *Speed) MergeStartUp(o *Speed) {
	s.Count += o.Count
	s.StartUp += o.Count
	s.LeftOut.Merge(&o.LeftOut)
	s.LeftOut.Merge(&o.Times)
}

// Total is the time of all operations, ns.
func (s *Speed) Total() float64 { return s.Times.Total() + s.LeftOut.Total() }

// Median is the time of the operations, ns; 0 if there are none.
func (s *Speed) Median() float64 { return s.Times.Percentile(50) }

// NobodyLate is the median of the transfer times, ns; 0 if none is known.
func (s *Speed) NobodyLate() float64 { return s.Transfers.Percentile(50) }

// Moved adds up bytes and times of several kinds or sizes, each operation taking the median of its own: the bandwidth
// of all together.
type Moved struct{ Bytes, Time float64 }

// Add takes n operations of a size (times nccl-tests' factor, for bus bandwidth) that take a time each.
func (m *Moved) Add(n uint64, bytes, ns float64) {
	if ns > 0 {
		m.Bytes += float64(n) * bytes
		m.Time += float64(n) * ns
	}
}

// Plus is both together.
func (m Moved) Plus(o Moved) Moved { return Moved{m.Bytes + o.Bytes, m.Time + o.Time} }

// Bandwidth is that of all, GB/s; 0 if it is not known.
func (m Moved) Bandwidth() float64 { return Bandwidth(m.Bytes, m.Time) }
