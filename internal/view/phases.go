// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/attribute"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/naming"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// phases are the call paths of the view: phases that the application marked, and calls of NCCL's API, which are treated
// alike.
type phases struct {
	all   []phase
	calls map[analysis.CallKey]int32 // by call of NCCL: the innermost phase, which is the call itself
}

// phase is one execution of a phase on a thread.
type phase struct {
	parent     int32 // index of the enclosing phase; noPhase: none
	region     otf2.RegionRef
	begin, end otf2.Timestamp
	shown      otf2.RegionRef // region in the view
}

const noPhase = -1

// Names and descriptions of phases. The regions of operations have the names of the API calls themselves.
const (
	phaseText  = "phase of the application, in which the operations were called"
	callPrefix = "call of "
	callText   = "from the call of NCCL's API until the GPU ends the operation"
)

// maxNames is how many phases whose names differ only in a final number get regions of their own; more share one ("step
// *").
const maxNames = 100

// readPhases finds the phases in which operations were called, if there are any. Damage of the files is reported when
// the operations are read.
func (j *job) readPhases(workers int) error {
	marked, calls := naming.PhaseRegions(j.archive.Defs), naming.CallRegions(j.archive.Defs)
	if len(calls) == 0 {
		return nil
	}
	attributes := attribute.Find(j.archive.Defs)
	archive := facts.ArchiveNames(j.archive.Defs, membership.Communicators(j.archive.Defs))
	processes, network := placement.Processes(j.archive.Defs), property.NetworkRanks(j.archive.Defs)
	sel := &otf2.Selection{Kinds: regionKinds}
	for _, l := range j.archive.Defs.Locations {
		if _, is := network[l.Self]; l.Type == otf2.LocationTypeCPUThread && !is {
			sel.Locations = append(sel.Locations, l.Self)
		}
	}
	if len(sel.Locations) == 0 {
		return nil
	}
	j.phases.calls = make(map[analysis.CallKey]int32)
	var mu sync.Mutex
	return j.archive.EachLocation(context.Background(), workers, sel,
		func(loc otf2.LocationRef, events iter.Seq2[*otf2.Event, error]) error {
			t := phaseThread{marked: marked, called: calls, calls: make(map[uint64]int32)}
			r := facts.NewReader(archive, attributes)
			r.Enter, r.Leave = t.enterRegion, t.leaveRegion
			for ev, err := range events {
				if err == nil {
					r.Event(ev)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			j.phases.addThread(&t, processes[loc])
			return nil
		})
}

// opened is an open region of a thread: the innermost phase, and whether the region itself is that phase.
type opened struct {
	in      int32
	own     bool
	entered uint64 // see facts.Region
}

// phaseThread finds the phases of one thread.
type phaseThread struct {
	marked, called map[otf2.RegionRef]string // regions of phases, and of calls
	all            []phase
	open           []opened
	calls          map[uint64]int32
}

func (t *phaseThread) enterRegion(r *facts.Region) {
	within := int32(noPhase)
	if n := len(t.open); n > 0 {
		within = t.open[n-1].in
	}
	_, marked := t.marked[r.Region]
	_, called := t.called[r.Region]
	if called && r.Graph { // what a graph runs was not called when it was captured
		marked, called = false, false
	}
	if marked || called {
		t.all = append(t.all, phase{parent: within, region: r.Region, begin: r.Begin, end: otf2.UndefinedTimestamp})
		within = int32(len(t.all) - 1)
	}
	if called && r.Event != 0 {
		t.calls[r.Event] = within
	}
	t.open = append(t.open, opened{within, marked || called, r.Entered})
}

func (t *phaseThread) leaveRegion(r *facts.Region) {
	at := facts.IndexOpen(t.open, r, func(o *opened) uint64 { return o.entered })
	if at < 0 {
		return
	}
	for _, o := range t.open[at:] {
		if o.own && !r.Unfinished {
			t.all[o.in].end = r.End // call paths nest: a phase without a leave event ends with the one around it
		}
	}
	t.open = t.open[:at]
}

// addThread adds the phases of a thread.
func (p *phases) addThread(t *phaseThread, process otf2.LocationGroupRef) {
	first := int32(len(p.all))
	for _, f := range t.all {
		if f.parent != noPhase {
			f.parent += first
		}
		p.all = append(p.all, f)
	}
	for event, in := range t.calls {
		p.calls[analysis.CallKey{Process: process, Event: event}] = first + in
	}
}

// phaseOf returns the phase in which an operation was called.
func (p *phases) phaseOf(process otf2.LocationGroupRef, parent uint64) int32 {
	if in, known := p.calls[analysis.CallKey{Process: process, Event: parent}]; known && parent != 0 {
		return in
	}
	return noPhase
}

// defineRegions defines the regions of the phases in which operations of the view were called.
func (p *phases) defineRegions(d *definitions, j *job) {
	used := make(map[otf2.RegionRef]bool)
	for _, r := range j.rows {
		for i := range r.parts {
			for at := r.parts[i].phase; at != noPhase && !r.parts[i].is(flagDropped); at = p.all[at].parent {
				used[p.all[at].region] = true
			}
		}
	}
	names, calls := naming.PhaseRegions(j.archive.Defs), naming.CallRegions(j.archive.Defs)
	kinds := make(map[string]int)
	for ref := range used {
		if stem, numbered := naming.Numbered(names[ref]); numbered {
			kinds[stem]++
		}
	}
	regions := make(map[string]otf2.RegionRef)
	shown := make(map[otf2.RegionRef]otf2.RegionRef)
	for _, ref := range slices.Sorted(maps.Keys(used)) {
		name, text := names[ref], phaseText
		if stem, numbered := naming.Numbered(name); numbered && kinds[stem] > maxNames {
			name = stem + "*"
		} else if call, is := calls[ref]; is {
			name, text = callPrefix+call, callText
		}
		if _, known := regions[name]; !known {
			regions[name] = d.region(name, name, text, otf2.RegionRoleFunction, otf2.ParadigmUser, "")
		}
		shown[ref] = regions[name]
	}
	for i := range p.all {
		p.all[i].shown = shown[p.all[i].region]
	}
}

// callPath lists a phase and those around it, the outermost first.
func (p *phases) callPath(in int32) (path []int32) {
	for ; in != noPhase; in = p.all[in].parent {
		path = append(path, in)
	}
	slices.Reverse(path)
	return path
}

// innermostCommon returns the innermost phase in which all parts in the view were called. The first part is in the
// view.
func (p *phases) innermostCommon(parts []part) int32 {
	in := parts[0].phase
	for i := range parts {
		if in == noPhase || parts[i].is(flagDropped) || parts[i].phase == in {
			continue
		}
		path := p.callPath(parts[i].phase)
		for in != noPhase && !slices.Contains(path, in) {
			in = p.all[in].parent
		}
	}
	return in
}
