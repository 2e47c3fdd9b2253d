// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"github.com/nccl-otf2/nccl-otf2/cupti"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Times of operations from other sources than NCCL's callbacks: imported data.

// Imported is what an imported trace states about an operation.
type Imported struct {
	Begin, End  uint64 // on the process's line
	Source      string // TimingGPU, …; "": the times are those of NCCL's callbacks
	Uncertainty uint64 // ns
	Stated      bool   // Uncertainty is known
	Graph       bool   // it was replayed from a graph
	// Ordinal is the operation's index among those of its function on the communicator, if the input states it
	// (Numbered): all members then count alike, whatever their inputs lack.
	Ordinal  uint64
	Numbered bool
	CallSite string // line of the program that called it; "" if not known

	// Carried are its attributes of the kinds that IsCarried names. Unless nil, they take the place of those that
	// follow from NCCL's callbacks.
	Carried  []otf2.AttributeValue
	UnderWay UnderWay // how far it had come when the recording ended
}

// IsCarried reports whether an attribute of an operation follows from its GPU's or the network's events alone, so that
// an export of operations has to state it.
func IsCarried(a otf2.AttributeRef) bool {
	switch a {
	case AttrUnfinished, AttrGPUHeld, AttrGPUHeldFirst, AttrGPUSteps, AttrGPUWays, AttrEndsEarly, AttrGPULast,
		attrRealigned, attrGPUDifference:
		return true
	}
	return isOfLink(a)
}

// isOfLink reports whether an attribute is of the operation's busiest link; the other ones that are carried are of its
// launch.
func isOfLink(a otf2.AttributeRef) bool { return a >= AttrLinkPeer && a <= AttrLinkTransfers }

// addCarried adds the attributes that an import states, those of a link or the others. It returns false if it states
// none.
func (op *operation) addCarried(a *otf2.AttributeList, ofLink bool) bool {
	if op.imported == nil || op.imported.Carried == nil {
		return false
	}
	for _, v := range op.imported.Carried {
		if isOfLink(v.ID) == ofLink {
			a.Add(v.ID, v.Type, otf2.Value(v.Bits))
		}
	}
	return true
}

// UnderWay says how far an operation had come when the recording ended, if NCCL had not reported its end by then. It is
// what the attribute UNFINISHED has besides its lowest bit, which is set if NCCL had not finished enqueueing it.
type UnderWay uint8

// How far operations had come; zero: to their ends.
const (
	Enqueued UnderWay = 1 << (1 + iota)
	Running           // work of its GPU or of the network was under way
	Begun             // its GPU had begun it

	AnyUnderWay = Enqueued | Running | Begun
)

// Import sets the times of an operation before the record that starts it. Operations of one plan have the times of the
// first.
func (m *Model) Import(handle uint64, t Imported) {
	m.changed = true
	if m.ops.reports == nil {
		m.ops.reports = make(map[uint64]*Imported)
	}
	m.ops.reports[handle] = &t
}

// ImportKernel draws a kernel of the application. Kernels come in the order of their ends, beside records of those
// times.
func (m *Model) ImportKernel(k *cupti.Kernel, name string) {
	m.changed = true
	m.extendTime(k.Start)
	m.extendTime(k.End)
	m.cuda.AddImported(k, name)
}

// takeImported gives an operation that begins its imported facts.
func (ops *operations) takeImported(op *operation) {
	t := ops.reports[op.handle]
	if t == nil {
		return
	}
	delete(ops.reports, op.handle)
	op.imported = t
	op.plan.graph = op.plan.graph || t.Graph
}

// underWay returns how far a plan that has not ended had come.
func (p *plan) underWay() UnderWay {
	if len(p.ops) > 0 && p.ops[0].imported != nil && p.ops[0].imported.UnderWay != 0 {
		return p.ops[0].imported.UnderWay
	}
	w := Enqueued
	if p.gpu.open > 0 || p.net.open > 0 {
		w |= Running
	}
	if p.gpu.stamps.Reported > 0 {
		w |= Begun
	}
	return w
}

// importedTimes returns the imported times of a plan, nil if there are none.
func (p *plan) importedTimes() *Imported {
	if len(p.ops) == 0 || p.ops[0].imported == nil || p.ops[0].imported.Source == "" {
		return nil
	}
	return p.ops[0].imported
}

// statesUncertainty reports whether the uncertainty of a plan's times is stated.
func (p *plan) statesUncertainty(source string) bool {
	if t := p.importedTimes(); t != nil {
		return t.Stated
	}
	return source == TimingGPU
}

// mostShared bounds the values that shared adds.
const mostShared = 2

// appendShared appends what must be equal in all members of a collective besides its size, for the digest of their
// sequence.
func (op *operation) appendShared(values []uint64) []uint64 {
	values = append(values, uint64(op.root))
	if f := CollectiveNamed(op.name); f != nil && f.Reduces {
		_, datatype := op.requestedElements()
		values = append(values, hashText(datatype))
	}
	return values
}
