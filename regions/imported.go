// SPDX-License-Identifier: Apache-2.0

package regions

// Times of operations that come from elsewhere than NCCL's callbacks: of imported data.

// Imported is what somebody else than NCCL's callbacks tells of an operation: a trace that is imported.
type Imported struct {
	Begin, End  uint64 // on the process's line
	Source      string // TimingGPU, …; "": the times are those of NCCL's callbacks
	Uncertainty uint64 // ns
	Stated      bool   // Uncertainty is known
	Graph       bool   // it was replayed from a graph
	// Ordinal is the operation's among those of its function on the communicator, where the input tells it (Numbered):
	// all members count alike, whatever is missing in what they wrote.
	Ordinal  uint64
	Numbered bool
}

// Import gives the times of an operation ahead of the record that starts it. Operations of one plan have the times of
// the first.
func (m *Model) Import(handle uint64, t Imported) {
	m.changed = true
	if m.ops.reports == nil {
		m.ops.reports = make(map[uint64]*Imported)
	}
	m.ops.reports[handle] = &t
}

// takeImported gives an operation that begins what was reported of it.
func (ops *operations) takeImported(op *operation) {
	t := ops.reports[op.handle]
	if t == nil {
		return
	}
	delete(ops.reports, op.handle)
	op.imported = t
	op.plan.graph = op.plan.graph || t.Graph
}

// imported is what was reported of a plan's times, nil if nothing was.
func (p *plan) imported() *Imported {
	if len(p.ops) == 0 || p.ops[0].imported == nil || p.ops[0].imported.Source == "" {
		return nil
	}
	return p.ops[0].imported
}

// uncertain reports whether there is an uncertainty of a plan's times to state.
func (p *plan) uncertain(source string) bool {
	if t := p.imported(); t != nil {
		return t.Stated
	}
	return source == TimingGPU
}

// mostShared is how many values shared lists at most.
const mostShared = 2

// shared lists, behind other values, what must be equal in all members of a collective beside its size, for the digest
// of their sequence.
func (op *operation) shared(values []uint64) []uint64 {
	values = append(values, uint64(op.root))
	if f := CollectiveNamed(op.name); f != nil && f.Reduces {
		_, datatype := op.elements()
		values = append(values, text(datatype))
	}
	return values
}
