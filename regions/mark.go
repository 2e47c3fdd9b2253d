// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// The application's own phases and points (nccl_otf2_phase_begin and the like) on its threads, nested with NCCL's
// calls.

// categoryApplication is the category of markers that the application set.
const categoryApplication = GroupApplication

// maxPhases bounds the nesting depth of drawn application phases.
const maxPhases = 256

// groupPhases are the application's phases during an open group call. The call is written when it ends, with the phases
// inside it.
type groupPhases struct {
	open  []openPhase // begun inside
	ended int         // ends of phases that began before
}

type openPhase struct {
	region otf2.RegionRef
	start  uint64
}

// applicationMark takes the begin or end of a phase, or a point. Phases are regions of the calling thread. A phase that
// only begins or only ends inside a group of calls is moved to the group's end, because regions of a thread must nest.
func (ts *threads) applicationMark(th *thread, t uint64, r *shm.Record) {
	loc := ts.threadLocation(th)
	if loc == nil {
		return
	}
	g := th.group
	switch r.Mark {
	case shm.MarkPhaseBegin:
		if len(th.phases) >= maxPhases || th.deep > 0 {
			ts.countOddity(oddDeepPhase)
			th.deep++
			return
		}
		region := ts.defs.applicationRegion(r.MarkText)
		if g != nil {
			if len(g.phases.open)+len(th.phases) >= maxPhases {
				ts.countOddity(oddDeepPhase)
				th.deep++
				return
			}
			g.phases.open = append(g.phases.open, openPhase{region, t})
			return
		}
		th.phases = append(th.phases, region)
		ts.keepError(loc.w.Enter(loc.raiseTime(t), nil, region))
	case shm.MarkPhaseEnd:
		switch {
		case th.deep > 0:
			th.deep--
		case g != nil && len(g.phases.open) > 0:
			p := g.phases.open[len(g.phases.open)-1]
			g.phases.open = g.phases.open[:len(g.phases.open)-1]
			g.spans = append(g.spans, span{start: p.start, stop: t, region: p.region})
		case g != nil && g.phases.ended < len(th.phases):
			g.phases.ended++
		case g == nil && len(th.phases) > 0:
			ts.endPhase(th, loc, t, false)
		default:
			ts.countOddity(oddStrayPhaseEnd)
		}
	case shm.MarkPoint:
		region := ts.defs.applicationRegion(r.MarkText)
		if g != nil {
			g.spans = append(g.spans, span{start: t, stop: t, region: region})
		} else {
			ts.writeRegion(loc, t, t, nil, region)
		}
		ts.addMarker(loc, t, severityNone, categoryApplication, ts.process.Regions[region].Name)
	}
}

// endPhase leaves the innermost phase.
func (ts *threads) endPhase(th *thread, loc *location, t uint64, unfinished bool) {
	region := th.phases[len(th.phases)-1]
	th.phases = th.phases[:len(th.phases)-1]
	a := ts.emptyAttributes()
	if unfinished {
		a.Uint8(AttrUnfinished, 1)
		ts.countOddity(oddUnfinishedPhase)
	}
	ts.keepError(loc.w.Leave(loc.raiseTime(t), a, region))
}

// movePhases draws, at the end of a group call, the phases that only ended or only began inside it.
func (ts *threads) movePhases(th *thread, g *groupCall) {
	for range g.phases.ended {
		ts.countOddity(oddCrossingPhase)
		ts.endPhase(th, th.loc, g.stop, false)
	}
	for _, p := range g.phases.open {
		ts.countOddity(oddCrossingPhase)
		th.phases = append(th.phases, p.region)
		ts.keepError(th.loc.w.Enter(th.loc.raiseTime(g.stop), nil, p.region))
	}
	g.phases = groupPhases{}
}

// endPhases leaves all phases of a thread that has ended or is not recorded any more.
func (ts *threads) endPhases(th *thread, t uint64) {
	for len(th.phases) > 0 {
		ts.endPhase(th, th.loc, t, true)
	}
	th.deep = 0
}
