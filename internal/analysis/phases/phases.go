// SPDX-License-Identifier: Apache-2.0

// Package phases sums up the phases that the application marked (training steps), from the regions of its threads and
// the operations that were called in them.
package phases

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/efficiency"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/naming"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Row sums up the phases of one name at one place in the nesting of the application's phases.
//
// A phase is a region that the program marked on one of its threads. Phases whose names differ only in a number at the
// end share a row: "step 1" and "step 2" are "step *". Each row includes everything inside its phases, also what is in
// the rows below it.
type Row struct {
	Phase string `json:"phase"` // with the phases around it: "step * / forward"
	Depth int    `json:"depth"` // number of phases around it
	Ranks int    `json:"ranks"` // processes that have it
	Count uint64 `json:"count"` // phases of all ranks that have ended
	// Points counts marks without duration. They are not in Count and in no time.
	Points uint64 `json:"points"`
	// Unfinished counts phases that were open when the data of their thread ended. They are in no time of the row.
	Unfinished uint64         `json:"unfinished"`
	Time       analysis.Times `json:"time"`
	// Approximate: p50 and p99 are accurate to 2 %. With few phases they are exact.
	Approximate bool `json:"approximate"`
	// CallsKnown reports whether the archive has calls of NCCL's API, which NCCL reports since 2.28 and only to API v5
	// and newer. Without them nothing is known about NCCL in phases.
	CallsKnown bool `json:"calls_known"`
	// NCCL is the time that the phases' threads spent in NCCL's API, all phases together.
	NCCL uint64 `json:"nccl_ns"`
	Operations
	// GPU is the mean of the ranks' sums, over the ranks that have any GPU time.
	GPU     float64 `json:"gpu_avg_ns"`
	Slowest string  `json:"slowest_rank"` // the one with the longest total time in the phase; "" if no phase has ended
	Host    string  `json:"slowest_host"`
	// Spread is the difference between the longest and the shortest total time of a rank in the phase.
	Spread uint64 `json:"spread_ns"`
	ByRank []Rank `json:"by_rank"`
	// Waited is the waiting of all ranks in operations called in the phases. Efficiency is how well the phases' time
	// was used; nil if unknown. This package leaves both to its callers.
	Waited     uint64              `json:"waited_ns"`
	Efficiency *efficiency.Factors `json:"efficiency"`
}

// Rank is one rank's part of a row. A rank is a process, with all its threads and GPUs.
type Rank struct {
	Rank  string `json:"rank"`
	Host  string `json:"host"`
	Count uint64 `json:"count"`
	Total uint64 `json:"total_ns"`
	NCCL  uint64 `json:"nccl_ns"`
	Operations
	// GPU is the sum of the GPU intervals of operations called in the phase, whenever they ran; operations launched
	// together have one interval. It is 0 if no operation has GPU times.
	GPU uint64 `json:"gpu_ns"`
}

// Operations counts the operations that were called inside a phase.
type Operations struct {
	Calls    uint64 `json:"calls"`    // collectives and messages
	Captured uint64 `json:"captured"` // calls captured into a graph, whose replays belong to no call
	Timed    uint64 `json:"timed"`    // operations of these calls with GPU times
	Untimed  uint64 `json:"untimed"`  // operations of these calls with other times, or not ended
}

func (o *Operations) add(p Operations) {
	o.Calls += p.Calls
	o.Captured += p.Captured
	o.Timed += p.Timed
	o.Untimed += p.Untimed
}

// Limit on the rows; all further phases share one row outside of all others.
const (
	maxPhaseRows  = 10_000
	furtherPhases = "(further phases)"
)

// phaseName is a name without the number at its end, if it has one.
type phaseName struct {
	stem     string
	numbered bool
}

func phaseNameOf(name string) (p phaseName) {
	p.stem, p.numbered = naming.Numbered(name)
	return p
}

// phaseNode is a row under construction, in the tree of nested phases.
type phaseNode struct {
	parent   *phaseNode // nil: this is the root, which is not a phase
	into     *phaseNode // the node of another counter that has absorbed it
	begin    otf2.Timestamp
	order    int
	name     string // the first name seen
	several  bool   // there are names with different numbers
	children map[phaseName]*phaseNode

	ranks              map[otf2.LocationGroupRef]*Rank
	times              analysis.Durations
	points, unfinished uint64
	credited           uint64 // number of the last plan whose time was added here
}

