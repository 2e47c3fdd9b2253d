// SPDX-License-Identifier: Apache-2.0

package regions

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
}

// Import sets the times of an operation before the record that starts it. Operations of one plan have the times of the
// first.
func (m *Model) Import(handle uint64, t Imported) {
	m.changed = true
	if m.ops.reports == nil {
		m.ops.reports = make(map[uint64]*Imported)
	}
	m.ops.reports[handle] = &t
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
