// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selection"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

// Of a selection there are the rows that can have something of it, the regions that begin in it, and their operations
// and waits where they belong.
func TestSelection(t *testing.T) {
	anchor := makeJob(t)
	for _, c := range []struct {
		name       string
		spec       selection.Spec
		rows       []string // that are locations
		bars       []string
		operations map[string]int // by the region that they are on
		begin, end uint64         // µs
		waited     []uint64       // by rank, µs
	}{
		{
			"of time", selection.Spec{From: "250us", To: "450us"},
			[]string{"Thread 0", "world rank 0", "world rank 1", "Thread 0", "world rank 2", "world rank 3"},
			[]string{"world rank 0: AllReduce at 300", "world rank 1: AllReduce at 310",
				"world rank 2: AllReduce at 320", "world rank 3: AllReduce at 330"},
			map[string]int{"AllReduce": 4}, 300, 400, []uint64{30, 20, 10, 0},
		},
		{
			"of a rank", selection.Spec{Ranks: "2"}, []string{"Thread 0", "world rank 2"},
			[]string{"Thread 0: ncclAllReduce at 90", "world rank 2: AllReduce at 120",
				"world rank 2: AllReduce at 320", "world rank 2: Group at 500"},
			map[string]int{"AllReduce": 2, "Group": 2}, 90, 540, []uint64{0, 0, 10, 0},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := jobtest.Open(t, anchor)
			selected := testkit.Value(selection.Resolve(a, c.spec))(t)
			d := testkit.Value(Read(a, selected))(t)
			defer d.Close()
			s := show(t, d)
			var rows, bars []string
			for i := range d.rows {
				if d.rows[i].bars != nil {
					rows = append(rows, d.rows[i].name)
				}
			}
			for _, b := range s.bars {
				bars = append(bars, fmt.Sprintf("%s: %s at %d", d.rows[b[0]].name, d.regions[b[4]].name,
					(b[2]+uint64(d.origin)-t0)/us))
			}
			on := make(map[string]int)
			for _, o := range s.operations {
				on[d.regions[s.bars[o[1]][4]].name]++
			}
			p := testkit.Value(d.write(new(collector), nil))(t)
			h := d.head(p, new(Options))
			var waited []uint64
			for _, r := range h.Ranks {
				waited = append(waited, r.Waited/us)
			}
			for _, diff := range []string{cmp.Diff(c.rows, rows), cmp.Diff(c.bars, bars), cmp.Diff(c.operations, on),
				cmp.Diff(c.waited, waited)} {
				testkit.Equal(t, diff, "", "diff")
			}
			begin, end := (d.begin+uint64(d.origin)-t0)/us, (d.duration+uint64(d.origin)-t0)/us
			testkit.Check(t, begin == c.begin && end == c.end,
				"from %d to %d µs, want %d to %d", begin, end, c.begin, c.end)
			testkit.Check(t, h.Selection == c.spec.String() && h.Begin == d.begin, "%q from %d", h.Selection, h.Begin)
		})
	}
}
