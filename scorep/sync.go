// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"cmp"
	"fmt"
	"math"
	"strconv"

	"github.com/nccl-otf2/nccl-otf2/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// SyncInput is an archive whose hosts' clocks are to be compared: all that runs on one host has one
// clock, between hosts nothing has been corrected.
type SyncInput struct {
	Anchor string // of the archive; it may be read during the call only
	Hosts  int    // with clocks of their own, more than one
	// HostOf tells the host of a location. Host 0 is that of the first process.
	HostOf   func(otf2.LocationRef) int
	Workers  int
	Progress func(done, total int) // of the events to be read
}

// SyncOutput is what was found about the hosts' clocks.
type SyncOutput struct {
	Method    string
	Hosts     []HostClock // by number
	Exchanges int         // operations and messages between hosts that tell something of their clocks
	Broken    int         // of those used, what the corrections do not keep
	Problems  []string
}

// HostClock is the correction of one host's clock.
type HostClock struct {
	// Knots is the correction, linear between its times, and beyond them; fewer than two: none.
	Knots       []ClockKnot
	Reference   int  // the host whose clock it was brought to; its own number: none
	Tied        bool // something ties it to other hosts
	OneSided    bool // but in one direction only: it was moved by what is certain, the rest is not known
	Constraints int
	Outliers    int
	// Uncertainty of the correction at a time of the host's clock, ns; infinite if nothing is known.
	Uncertainty func(t otf2.Timestamp) float64
}

// ClockKnot is a host's correction at a time of its clock.
type ClockKnot struct {
	Time        otf2.Timestamp
	Offset      int64 // ns to add
	Uncertainty float64
}

// ClockSync says how the clocks of a run's hosts were brought together.
type ClockSync struct {
	Method    string     `json:"method"`
	Exchanges int        `json:"exchanges"` // that tell something of two hosts' clocks
	Broken    int        `json:"broken"`    // not kept by the corrections
	Hosts     []HostSync `json:"hosts"`
}

// HostSync says what was done to one host's clock.
type HostSync struct {
	Host      string `json:"host"`
	Processes []int  `json:"processes"` // location groups
	// Reference is the place in the list of the host whose clock this one was brought to, its own if none.
	Reference   int     `json:"reference"`
	State       string  `json:"state"` // see below
	OffsetStart int64   `json:"offset_start_ns"`
	OffsetEnd   int64   `json:"offset_end_ns"`
	DriftPPM    float64 `json:"drift_ppm"`
	Constraints int     `json:"constraints"`
	Outliers    int     `json:"outliers"`
	// Uncertainty either way at the start and the end of the run, and the greatest on the way; absent if
	// nothing bounds it.
	UncertaintyStart *float64 `json:"uncertainty_start_ns,omitempty"`
	UncertaintyEnd   *float64 `json:"uncertainty_end_ns,omitempty"`
	UncertaintyMost  *float64 `json:"uncertainty_most_ns,omitempty"`
}

// States of HostSync.
const (
	SyncReference = "reference" // others were brought to its clock
	SyncCorrected = "corrected"
	SyncOneSided  = "one-sided" // bounded from one side only
	SyncUntied    = "untied"    // nothing ties it to another host; it is as it was
)

// clockKey names the clock that a process's times come from: processes of one boot share it.
func clockKey(p *part) string {
	if p.process.BootID == "" {
		return "process " + p.process.UUID
	}
	return "boot " + p.process.BootID
}

// clocks numbers the clocks of a run by their first processes.
func (a *archive) clocks() (of map[*part]int, first []*part) {
	of = make(map[*part]int)
	known := make(map[string]int)
	for _, p := range a.ordered() {
		n, ok := known[clockKey(p)]
		if !ok {
			n = len(known)
			known[clockKey(p)] = n
			first = append(first, p)
		}
		of[p] = n
	}
	return of, first
}

// synchronize brings the clocks of the run's hosts together, from the archive that was written to anchor.
// It reports whether there is anything to write anew.
func (a *archive) synchronize(anchor string) bool {
	of, first := a.clocks()
	if a.opts.Sync == nil || len(first) < 2 {
		return false
	}
	byIndex := make([]int, len(a.world.places))
	for p, n := range of {
		byIndex[p.index] = n
	}
	out, err := a.opts.Sync(&SyncInput{
		Anchor: anchor, Hosts: len(first), Workers: a.opts.workers(),
		HostOf:   func(l otf2.LocationRef) int { return byIndex[uint32(l)] },
		Progress: func(done, total int) { a.opts.progress("clocks of the hosts, events read", done, total) },
	})
	if err != nil {
		a.syncProblems = append(a.syncProblems, fmt.Sprintf("the clocks of the %d hosts were not compared: %v", len(first), err))
		return false
	}
	a.syncProblems = append(a.syncProblems, out.Problems...)
	a.sync = &ClockSync{Method: out.Method, Exchanges: out.Exchanges, Broken: out.Broken}
	for n, p := range first {
		h := HostSync{Host: p.process.Host, Processes: []int{}}
		for _, q := range a.ordered() {
			if of[q] == n {
				h.Processes = append(h.Processes, q.index)
			}
		}
		life := a.lifeOf(func(q *part) bool { return of[q] == n })
		a.sync.Hosts = append(a.sync.Hosts, h.describe(n, out, life.begin, life.end))
	}
	for p, n := range of {
		p.knots = nil
		if knots := out.Hosts[n].Knots; len(knots) >= 2 {
			p.knots = knots
		}
	}
	a.retime()
	return true
}

