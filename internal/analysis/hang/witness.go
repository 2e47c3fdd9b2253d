// SPDX-License-Identifier: Apache-2.0

package hang

import (
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang/ras"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang/waitfor"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs/progress"
)

// RAS adds to what the shards say. A process that does not answer is missing, whatever its shards say. That a rank has
// begun fewer collectives than others is normal at any moment of a running job, so RAS' word on that only confirms
// what the shards say as well.

// hear adds what RAS says about the job.
func (h *Job) hear(j *progress.Job, status *ras.Status) {
	if status == nil {
		return
	}
	w := status.Witness(j)
	h.RAS = append([]string{}, w.Sentences...)
	if len(h.RAS)+len(w.Silent) == 0 {
		h.RAS = append(h.RAS, "RAS reports no problem with the communicators of this job")
	}
	h.Stops = append(h.Stops, w.Silent...)
	for _, c := range waitfor.Culprits(j, w.Silent) {
		h.confirm(c.Rank, c.Evidence)
		if !slices.ContainsFunc(h.Culprits, func(o verdict.Culprit) bool { return o.Rank == c.Rank }) {
			h.Culprits = append(h.Culprits, c)
		}
	}
	for _, s := range w.Behind {
		for _, rank := range s.Culprits {
			h.confirm(rank, s.Text)
		}
	}
}

// confirm adds RAS' statement to the evidence about a missing rank.
func (h *Job) confirm(rank int, text string) {
	for i := range h.Culprits {
		if c := &h.Culprits[i]; c.Rank == rank && c.Kind == verdict.Missing && c.Evidence != text {
			c.Evidence += "; " + text
			c.Confidence = 1 - (1-c.Confidence)/2
		}
	}
}