func (n *phaseNode) rank(process otf2.LocationGroupRef) *Rank {
	return keyed.Entry(n.ranks, process)
}

func (n *phaseNode) title() string {
	if n.several {
		return phaseNameOf(n.name).stem + "*"
	}
	return n.name
}

// Counter follows the threads' regions and finds the operations that were called in phases. It needs the events of
// whole processes in order of time; Absorb combines the counters of several processes.
type Counter struct {
	defs        *otf2.Definitions
	phases, api map[otf2.RegionRef]string // names

	root, further *phaseNode
	nodes         int
	threads       map[otf2.LocationRef]*phaseThread
	calls         analysis.CallTable[*occasion]
	plans         map[otf2.LocationRef]*phasePlan
	plan          uint64 // number of the last plan

	ended func(*Occurrence) // if set, receives each phase that has ended
}

// phaseThread is the open regions of one location.
type phaseThread struct{ open []phaseFrame }

type phaseFrame struct {
	entered uint64     // see facts.Region
	phase   *phaseNode // nil: the region is not a phase
	within  *occasion  // the innermost phase, possibly this one; nil: none
	nccl    uint64     // ns in NCCL's outermost calls inside
}

// phasePlan is an open plan of NCCL on a communicator rank's location.
type phasePlan struct {
	gpu     bool
	inside  int // open regions inside
	parents []uint64
}

// NewCounter returns a counter of the phases of some processes of an archive.
func NewCounter(defs *otf2.Definitions) *Counter {
	return &Counter{
		defs: defs, phases: naming.PhaseRegions(defs), api: naming.CallRegions(defs),
		root:    &phaseNode{children: make(map[phaseName]*phaseNode)},
		threads: make(map[otf2.LocationRef]*phaseThread),
		plans:   make(map[otf2.LocationRef]*phasePlan),
	}
}

// Wanted reports whether the archive can have phases.
func (c *Counter) Wanted() bool { return len(c.phases) > 0 }

// Enter takes a region that begins.
func (c *Counter) Enter(r *facts.Region) {
	if r.Number > 0 {
		p := &phasePlan{gpu: !r.Unfinished && r.Source == facts.SourceGPU}
		c.plans[r.Location] = p
		c.Begun(&r.Details, r)
		return
	}
	if p := c.plans[r.Location]; p != nil {
		p.inside++
		return
	}
	t := keyed.Entry(c.threads, r.Location)
	f := phaseFrame{entered: r.Entered}
	if n := len(t.open); n > 0 {
		f.within = t.open[n-1].within
	}
	_, called := c.api[r.Region]
	switch name, phase := c.phases[r.Region]; {
	case phase && (f.within == nil || f.within.phase != c.further): // inside that one it would count twice
		around := c.root
		if f.within != nil {
			around = f.within.phase
		}
		f.phase = c.node(around, name, r.Begin)
		f.phase.rank(placement.ProcessAt(c.defs, r.Location))
		f.within = &occasion{f.phase, name, f.within}
	case called && f.within != nil:
		c.call(r, f.within)
	}
	t.open = append(t.open, f)
}

// Leave takes a region that ends.
func (c *Counter) Leave(r *facts.Region) {
	switch p := c.plans[r.Location]; {
	case p == nil:
		c.leaveThread(r)
	case p.inside > 0:
		p.inside--
	default:
		c.endPlan(r, p)
	}
}

// Begun takes the details of an operation in a plan, which name its call.
func (c *Counter) Begun(d *facts.Details, in *facts.Region) {
	if in == nil || d.Parent == 0 {
		return
	}
	if p := c.plans[in.Location]; p != nil && p.inside == 0 {
		p.parents = append(p.parents, d.Parent)
	}
}

func (c *Counter) node(around *phaseNode, name string, begin otf2.Timestamp) *phaseNode {
	key := phaseNameOf(name)
	n := around.children[key]
	if n == nil {
		if c.further != nil {
			return c.further
		}
		c.nodes++
		n = newPhaseNode(around, name)
		n.begin, n.order = begin, c.nodes
		if c.nodes > maxPhaseRows {
			n.name, n.parent = furtherPhases, c.root
			c.further = n
			return n
		}
		around.children[key] = n
	}
	n.several = n.several || n.name != name
	return n
}

