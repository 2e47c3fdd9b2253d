// SPDX-License-Identifier: Apache-2.0

// Package overlap measures how much of the communication ran while the same GPU computed, from the kernels that CUPTI
// recorded.
package overlap

import (
	"cmp"
	"maps"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selection"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Report measures how much of the communication ran while the same GPU computed. It needs the application's kernels,
// so the job must have been recorded with CUPTI.
//
// Communication is the GPU's time in NCCL's operations, including the time that they wait for other ranks. Computation
// is the time in kernels that are not NCCL's. Copies count as neither.
type Report struct {
	GPUs []GPU `json:"gpus"`
	// Communicators sums up the rows of each communicator on GPUs with known kernels.
	Communicators []Communicator `json:"communicators"`
	// WithoutKernels counts the GPUs that communicated but have no known kernels. They are in no sum.
	WithoutKernels int `json:"gpus_without_kernels"`
	// Untimed counts the operations without GPU times. They are in no sum of times.
	Untimed uint64 `json:"untimed"`
	// WholeGraphs counts the CUDA graphs without known kernels. Their computation and communication is in no sum of
	// times.
	WholeGraphs uint64   `json:"whole_graphs"`
	Problems    []string `json:"problems"`
}

// Overlap has times in nanoseconds.
type Overlap struct {
	Communication uint64 `json:"communication_ns"` // time during which at least one operation was running
	Hidden        uint64 `json:"hidden_ns"`        // the part of it during which at least one kernel computed
	Exposed       uint64 `json:"exposed_ns"`       // the rest
}

// GPU is one GPU, as one process used it.
type GPU struct {
	Rank       string `json:"rank"`
	Host       string `json:"host"`
	GPU        string `json:"gpu"`
	Kernels    uint64 `json:"kernels"` // kernels that are not NCCL's
	Operations uint64 `json:"operations"`
	Overlap
	Computation uint64 `json:"computation_ns"`
	// Idle is the time between the first and the last of these in which the GPU neither communicated nor computed.
	Idle uint64 `json:"idle_ns"`
}

// Communicator sums up the rows of one communicator. Time in which several communicators are active counts for each of
// them.
type Communicator struct {
	Communicator string       `json:"communicator"`
	Comm         otf2.CommRef `json:"comm"`
	GPUs         int          `json:"gpus"`
	Operations   uint64       `json:"operations"`
	Overlap
}

// Read reads all events, and reports on the selected regions. Files that cannot be read to their end are named in
// Problems; what was read from them counts.
func Read(a *otf2.Archive, selected *selection.Selection) *Report {
	comms := membership.Communicators(a.Defs)
	lanes := analysis.LanesOf(a.Defs)
	counters := make([]*overlapCounter, len(lanes))
	problems := analysis.ReadRegions(a, lanes, func(i int, r *facts.Reader) {
		counters[i] = newOverlapCounter(a.Defs, comms)
		r.Enter, r.Leave = counters[i].enter, counters[i].leave
		selected.Regions(r)
	})
	sum := newOverlapCounter(a.Defs, comms)
	for _, c := range counters {
		sum.addLane(c)
	}
	r := sum.result(comms)
	r.Problems = append(r.Problems, problems...)
	return r
}

// activity is what a GPU does in a region.
type activity uint8

const (
	activityNone activity = iota
	activityCommunication
	activityComputation
)

// overlapCounter follows the GPUs of some processes.
type overlapCounter struct {
	defs    *otf2.Definitions
	kernels *facts.Kernels
	whole   uint64 // graphs without known kernels
	group   map[otf2.LocationRef]otf2.LocationGroupRef
	comm    map[otf2.LocationRef]otf2.CommRef
	rows    map[otf2.LocationRef]*overlapRow
	gpus    map[otf2.LocationGroupRef]*overlapState
	untimed uint64
}

// openActivity is an open region and its activity.
type openActivity struct {
	activity
	entered uint64 // see facts.Region
}

// overlapRow is one row of a GPU.
type overlapRow struct {
	open []openActivity
	busy int // number of open communication regions
	Overlap
	operations uint64
}

// overlapState is the state of one GPU.
type overlapState struct {
	begun                   bool
	at                      otf2.Timestamp // the time up to which times have been added up
	communicates, computes  int            // numbers of open regions
	rows                    []*overlapRow  // rows with communication
	kernels                 uint64
	computation, idle, both uint64
	communication           uint64
}

func newOverlapCounter(defs *otf2.Definitions, comms map[otf2.CommRef]*membership.Communicator) *overlapCounter {
	c := &overlapCounter{
		defs:  defs,
		group: make(map[otf2.LocationRef]otf2.LocationGroupRef), comm: make(map[otf2.LocationRef]otf2.CommRef),
		rows: make(map[otf2.LocationRef]*overlapRow), gpus: make(map[otf2.LocationGroupRef]*overlapState),
	}
	c.kernels = facts.KernelsOf(defs)
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

// enter takes a region that begins.
func (c *overlapCounter) enter(region *facts.Region) {
	what := c.classify(region)
	r := keyed.Entry(c.rows, region.Location)
	r.open = append(r.open, openActivity{what, region.Entered})
	if what == activityNone {
		return
	}
	g := c.advance(region.Location, region.Begin)
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
}

// leave takes a region that ends.
func (c *overlapCounter) leave(region *facts.Region) {
	r := c.rows[region.Location]
	at := facts.IndexOpen(r.open, region, func(o *openActivity) uint64 { return o.entered })
	what := r.open[at].activity
	r.open = slices.Delete(r.open, at, at+1)
	switch what {
	case activityComputation:
		c.advance(region.Location, region.End).computes--
	case activityCommunication:
		c.advance(region.Location, region.End).communicates--
		r.busy--
	}
}

// classify returns the activity of a region. NCCL's own kernels are none: its operations already cover them.
func (c *overlapCounter) classify(r *facts.Region) activity {
	switch {
	case r.Source == facts.SourceGPU:
		return activityCommunication
	case r.Number > 0:
		c.untimed++
		return activityNone
	case c.kernels.Computes(r):
		return activityComputation
	}
	c.whole += analysis.BoolCount(c.kernels.WholeGraph(r))
	return activityNone
}

// advance adds up the times of a row's GPU since its last event, and returns the GPU's state.
func (c *overlapCounter) advance(l otf2.LocationRef, t otf2.Timestamp) *overlapState {
	g := keyed.Entry(c.gpus, c.group[l])
	if !g.begun {
		g.begun, g.at = true, t
	}
	took := uint64(max(t, g.at) - g.at)
	g.at = max(t, g.at)
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

// addLane takes over the processes of another lane.
func (c *overlapCounter) addLane(o *overlapCounter) {
	maps.Copy(c.rows, o.rows)
	maps.Copy(c.gpus, o.gpus)
	c.untimed += o.untimed
	c.whole += o.whole
}

// Add adds the times of p.
func (o *Overlap) Add(p *Overlap) {
	o.Communication += p.Communication
	o.Hidden += p.Hidden
	o.Exposed += p.Communication - p.Hidden
}

func (c *overlapCounter) result(comms map[otf2.CommRef]*membership.Communicator) *Report {
	r := &Report{GPUs: []GPU{}, Communicators: []Communicator{}, Problems: []string{}, Untimed: c.untimed,
		WholeGraphs: c.whole}
	type placed struct {
		process, group otf2.LocationGroupRef
		GPU
	}
	var all []placed
	for group, g := range c.gpus {
		if g.kernels == 0 {
			r.WithoutKernels++
			continue
		}
		process := placement.ProcessOf(c.defs, group)
		one := GPU{
			Host: placement.HostOf(c.defs, process), GPU: placement.GpuOf(c.defs, group), Kernels: g.kernels,
			Computation: g.computation, Idle: g.idle,
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
	slices.SortFunc(all, func(a, b placed) int {
		return cmp.Or(
			cmp.Compare(a.process, b.process), cmp.Compare(a.group, b.group))
	})
	for _, one := range all {
		r.GPUs = append(r.GPUs, one.GPU)
	}
	sums := make(map[otf2.CommRef]*Communicator)
	for l, row := range c.rows {
		ref, ok := c.comm[l]
		if g := c.gpus[c.group[l]]; !ok || row.operations == 0 || g == nil || g.kernels == 0 {
			continue
		}
		s := keyed.EntryMade(sums, ref, func() *Communicator {
			return &Communicator{Communicator: comms[ref].Name, Comm: ref}
		})
		s.GPUs++
		s.Operations += row.operations
		s.Add(&row.Overlap)
	}
	for _, s := range sums {
		r.Communicators = append(r.Communicators, *s)
	}
	slices.SortFunc(r.Communicators, func(a, b Communicator) int { return cmp.Compare(a.Comm, b.Comm) })
	return r
}
