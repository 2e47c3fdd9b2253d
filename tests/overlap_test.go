// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/overlap"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

type stretch struct{ begin, end uint64 }

// union joins stretches that overlap.
func union(all []stretch) []stretch {
	slices.SortFunc(all, func(a, b stretch) int { return cmp.Compare(a.begin, b.begin) })
	var out []stretch
	for _, s := range all {
		if n := len(out); n > 0 && s.begin <= out[n-1].end {
			out[n-1].end = max(out[n-1].end, s.end)
			continue
		}
		out = append(out, s)
	}
	return out
}

func length(all []stretch) (n uint64) {
	for _, s := range all {
		n += s.end - s.begin
	}
	return n
}

// intersection is where stretches of two unions overlap.
func intersection(a, b []stretch) (out []stretch) {
	for _, x := range a {
		for _, y := range b {
			if begin, end := max(x.begin, y.begin), min(x.end, y.end); begin < end {
				out = append(out, stretch{begin, end})
			}
		}
	}
	return out
}

// Overlap of communication and computation, of recordings played with their kernels and some of an application: as it
// follows from the rows that the reference binding reads.
func TestOverlapOfRecordings(t *testing.T) {
	t.Parallel()
	for _, rec := range recordings(t, "01-allreduce-2p", "09-straggler-4p") { // a GPU per process
		t.Run(rec.Name, func(t *testing.T) {
			t.Parallel()
			dir, _, got := playKernelsUnified(t, rec)
			a := openArchive(t, filepath.Join(dir, "traces.otf2"))
			report := overlap.Read(a, nil)

			operations, kernels, number := make(map[uint64][]stretch), make(map[uint64][]stretch),
				make(map[uint64]uint64)
			for _, c := range got.comms {
				for _, loc := range c.Members {
					if !strings.Contains(got.locations[loc].Name, " rank ") {
						continue
					}
					shown := testkit.Value(got.operations(loc))(t)
					for _, list := range shown {
						for _, o := range list {
							if o.source != "gpu" {
								t.Fatalf("an operation has times of the %s", o.source)
							}
							operations[got.processOf(loc)] = append(
								operations[got.processOf(loc)], stretch{o.begin, o.end})
						}
					}
				}
			}
			shown := testkit.Value(got.kernels())(t)
			for process, list := range shown {
				for _, k := range list {
					if !strings.Contains(k.region, "nccl") {
						kernels[process] = append(kernels[process], stretch{k.begin, k.end})
						number[process]++
					}
				}
			}
			if len(report.GPUs) != len(rec.Processes) || report.WithoutKernels > 0 || report.Untimed > 0 ||
				len(report.Problems) > 0 {
				t.Fatalf("%+v", report)
			}
			type sums struct{ kernels, operations, communication, computation, hidden uint64 }
			var want, reported []sums
			for process := range operations {
				o, k := union(slices.Clone(operations[process])), union(kernels[process])
				want = append(want, sums{number[process], uint64(len(operations[process])), length(o), length(k),
					length(intersection(o, k))})
			}
			for _, g := range report.GPUs {
				reported = append(reported, sums{g.Kernels, g.Operations, g.Communication, g.Computation, g.Hidden})
				testkit.Equal(t, g.Hidden+g.Exposed, g.Communication, "%+v", g)
			}
			order := func(a, b sums) int { return cmp.Compare(a.communication, b.communication) }
			slices.SortFunc(want, order)
			slices.SortFunc(reported, order)
			if !slices.Equal(reported, want) {
				t.Errorf("overlap is\n%+v, want\n%+v", reported, want)
			}
			if !slices.ContainsFunc(want, func(s sums) bool { return s.hidden > 0 && s.hidden < s.computation }) {
				t.Errorf("the recording proves nothing: %+v", want)
			}
		})
	}
}
