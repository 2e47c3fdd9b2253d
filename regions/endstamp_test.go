// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

func TestWhichEndsAreEarly(t *testing.T) {
	coll := func(function, algorithm string) *operation {
		return &operation{arguments: arguments{name: function}, tuning: tuning{algo: algorithm}}
	}
	send, recv := &operation{p2p: true, arguments: arguments{name: "Send"}},
		&operation{p2p: true, arguments: arguments{name: "Recv"}}
	for _, test := range []struct {
		name  string
		ranks int
		ops   []*operation
		want  bool
	}{
		{"ring", 4, []*operation{coll("AllReduce", "RING")}, false},
		{"tree", 4, []*operation{coll("AllReduce", "TREE")}, true},
		{"a tree of one", 1, []*operation{coll("AllReduce", "TREE")}, false},
		{"multicast", 8, []*operation{coll("AllReduce", "NVLS")}, true},
		{"gathering by multicast, which thread 0 ends", 8, []*operation{coll("AllGather", "NVLS")}, false},
		{"scattering by multicast", 8, []*operation{coll("ReduceScatter", "NVLS")}, true},
		{"scattering on the way to the network", 16, []*operation{coll("ReduceScatter", "COLLNET_DIRECT")}, true},
		{"sending to the network", 16, []*operation{coll("AllGather", "COLLNET_DIRECT")}, true},
		{"reducing by the network, which thread 0 ends", 16, []*operation{coll("AllReduce", "COLLNET_DIRECT")}, false},
		{"steps in which all workers meet", 16, []*operation{coll("AllGather", "PAT"), coll("ReduceScatter", "PAT")},
			false},
		{"a ring and a tree", 4, []*operation{coll("AllGather", "RING"), coll("AllReduce", "TREE")}, true},
		{"an algorithm that is not known", 4, []*operation{coll("AllReduce", "")}, false},
		{"one message", 4, []*operation{recv}, false},
		{"a send and a receive", 4, []*operation{send, recv}, true},
	} {
		p := &plan{comm: &commRank{}, ops: test.ops}
		p.comm.NRanks = test.ranks
		testkit.Equal(t, p.endsEarly(), test.want, "%s", test.name)
	}
}

// A kernel's end that is only that of a part is CUPTI's where that is known, and marked where it is not.
func TestEndsOfParts(t *testing.T) {
	for _, cupti := range []bool{true, false} {
		s := newScene(t, 4)
		s.reading(1)
		s.allReduce(1000, "a")
		s.m.ranks.all[0].queue.plans[0].ops[0].tuning.algo = "TREE"
		s.kernel(1020, 1050, "a")
		if cupti {
			s.launched(1200, 1, 1000, "a")
			s.activity(1200, gpuKernel{begin: 1020, end: 1352, stream: 7, correlation: 1,
				name: allReduceKernel}.record())
		}
		s.reading(500_000)
		s.give(0, 9_000_000, shm.Record{Kind: shm.RecordFinalize})
		lines := strings.Join(s.lines(description.KindRank, attrGPUSource, attrGPUDifference, AttrEndsEarly), "\n")
		want, early := "1020 Enter AllReduce GPU_SOURCE=cupti\n", uint64(0)
		if !cupti {
			want, early = "1020 Enter AllReduce END_IS_EARLY=1 GPU_SOURCE=kernelch\n", 1
		}
		testkit.Check(t, strings.Contains(lines, want), "CUPTI %v: no %q in:\n%s", cupti, want, lines)
		got := s.p.Counts.Ends[description.EarlyEnds]
		testkit.Check(t, got == early, "CUPTI %v: %d ends are counted as early, want %d", cupti, got, early)
	}
}
