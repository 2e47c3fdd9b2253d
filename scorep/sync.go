// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/nccl-otf2/nccl-otf2/internal/clocks"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// ClockSync says how the clocks of a run's hosts were brought together.
type ClockSync struct {
	Method    string     `json:"method"`
	Exchanges int        `json:"exchanges"` // that constrain two hosts' clocks
	Readings  int        `json:"readings"`  // of hosts' time services that do
	Broken    int        `json:"broken"`    // not kept by the corrections
	Hosts     []HostSync `json:"hosts"`
}

// HostSync is the correction of one host's clock.
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

// clocks numbers the clocks of a run by their first processes.
func (r *roster) clocks() (of map[*jobs.Process]int, first []*jobs.Process) {
	of = make(map[*jobs.Process]int)
	known := make(map[string]int)
	for _, p := range r.ordered() {
		n, ok := known[p.ClockName()]
		if !ok {
			n = len(known)
			known[p.ClockName()] = n
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
	if !a.opts.Sync || len(first) < 2 {
		return false
	}
	hosts := make(clocks.Hosts, len(a.world.Places))
	for p, n := range of {
		hosts[p.Index] = n
	}
	fit, err := clocks.Fit(anchor, hosts, &clocks.Options{
		Workers:  a.opts.workers(),
		Readings: a.readings(of),
		Progress: func(done, total int) { a.opts.progress("clocks of the hosts, events read", done, total) },
	})
	if err != nil {
		a.syncProblems = append(a.syncProblems, fmt.Sprintf(
			"the clocks of the %d hosts were not compared: %v", len(first), err))
		return false
	}
	a.syncProblems = append(a.syncProblems, fit.Problems...)
	a.sync = &ClockSync{Method: clocks.Method, Exchanges: fit.Exchanges, Readings: fit.Readings, Broken: fit.Broken}
	processes := make([][]int, len(first))
	for _, p := range a.ordered() {
		processes[of[p]] = append(processes[of[p]], p.Index)
	}
	lives := a.lifespans(of, len(first))
	for n, p := range first {
		h := HostSync{Host: p.Shard.Host, Processes: processes[n]}
		a.sync.Hosts = append(a.sync.Hosts, h.describe(n, &fit.Hosts[n], lives[n].Begin, lives[n].End))
	}
	for p, n := range of {
		if fit.Hosts[n].Tied {
			p.Correct(corrections(&fit.Hosts[n]))
		}
	}
	a.retime()
	return true
}

// readings are what the hosts' time services said, by the clocks of hosts.
func (a *archive) readings(of map[*jobs.Process]int) (all []clocks.Reading) {
	for _, p := range a.ordered() {
		for _, r := range p.Shard.Clock.Readings {
			all = append(all, clocks.Reading{Host: of[p], Time: p.At(r.Time), Reference: r.Reference, Bound: r.Bound})
		}
	}
	return all
}

// corrections are a host's clock offsets; nil: it has none.
func corrections(h *clocks.Host) []otf2.ClockOffset {
	if len(h.Knots) < 2 {
		return nil
	}
	offsets := slices.Clone(h.Knots)
	for i := range offsets {
		if math.IsInf(offsets[i].StdDev, 0) {
			offsets[i].StdDev = 0 // not known
		}
	}
	return offsets
}

// describe fills in what was found about host n, which has events from first to last on its clock.
func (h HostSync) describe(n int, c *clocks.Host, first, last uint64) HostSync {
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
	var start, end float64
	h.OffsetStart, start = c.At(otf2.Timestamp(first))
	h.OffsetEnd, end = c.At(otf2.Timestamp(last))
	if last > first {
		h.DriftPPM = float64(h.OffsetEnd-h.OffsetStart) / float64(last-first) * 1e6
	}
	most := max(start, end)
	for _, k := range c.Knots {
		most = max(most, k.StdDev)
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

// retime makes anew what depends on times, with the processes' present corrections.
func (a *archive) retime() {
	a.measure()
	a.setClock()
	a.pauses = jobs.FindPauses(a.instances)
	a.describe()
}

// describeSync returns how the hosts' clocks were brought together.
func (f *findings) describeSync(ps *properties) {
	s := f.sync
	if s == nil {
		return
	}
	ps.add(facts.PropClockSync, s.Method)
	ps.addNumber(facts.PropSyncHosts, uint64(len(s.Hosts)))
	ps.addNumber(facts.PropSyncExchange, uint64(s.Exchanges))
	ps.positive(facts.PropSyncReadings, uint64(s.Readings))
	ps.addNumber(facts.PropSyncBroken, uint64(s.Broken))
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
	ps.addNumber(facts.PropSyncMost, uint64(most))
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
		text += fmt.Sprintf(
			" reference %d offset %d to %d ns drift %.4f ppm uncertainty %s to %s (at most %s) ns %d constraints %d "+
				"outliers",
			h.Reference, h.OffsetStart, h.OffsetEnd, h.DriftPPM,
			ns(h.UncertaintyStart), ns(h.UncertaintyEnd), ns(h.UncertaintyMost), h.Constraints, h.Outliers)
	}
	return text + " " + processWords(h.Processes) + " " + strconv.Quote(cmp.Or(h.Host, units.UnknownHost))
}
