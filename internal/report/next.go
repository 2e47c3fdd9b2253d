// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
)

// hints are what to look at next, by what is the matter, the gravest first. Each gives "" where it does not apply.
var hints = []func(r *operations.Report) string{died, stopped, enqueued, messages, named}

// next says in a line what to look at next; "" if there is nothing that the report does not show.
func next(r *operations.Report) string {
	for _, h := range hints {
		if line := h(r); line != "" {
			return "Next: " + line
		}
	}
	return ""
}

// died: what was under way when processes ended is in their shards.
func died(r *operations.Report) string {
	if s := &r.Summary; s.Crashed == 0 && len(s.Died) == 0 {
		return ""
	}
	return fmt.Sprintf("nccl-otf2 report --hang %s (what was under way when the processes ended)",
		filepath.Dir(r.Summary.Archive))
}

// stopped: members and calls of what did not end are in the shards.
func stopped(r *operations.Report) string {
	if r.Verdict == nil || !slices.ContainsFunc(r.Verdict.Culprits, func(c verdict.Culprit) bool { return c.Stops() }) {
		return ""
	}
	return fmt.Sprintf("nccl-otf2 report --hang %s (which rank was where in operations that did not end)",
		filepath.Dir(r.Summary.Archive))
}

// enqueued: without GPU times there is no bandwidth, and nobody is known to have waited.
func enqueued(r *operations.Report) string {
	timing := r.Summary.Timing
	if n := timing[strings.ToUpper(facts.SourceEnqueue.String())]; n == 0 || len(timing) > 1 {
		return ""
	}
	return r.Summary.Untimed + "; only launches were recorded, not how long operations ran"
}

// messages: who waited for whom in them is in detail elsewhere.
func messages(r *operations.Report) string {
	if r.WaitStates == nil {
		return ""
	}
	in := uint64(0)
	for _, kind := range r.WaitStates.Kinds {
		if kind.Name == facts.WaitLateSender.String() || kind.Name == facts.WaitLateReceiver.String() {
			in += kind.Waited
		}
	}
	if all := r.WaitStates.Total.Waited; all == 0 || in < all/2 {
		return ""
	}
	return fmt.Sprintf("nccl-otf2 report --waits %s (waiting in messages: by cause, rank and operation)",
		filepath.Dir(r.Summary.Archive))
}

// named: what the culprit did then is in the timeline.
func named(r *operations.Report) string {
	if r.Verdict == nil || len(r.Verdict.Culprits) == 0 || r.Verdict.Culprits[0].Worst == nil ||
		r.Summary.Selection != nil {
		return ""
	}
	c := &r.Verdict.Culprits[0]
	at, late := float64(c.Worst.At-min(c.Worst.At, r.Summary.Begin)), float64(c.Worst.Late)
	from, to := max(0, math.Floor((at-2*late)/1e6)), math.Ceil((at+late)/1e6)
	return fmt.Sprintf("nccl-otf2 timeline %s --from %.3fs --to %.3fs (the time that cost the most)",
		filepath.Dir(r.Summary.Archive), from/1e3, to/1e3)
}
