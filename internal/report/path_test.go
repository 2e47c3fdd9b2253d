// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/criticalpath"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// A critical path says in two lines what matters, and in tables all of it.
func TestCriticalPath(t *testing.T) {
	least, most, sure, to := uint64(380e6), uint64(20e6), 0.99996, 2
	r := &criticalpath.Result{
		Length: 1800e6, StartUp: 400e6, After: 79e6, Unknown: 1e6, Steady: 1320e6, Changes: 41, Doubtful: 2e6,
		Unstated: 3,
		Activities: []criticalpath.ActivityRow{{Activity: "application", Time: 937e6, Mean: 400e6, Imbalance: 537e6},
			{Activity: "operation", Time: 383e6, Mean: 390e6}},
		Ranks: []criticalpath.RankRow{
			{Rank: 3, Name: "Rank 3", Host: "n1", Activity: "application", Time: 900e6},
			{Rank: 0, Name: "Rank 0", Host: "n0", Activity: "application", Time: 37e6},
			{Rank: 3, Name: "Rank 3", Host: "n1", Activity: "GPU", Time: 20e6, Kernels: []criticalpath.KernelTime{
				{Kernel: "gemm_large", Time: 16e6}, {Kernel: "layernorm", Time: 3e6}, {Kernel: "softmax", Time: 2e6},
				{Kernel: "add", Time: 1e6},
			}},
		},
		Operations: []criticalpath.OperationRow{{Communicator: "dp", Operation: "AllReduce", Time: 383e6}},
		WhatIf: []criticalpath.WhatIf{
			{Change: criticalpath.FasterRanks, Rank: -1, Name: "all ranks", Gain: 520e6},
			{Change: criticalpath.FasterRank, Rank: 3, Name: "Rank 3", Host: "n1", Gain: 410e6, Least: &least,
				Operations: 20, Confidence: &sure},
			{Change: criticalpath.FasterLink, Rank: 1, Name: "Rank 1", Host: "n0", Peer: &to, PeerName: "Rank 2",
				Gain: 100e6, Operations: 9, Confidence: &sure},
			{Change: criticalpath.FasterRank, Rank: 0, Name: "Rank 0", Host: "n0", Gain: 21e6, Least: &most,
				Operations: 4},
			{Change: criticalpath.FasterSet, Rank: -1, Ranks: []int{3, 4}, Name: "Ranks 3-4", Gain: 450e6, Least: &least,
				Operations: 30, Confidence: &sure},
			{Change: criticalpath.NoWaiting, Rank: -1, Name: "no waiting", Gain: 19e6},
		},
	}
	var text, csv, markdown, none bytes.Buffer
	for _, err := range []error{
		CriticalPath(r).WriteStyled(&text, Style{Width: 100}), CriticalPath(r).WriteCSV(&csv),
		CriticalPath(r).WriteMarkdown(&markdown), CriticalPath(nil).WriteText(&none),
	} {
		testkit.Must(t, err)
	}
	golden.Text(t, "testdata/path.txt", text.String()+"\n\n"+none.String())
	golden.Text(t, "testdata/path.csv", csv.String())
	golden.Text(t, "testdata/path.md", markdown.String())
	for _, c := range []struct {
		r    *criticalpath.Result
		want int
	}{{nil, 0}, {&criticalpath.Result{Length: 5}, 0}, {r, 2}} {
		got := pathLines(c.r)
		testkit.Check(t, len(got) == c.want, "%d lines: %q", len(got), got)
	}
}
