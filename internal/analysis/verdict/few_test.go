// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// A rank is named for at least five occasions. Small ones beside a few great ones are none, even if they are many; beside
// a single one they are.
func TestFewOccasions(t *testing.T) {
	for _, c := range []struct {
		name   string
		great  int     // occasions in the begin, of twenty times as much
		small  int     // occasions
		late   float64 // ns, to these
		stands bool
	}{
		{"three at the start, and some scatter", 3, 12, 5e6, false},
		{"four", 4, 12, 5e6, false},
		{"five", 5, 12, 5e6, true},
		{"a single one, and twelve", 1, 12, 50e6, true},
		{"a single one, and four", 1, 4, 50e6, false},
	} {
		ev := evidence(8, 60, -1)
		r, comm := &ev.Causes.Ranks[2], &ev.Causes.Comms[0]
		r.All = true
		for k := range c.great + c.small {
			late := c.late
			if k < c.great {
				late *= 20
			}
			cost := late * 7
			comm.Struck[2][causes.Level(cost)]++
			comm.Led[2][causes.Level(cost)]++
			r.Costs[causes.Host] += cost
			r.Delays[causes.Host] += late
			r.Worked += late
			r.Heaviest = 20 * c.late * 7
			ev.Causes.Waited += cost
			r.Occurrences = append(r.Occurrences,
				causes.Occurrence{Function: "AllReduce", Nth: uint64(k + 1), Late: late, Called: late, Cost: cost})
		}
		v := Judge(ev)
		testkit.Check(t, v.StandsOut == c.stands, "%s: %s", c.name, v.Text)
	}
}
