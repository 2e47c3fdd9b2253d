// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/overlap"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

func overlapColumns[T any](of func(*T) *overlap.Overlap) []column[T] {
	return []column[T]{
		duration("communication_ns", "communication", func(r *T) uint64 { return of(r).Communication }),
		duration("hidden_ns", "hidden", func(r *T) uint64 { return of(r).Hidden }),
		percent("share", func(r *T) (float64, float64) { return float64(of(r).Hidden), float64(of(r).Communication) }),
		duration("exposed_ns", "exposed", func(r *T) uint64 { return of(r).Exposed }),
	}
}

// Overlap returns the report on overlap as tables.
func Overlap(r *overlap.Report) *Document {
	d := &Document{title: "Communication hidden behind computation"}
	switch {
	case len(r.GPUs) == 0:
		d.addIntro("n/a: the archive has no kernels other than NCCL's; record the job with NCCL_OTF2_CUPTI=on")
	case r.WithoutKernels > 0:
		d.addIntro("n/a: no kernels are known for %s", units.Count(r.WithoutKernels, "GPU", "GPUs"))
	}
	if r.Untimed > 0 {
		d.addIntro("not counted: %s without GPU times",
			units.Count(int(r.Untimed), "launch of operations", "launches of operations"))
	}
	if r.WholeGraphs > 0 {
		d.addIntro("not counted: %s recorded without their kernels",
			units.Count(int(r.WholeGraphs), "run of a CUDA graph", "runs of CUDA graphs"))
	}
	gpus := []column[overlap.GPU]{
		label("rank", "rank", func(g *overlap.GPU) string { return g.Rank }),
		label("host", "host", func(g *overlap.GPU) string { return g.Host }),
		label("gpu", "GPU", func(g *overlap.GPU) string { return g.GPU }),
		number("kernels", "kernels", func(g *overlap.GPU) uint64 { return g.Kernels }),
		number("operations", "launches", func(g *overlap.GPU) uint64 { return g.Operations }),
	}
	gpus = append(gpus, overlapColumns(func(g *overlap.GPU) *overlap.Overlap { return &g.Overlap })...)
	gpus = append(gpus, duration("computation_ns", "computation", func(g *overlap.GPU) uint64 { return g.Computation }),
		duration("idle_ns", "neither", func(g *overlap.GPU) uint64 { return g.Idle }),
	)
	communicators := []column[overlap.Communicator]{
		label("communicator", "communicator", func(c *overlap.Communicator) string { return c.Communicator }),
		number("comm", "", func(c *overlap.Communicator) uint64 { return uint64(c.Comm) }),
		{"gpus", "GPUs", nil, func(c *overlap.Communicator) any { return c.GPUs }},
		number("operations", "launches", func(c *overlap.Communicator) uint64 { return c.Operations }),
	}
	communicators = append(communicators, overlapColumns(
		func(c *overlap.Communicator) *overlap.Overlap { return &c.Overlap })...)
	d.sheets = []sheet{
		sheetOf("overlap", "By GPU", r.GPUs, gpus),
		sheetOf("overlap_communicators", "By communicator", r.Communicators, communicators),
	}
	var sum overlap.Overlap
	for i := range r.GPUs {
		sum.Add(&r.GPUs[i].Overlap)
	}
	if sum.Communication > 0 {
		d.addNote("%s of %s of communication ran while the same GPU computed, %s; %s did not.",
			units.Time(float64(sum.Hidden)), units.Time(float64(sum.Communication)),
			strings.TrimSpace(units.Percent(float64(sum.Hidden), float64(sum.Communication))),
			units.Time(float64(sum.Exposed)))
	}
	return d
}
