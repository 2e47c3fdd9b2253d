// SPDX-License-Identifier: Apache-2.0

package criticalpath

import "github.com/nccl-otf2/nccl-otf2/otf2"

// Which steps a path has taken, for those that draw it. The path itself keeps sums only, as it is not known until the
// run's end which of all paths leads there. So who wants the steps keeps those of all of them, and goes back from the
// last one.

// Tracer keeps the steps of all paths. It is called on the goroutine that follows them.
type Tracer interface {
	// Step keeps a step, which is valid until it returns, and gives its number, above 0.
	Step(s *Step) (number uint64)
}

// Step is how a path goes on with a rank: in an operation of the rank until that ends, and then with what the rank does
// until it begins its next operation. Times are ns, one after the other: in the operation, of which nothing is known,
// start-up, the rank's own.
type Step struct {
	Before  uint64         // number of the step that it follows; 0: none
	Rank    int32          // in the world
	What    int32          // what it is in from Start on, see Trace.Name
	Start   otf2.Timestamp // where the step before it ends
	In      uint64
	Unknown uint64
	StartUp uint64
	Own     [ownActivities]uint64
}

// Trace is what leads from the steps to the path of a run.
type Trace struct {
	Last  Step           // in the operation that ended last, with which the path ends
	Since otf2.Timestamp // where its first step begins
	First Activity       // what was before that: StartUp or Unknown
	named []Named
}

// Name tells what a step was in, and of Operation which one; of operations that are not compared the name is empty.
func (t *Trace) Name(what int32) (Activity, Named) {
	if at := int(what) - int(numActivities); at >= 0 && at < len(t.named) {
		return Operation, t.named[at]
	}
	return Activity(what), Named{}
}

// Traced lets a tracer keep the steps of all paths from now on.
func (p *Path) Traced(t Tracer) { p.tracer = t }

// trace tells of the step that a node ends with.
func (p *Path) trace(n int32, s *Step) {
	if p.tracer != nil {
		p.tree.nodes[n].step = p.tracer.Step(s)
	}
}

// traced is the path that leads to the last operation; nil: nobody asked.
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