// call counts a call of NCCL's API that was made in a phase.
func (c *Counter) call(r *facts.Region, within *occasion) {
	if !r.Counted {
		return
	}
	process := placement.ProcessAt(c.defs, r.Location)
	made := Operations{Calls: 1, Captured: analysis.BoolCount(r.Graph)}
	for n := within.phase; n != c.root; n = n.parent {
		n.rank(process).add(made)
	}
	if r.Event != 0 && !r.Graph {
		c.calls.Put(analysis.CallKey{Process: process, Event: r.Event}, within)
	}
}

func (c *Counter) leaveThread(r *facts.Region) {
	t := c.threads[r.Location]
	at := facts.IndexOpen(t.open, r, func(f *phaseFrame) uint64 { return f.entered })
	f := t.open[at]
	t.open = slices.Delete(t.open, at, at+1)
	if r.Lost {
		f.countOpenPhase()
		return
	}
	took := uint64(r.End - r.Begin)
	if f.phase != nil {
		c.endPhase(r, &f, took)
		c.tell(r, &f, took)
	}
	if at > 0 {
		if _, called := c.api[r.Region]; called {
			f.nccl = took
		}
		t.open[at-1].nccl += f.nccl
	}
}

// countOpenPhase counts a phase whose end is unknown.
func (f *phaseFrame) countOpenPhase() {
	if f.phase != nil {
		f.phase.unfinished++
	}
}

func (c *Counter) endPhase(r *facts.Region, f *phaseFrame, took uint64) {
	of := f.phase.rank(placement.ProcessAt(c.defs, r.Location))
	switch {
	case r.Unfinished:
		f.phase.unfinished++
	case took == 0:
		f.phase.points++
	default:
		f.phase.times.Add(float64(took))
		of.Count++
		of.Total += took
		of.NCCL += f.nccl
	}
}

// endPlan adds the plan's time to the phases in which its operations were called. It runs at the plan's end, because
// clocks differ: a GPU's begin can precede the call.
func (c *Counter) endPlan(r *facts.Region, p *phasePlan) {
	delete(c.plans, r.Location)
	c.plan++
	process := placement.ProcessAt(c.defs, r.Location)
	for _, id := range p.parents {
		made := Operations{Timed: analysis.BoolCount(p.gpu), Untimed: analysis.BoolCount(!p.gpu)}
		called := c.calls.Take(analysis.CallKey{Process: process, Event: id})
		if called == nil {
			continue
		}
		for n := called.phase; n != c.root; n = n.parent {
			of := n.rank(process)
			of.add(made)
			if p.gpu && n.credited != c.plan {
				n.credited = c.plan
				of.GPU += uint64(r.End - r.Begin)
			}
		}
	}
}

// Of returns the phase in which an operation was called; nil if there is none or it is not yet known.
func (c *Counter) Of(location otf2.LocationRef, parent uint64) analysis.Occasion {
	if parent == 0 || !c.Wanted() {
		return nil
	}
	if n := c.calls.Peek(analysis.CallKey{Process: placement.ProcessAt(c.defs, location), Event: parent}); n != nil {
		return n
	}
	return nil
}

// Absorb takes over what another counter has counted for other processes.
func (c *Counter) Absorb(o *Counter) {
	o.abandonOpen()
	if o.further != nil {
		c.furtherNode().addNode(o.further)
	}
	c.absorbChildren(c.root, o.root)
}

// furtherNode returns the row shared by the phases beyond the limit.
func (c *Counter) furtherNode() *phaseNode {
	if c.further == nil {
		c.further = newPhaseNode(c.root, furtherPhases)
		c.further.order = math.MaxInt
	}
	return c.further
}

func newPhaseNode(parent *phaseNode, name string) *phaseNode {
	return &phaseNode{
		parent: parent, name: name, times: analysis.Durations{Keep: analysis.KeptTimes},
		children: make(map[phaseName]*phaseNode), ranks: make(map[otf2.LocationGroupRef]*Rank),
	}
}

func (c *Counter) absorbChildren(n, o *phaseNode) {
	for _, theirs := range o.inOrder() {
		key := phaseNameOf(theirs.name)
		mine := n.children[key]
		switch {
		case mine != nil:
		case c.nodes >= maxPhaseRows: // its contents count in its times
			c.furtherNode().addNode(theirs)
			continue
		default:
			c.nodes++
			mine = newPhaseNode(n, theirs.name)
			mine.begin, mine.order = theirs.begin, theirs.order
			n.children[key] = mine
		}
		mine.addNode(theirs)
		c.absorbChildren(mine, theirs)
	}
}

