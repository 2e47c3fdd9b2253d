// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// OverlapReport tells how much of the communication ran while the same GPU computed. It needs the kernels of the
// application, which are in archives of jobs that were recorded with CUPTI.
//
// Communication is the GPU's time in NCCL's operations, their waiting for other ranks included; computation is
// kernels that are not NCCL's. Copies are neither.
type OverlapReport struct {
	GPUs []OverlapGPU `json:"gpus"`
	// Communicators sums up the communicators' rows on GPUs with known kernels.
	Communicators []OverlapComm `json:"communicators"`
	// WithoutKernels are GPUs that communicated and of which no kernel is known: they are in no sum.
	WithoutKernels int `json:"gpus_without_kernels"`
	// Untimed are operations whose GPU times are not known. They are in no time.
	Untimed uint64 `json:"untimed"`
	// WholeGraphs are CUDA graphs of which no kernels are known: what they computed or sent is in no time.
	WholeGraphs uint64   `json:"whole_graphs"`
	Problems    []string `json:"problems"`
}

// Overlap is time, in nanoseconds.
type Overlap struct {
	Communication uint64 `json:"communication_ns"` // at least one operation was running
	Hidden        uint64 `json:"hidden_ns"`        // of that, while at least one kernel computed
	Exposed       uint64 `json:"exposed_ns"`       // the rest
}

// OverlapGPU is one GPU, as one process used it.
type OverlapGPU struct {
	Rank       string `json:"rank"`
	Host       string `json:"host"`
	GPU        string `json:"gpu"`
	Kernels    uint64 `json:"kernels"` // that are not NCCL's
	Operations uint64 `json:"operations"`
	Overlap
	Computation uint64 `json:"computation_ns"`
	// Idle is the time between the first and the last of all these in which there was neither.
	Idle uint64 `json:"idle_ns"`
}

// OverlapComm is the rows of one communicator. Where communicators run at one time each has the time.
type OverlapComm struct {
	Communicator string       `json:"communicator"`
	Comm         otf2.CommRef `json:"comm"`
	GPUs         int          `json:"gpus"`
	Operations   uint64       `json:"operations"`
	Overlap
}

// FindOverlap reads all events. Files that cannot be read to their end are named in Problems; what was read of them
// counts.
func FindOverlap(a *otf2.Archive) *OverlapReport {
	comms := facts.Communicators(a.Defs)
	lanes := lanesOf(a.Defs)
	counters := make([]*overlapCounter, len(lanes))
	for i := range counters {
		counters[i] = newOverlapCounter(a.Defs, comms)
	}
	problems := readLanes(a, lanes, func(i int, ev *otf2.Event, none []struct{}) []struct{} {
		counters[i].event(ev)
		return none
	}, func(*struct{}) {})
	sum := newOverlapCounter(a.Defs, comms)
	for _, c := range counters {
		sum.absorb(c)
	}
	r := sum.result(comms)
	r.Problems = append(r.Problems, problems...)
	return r
}

// activity is what a region means to a GPU.
type activity uint8

const (
	activityNone activity = iota
	activityCommunication
	activityComputation
)

// overlapCounter follows the GPUs of some processes.
type overlapCounter struct {
	defs     *otf2.Definitions
	kernels  map[otf2.RegionRef]bool // that are not NCCL's by their names
	graphs   map[otf2.RegionRef]bool
	whole    uint64 // graphs of which no kernels are known
	source   attributeID
	external attributeID
	plan     attributeID
	group    map[otf2.LocationRef]otf2.LocationGroupRef
	comm     map[otf2.LocationRef]otf2.CommRef
	rows     map[otf2.LocationRef]*overlapRow
	gpus     map[otf2.LocationGroupRef]*overlapState
	untimed  uint64
}

// overlapRow is one row of a GPU.
type overlapRow struct {
	open []activity
	busy int // open regions of communication
	Overlap
	operations uint64
}

// overlapState is one GPU.
type overlapState struct {
	begun                   bool
	at                      otf2.Timestamp // up to where times have been added up
	communicates, computes  int            // open regions
	rows                    []*overlapRow  // with communication
	kernels                 uint64
	computation, idle, both uint64
	communication           uint64
}

