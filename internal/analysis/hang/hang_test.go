// SPDX-License-Identifier: Apache-2.0

package hang_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/report"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// pending is an operation that was begun 100 µs after the end of makeJob's last one.
func pending(function string, ordinal uint64, state string) description.Pending {
	return description.Pending{Function: function, Ordinal: ordinal, Since: t0 + 700*us, State: state}
}

func TestHangVerdicts(t *testing.T) {
	var said bytes.Buffer
	const seesEnds = 1<<6 | 1<<1 // KernelCh, Coll
	for _, tc := range []struct {
		name string
		mask uint32
		of   map[int][]description.Pending
		also func(rank int, p *shardtest.Process)
	}{
		{"nothing", seesEnds, nil, nil},
		{"one is missing", seesEnds, map[int][]description.Pending{0: {pending("AllReduce", 2, "running")},
			2: {pending("AllReduce", 2, "enqueued")}}, nil},
		{"all are inside", seesEnds, map[int][]description.Pending{
			0: {pending("AllReduce", 2, "running")}, 1: {pending("AllReduce", 2, "running")},
			2: {pending("AllReduce", 2, "running"),
				{Function: "AllGather", Ordinal: 1, Since: t0 + 710*us, State: "enqueued"}},
		}, nil},
		{"one has ended it", seesEnds, map[int][]description.Pending{0: {pending("Broadcast", 0, "running")}}, nil},
		{"programs differ", seesEnds, map[int][]description.Pending{0: {pending("AllReduce", 2, "running")},
			1: {pending("AllReduce", 2, "running")},
			2: {{Function: "Broadcast", Ordinal: 1, Since: t0 + 720*us, State: "running"}}}, nil},
		{"a message without its receiver", seesEnds, map[int][]description.Pending{0: {pending("Send>2", 0, "running")}},
			nil},
		{"a message without its sender", seesEnds, map[int][]description.Pending{2: {pending("Recv<1", 1, "running")}},
			nil},
		{"a message that is being called", seesEnds, map[int][]description.Pending{2: {pending("Send", 0, "calling")}},
			nil},
		{"called by all", seesEnds, map[int][]description.Pending{0: {pending("Broadcast", 1, "called")},
			1: {pending("Broadcast", 1, "called")}, 2: {pending("Broadcast", 1, "called")}}, nil},
		{"what hangs comes before what is only called", seesEnds, map[int][]description.Pending{
			0: {{Function: "Broadcast", Ordinal: 1, Since: t0 + 610*us, State: "called"},
				pending("AllReduce", 2, "running")},
			1: {{Function: "Broadcast", Ordinal: 1, Since: t0 + 610*us, State: "called"},
				pending("AllReduce", 2, "running")},
			2: {{Function: "Broadcast", Ordinal: 1, Since: t0 + 610*us, State: "called"},
				pending("AllReduce", 2, "running")},
		}, nil},
		{"left by all at the end", seesEnds, map[int][]description.Pending{
			0: {{Function: "AllReduce", Ordinal: 1, Since: t0, State: "running", Left: true}},
			1: {{Function: "AllReduce", Ordinal: 1, Since: t0, State: "running", Left: true}},
		}, nil},
		{"aborted", seesEnds, map[int][]description.Pending{
			0: {{Function: "AllReduce", Ordinal: 2, Since: t0, State: "running", Left: true}},
			1: {{Function: "AllReduce", Ordinal: 2, Since: t0, State: "running", Left: true}},
		}, nil},
		{"ends are not recorded", 1 << 1, nil, func(rank int, p *shardtest.Process) {
			p.Shard.Comms[0].Begun = t0 + 650*us
			if rank == 1 {
				p.Shard.Comms[0].Held = map[string]uint64{"AllGather": 1}
			}
		}},
		{"lost and paused", seesEnds, map[int][]description.Pending{0: {pending("AllReduce", 2, "running")}},
			func(rank int, p *shardtest.Process) {
				switch rank {
				case 1:
					p.Shard.Counts.Lost = map[string]map[string]uint64{"memory": {"Coll": 1}}
				case 2:
					p.Shard.Comms[0].Gaps = []description.Gap{{From: 2, FromTime: t0}}
				}
			}},
		{"nobody saw the end", seesEnds, map[int][]description.Pending{0: {pending("AllReduce", 2, "running")}},
			func(_ int, p *shardtest.Process) { p.Shard.End = nil }},
		{"one died long before", seesEnds, map[int][]description.Pending{0: {pending("AllReduce", 2, "running")},
			2: {pending("AllReduce", 2, "running")}}, func(rank int, p *shardtest.Process) {
			status := uint32(15)
			if rank == 1 {
				p.Shard.End.Time, status = t0+900*us, 11
			}
			p.Shard.End.Status = &status
		}},
	} {
		path := jobtest.Typical(t, func(rank int, p *shardtest.Process) {
			p.Shard.Masks.Record = tc.mask
			p.Shard.Pending = tc.of[rank]
			p.Shard.End = &description.End{Time: t0 + 700*us + 16_000_000*us, Called: true}
			if tc.also != nil {
				tc.also(rank, p)
			}
			p.Shard.LastTime = t0 + 1000*us
		})
		r, err := hang.Find(filepath.Dir(path), time.Now(), nil)
		testkit.Require(t, err == nil && len(r.Jobs) == 1 && len(r.Problems) == 0, "%v %v", r, err)
		fmt.Fprintf(&said, "inexact %q, partial %q\n", r.Jobs[0].Inexact, r.Jobs[0].Partial)
		r.Directory = tc.name
		testkit.Must(t, report.Hang(r).WriteText(&said))
		for _, c := range r.Jobs[0].Communicators {
			fmt.Fprintln(&said, c.Operation, c.Ordinal, c.Verdict)
			for _, m := range c.Members {
				fmt.Fprintln(&said, " ", m.Rank, m.State)
			}
		}
		fmt.Fprintln(&said)
	}
	golden.Text(t, "testdata/verdicts.txt", said.String())
}

// Times in the test jobs.
const (
	t0 = jobtest.T0
	us = jobtest.Microsecond
)
