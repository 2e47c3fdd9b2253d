// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"github.com/nccl-otf2/nccl-otf2/cupti"
	"github.com/nccl-otf2/nccl-otf2/regions/gpuclock"
)

// Kernels that NCCL launched directly are linked to their KernelLaunch event, whose handle the launching thread had
// pushed as an external correlation id (CUPTI's documentation, cuptiActivityPushExternalCorrelationId), and by it to
// their plan.

// Rank is the state of a communicator rank for this package.
type Rank struct {
	GPU    int  // the timeline's
	Known  bool // GPU is
	Missed int  // plans in a row that were written without CUPTI's records of their kernels
}

// Launch is a KernelLaunch event.
type Launch struct {
	Handle      uint64
	Rank        *Rank
	Thread      uint32 // the system's id
	Start, Stop uint64
	Stopped     bool

	plan      Plan // while it is not written
	planID    uint64
	operation uint64 // the only one of its plan, when that has been written
}

// Plan provides what this package needs of one of NCCL's kernel plans.
type Plan interface {
	ID() uint64         // handle of its Group event
	CommRank() *Rank    // communicator rank of the plan
	ReportedAt() uint64 // when NCCL reported it
	// of a replayed plan, the captured call of its first operation, which all its replays name; 0 if there is none
	CapturedCall() uint64
	OnlyOperation() uint64             // handle of its operation if it has but one, else 0
	ChannelCount() uint32              // number of channels that have run
	RunsFunction(function string) bool // whether it has operations of a function, as kernels' names have them
	KernelLinks() *Links
}

// Links are the kernels that are linked to a plan.
type Links struct{ kernels []*Activity }

// hasKernels reports whether there are any.
func (l *Links) hasKernels() bool { return len(l.kernels) > 0 }

// KeepLaunch keeps a launch for CUPTI's records of it.
func (g *Recorder) KeepLaunch(l *Launch) { g.launches.Put(l.Handle, l) }

// DropLaunches drops the launches of a communicator rank that is gone, unless CUPTI may still refer to them.
func (g *Recorder) DropLaunches(r *Rank) {
	g.launches.RemoveFunc(func(_ uint64, l *Launch) bool { return l.Rank == r && !g.active })
}

// SetPlan sets the plan of a launch.
func (l *Launch) SetPlan(p Plan) { l.plan, l.planID = p, p.ID() }

// HasPlan reports whether the launch has had its plan, written or not.
func (l *Launch) HasPlan() bool { return l.planID != 0 }

// ReleaseWrittenPlan states that a plan has been written: later records of its kernels are not used for it. l is its
// launch, nil if it has none.
func ReleaseWrittenPlan(p Plan, l *Launch) {
	if l != nil && l.plan == p {
		l.plan, l.operation = nil, p.OnlyOperation()
	}
	p.KernelLinks().kernels = nil
}

// judgeCall reports whether an API call lies within the KernelLaunch whose handle its thread had pushed. The handle
// stays there if NCCL goes on after an error without ending the event: such an event proves nothing.
func (g *Recorder) judgeCall(id uint64, call *cupti.Call) cupti.Verdict {
	l := g.launches.Get(id)
	switch {
	case l == nil: // not known yet, as records of one time come in any order; or not a launch of this process
		return cupti.Wait
	case l.Thread != call.Thread:
		return cupti.Unsound
	}
	start, off, err := g.times.clock.Map(call.Start)
	stop, more, err2 := g.times.clock.Map(call.End)
	covered, _ := g.times.clock.Covered()
	switch {
	case err == cupti.ErrUnsure || err2 == cupti.ErrUnsure:
		return cupti.Unsound
	case err != nil || err2 != nil:
		return cupti.Wait
	case max(off, more) > callOff && call.End > covered: // the next reading decides
		return cupti.Wait
	case start+off < l.Start || max(off, more) > callOff:
		return cupti.Unsound
	case !l.Stopped:
		return cupti.Wait
	case stop > l.Stop+more:
		return cupti.Unsound
	}
	return cupti.Sound
}

// callOff is the clock error (ns) up to which API calls can be told apart.
const callOff = 1e6

// countOutcome counts the fate of a kernel that no graph launched.
func (g *Recorder) countOutcome(a *Activity, o cupti.Outcome, id uint64) {
	if a.drawn && o == cupti.Linked {
		o = cupti.Aged
	}
	if !a.nccl && withoutID[o] {
		g.counts[countOther]++
		return
	}
	g.counts[outcomes[o]]++
	if o != cupti.Linked {
		if a.nccl {
			g.counts[countUnlinked]++
		}
		return
	}
	l := g.launches.Get(id)
	a.link.launch = l
	if _, ok := g.devices.gpus[a.Stream.Device]; !ok && l.Rank.Known {
		g.devices.gpus[a.Stream.Device] = l.Rank.GPU
	}
	l.Rank.Missed = 0
	if l.plan == nil {
		g.counts[countNoPlan]++
		return
	}
	links := l.plan.KernelLinks()
	links.kernels = append(links.kernels, a)
}

// beforeLaunch reports whether a kernel ran before its launch by CUPTI's times, which is impossible. Begins that are a
// few µs too early occur when launches follow each other closely.
func (a *Activity) beforeLaunch() bool {
	l := a.link.launch
	return l != nil && a.timed && (a.begin+a.off+slackNs < l.Start || a.end+a.off < l.Start)
}

// KernelInterval returns when a plan's kernels ran, by CUPTI; ok is false if that is not recorded, or not certain.
func (l *Links) KernelInterval() (gpuclock.Interval, bool) {
	var i gpuclock.Interval
	for n, a := range l.kernels {
		if !a.timed || a.beforeLaunch() {
			return gpuclock.Interval{}, false
		}
		if n == 0 || a.begin < i.Begin {
			i.Begin = a.begin
		}
		i.End, i.Uncertainty = max(i.End, a.end), max(i.Uncertainty, a.off)
		if a.link.launch != nil {
			i.Begin = max(i.Begin, a.link.launch.Start)
			i.End = max(i.End, i.Begin)
		}
	}
	return i, len(l.kernels) > 0
}

// slackNs is the allowed distance between the two sources, beyond their uncertainties: a kernel begins some µs before
// the first of its blocks has a stamp, and ends some µs after the last.
const slackNs = 20_000

// SourceDifference returns by how much (ns) two sources contradict each other on when a kernel ran; 0 if they agree
// within their uncertainties.
func SourceDifference(stamps, kernel gpuclock.Interval) uint64 {
	ns := max(timeDistance(stamps.Begin, kernel.Begin), timeDistance(stamps.End, kernel.End))
	if ns <= slackNs+stamps.Uncertainty+kernel.Uncertainty {
		return 0
	}
	return ns
}

func timeDistance(a, b uint64) uint64 { return max(a, b) - min(a, b) }