func newOverlapCounter(defs *otf2.Definitions, comms map[otf2.CommRef]*facts.Communicator) *overlapCounter {
	c := &overlapCounter{
		defs: defs, kernels: make(map[otf2.RegionRef]bool), graphs: make(map[otf2.RegionRef]bool),
		source: findAttribute(defs, regions.AttrTimingSource), external: findAttribute(defs, regions.AttrExternalID), plan: findAttribute(defs, regions.AttrPlanID),
		group: make(map[otf2.LocationRef]otf2.LocationGroupRef), comm: make(map[otf2.LocationRef]otf2.CommRef),
		rows: make(map[otf2.LocationRef]*overlapRow), gpus: make(map[otf2.LocationGroupRef]*overlapState),
	}
	for ref := range regionsOf(defs, regions.GroupCUDAKernels, otf2.ParadigmCUDA, otf2.ParadigmHIP) {
		switch name := defs.String(defs.Region(ref).Name); {
		case name == regions.NameCUDAGraph:
			c.graphs[ref] = true
		case !strings.HasPrefix(name, regions.NameCall):
			c.kernels[ref] = true
		}
	}
	for _, l := range defs.Locations {
		c.group[l.Self] = l.Group
	}
	for ref, comm := range comms {
		for _, l := range comm.Members {
			c.comm[l] = ref
		}
	}
	return c
}

func (c *overlapCounter) event(ev *otf2.Event) {
	switch ev.Kind {
	case otf2.EventEnter:
		what := c.classify(ev)
		r := c.rows[ev.Location]
		if r == nil {
			r = new(overlapRow)
			c.rows[ev.Location] = r
		}
		r.open = append(r.open, what)
		if what == activityNone {
			return
		}
		g := c.advance(ev)
		if what == activityComputation {
			g.kernels++
			g.computes++
			return
		}
		if r.operations == 0 {
			g.rows = append(g.rows, r)
		}
		r.operations++
		r.busy++
		g.communicates++
	case otf2.EventLeave:
		r := c.rows[ev.Location]
		if r == nil || len(r.open) == 0 {
			return
		}
		what := r.open[len(r.open)-1]
		r.open = r.open[:len(r.open)-1]
		switch what {
		case activityComputation:
			c.advance(ev).computes--
		case activityCommunication:
			c.advance(ev).communicates--
			r.busy--
		}
	}
}

// classify tells what a region is. Kernels that NCCL launched are in its operations.
func (c *overlapCounter) classify(ev *otf2.Event) activity {
	if source, ok := c.source.of(ev); ok {
		if facts.SourceOf(c.defs.String(otf2.StringRef(source))) == facts.SourceGPU {
			return activityCommunication
		}
		c.untimed++
		return activityNone
	}
	if region := otf2.RegionRef(ev.Args[0]); !c.kernels[region] {
		c.whole += boolCount(c.graphs[region])
		return activityNone
	}
	if _, linked := c.external.of(ev); linked {
		return activityNone
	}
	if _, linked := c.plan.of(ev); linked {
		return activityNone
	}
	return activityComputation
}

// advance adds up the time of the event's GPU since its last event.
func (c *overlapCounter) advance(ev *otf2.Event) *overlapState {
	g := c.gpus[c.group[ev.Location]]
	if g == nil {
		g = new(overlapState)
		c.gpus[c.group[ev.Location]] = g
	}
	if !g.begun {
		g.begun, g.at = true, ev.Time
	}
	took := uint64(max(ev.Time, g.at) - g.at)
	g.at = max(ev.Time, g.at)
	switch {
	case took == 0:
		return g
	case g.communicates > 0 && g.computes > 0:
		g.both += took
	case g.communicates == 0 && g.computes == 0:
		g.idle += took
	}
	if g.communicates > 0 {
		g.communication += took
	}
	if g.computes > 0 {
		g.computation += took
	}
	for _, r := range g.rows {
		if r.busy > 0 {
			r.Communication += took
			if g.computes > 0 {
				r.Hidden += took
			}
		}
	}
	return g
}

// absorb takes over the processes of another lane.
func (c *overlapCounter) absorb(o *overlapCounter) {
	for l, r := range o.rows {
		c.rows[l] = r
	}
	for group, g := range o.gpus {
		c.gpus[group] = g
	}
	c.untimed += o.untimed
	c.whole += o.whole
}

func (o *Overlap) add(p *Overlap) {
	o.Communication += p.Communication
	o.Hidden += p.Hidden
	o.Exposed += p.Communication - p.Hidden
}

