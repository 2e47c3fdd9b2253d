// SPDX-License-Identifier: Apache-2.0

package bandwidth

import (
	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selection"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Read brings together the operations of an archive, and nothing else: where times of calls are to stand beside those
// of operations, and where waits are of no interest. It is of what is selected. It has the operations that the report
// of package operations has. first: those of start-up count as others. Files that cannot be read to their end are named
// in problems.
func Read(a *otf2.Archive, first bool, selected *selection.Selection) (rows []Row, problems []string) {
	comms := facts.Communicators(a.Defs)
	r := &reading{selected: selected, rows: NewRows(), expected: analysis.MembersWithData(a.Defs, comms),
		stretches: analysis.StretchesOf(a.Anchor)}
	r.rows.First = first
	r.rows.Unstated = !facts.FindAttributes(a.Defs).Has(regions.AttrTimingSource)
	r.assembly = analysis.NewAssembly(r.finish, func([]analysis.Operation) {})
	problems = analysis.ReadOperations(a, comms, r.add)
	return r.rows.Table(&Names{Defs: a.Defs, Comms: comms}, nil), problems
}

// reading makes rows of operations.
type reading struct {
	selected  *selection.Selection
	rows      *Rows
	expected  map[otf2.CommRef]int
	stretches []facts.Stretch
	assembly  *analysis.Assembly
}

func (r *reading) add(op *analysis.Operation) {
	switch {
	case !r.selected.Operation(op):
	case facts.IsMessage(op.Function) && !r.selected.Shown(op.Location):
	case facts.IsMessage(op.Function):
		r.member(op)
		r.rows.End()
	case !facts.Excluded(r.stretches, op.Communicator.Ref, op.Function, op.Ordinal):
		r.assembly.Add(analysis.PartKey{Comm: op.Communicator.Ref, Sequence: op.Function, Ordinal: op.Ordinal}, op,
			r.expected[op.Communicator.Ref])
	}
}

func (r *reading) finish(members []analysis.Operation) {
	for i := range members {
		r.member(&members[i])
	}
	r.rows.End()
}

func (r *reading) member(op *analysis.Operation) {
	r.rows.Member(&op.Operation, op.Rank)
	if op.Called {
		r.rows.call(op.CallTime)
	}
}