func (n *phaseNode) addNode(o *phaseNode) {
	o.into = n
	n.several = n.several || o.several || n.name != o.name
	if o.begin < n.begin {
		n.begin, n.order, n.name = o.begin, o.order, o.name
	}
	for process, theirs := range o.ranks {
		if mine := n.ranks[process]; mine != nil {
			mine.Count += theirs.Count
			mine.Total += theirs.Total
			mine.NCCL += theirs.NCCL
			mine.GPU += theirs.GPU
			mine.add(theirs.Operations)
		} else {
			n.ranks[process] = theirs
		}
	}
	n.times.Merge(&o.times)
	n.points += o.points
	n.unfinished += o.unfinished
}

// inOrder lists the phases directly inside, in the order in which they first began.
func (n *phaseNode) inOrder() []*phaseNode {
	return slices.SortedFunc(maps.Values(n.children), func(a, b *phaseNode) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.order, b.order), cmp.Compare(a.name, b.name))
	})
}

// abandonOpen counts the phases that are open when the data ends.
func (c *Counter) abandonOpen() {
	for _, t := range c.threads {
		for _, f := range t.open {
			f.countOpenPhase()
		}
	}
	clear(c.threads)
}

// Path returns the names of the phases around the phase and its own.
func (n *phaseNode) Path() string {
	for n.into != nil {
		n = n.into
	}
	name := n.title()
	for p := n.parent; p != nil && p.parent != nil; p = p.parent {
		name = p.title() + " / " + name
	}
	return name
}

// occasion is one run of a thread through a phase. It is immutable.
type occasion struct {
	phase  *phaseNode
	name   string
	around *occasion // nil: none
}

// Phase returns the phase that was run through.
func (o *occasion) Phase() analysis.Phase { return o.phase }

// Path returns the names of the phases around it and its own.
func (o *occasion) Path() string {
	if o.around == nil {
		return o.name
	}
	return o.around.Path() + " / " + o.name
}

// Around returns the phase around it.
func (n *phaseNode) Around() analysis.Phase {
	if n.parent == nil || n.parent.parent == nil { // the root is no phase
		return nil
	}
	return n.parent
}

// Result returns the rows of the phases; those that are still open are unfinished.
func (c *Counter) Result() []Row {
	c.abandonOpen()
	rows := c.rows([]Row{}, c.root, nil)
	if c.further != nil {
		rows = append(rows, c.row(c.further, []string{furtherPhases}))
	}
	return rows
}

func (c *Counter) rows(rows []Row, n *phaseNode, path []string) []Row {
	for _, child := range n.inOrder() {
		at := append(slices.Clone(path), child.title())
		rows = append(rows, c.row(child, at))
		rows = c.rows(rows, child, at)
	}
	return rows
}

func (c *Counter) row(n *phaseNode, path []string) Row {
	row := Row{
		Phase: strings.Join(path, " / "), Depth: len(path) - 1, Ranks: len(n.ranks),
		Points: n.points, Unfinished: n.unfinished, ByRank: make([]Rank, 0, len(n.ranks)), CallsKnown: len(c.api) > 0,
	}
	row.Time, row.Approximate = analysis.TimesOf(&n.times)
	order := slices.Sorted(maps.Keys(n.ranks))
	timed := 0
	var most, fewest uint64
	for _, process := range order {
		r := *n.ranks[process]
		r.Host = placement.HostOf(c.defs, process)
		if g := c.defs.LocationGroup(process); g != nil {
			r.Rank = c.defs.String(g.Name)
		}
		row.ByRank = append(row.ByRank, r)
		row.add(r.Operations)
		if r.Timed > 0 {
			timed++
			row.GPU += float64(r.GPU)
		}
		if r.Count == 0 {
			continue
		}
		if row.Count == 0 || r.Total < fewest {
			fewest = r.Total
		}
		if r.Total > most {
			most, row.Slowest, row.Host = r.Total, r.Rank, r.Host
		}
		row.Count += r.Count
		row.NCCL += r.NCCL
	}
	row.Spread = most - fewest
	row.GPU /= float64(max(timed, 1))
	return row
}
