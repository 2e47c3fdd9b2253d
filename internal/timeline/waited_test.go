// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

// All waits are on the page in the order of time: by rank, operation and communicator as many as the report has,
// start-up beside.
func TestWaitsInTimeAreTheReports(t *testing.T) {
	for name, anchor := range map[string]string{"collectives": lateRun(t), "every kind": jobtest.WithWaits(t)} {
		t.Run(name, func(t *testing.T) {
			d, h, all := readTimeline(t, jobtest.Open(t, anchor))
			s := d.report.WaitStates
			testkit.Require(t, h.Waits != nil && h.Waits.Count != 0 && len(h.Waits.Starts) == len(h.Waits.Ends),
				"no waits: %+v", h.Waits)
			type of struct {
				comm int
				name string
			}
			waited, caused, in := make([]uint64, len(h.Ranks)), make([]uint64, len(h.Ranks)), make(map[of]headWaiting)
			var total, startUp, last, before uint64
			for k := range h.Waits.Starts {
				c := unpack(t, all[h.Waits.Block+k]).columns(8)
				for i := 0; c[1].more(); i++ {
					since, length, after := c[0].difference(), c[1].next(), c[7].next()
					rank, by, first, comm, function := int(c[2].next())-1, int(c[3].next())-1, c[4].next(),
						int(c[5].next()), h.Functions[c[6].next()]
					if since < before || i == 0 && since != h.Waits.Starts[k] {
						t.Fatalf("an operation begins at %d, the one before at %d, the block at %d", since, before,
							h.Waits.Starts[k])
					}
					before, last = since, max(last, since+after+length)
					if first == 1 {
						startUp += length
						continue
					}
					total += length
					waited[rank] += length
					caused[by] += length
					key := of{comm, function}
					in[key] = headWaiting{comm, function, in[key].Waits + 1, in[key].Waited + length}
				}
				testkit.Equal(t, h.Waits.Ends[k], last, "block %d ends at", k)
			}
			testkit.Check(t, total == s.Total.Waited && startUp == s.StartUp.Waited,
				"waited %d and %d in start-up, the report has %d and %d", total, startUp, s.Total.Waited,
				s.StartUp.Waited)
			for i, r := range h.Ranks {
				testkit.Check(t, waited[i] == r.Waited && caused[i] == r.Caused,
					"%s: %d and %d, the report has %d and %d", r.Name, waited[i], caused[i], r.Waited, r.Caused)
			}
			testkit.Check(t, len(h.Waiting) != 0 && len(h.Waiting) == len(in),
				"%d operations, the report has %d", len(in), len(h.Waiting))
			for _, w := range h.Waiting {
				got := in[of{w.Comm, w.Name}]
				testkit.Check(t, got == w, "%+v, the report has %+v", got, w)
			}
		})
	}
}
