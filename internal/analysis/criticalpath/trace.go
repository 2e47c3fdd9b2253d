// SPDX-License-Identifier: Apache-2.0

package criticalpath

import "github.com/nccl-otf2/nccl-otf2/otf2"

// The steps of a path, for drawing it. The path itself keeps only sums, because it is unknown until the run's end
// which of all paths leads there. A caller that wants the steps keeps those of all paths, and goes back from the last
// one.

// Tracer keeps the steps of all paths. It is called on the goroutine that follows them.
type Tracer interface {
	// Step stores a step, which is valid until Step returns, and returns its number, above 0.
	Step(s *Step) (number uint64)
}

// Step is one continuation of a path on a rank: in an operation of the rank until that ends, and then in what the rank
// does until it begins its next operation. Times are in ns, in this order: in the operation, unknown, start-up, the
// rank's own.
type Step struct {
	Before  uint64         // number of the previous step; 0: none
	Rank    int32          // in the world
	What    int32          // what the rank is in from Start on, see Trace.Name
	Start   otf2.Timestamp // end of the previous step
	In      uint64
	Unknown uint64
	StartUp uint64
	Own     [ownActivities]uint64
}

// Trace connects the steps to the path of a run.
type Trace struct {
	Last  Step           // in the operation that ended last, the end of the path
	Since otf2.Timestamp // begin of the first step
	First Activity       // what came before that: StartUp or Unknown
	named []Named
}

// Name returns the activity of a step, and for Operation which one; the name is empty for operations that are not
// compared.
func (t *Trace) Name(what int32) (Activity, Named) {
	if at := int(what) - int(numActivities); at >= 0 && at < len(t.named) {
		return Operation, t.named[at]
	}
	return Activity(what), Named{}
}

// Traced makes a tracer keep the steps of all paths from now on.
func (p *Path) Traced(t Tracer) { p.tracer = t }

// trace passes the step at the end of a node to the tracer.
func (p *Path) trace(n int32, s *Step) {
	if p.tracer != nil {
		p.tree.nodes[n].step = p.tracer.Step(s)
	}
}

// traced returns the path that leads to the last operation; nil if there is no tracer.
func (p *Path) traced(end *departure, rank int, first Activity) *Trace {
	if p.tracer == nil {
		return nil
	}
	n := &p.tree.nodes[end.node]
	return &Trace{
		Last:  Step{Before: n.step, Rank: int32(rank), What: end.what, Start: n.at, In: uint64(end.end - n.at)},
		Since: n.since, First: first, named: p.named,
	}
}
