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
	"github.com/nccl-otf2/nccl-otf2/internal/facts/lateness"
)

// hints return the command to run next for one kind of problem each, the most serious first; "" if it does not apply.
var hints = []func(r *operations.Report) string{hintDied, hintStopped, hintEnqueued, hintMessages, hintCulprit}

// nextStep recommends the next command in one line; "" if the report already shows everything.
func nextStep(r *operations.Report) string {
	for _, h := range hints {
		if line := h(r); line != "" {
			return "Next: " + line
		}
	}
	return ""
}

// hintDied: the shards show which operations were running when processes ended.
func hintDied(r *operations.Report) string {
	if s := &r.Summary; s.Crashed == 0 && len(s.Died) == 0 {
		return ""
	}
	return fmt.Sprintf("nccl-otf2 report --hang %s (what was under way when the processes ended)",
		filepath.Dir(r.Summary.Archive))
}

// hintStopped: the shards contain the members and calls of operations that did not end.
func hintStopped(r *operations.Report) string {
	if r.Verdict == nil || !slices.ContainsFunc(r.Verdict.Culprits, func(c verdict.Culprit) bool { return c.Stops() }) {
		return ""
	}
	return fmt.Sprintf("nccl-otf2 report --hang %s (which rank was where in operations that did not end)",
		filepath.Dir(r.Summary.Archive))
}

// hintEnqueued: without GPU times, neither bandwidths nor waits are known.
func hintEnqueued(r *operations.Report) string {
	timing := r.Summary.Timing
	if n := timing[strings.ToUpper(facts.SourceEnqueue.String())]; n == 0 || len(timing) > 1 {
		return ""
	}
	return r.Summary.Untimed + "; only launches were recorded, not how long operations ran"
}

// hintMessages: --waits shows in detail which rank waited for which in messages.
func hintMessages(r *operations.Report) string {
	if r.WaitStates == nil {
		return ""
	}
	in := uint64(0)
	for _, kind := range r.WaitStates.Kinds {
		if kind.Name == lateness.WaitLateSender.String() || kind.Name == lateness.WaitLateReceiver.String() {
			in += kind.Waited
		}
	}
	if all := r.WaitStates.Total.Waited; all == 0 || in < all/2 {
		return ""
	}
	return fmt.Sprintf("nccl-otf2 report --waits %s (waiting in messages: by cause, rank and operation)",
		filepath.Dir(r.Summary.Archive))
}

// hintCulprit: the timeline shows what the culprit did at that time.
func hintCulprit(r *operations.Report) string {
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