// describe fills in what was found about host n, which has events from first to last on its clock.
func (h HostSync) describe(n int, out *SyncOutput, first, last uint64) HostSync {
	c := &out.Hosts[n]
	h.Reference, h.Constraints, h.Outliers = c.Reference, c.Constraints, c.Outliers
	switch {
	case !c.Tied:
		h.State, h.Reference = SyncUntied, n
		return h
	case c.Reference == n:
		h.State = SyncReference
	case c.OneSided:
		h.State = SyncOneSided
	default:
		h.State = SyncCorrected
	}
	if len(c.Knots) >= 2 {
		h.OffsetStart, h.OffsetEnd = offsetAt(c.Knots, first), offsetAt(c.Knots, last)
		if last > first {
			h.DriftPPM = float64(h.OffsetEnd-h.OffsetStart) / float64(last-first) * 1e6
		}
	}
	start, end := c.Uncertainty(otf2.Timestamp(first)), c.Uncertainty(otf2.Timestamp(last))
	most := max(start, end)
	for _, k := range c.Knots {
		most = max(most, k.Uncertainty)
	}
	for _, u := range []struct {
		value float64
		to    **float64
	}{{start, &h.UncertaintyStart}, {end, &h.UncertaintyEnd}, {most, &h.UncertaintyMost}} {
		if v := math.Ceil(u.value); !math.IsInf(v, 0) && !math.IsNaN(v) {
			*u.to = &v
		}
	}
	return h
}

// offsetAt is what readers add to a time, see the notes on ClockOffset in docs/otf2-format.md: the interval's slope,
// rounded to even, from its begin.
func offsetAt(knots []ClockKnot, t uint64) int64 {
	i := 0
	for i < len(knots)-2 && t > uint64(knots[i+1].Time) {
		i++
	}
	a, b := &knots[i], &knots[i+1]
	slope := float64(b.Offset-a.Offset) / float64(uint64(b.Time)-uint64(a.Time))
	return a.Offset + int64(math.RoundToEven(slope*float64(int64(t-uint64(a.Time)))))
}

// lifeOf is from the first to the last event of some processes.
func (a *archive) lifeOf(of func(*part) bool) lifespan {
	l := lifespan{math.MaxUint64, 0}
	for _, s := range a.spans {
		if of(s.part) {
			l.begin, l.end = min(l.begin, s.part.at(s.begin)), max(l.end, s.part.at(s.end))
		}
	}
	if l.begin > l.end {
		l = lifespan{a.first, a.last}
	}
	return l
}

// retime makes anew what depends on times, with the processes' present corrections.
func (a *archive) retime() {
	a.measure()
	a.setClock()
	a.pauses = findPauses(a.instances)
	a.properties, a.markers = nil, nil
	a.describe()
	a.mark()
}

// describeSync tells how the hosts' clocks were brought together.
func (a *archive) describeSync(ps *properties) {
	s := a.sync
	if s == nil {
		return
	}
	ps.add(facts.PropClockSync, s.Method)
	ps.number(facts.PropSyncHosts, uint64(len(s.Hosts)))
	ps.number(facts.PropSyncExchange, uint64(s.Exchanges))
	ps.number(facts.PropSyncBroken, uint64(s.Broken))
	states := make(map[string]uint64)
	most := 0.0
	for _, h := range s.Hosts {
		states[h.State]++
		if h.UncertaintyMost != nil {
			most = max(most, *h.UncertaintyMost)
		}
	}
	for _, state := range []string{SyncReference, SyncCorrected, SyncOneSided, SyncUntied} {
		ps.positive(facts.PropClockSync.Below(component(state)), states[state])
	}
	ps.number(facts.PropSyncMost, uint64(most))
	for i := range s.Hosts[:min(len(s.Hosts), maxDifferences)] {
		ps.add(facts.PropSyncHost.Nth(i), s.Hosts[i].String())
	}
}

// String is the host's line in the archive's properties:
//
//	corrected reference 0 offset 1200 to 1350 ns drift 0.0500 ppm uncertainty 900 to 950 (at most 980) ns 640 constraints 2 outliers processes 2-3 "node1"
func (h *HostSync) String() string {
	text := h.State
	if h.State != SyncUntied {
		ns := func(v *float64) string {
			if v == nil {
				return "unknown"
			}
			return strconv.FormatFloat(*v, 'f', 0, 64)
		}
		text += fmt.Sprintf(" reference %d offset %d to %d ns drift %.4f ppm uncertainty %s to %s (at most %s) ns %d constraints %d outliers",
			h.Reference, h.OffsetStart, h.OffsetEnd, h.DriftPPM,
			ns(h.UncertaintyStart), ns(h.UncertaintyEnd), ns(h.UncertaintyMost), h.Constraints, h.Outliers)
	}
	return text + " " + processWords(h.Processes) + " " + strconv.Quote(cmp.Or(h.Host, "unknown host"))
}
