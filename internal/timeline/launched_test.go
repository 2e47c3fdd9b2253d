// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// Operations of which only the launch is known are not shown under the name of those whose times are known, so that
// neither a bar nor a sum of times takes the one for the other.
func TestLaunchesAreNotShownAsOperations(t *testing.T) {
	d := read(t, jobtest.Make(t, 2, 2, func(_ int, p *shardtest.Process) {
		world := p.World()
		p.Call("ncclAllReduce", t0+10*us, t0+20*us)
		for i, source := range []string{"gpu", "enqueue", "network"} {
			at := uint64(t0 + 100*us*(i+1))
			p.Collective(world, shardtest.Op{Function: "AllReduce", Begin: at, End: at + 50*us, Count: 1,
				Source: source})
		}
	}))
	defer d.Close()
	s := show(t, d)
	var got []string
	for _, b := range s.bars {
		if d.rows[b[0]].kind == kindRank {
			got = append(got, fmt.Sprintf("%d %s", (b[2]+uint64(d.origin)-t0)/us, d.regions[b[4]].name))
		}
	}
	want := []string{"100 AllReduce", "200 AllReduce (launch only)", "300 AllReduce"}
	testkit.Same(t, append(want, want...), got)
	for _, r := range d.regions {
		testkit.Check(t, !strings.Contains(r.name, "nccl") || !strings.Contains(r.name, "only"),
			"a call has become %q", r.name)
	}
}