func (c *overlapCounter) result(comms map[otf2.CommRef]*facts.Communicator) *OverlapReport {
	r := &OverlapReport{GPUs: []OverlapGPU{}, Communicators: []OverlapComm{}, Problems: []string{}, Untimed: c.untimed, WholeGraphs: c.whole}
	type placed struct {
		process, group otf2.LocationGroupRef
		OverlapGPU
	}
	var all []placed
	for group, g := range c.gpus {
		if g.kernels == 0 {
			r.WithoutKernels++
			continue
		}
		process := processOf(c.defs, group)
		one := OverlapGPU{
			Host: hostOf(c.defs, process), GPU: gpuOf(c.defs, group), Kernels: g.kernels, Computation: g.computation, Idle: g.idle,
			Overlap: Overlap{g.communication, g.both, g.communication - g.both},
		}
		if d := c.defs.LocationGroup(process); d != nil {
			one.Rank = c.defs.String(d.Name)
		}
		for _, row := range g.rows {
			one.Operations += row.operations
		}
		all = append(all, placed{process, group, one})
	}
	slices.SortFunc(all, func(a, b placed) int { return cmp.Or(cmp.Compare(a.process, b.process), cmp.Compare(a.group, b.group)) })
	for _, one := range all {
		r.GPUs = append(r.GPUs, one.OverlapGPU)
	}
	sums := make(map[otf2.CommRef]*OverlapComm)
	for l, row := range c.rows {
		ref, ok := c.comm[l]
		if g := c.gpus[c.group[l]]; !ok || row.operations == 0 || g == nil || g.kernels == 0 {
			continue
		}
		s := sums[ref]
		if s == nil {
			s = &OverlapComm{Communicator: comms[ref].Name, Comm: ref}
			sums[ref] = s
		}
		s.GPUs++
		s.Operations += row.operations
		s.add(&row.Overlap)
	}
	for _, s := range sums {
		r.Communicators = append(r.Communicators, *s)
	}
	slices.SortFunc(r.Communicators, func(a, b OverlapComm) int { return cmp.Compare(a.Comm, b.Comm) })
	return r
}

func overlapColumns[T any](of func(*T) *Overlap) []column[T] {
	return []column[T]{
		duration("communication_ns", "communication", func(r *T) uint64 { return of(r).Communication }),
		duration("hidden_ns", "hidden", func(r *T) uint64 { return of(r).Hidden }),
		percent("share", func(r *T) (float64, float64) { return float64(of(r).Hidden), float64(of(r).Communication) }),
		duration("exposed_ns", "exposed", func(r *T) uint64 { return of(r).Exposed }),
	}
}

// Document gives the report as tables.
func (r *OverlapReport) Document() *Document {
	d := &Document{Title: "Communication hidden behind computation"}
	switch {
	case len(r.GPUs) == 0:
		d.say("n/a: the archive has no kernels but NCCL's; record the job with NCCL_OTF2_CUPTI=on")
	case r.WithoutKernels > 0:
		d.say("n/a: %s of which no kernels are known", count(r.WithoutKernels, "GPU", "GPUs"))
	}
	if r.Untimed > 0 {
		d.say("not counted: %s without GPU times", count(int(r.Untimed), "launch of operations", "launches of operations"))
	}
	if r.WholeGraphs > 0 {
		d.say("not counted: %s recorded without their kernels", count(int(r.WholeGraphs), "run of a CUDA graph", "runs of CUDA graphs"))
	}
	gpus := []column[OverlapGPU]{
		label("rank", "rank", func(g *OverlapGPU) string { return g.Rank }),
		label("host", "host", func(g *OverlapGPU) string { return g.Host }),
		label("gpu", "GPU", func(g *OverlapGPU) string { return g.GPU }),
		number("kernels", "kernels", func(g *OverlapGPU) uint64 { return g.Kernels }),
		number("operations", "launches", func(g *OverlapGPU) uint64 { return g.Operations }),
	}
	gpus = append(gpus, overlapColumns(func(g *OverlapGPU) *Overlap { return &g.Overlap })...)
	gpus = append(gpus,
		duration("computation_ns", "computation", func(g *OverlapGPU) uint64 { return g.Computation }),
		duration("idle_ns", "neither", func(g *OverlapGPU) uint64 { return g.Idle }),
	)
	communicators := []column[OverlapComm]{
		label("communicator", "communicator", func(c *OverlapComm) string { return c.Communicator }),
		number("comm", "", func(c *OverlapComm) uint64 { return uint64(c.Comm) }),
		{"gpus", "GPUs", nil, func(c *OverlapComm) any { return c.GPUs }},
		number("operations", "launches", func(c *OverlapComm) uint64 { return c.Operations }),
	}
	communicators = append(communicators, overlapColumns(func(c *OverlapComm) *Overlap { return &c.Overlap })...)
	d.sheets = []sheet{
		sheetOf("overlap", "By GPU", r.GPUs, gpus),
		sheetOf("overlap_communicators", "By communicator", r.Communicators, communicators),
	}
	var sum Overlap
	for i := range r.GPUs {
		sum.add(&r.GPUs[i].Overlap)
	}
	if sum.Communication > 0 {
		d.note("%s of %s of communication ran while the same GPU computed, %s; %s did not.", formatTime(float64(sum.Hidden)), formatTime(float64(sum.Communication)),
			strings.TrimSpace(formatPercent(float64(sum.Hidden), float64(sum.Communication))), formatTime(float64(sum.Exposed)))
	}
	return d
}
