// SPDX-License-Identifier: Apache-2.0

package bandwidth

import (
	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selection"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selfreport"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/attribute"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Read returns the rows of an archive's selected operations and nothing else, for callers that want the times of calls
// as well, or have no interest in waits. The operations are those in the report of package operations. With first,
// start-up operations count like the others. problems names files that cannot be read to their end.
func Read(a *otf2.Archive, first bool, selected *selection.Selection) (rows []Row, problems []string) {
	comms := membership.Communicators(a.Defs)
	r := &reading{selected: selected, rows: NewRows(), expected: analysis.MembersWithData(a.Defs, comms),
		stretches: selfreport.StretchesOf(a.Anchor)}
	r.rows.First = first
	r.rows.Unstated = !attribute.Find(a.Defs).Has(regions.AttrTimingSource)
	r.assembly = analysis.NewAssembly(r.finish, func([]analysis.Operation) {})
	problems = analysis.ReadOperations(a, comms, r.add)
	return r.rows.Table(&Names{Defs: a.Defs, Comms: comms}, nil), problems
}

// reading makes rows from operations.
type reading struct {
	selected  *selection.Selection
	rows      *Rows
	expected  map[otf2.CommRef]int
	stretches []property.Stretch
	assembly  *analysis.Assembly
}

func (r *reading) add(op *analysis.Operation) {
	switch {
	case !r.selected.Operation(op):
	case facts.IsMessage(op.Function) && !r.selected.Shown(op.Location):
	case facts.IsMessage(op.Function):
		r.member(op)
		r.rows.End()
	case !property.Excluded(r.stretches, op.Communicator.Ref, op.Function, op.Ordinal):
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
