// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/phases"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/naming"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Phases that the application marked, each with all ranks that executed it.

// occurrence is one execution of a phase.
type occurrence struct {
	path, kind  string
	depth       int
	begin, end  otf2.Timestamp // of the first rank, of the last one
	count       uint64
	time, most  uint64
	slowest     otf2.LocationGroupRef
	slowestSeen bool
}

// round distinguishes phases of the same name: how often a location has returned to an earlier name.
type round struct {
	path  string
	round uint32
}

type occurrenceKey struct {
	path  string
	round uint32
}

// phaseRuns collects the phases. Several goroutines may add to it.
type phaseRuns struct {
	mu     sync.Mutex
	rounds map[otf2.LocationRef]map[string]round // by kind
	all    map[occurrenceKey]*occurrence
	left   uint64 // occurrences beyond mostPhases
}

const (
	deepestPhase = 1       // depth of the phases shown: the outermost and those directly in them
	mostPhases   = 1 << 16 // number of phases kept
)

func newPhaseRuns() *phaseRuns {
	return &phaseRuns{rounds: make(map[otf2.LocationRef]map[string]round), all: make(map[occurrenceKey]*occurrence)}
}

// addPhase adds a phase that has ended; see operations.Observer.
func (p *phaseRuns) addPhase(o *phases.Occurrence) {
	if o.Depth > deepestPhase {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := occurrenceKey{o.Path, p.roundOf(o)}
	one := p.all[key]
	if one == nil {
		if len(p.all) >= mostPhases {
			p.left++
			return
		}
		one = &occurrence{path: o.Path, kind: o.Kind, depth: o.Depth, begin: o.Begin, end: o.End}
		p.all[key] = one
	}
	one.add(o)
}

func (one *occurrence) add(o *phases.Occurrence) {
	one.begin, one.end = min(one.begin, o.Begin), max(one.end, o.End)
	took := uint64(o.End - o.Begin)
	one.count++
	one.time += took
	if !one.slowestSeen || took > one.most || took == one.most && o.Process < one.slowest {
		one.most, one.slowest, one.slowestSeen = took, o.Process, true
	}
}

// roundOf returns how often the phase's location has returned to earlier names. Within a round the numbers at the ends
// of names increase.
func (p *phaseRuns) roundOf(o *phases.Occurrence) uint32 {
	kinds := keyed.Map(p.rounds, o.Location)
	last, known := kinds[o.Kind]
	if known && !later(o.Path, last.path) {
		last.round++
	}
	kinds[o.Kind] = round{o.Path, last.round}
	return last.round
}

// later reports whether the numbers at the ends of a path's names are greater than those of another path of its kind.
// The outermost number that differs decides.
func later(path, than string) bool {
	names, others := strings.Split(path, " / "), strings.Split(than, " / ")
	for i := range min(len(names), len(others)) {
		a, b := numberAt(names[i]), numberAt(others[i])
		if a != b {
			return a > b
		}
	}
	return false
}

func numberAt(name string) uint64 {
	stem, _ := naming.Numbered(name)
	n, _ := strconv.ParseUint(name[len(stem):], 10, 64) // 0: there is none, or it is too large
	return n
}

// headPhase is a phase on the page.
type headPhase struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Depth   int    `json:"depth"`
	From    uint64 `json:"from"` // begin on the first rank
	To      uint64 `json:"to"`   // end on the last rank
	Count   uint64 `json:"count"`
	Time    uint64 `json:"time"`    // of all ranks together, ns
	Most    uint64 `json:"most"`    // the longest of a rank, ns
	Slowest int    `json:"slowest"` // that rank; −1: unknown
}

// phasesOf returns the phases in the order of their begins.
func (d *Data) phasesOf() []headPhase {
	all := []headPhase{}
	if d.runs == nil {
		return all
	}
	ranks := make(map[otf2.LocationGroupRef]int)
	for i, r := range d.ranks {
		if r.row != noRow {
			ranks[d.rows[r.row].group] = i
		}
	}
	for _, o := range d.runs.all {
		one := headPhase{Name: o.path, Kind: o.kind, Depth: o.depth, From: d.since(o.begin), To: d.since(o.end),
			Count: o.count, Time: o.time, Most: o.most, Slowest: -1}
		if at, ok := ranks[o.slowest]; ok {
			one.Slowest = at
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b headPhase) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Depth, b.Depth), cmp.Compare(a.To, b.To),
			cmp.Compare(a.Name, b.Name))
	})
	return all
}
