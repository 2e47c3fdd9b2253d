// SPDX-License-Identifier: Apache-2.0

package waitfor

import (
	"fmt"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
)

// absent names the members that never came to an operation and are in no other one. ok is false if all members with
// data came.
func absent(o *operation) (s Stop, ok bool) {
	inside := o.with(called, running)
	away := slices.DeleteFunc(o.with(missing), func(p *part) bool {
		return slices.ContainsFunc(o.waits, func(e edge) bool { return e.member == p })
	})
	if len(away) == 0 || len(inside) == 0 {
		return s, false
	}
	s = Stop{Kind: verdict.Missing, Culprits: worlds(o, away), Among: worlds(o, inside), of: []*operation{o}}
	how := deathOf(away, inside)
	if o.ends != "" && how == "" {
		s.Culprits, s.Among, s.Text = nil, worlds(o, slices.Concat(away, inside)), o.unpaired()
		return s, true
	}
	did := "never called"
	if o.ends != "" {
		did = "never came to"
	}
	s.Text = fmt.Sprintf("%s %s %s, which %s %s in", names(o, away), did, o.words(), names(o, inside), are(len(inside)))
	s.Text += callSite(inside)
	if how != "" {
		s.Text += ": " + how
	}
	s.Certain = gone(away)
	return s, true
}

func are(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// gone reports whether none of the missing members can still come, because their processes ended by themselves.
func gone(away []*part) bool {
	for _, p := range away {
		if q := p.member.Process; q.State == jobs.Running || q.How != "" {
			return false
		}
	}
	return true
}

// leadOfDeath is how much earlier than the others, in ns, a process must have ended for that to be reported: hosts'
// clocks differ.
const leadOfDeath = 1_000_000_000

// deathOf says how the missing members ended, if all of them ended before those that wait for them.
func deathOf(away, inside []*part) string {
	how, last := "", uint64(0)
	for _, p := range away {
		q := p.member.Process
		if q.State == jobs.Running || q.Ended == 0 || how != "" && how != q.Describe() {
			return ""
		}
		how, last = q.Describe(), max(last, q.Ended)
	}
	for _, p := range inside {
		if q := p.member.Process; q.State != jobs.Running && q.Ended < last+leadOfDeath {
			return ""
		}
	}
	if how == "ended" {
		how = "had ended"
	}
	return how
}

// idle names the members whose GPUs have not begun an operation that all have called and that those of most others are
// in. ok is false if that is not known of all, or if there are none.
func idle(o *operation) (s Stop, ok bool) {
	var away, inside []*part
	for i := range o.parts {
		switch p := &o.parts[i]; {
		case p.pending == nil || !p.member.Process.Kernels:
			return s, false
		case p.pending.Begun:
			inside = append(inside, p)
		default:
			away = append(away, p)
		}
	}
	if len(away) == 0 || len(away) >= len(inside) {
		return s, false
	}
	gpu := "the GPU"
	if len(away) > 1 {
		gpu += "s"
	}
	return Stop{Kind: verdict.Missing, Culprits: worlds(o, away), Among: worlds(o, inside), of: []*operation{o},
		Text: fmt.Sprintf("%s of %s %s not begun %s, which %s %s in", gpu, names(o, away), has(len(away)), o.words(),
			names(o, inside), are(len(inside)))}, true
}

func has(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}
