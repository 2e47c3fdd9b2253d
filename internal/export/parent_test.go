// SPDX-License-Identifier: Apache-2.0

package export

import (
	"fmt"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// Begins of communicator ranks say what their communicator came from.
func TestParentsOfCommunicators(t *testing.T) {
	const world = 0xabcdef // and what NCCL makes of it
	a := jobtest.Open(t, jobtest.Make(t, 2, 2, func(r int, p *shardtest.Process) {
		for i, c := range []description.Comm{{ID: world, Name: "world"}, {ID: 0xa782f28ed1e0a2c3, Name: "tp"},
			{ID: 0x435e404045d495d, Name: "rest"}, {ID: 77, Name: "other"}} {
			c.NRanks, c.Rank, c.InitTime = 2, r, uint64(t0+i*1000*us)
			comm := p.Comm(c)
			p.AllReduce(comm, c.InitTime+10*us, c.InitTime+20*us, 1000)
		}
	}))
	res := testkit.Value(JSONL(a, t.TempDir(), nil))(t)
	want := map[string]string{"world": "<nil> <nil> <nil> <nil>", "tp": "world 1.1259375e+07 2 1",
		"rest": "world 1.1259375e+07 0 <nil>", "other": "<nil> <nil> <nil> <nil>"}
	seen := 0
	for _, path := range res.Files {
		for _, r := range recordsIn(t, path) {
			if r["func"] == "ProfilerInit" {
				seen++
				d := r["details"].(map[string]any)
				testkit.Equal(t, fmt.Sprint(d["parentCommName"], " ", d["parentCommId"], " ", d["split"], " ",
					d["color"]), want[d["commName"].(string)], "%s", d["commName"])
			}
		}
	}
	testkit.Equal(t, seen, 2*len(want), "begins")
}
