// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/facts"
)

// hints are what to look at next, by what is the matter, the gravest first. Each gives "" where it does not apply.
var hints = []func(r *operations.Report) string{died, stopped, enqueued}

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
	return fmt.Sprintf("nccl-otf2 report --hang %s (what was under way when the processes ended)", filepath.Dir(r.Summary.Archive))
}

// stopped: members and calls of what did not end are in the shards.
func stopped(r *operations.Report) string {
	if r.Verdict == nil || !slices.ContainsFunc(r.Verdict.Culprits, func(c verdict.Culprit) bool { return c.Kind.Stops() }) {
		return ""
	}
	return fmt.Sprintf("nccl-otf2 report --hang %s (who was where in what did not end)", filepath.Dir(r.Summary.Archive))
}

// enqueued: without GPU times there is no bandwidth, and nobody is known to have waited.
func enqueued(r *operations.Report) string {
	timing := r.Summary.Timing
	if n := timing[strings.ToUpper(facts.SourceEnqueue.String())]; n == 0 || len(timing) > 1 {
		return ""
	}
	return "record with NCCL_OTF2_EVENTS=gpu (only launches were recorded: not how long operations ran)"
}
