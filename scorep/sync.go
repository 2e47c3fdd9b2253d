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
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// ClockSync describes how the clocks of a run's hosts were synchronized.
type ClockSync struct {
	Method    string     `json:"method"`
	Exchanges int        `json:"exchanges"` // message exchanges that constrain two hosts' clocks
	Readings  int        `json:"readings"`  // readings of hosts' time services that constrain clocks
	Broken    int        `json:"broken"`    // constraints that the corrections violate
	Hosts     []HostSync `json:"hosts"`
}

// HostSync is the correction of one host's clock.
type HostSync struct {
	Host      string `json:"host"`
	Processes []int  `json:"processes"` // location groups
	// Reference is the index in the list of the host that this clock was synchronized to; its own index if none.
	Reference   int     `json:"reference"`
	State       string  `json:"state"` // see below
	OffsetStart int64   `json:"offset_start_ns"`
	OffsetEnd   int64   `json:"offset_end_ns"`
	DriftPPM    float64 `json:"drift_ppm"`
	Constraints int     `json:"constraints"`
	Outliers    int     `json:"outliers"`
	// Uncertainty in either direction at the start and the end of the run, and the maximum over the run, in ns; absent
	// if nothing bounds it.
	UncertaintyStart *float64 `json:"uncertainty_start_ns,omitempty"`
	UncertaintyEnd   *float64 `json:"uncertainty_end_ns,omitempty"`
	UncertaintyMost  *float64 `json:"uncertainty_most_ns,omitempty"`
}

// Values of HostSync.State.
const (
	SyncReference = "reference" // other clocks were synchronized to this one
	SyncCorrected = "corrected"
	SyncOneSided  = "one-sided" // bounded from one side only
	SyncUntied    = "untied"    // nothing relates it to another host; uncorrected
)

// clocks numbers the run's host clocks in world order. It returns each process's clock, and the first process of each
// clock.
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

// synchronize synchronizes the clocks of the run's hosts, by the archive that was written to anchor. It reports whether
// the definitions must be written again.
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

// readings returns what the hosts' time services reported, by the numbers of the hosts' clocks.
func (a *archive) readings(of map[*jobs.Process]int) (all []clocks.Reading) {
	for _, p := range a.ordered() {
		for _, r := range p.Shard.Clock.Readings {
			all = append(all, clocks.Reading{Host: of[p], Time: p.At(r.Time), Reference: r.Reference, Bound: r.Bound})
		}
	}
	return all
}

// corrections returns a host's clock offsets; nil if it has none.
func corrections(h *clocks.Host) []otf2.ClockOffset {
	if len(h.Knots) < 2 {
		return nil
	}
	offsets := slices.Clone(h.Knots)
	for i := range offsets {
		if math.IsInf(offsets[i].StdDev, 0) {
			offsets[i].StdDev = 0 // unknown
		}
	}
	return offsets
}

// describe returns h with what was found about host n, whose events range from first to last on its own clock.
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

// retime recomputes everything that depends on times, with the processes' current corrections.
func (a *archive) retime() {
	a.measure()
	a.setClock()
	a.pauses = jobs.FindPauses(a.instances)
	a.describe()
}

// describeSync adds properties that describe how the hosts' clocks were synchronized.
func (f *findings) describeSync(ps *properties) {
	s := f.sync
	if s == nil {
		return
	}
	ps.add(property.ClockSync, s.Method)
	ps.addNumber(property.SyncHosts, uint64(len(s.Hosts)))
	ps.addNumber(property.SyncExchange, uint64(s.Exchanges))
	ps.positive(property.SyncReadings, uint64(s.Readings))
	ps.addNumber(property.SyncBroken, uint64(s.Broken))
	states := make(map[string]uint64)
	most := 0.0
	for _, h := range s.Hosts {
		states[h.State]++
		if h.UncertaintyMost != nil {
			most = max(most, *h.UncertaintyMost)
		}
	}
	for _, state := range []string{SyncReference, SyncCorrected, SyncOneSided, SyncUntied} {
		ps.positive(property.ClockSync.Below(component(state)), states[state])
	}
	ps.addNumber(property.SyncMost, uint64(most))
	for i := range s.Hosts[:min(len(s.Hosts), maxDifferences)] {
		ps.add(property.SyncHost.Nth(i), s.Hosts[i].String())
	}
}

// String returns the host's line in the archive's properties, for example (in one line):
//
//	corrected reference 0 offset 1200 to 1350 ns drift 0.0500 ppm uncertainty 900 to 950 (at most 980) ns
//	640 constraints 2 outliers processes 2-3 "node1"
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
				"outliers", h.Reference, h.OffsetStart, h.OffsetEnd, h.DriftPPM,
			ns(h.UncertaintyStart), ns(h.UncertaintyEnd), ns(h.UncertaintyMost), h.Constraints, h.Outliers)
	}
	return text + " " + processWords(h.Processes) + " " + strconv.Quote(cmp.Or(h.Host, units.UnknownHost))
}
