// SPDX-License-Identifier: Apache-2.0

package cubex

import (
	"fmt"
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/lateness"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/internal/profile"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Estimate describes how wait states were estimated where no events were kept: from samples of collectives that all
// members chose alike. For each call path at each location the mean of the sampled collectives stands for all. Waits in
// messages are not estimated.
type Estimate struct {
	Sampled     uint64 `json:"sampled_collectives"` // whose members' times were compared
	Collectives uint64 `json:"collectives"`         // that these represent
	Hosts       int    `json:"hosts"`               // whose clocks were compared uncorrected
}

// String describes the estimate in one line.
func (e *Estimate) String() string {
	text := fmt.Sprintf("estimated from %d of %d collectives; none in messages", e.Sampled, e.Collectives)
	if e.Hosts > 1 {
		text += fmt.Sprintf("; clocks of %d hosts as they were", e.Hosts)
	}
	return text
}

// sampledRow is a communicator rank with its samples.
type sampledRow struct {
	*profile.Row
	cells map[int32]*profile.Cell
	at    func(uint64) uint64 // from the process's clock to the job's
	// caused is the ns that others waited for this rank, where that is estimated.
	caused float64
}

// collectiveKey identifies a collective on its communicator.
type collectiveKey struct {
	function string
	ordinal  uint64
}

// member is one rank's part in a sampled collective.
type member struct {
	row  *sampledRow
	node int32
}

// collective is a sampled collective: its members, and their arrivals.
type collective struct {
	members []member
	came    []lateness.Arrival
}

// estimateSum is the waiting in the sampled collectives of a call path at a location.
type estimateSum struct {
	n     uint64
	waits profile.WaitsByKind
	of    map[*sampledRow]uint64 // the same, by the rank waited for
}

type estimateKey struct {
	row  *sampledRow
	node int32
}

// estimator fills in the waits of the aggregates' cells.
type estimator struct {
	rows      map[otf2.LocationRef]*sampledRow
	stretches []property.Stretch
	out       Estimate
}

// addRows adds the rows with samples of an aggregate.
func (e *estimator) addRows(a *profile.Aggregate, location func(uint64) (otf2.LocationRef, bool),
	at func(uint64) uint64) {
	for i := range a.Rows {
		r := &a.Rows[i]
		ref, ok := location(r.Location)
		if !ok || r.FirstSample == nil {
			continue
		}
		s := &sampledRow{Row: r, cells: make(map[int32]*profile.Cell, len(r.Cells)), at: at}
		for j := range r.Cells {
			s.cells[r.Cells[j].Node] = &r.Cells[j].Cell
		}
		e.rows[ref] = s
	}
}

// estimate estimates the waits of each communicator. A communicator of which a process has two parts, because its
// collector was restarted, is left out: its ordinals start anew.
func (e *estimator) estimate(defs *otf2.Definitions) {
	of := make(map[otf2.LocationRef]int)
	comms := placement.Communicators(defs)
	for _, c := range comms {
		for _, l := range c.Members {
			of[l]++
		}
	}
	for _, c := range comms {
		var rows []*sampledRow
		alone := true
		for _, l := range c.Members {
			if r := e.rows[l]; r != nil {
				alone = alone && of[l] == 1
				rows = append(rows, r)
			}
		}
		most := uint64(0)
		for _, r := range rows {
			n := uint64(0)
			for i := range r.Strata {
				n += r.Strata[i].Count
			}
			most = max(most, n)
		}
		e.out.Collectives += most
		if alone && len(rows) > 1 {
			e.estimateComm(c.Ref, rows, most)
		}
	}
}

// estimateComm estimates the waits on one communicator of at most most collectives.
func (e *estimator) estimateComm(ref otf2.CommRef, rows []*sampledRow, most uint64) {
	first := collectiveKey{rows[0].FirstSample.Function, rows[0].FirstSample.Ordinal}
	sums := make(map[estimateKey]*estimateSum)
	for k, one := range sampledCollectives(rows, first) {
		if len(one.members) < len(rows) || e.inconsistent(ref, k) {
			continue
		}
		late, ok := lateness.Compare(lateness.WaitKindOf(regions.CollectiveNamed(k.function)), one.came, false)
		if !ok {
			continue
		}
		e.out.Sampled++
		for i := range one.members {
			m, wait := &one.members[i], one.came[i].Wait
			if facts.IsStartUp(k == first, k.ordinal) && most > 1 {
				if c := m.row.cells[m.node]; c != nil {
					c.Waits[profile.WaitStartUp] += wait
				}
				continue
			}
			key := estimateKey{m.row, m.node}
			sum := keyed.EntryMade(sums, key, func() *estimateSum {
				return &estimateSum{of: make(map[*sampledRow]uint64)}
			})
			sum.n++
			sum.waits[late.Kind] += wait
			if wait > 0 {
				sum.of[one.members[late.Awaited].row] += wait
			}
		}
	}
	for _, r := range rows {
		r.extrapolate(sums, most)
	}
}

// sampledCollectives collects the rows' samples by collective; the first collective counts if its sample says so.
func sampledCollectives(rows []*sampledRow, first collectiveKey) map[collectiveKey]*collective {
	sampled := make(map[collectiveKey]*collective)
	for _, r := range rows {
		take := func(node int32, s *profile.Sample) {
			k := collectiveKey{s.Function, s.Ordinal}
			c := keyed.Entry(sampled, k)
			c.members = append(c.members, member{r, node})
			c.came = append(c.came, lateness.Arrival{
				Rank: r.Rank, Begin: otf2.Timestamp(r.at(s.Begin)), End: otf2.Timestamp(r.at(s.End)),
				Source: facts.SourceOf(s.Source), Root: s.Root == int64(r.Rank),
			})
		}
		f := r.FirstSample
		if (collectiveKey{f.Function, f.Ordinal}) == first {
			take(f.Node, &f.Sample)
		}
		for i := range r.Strata {
			st := &r.Strata[i]
			for j := range st.Samples {
				if s := &st.Samples[j]; s.Function != f.Function || s.Ordinal != f.Ordinal {
					take(st.Node, s)
				}
			}
		}
	}
	return sampled
}

// extrapolate scales the waits of the sampled collectives to all collectives of each call path of the row.
func (r *sampledRow) extrapolate(sums map[estimateKey]*estimateSum, most uint64) {
	for i := range r.Strata {
		st := &r.Strata[i]
		sum, c := sums[estimateKey{r, st.Node}], r.cells[st.Node]
		if sum == nil || c == nil {
			continue
		}
		count := st.Count
		if r.FirstSample.Node == st.Node && most > 1 {
			count--
		}
		each := float64(count) / float64(sum.n)
		for kind, ns := range sum.waits {
			c.Waits[kind] += uint64(math.Round(float64(ns) * each))
		}
		if total := c.Waits.Total(); total > c.Time {
			each *= float64(c.Time) / float64(total)
		}
		c.LimitWaits()
		for of, ns := range sum.of {
			of.caused += float64(ns) * each
		}
	}
}

// inconsistent reports whether the members' recordings of a collective are known to differ.
func (e *estimator) inconsistent(ref otf2.CommRef, k collectiveKey) bool {
	return slices.ContainsFunc(e.stretches, func(s property.Stretch) bool {
		return s.Comm == ref && s.Function == k.function && s.First <= k.ordinal && k.ordinal <= s.Last
	})
}
