// SPDX-License-Identifier: Apache-2.0

package hang_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/report"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// pending is an operation that was begun 100 µs after the end of makeJob's last one.
func pending(function string, ordinal uint64, state string) experiment.Pending {
	return experiment.Pending{Function: function, Ordinal: ordinal, Since: t0 + 700*us, State: state}
}

func TestHangVerdicts(t *testing.T) {
	const seesEnds = 1<<6 | 1<<1 // KernelCh, Coll
	for _, tc := range []struct {
		name      string
		mask      uint32
		of        map[int][]experiment.Pending
		also      func(rank int, p *shardtest.Process)
		operation string // "" if none is expected
		verdict   hang.Verdict
		states    string
		says      string
	}{
		{"nothing", seesEnds, nil, nil, "", "", "", "no operation is under way"},
		{"one is missing", seesEnds, map[int][]experiment.Pending{0: {pending("AllReduce", 2, "running")},
			2: {pending("AllReduce", 2, "enqueued")}}, nil,
			"AllReduce 2", hang.NotReached, "running missing enqueued",
			"world: AllReduce 2 is not reached by all: Rank 1 missing, Ranks 0,2 inside; for 16 s"},
		{"all are inside", seesEnds, map[int][]experiment.Pending{
			0: {pending("AllReduce", 2, "running")}, 1: {pending("AllReduce", 2, "running")},
			2: {pending("AllReduce", 2, "running"),
				{Function: "AllGather", Ordinal: 1, Since: t0 + 710*us, State: "enqueued"}},
		}, nil, "AllReduce 2", hang.AllInside, "running running running", ", 1 further operation behind it"},
		{"one has ended it", seesEnds, map[int][]experiment.Pending{0: {pending("Broadcast", 0, "running")}}, nil,
			"Broadcast 0", hang.AllInside, "running done done", "Rank 0 inside, Ranks 1-2 done"},
		{"programs differ", seesEnds, map[int][]experiment.Pending{0: {pending("AllReduce", 2, "running")},
			1: {pending("AllReduce", 2, "running")},
			2: {{Function: "Broadcast", Ordinal: 1, Since: t0 + 720*us, State: "running"}}}, nil,
			"AllReduce 2", hang.Different, "running running missing", "in another operation instead"},
		{"a message without its receiver", seesEnds, map[int][]experiment.Pending{0: {pending("Send>2", 0, "running")}},
			nil, "Send 0>2 0", hang.NotReached, "running missing",
			"Send 0 from Rank 0 to Rank 2 is not reached by all: Rank 2 missing, Rank 0 inside"},
		{"a message without its sender", seesEnds, map[int][]experiment.Pending{2: {pending("Recv<1", 1, "running")}},
			nil, "Send 1>2 1", hang.NotReached, "missing running", "Rank 1 missing, Rank 2 inside"},
		{"a message that is being called", seesEnds, map[int][]experiment.Pending{2: {pending("Send", 0, "calling")}},
			nil, "Send of rank 2 0", hang.NoPeer, "calling", "its other end is not known"},
		{"called by all", seesEnds, map[int][]experiment.Pending{0: {pending("Broadcast", 1, "called")},
			1: {pending("Broadcast", 1, "called")}, 2: {pending("Broadcast", 1, "called")}}, nil,
			"Broadcast 1", hang.CalledOnly, "called called called", "NCCL does not report"},
		{"what hangs comes before what is only called", seesEnds, map[int][]experiment.Pending{
			0: {{Function: "Broadcast", Ordinal: 1, Since: t0 + 610*us, State: "called"},
				pending("AllReduce", 2, "running")},
			1: {{Function: "Broadcast", Ordinal: 1, Since: t0 + 610*us, State: "called"},
				pending("AllReduce", 2, "running")},
			2: {{Function: "Broadcast", Ordinal: 1, Since: t0 + 610*us, State: "called"},
				pending("AllReduce", 2, "running")},
		}, nil, "AllReduce 2", hang.AllInside, "running running running", ""},
		{"left by all at the end", seesEnds, map[int][]experiment.Pending{
			0: {{Function: "AllReduce", Ordinal: 1, Since: t0, State: "running", Left: true}},
			1: {{Function: "AllReduce", Ordinal: 1, Since: t0, State: "running", Left: true}},
		}, nil, "", "", "", ""},
		{"aborted", seesEnds, map[int][]experiment.Pending{
			0: {{Function: "AllReduce", Ordinal: 2, Since: t0, State: "running", Left: true}},
			1: {{Function: "AllReduce", Ordinal: 2, Since: t0, State: "running", Left: true}},
		}, nil, "AllReduce 2", hang.NotReached, "running running missing", "it has finalized the communicator"},
		{"ends are not recorded", 1 << 1, nil, func(rank int, p *shardtest.Process) {
			p.Shard.Comms[0].Begun = t0 + 650*us
			if rank == 1 {
				p.Shard.Comms[0].Held = map[string]uint64{"AllGather": 1}
			}
		}, "AllGather 1", hang.NotReached, "missing enqueued missing", "for at least 16.0 s"},
		{"lost and paused", seesEnds, map[int][]experiment.Pending{0: {pending("AllReduce", 2, "running")}},
			func(rank int, p *shardtest.Process) {
				switch rank {
				case 1:
					p.Shard.Counts.Lost = map[string]map[string]uint64{"memory": {"Coll": 1}}
				case 2:
					p.Shard.Comms[0].Gaps = []experiment.Gap{{From: 2, FromTime: t0}}
				}
			}, "AllReduce 2", hang.NotReached, "running not known missing", "events of Rank 1 were lost"},
		{"nobody saw the end", seesEnds, map[int][]experiment.Pending{0: {pending("AllReduce", 2, "running")}},
			func(_ int, p *shardtest.Process) { p.Shard.End = nil },
			"AllReduce 2", hang.NotReached, "running missing missing",
			"for at least 300 µs\nit is not known when the processes ended"},
		{"one died long before", seesEnds, map[int][]experiment.Pending{0: {pending("AllReduce", 2, "running")},
			2: {pending("AllReduce", 2, "running")}}, func(rank int, p *shardtest.Process) {
			status := uint32(15)
			if rank == 1 {
				p.Shard.End.Time, status = t0+900*us, 11
			}
			p.Shard.End.Status = &status
		}, "AllReduce 2", hang.NotReached, "running missing running",
			"Rank 1 was the first to end, 16.0 s before the next: killed by SIGSEGV\nRanks 0,2 killed by " +
				"SIGTERM\nworld: AllReduce 2 is not reached by all: Rank 1 missing, Ranks 0,2 inside; for 16 s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := jobtest.Typical(t, func(rank int, p *shardtest.Process) {
				p.Shard.Masks.Record = tc.mask
				p.Shard.Pending = tc.of[rank]
				p.Shard.End = &experiment.End{Time: t0 + 700*us + 16_000_000*us, Called: true}
				if tc.also != nil {
					tc.also(rank, p)
				}
				p.Shard.LastTime = t0 + 1000*us
			})
			r, err := hang.Find(filepath.Dir(path), time.Now(), nil)
			testkit.Require(t, err == nil && len(r.Jobs) == 1 && len(r.Problems) == 0, "%v %v", r, err)
			var text bytes.Buffer
			testkit.Must(t, report.Hang(r).WriteText(&text))
			testkit.Check(t, strings.Contains(text.String(), tc.says), "no %q in\n%s", tc.says, text.String())
			found := r.Jobs[0].Communicators
			if tc.operation == "" {
				testkit.Check(t, len(found) == 0, "%+v", found)
				return
			}
			testkit.Require(t, len(found) == 1, "%+v", found)
			var states []string
			for _, m := range found[0].Members {
				states = append(states, m.State)
			}
			got := fmt.Sprint(found[0].Operation, " ", found[0].Ordinal)
			testkit.Check(t, got == tc.operation && found[0].Verdict == tc.verdict &&
				strings.Join(states, " ") == tc.states, "%s, %s, %v", got, found[0].Verdict, states)
			testkit.Check(t, tc.name != "lost and paused" || slices.Equal(r.Jobs[0].Inexact, []string{"Rank 1"}) &&
				slices.Equal(r.Jobs[0].Partial, []string{"Rank 2"}), "%+v", r.Jobs[0])
		})
	}
}

// Times in the test jobs.
const (
	t0 = jobtest.T0
	us = jobtest.Microsecond
)
