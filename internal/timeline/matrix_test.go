// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"reflect"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/matrix"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selection"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

// Without transfers the matrix is made of the operations that are read anyway: it is the one that a pass of its own
// gives, of a selection, too.
func TestTheMatrixOfOperationsIsThatOfTheReport(t *testing.T) {
	dir := t.TempDir()
	jobtest.WriteTraining(t, dir, 16, 3)
	a := jobtest.Open(t, jobtest.Unify(t, dir))
	for _, spec := range []selection.Spec{{}, {Ranks: "2-5"}, {From: "10ms", To: "20ms"}} {
		selected := testkit.Value(selection.Resolve(a, spec))(t)
		d := testkit.Value(Read(a, selected))(t)
		d.Close()
		want := matrix.Read(a, selected)
		testkit.Check(t, len(want.Nominal) != 0 && matrix.OfOperations(a, selected) != nil,
			"%v: nothing was sent: %+v", spec, want)
		testkit.Check(t, reflect.DeepEqual(d.matrix, want),
			"%v: the page has %+v, the report %+v", spec, d.matrix, want)
	}
}
