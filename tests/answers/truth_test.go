// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
)

// shareSlack is how far a share may be from the true one.
const shareSlack = 0.15

// culprit is who held the others up in truth.
type culprit struct {
	rank  int
	kind  verdict.Kind
	peer  int     // the other end of a slow link; −1: none
	share float64 // of all waiting; NaN: of kinds that stop a job or spoil its results, which have none
}

func (c culprit) String() string {
	s := fmt.Sprintf("%s by rank %d", c.kind, c.rank)
	if c.peer >= 0 {
		s += fmt.Sprintf(" to %d", c.peer)
	}
	if !math.IsNaN(c.share) {
		s += fmt.Sprintf(" (%.0f %%)", 100*c.share)
	}
	return s
}

// list names culprits.
func list(all []culprit) string {
	if len(all) == 0 {
		return "nobody"
	}
	texts := make([]string, len(all))
	for i, c := range all {
		texts[i] = c.String()
	}
	return strings.Join(texts, ", ")
}

// named is a culprit as the tool names it.
func named(c *verdict.Culprit) culprit {
	k := culprit{rank: c.Rank, kind: c.Kind, peer: -1, share: c.Share}
	if c.Peer != nil {
		k.peer = *c.Peer
	}
	return k
}

// truth is what is known of a job.
type truth struct {
	inside   bool // ranks were held up within operations, once all had come, as transfers tell
	culprits []culprit
	may      []culprit // that may be named and need not: too little to be told from chance
}

// compared is what came of comparing a verdict with the truth.
type compared struct {
	found   []culprit // of the truth
	missed  []culprit // of the truth
	falsely []culprit // of the verdict: nobody, or nobody of that kind, in truth
	shares  []float64 // how far the shares of those found are from the truth
}

// compare holds a verdict against the truth. A link is named by both its ends.
func (tr *truth) compare(v *verdict.Verdict) (c compared) {
	left := slices.Clone(v.Culprits)
	take := func(want culprit) (share float64, ok bool) {
		i := slices.IndexFunc(left, func(got verdict.Culprit) bool {
			k := named(&got)
			return (want.rank < 0 || k.rank == want.rank) && k.kind == want.kind &&
				(want.peer < 0 || k.peer == want.peer)
		})
		if i < 0 {
			return 0, false
		}
		share = left[i].Share
		left = slices.Delete(left, i, i+1)
		return share, true
	}
	for _, want := range tr.culprits {
		share, ok := take(want)
		if !ok {
			c.missed = append(c.missed, want)
			continue
		}
		c.found = append(c.found, want)
		if !math.IsNaN(want.share) {
			c.shares = append(c.shares, share-want.share)
		}
	}
	for _, want := range tr.may {
		take(want)
	}
	for i := range left {
		c.falsely = append(c.falsely, named(&left[i]))
	}
	if v.Set != nil {
		tr.compareSet(v.Set, &c)
	}
	return c
}

// compareSet adds the ranks that are named together. A rank that is named so alone, as a stage, is found.
func (tr *truth) compareSet(set *verdict.Set, c *compared) {
	for _, rank := range set.Ranks {
		late := func(k culprit) bool { return k.rank == rank }
		if !slices.ContainsFunc(tr.culprits, late) && !slices.ContainsFunc(tr.may, late) {
			c.falsely = append(c.falsely, culprit{kind: verdict.HostLate, rank: rank, peer: -1})
		}
	}
	c.missed = slices.DeleteFunc(c.missed, func(k culprit) bool {
		found := len(set.Ranks) == 1 && k.rank == set.Ranks[0] && delays(k.kind)
		if found {
			c.found, c.shares = append(c.found, k), append(c.shares, set.Share-k.share)
		}
		return found
	})
}

// faults says, a line each, what a verdict has wrong.
func (c *compared) faults() (all []string) {
	for _, m := range c.missed {
		all = append(all, "not named: "+m.String())
	}
	for _, f := range c.falsely {
		all = append(all, "named without reason: "+f.String())
	}
	return all
}

// off says, a line each, which shares are too far from the truth.
func (c *compared) off() (all []string) {
	for i, off := range c.shares {
		if math.Abs(off) > shareSlack {
			all = append(all, fmt.Sprintf("%v: its share is off by %+.0f %%", c.found[i], 100*off))
		}
	}
	return all
}

// said is a verdict in a line or some.
func said(v *verdict.Verdict) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s [stands out: %v, waited %.1f ms, unknown %.0f %%]", v.Text, v.StandsOut, float64(v.Waited)/1e6,
		100*v.Unknown)
	for i := range v.Culprits {
		c := &v.Culprits[i]
		fmt.Fprintf(&b, "\n\t%v, %.1f %% of the time, confidence %.3f, %s: %s", named(c), 100*c.TimeShare, c.Confidence,
			c.Pattern, c.Evidence)
	}
	return b.String()
}
