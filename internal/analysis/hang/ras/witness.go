// SPDX-License-Identifier: Apache-2.0

package ras

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang/waitfor"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs/progress"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// What RAS reports about a job whose shards are available, in ranks of the world.

// Witness is what RAS reports about the job's communicators.
type Witness struct {
	Sentences []string       // everything except silent ranks
	Silent    []waitfor.Stop // ranks that do not answer
	Behind    []waitfor.Stop // ranks that, at this moment, have begun fewer collectives than others
	// Foreign reports that RAS knows only communicators of another job. Sentences then names the ranks missing there.
	Foreign bool
}

// Witness translates RAS' report into ranks of a job.
func (s *Status) Witness(j *progress.Job) (all Witness) {
	all.Foreign = len(s.Communicators) > 0
	for i := range s.Communicators {
		c := &s.Communicators[i]
		of := slices.IndexFunc(j.Communicators, func(o *progress.Communicator) bool {
			return o.ID == uint64(c.Hash) && (o.Size == c.Size || c.Size == 0)
		})
		if of < 0 {
			continue
		}
		all.Foreign = false
		w := witness{c, j.Communicators[of]}
		silent, behind := w.silent(), w.behind()
		for _, stop := range behind {
			all.Sentences = append(all.Sentences, stop.Text)
		}
		all.Sentences = append(all.Sentences, w.errors()...)
		if len(silent)+len(behind)+len(w.errors()) == 0 && len(c.Troubles) > 0 {
			all.Sentences = append(all.Sentences, fmt.Sprintf(
				"RAS reports %s on %s, and not of whom", strings.Join(c.Troubles, ", "), w.here.Name))
		}
		all.Silent, all.Behind = append(all.Silent, silent...), append(all.Behind, behind...)
	}
	if all.Foreign {
		all.Sentences = append([]string{"RAS speaks of other communicators than those of this job"}, s.missing()...)
	}
	return all
}

// maxForeign limits the sentences about communicators that no shard knows.
const maxForeign = 8

// missing names the missing ranks, by communicator hash, or the trouble of a communicator if RAS names no ranks of it.
func (s *Status) missing() (all []string) {
	for i := range s.Communicators {
		c := &s.Communicators[i]
		if len(c.Missing)+len(c.Ranks) == 0 && len(c.Troubles) > 0 && len(all) < maxForeign {
			all = append(all, fmt.Sprintf("RAS reports %s on communicator %#x, and not of whom",
				strings.Join(c.Troubles, ", "), uint64(c.Hash)))
		}
		for _, m := range c.Missing {
			if len(all) == maxForeign {
				return append(all, "RAS names further ranks")
			}
			what := "has no data of"
			switch {
			case m.Status.Dead:
				what = "considers dead"
			case m.Status.Unresponsive:
				what = "gets no answer from"
			}
			all = append(all, fmt.Sprintf("RAS %s rank %d of communicator %#x%s", what, m.Rank, uint64(c.Hash),
				m.where()))
		}
	}
	return all
}

// where names the rank's process; "" if RAS does not name it.
func (m *MissingRank) where() string {
	if m.PID <= 0 {
		return ""
	}
	return fmt.Sprintf(" (process %d on %s)", m.PID, m.Host)
}

// witness is one communicator, as RAS and as the shards describe it.
type witness struct {
	ras  *Communicator
	here *progress.Communicator
}

// name returns the name of a rank in the world.
func (w *witness) name(rank int) string {
	if rank >= 0 && rank < len(w.here.Names) {
		return w.here.Names[rank]
	}
	return fmt.Sprintf("%s rank %d", w.here.Name, rank)
}

func (w *witness) names(ranks []int) string {
	if world := w.world(ranks); len(world) == len(ranks) && len(world) > 0 {
		slices.Sort(world)
		return units.RankNames(world)
	}
	var all []string
	for _, r := range ranks {
		all = append(all, w.name(r))
	}
	return units.NameList(all)
}

func (w *witness) world(ranks []int) (all []int) {
	for _, r := range ranks {
		if r >= 0 && r < len(w.here.World) && w.here.World[r] >= 0 {
			all = append(all, w.here.World[r])
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// silent lists the ranks whose processes do not answer.
func (w *witness) silent() (all []waitfor.Stop) {
	for _, kind := range []struct {
		is   func(m *MissingRank) bool
		text string
	}{
		{func(m *MissingRank) bool { return m.Status.Dead }, "RAS considers %s dead"},
		{func(m *MissingRank) bool { return m.Status.Unresponsive && !m.Status.Dead }, "RAS gets no answer from %s"},
	} {
		for i := range w.ras.Missing {
			m := &w.ras.Missing[i]
			if kind.is(m) {
				all = append(all, waitfor.Stop{
					Kind: verdict.Missing, Culprits: w.world([]int{m.Rank}), Seen: true, Certain: m.Status.Dead,
					Text: fmt.Sprintf(kind.text, w.name(m.Rank)) + m.where(),
				})
			}
		}
	}
	return all
}

// behind lists the ranks that have begun fewer collectives of a function than others.
func (w *witness) behind() (all []waitfor.Stop) {
	functions := make(map[string]bool)
	for _, r := range w.ras.Ranks {
		for f := range r.Collectives {
			functions[f] = true
		}
	}
	for _, f := range slices.Sorted(maps.Keys(functions)) {
		most, by := uint64(0), make(map[uint64][]int)
		for _, r := range w.ras.Ranks {
			if n, known := r.Collectives[f]; known {
				most, by[n] = max(most, n), append(by[n], r.Rank)
			}
		}
		if len(by) < 2 {
			continue
		}
		var few []int
		for n, ranks := range by {
			if n < most {
				few = append(few, ranks...)
			}
		}
		slices.Sort(few)
		var parts []string
		for _, n := range slices.Sorted(maps.Keys(by)) {
			slices.Sort(by[n])
			parts = append(parts, fmt.Sprintf("%d by %s", n, w.names(by[n])))
		}
		all = append(all, waitfor.Stop{
			Kind: verdict.Missing, Culprits: w.world(few), Among: w.world(by[most]),
			Text: fmt.Sprintf("RAS counts %s begun on %s: %s", f, w.here.Name,
				strings.Join(parts[:min(len(parts), 4)], "; ")),
		})
	}
	return all
}

// errors lists the errors on ranks.
func (w *witness) errors() (all []string) {
	for i := range w.ras.Missing {
		if m := &w.ras.Missing[i]; !m.Status.Dead && !m.Status.Unresponsive {
			all = append(all, fmt.Sprintf("RAS has no data of %s on %s", w.name(m.Rank), w.here.Name))
		}
	}
	ranks := slices.SortedFunc(slices.Values(w.ras.Ranks), func(a, b Rank) int { return cmp.Compare(a.Rank, b.Rank) })
	for _, r := range ranks {
		if r.Status.Error != 0 && r.Status.Error != inProgress {
			all = append(all, fmt.Sprintf("RAS: %s has asynchronous error %d on %s", w.name(r.Rank), r.Status.Error,
				w.here.Name))
		}
		if r.Status.Abort {
			all = append(all, fmt.Sprintf("RAS: %s has aborted %s", w.name(r.Rank), w.here.Name))
		}
	}
	return all
}

// inProgress is ncclInProgress.
const inProgress = 7
