// SPDX-License-Identifier: Apache-2.0

package waitfor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs/progress"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// The creation of communicators. NCCL tells the plugin of a communicator once, on each rank by itself: up to 2.26 when
// it begins to create it, without saying which one it is, so that it is recorded with its first operation; since then
// when its ranks have come and told each other where they are. So a rank that never comes leaves no trace there, and
// one that stops later leaves the communicator with fewer ranks than it has.

// uncreated names the ranks that have not come as far in the creation of a communicator as others. ok is false if all
// have, if the communicator has been used, or if it is not known which ranks these are, or whether they are recorded.
func uncreated(j *progress.Job, c *progress.Communicator) (s Stop, ok bool) {
	o := &operation{comm: c}
	for rank, r := range c.Ranks {
		if r == nil {
			continue
		}
		if r.Finalized || len(r.Reached) > 0 || r.Shard().Import != nil {
			return s, false
		}
		o.parts = append(o.parts, part{member: r, rank: rank, since: r.Created})
	}
	if len(o.parts) == 0 || len(o.parts) == c.Size {
		return s, false
	}
	away := &operation{comm: likeOf(j, c)}
	if away.comm == nil {
		return s, false
	}
	for rank, r := range away.comm.Ranks {
		if c.Ranks[rank] == nil && r != nil && !mayBeIn(r, c) {
			away.parts = append(away.parts, part{member: r, rank: rank, state: missing})
		}
	}
	inside, missed := o.with(noData), away.with(missing)
	if len(missed) == 0 {
		return s, false
	}
	return Stop{Kind: verdict.Missing, Culprits: worlds(away, missed), Among: worlds(o, inside), of: []*operation{o},
		Text: fmt.Sprintf("%s %s not come as far in the creation of %s (%d ranks) as %s", names(away, missed),
			has(len(missed)), c.Name, c.Size, names(o, inside))}, true
}

// likeOf returns a communicator of as many ranks in which the recorded ranks of c have the same numbers; nil: there is
// none, or several that do not agree on the others.
func likeOf(j *progress.Job, c *progress.Communicator) (like *progress.Communicator) {
	for _, o := range j.Communicators {
		if o == c || o.Size != c.Size || !agree(o, c) {
			continue
		}
		if like != nil && !agree(like, o) {
			return nil
		}
		like = o
	}
	return like
}

// agree reports whether the recorded ranks of b are the same ones in a.
func agree(a, b *progress.Communicator) bool {
	for rank, r := range b.Ranks {
		if o := a.Ranks[rank]; r != nil && (o == nil || o.Process != r.Process || !o.SameGPU(r)) {
			return false
		}
	}
	return true
}

// mayBeIn reports whether a rank's process may be in a communicator after all: it is in one of which NCCL has not said
// which it is, or in one of the same id that was taken for another.
func mayBeIn(r *progress.Rank, c *progress.Communicator) bool {
	return slices.ContainsFunc(r.Shard().Comms, func(o description.Comm) bool {
		return o.NRanks == 0 || o.ID == c.ID && o.NRanks == c.Size
	})
}

// mostSilent is the number of groups of ranks that a sentence about silence names.
const mostSilent = 4

// Silence says of a job with nothing under way since when its ranks have been silent, what they have created, and why
// it is not known whom they wait for. "" if an operation is under way, if all processes ended in order, or if none has
// been silent for long.
func Silence(j *progress.Job, now time.Time) string {
	since, made := make(map[*progress.Process]uint64), make(map[*progress.Process]int)
	var partly []string
	for _, c := range j.Communicators {
		absent, used := 0, false
		for _, r := range c.Ranks {
			if r == nil {
				absent++
				continue
			}
			made[r.Process]++
			since[r.Process] = max(since[r.Process], r.Process.Last, r.Created)
			used = used || len(r.Reached) > 0
		}
		if absent > 0 && !used {
			partly = append(partly, fmt.Sprintf(
				"%s, on which nothing was called, has %d ranks, of which %d are recorded", c.Name, c.Size,
				c.Size-absent))
		}
	}
	var silent, joined grouped
	open, size, least, most := false, 0, uint64(leadOfDeath), uint64(0)
	for _, p := range j.Processes {
		if p.Busy {
			return ""
		}
		end := p.Ended
		if p.State == jobs.Running {
			end, least = uint64(max(now.UnixNano(), 0)), Young
		}
		open, size = open || p.State == jobs.Running || p.How != "", max(size, p.Size)
		if last := max(since[p], p.Last); last > 0 && end > last {
			most = max(most, end-last)
			silent.add((end-last)/leadOfDeath, "for "+units.Time(float64(end-last)), p.Name)
		}
		joined.add(uint64(made[p]), units.Count(made[p], "communicator", "communicators"), p.Name)
	}
	if !open || most < least {
		return ""
	}
	text := silent.words("have recorded nothing", "has recorded nothing")
	if len(joined) > 1 {
		text += "; " + joined.words("have joined", "has joined")
	}
	if missing := size - len(j.Processes); missing > 0 {
		text += fmt.Sprintf("; of %d of the job's %d processes nothing is recorded", missing, size)
	}
	for _, p := range partly[:min(len(partly), mostSilent)] {
		text += "; " + p
	}
	return text + ". Not known whether they wait for a rank in the creation of a communicator (ncclCommInitRank, " +
		"ncclCommSplit), because one is recorded only when all of its ranks have come"
}

// grouped are the names of processes by a number, the largest first, and the words for it.
type grouped []group

type group struct {
	of    uint64
	words string
	names []string
}

func (g *grouped) add(of uint64, words, name string) {
	at, found := slices.BinarySearchFunc(*g, of, func(a group, of uint64) int { return cmp.Compare(of, a.of) })
	if !found {
		*g = slices.Insert(*g, at, group{of: of, words: words})
	}
	(*g)[at].names = append((*g)[at].names, name)
}

// words joins the groups: "Ranks 0-2 have recorded nothing for 20 s, Rank 3 for 2 s".
func (g grouped) words(many, one string) string {
	var parts []string
	for i, group := range g[:min(len(g), mostSilent)] {
		part := units.NameList(group.names) + " "
		switch {
		case i > 0:
		case len(group.names) > 1 || strings.HasPrefix(group.names[0], "Ranks"):
			part += many + " "
		default:
			part += one + " "
		}
		parts = append(parts, part+group.words)
	}
	return strings.Join(parts, ", ")
}
