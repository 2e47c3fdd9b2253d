// SPDX-License-Identifier: Apache-2.0

package verdict

// Decides which ranks to name, from the waiting that package causes charges to each rank, from the findings of other
// packages, and from the length of the run.

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/stats"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Evidence is the input of Judge.
type Evidence struct {
	MPI      map[otf2.CommRef]bool // communicators of MPI, in archives that have any
	Causes   *causes.Result
	Ranks    []Place        // of the world, as those of Causes
	Begin    otf2.Timestamp // of the run
	Duration uint64         // of the run, ns
	Slow     []Slow         // links and ranks whose transfers were slow
	Shared   []SharedGPU    // by their first ranks; Share is not set
	Stuck    []Culprit      // ranks that stopped the job or called NCCL wrongly: named first, unchanged
	// Enqueued counts the collectives of which only the time of enqueueing is known; Compared counts those with better
	// times.
	Enqueued, Compared uint64
	// Launched counts the ranks' parts of operations; of OnlyLaunched of them it is not known how long they ran.
	Launched, OnlyLaunched uint64
	LastCaller             *LastCaller // nil: none of those was called last so often by one rank
	Uncompared             bool        // no operation has comparable times on two ranks
	Lost                   uint64      // events, or operations, that are missing
	// Hole is a clause: why it cannot be known who was late, whatever the times show; "" if it can.
	Hole string
	// Unrecorded is a clause: of which ranks nothing was recorded; "" if there are none.
	Unrecorded string
	// Untimed is a clause: why no better times are known, or what to record to get them.
	Untimed   string
	Transfers bool                        // the transfer times of some operations are known (preset net)
	Kernel    func(otf2.RegionRef) string // the name of a kernel
	// Comm names a communicator, "" where there is only one; nil: none is named.
	Comm func(otf2.CommRef) string
}

// LastCaller is a rank that called most of the operations without times last.
type LastCaller struct {
	Rank      int
	Times, Of uint64
	Behind    float64 // ns after the first one, on average
}

// Place is the name, host and GPU of a rank of the world.
type Place struct {
	Name, Host, GPU string
}

// Slow is a link, or a rank, whose transfers held operations up. Times are ns.
type Slow struct {
	Rank             int
	Peer             *int // the other end of the link; nil: all that the rank transfers
	Kind             Kind // SlowTransfer, or GPULate for a GPU that works slowly
	Cost             float64
	Inherited        float64 // part of the waiting in Causes: for members on which slow operations ended later
	Delay            float64 // by which operations would have ended earlier
	Confidence       float64
	Pattern, Because string // as of Culprit
	Turns            bool   // the GPU is shared, and the turns of others explain it
}

// Judge decides which ranks and links to name, and writes the verdict.
func Judge(ev *Evidence) *Verdict {
	c := ev.Causes
	waited := c.Waited
	for i := range ev.Slow {
		waited += ev.Slow[i].Cost
	}
	v := &Verdict{Culprits: []Culprit{}, StartUp: uint64(c.StartUp), Waited: uint64(max(waited, 0))}
	if waited > 0 {
		v.Unknown = min(1, max(0, (c.Unknown+ev.untraced())/waited))
	}
	v.Culprits = append(v.Culprits, ev.Stuck...)
	for i := range ev.Slow {
		if s := &ev.Slow[i]; !s.Turns && ev.material(s.Cost+s.Inherited, waited, s.Delay) &&
			s.Confidence >= leastConfidence {
			v.Culprits = append(v.Culprits, ev.slowCulprit(s, waited))
		}
	}
	if ev.Hole == "" {
		v.Culprits = append(v.Culprits, ev.findLateRanks(waited)...)
	}
	slices.SortFunc(v.Culprits, func(a, b Culprit) int { return a.Compare(&b) })
	v.Culprits = mergeCulprits(v.Culprits)
	v.StandsOut = len(v.Culprits) > 0
	v.SharedGPUs = ev.shared(waited)
	v.Text = ev.writeText(v)
	if !v.stopped() {
		v.Text = ev.withSharing(v, v.Text)
	}
	return v
}

// untraced returns the waiting that arose because operations took longer on some members than on others, where no slow
// link or GPU is known.
func (ev *Evidence) untraced() (ns float64) {
	ns = ev.Causes.Transfers()
	for i := range ev.Slow {
		ns -= ev.Slow[i].Inherited
	}
	return max(ns, 0)
}

// longest returns the rank on which operations took longest, and how long others waited for it. Waiting that is spread
// evenly over all ranks is scatter.
func (ev *Evidence) longest() (on int, ns float64) {
	for i := range ev.Causes.Ranks {
		if cost := ev.Causes.Ranks[i].Costs[causes.Transfer]; cost > ns {
			on, ns = i, cost
		}
	}
	return on, ns
}

// mergeCulprits merges culprits of one rank and kind: a GPU that holds the others up before operations and within them
// is one culprit. The evidence of the one with the greater share is kept.
func mergeCulprits(sorted []Culprit) []Culprit {
	all := sorted[:0]
	for _, c := range sorted {
		at := slices.IndexFunc(all, func(o Culprit) bool {
			return o.Rank == c.Rank && o.Kind == c.Kind &&
				o.Peer == nil && c.Peer == nil
		})
		if at < 0 || c.Stops() {
			all = append(all, c)
			continue
		}
		all[at].Share += c.Share
		all[at].Caused += c.Caused
		all[at].TimeShare = max(all[at].TimeShare, c.TimeShare)
	}
	slices.SortFunc(all, func(a, b Culprit) int { return a.Compare(&b) })
	return all
}

// material reports whether a cost and the delay it caused are large enough to name a rank.
func (ev *Evidence) material(cost, waited, delay float64) bool {
	return cost > 0 && cost >= leastShare*waited && delay >= leastTime*float64(ev.Duration)
}

func (ev *Evidence) slowCulprit(s *Slow, waited float64) Culprit {
	p := ev.Ranks[s.Rank]
	share := (s.Cost + s.Inherited) / waited
	return Culprit{
		Rank: s.Rank, Host: p.Host, GPU: p.GPU, Kind: s.Kind, Peer: s.Peer, Share: share, Caused: share,
		TimeShare:  min(1, s.Delay/float64(ev.Duration)),
		Confidence: s.Confidence, Pattern: s.Pattern, Evidence: s.Because,
	}
}

// findLateRanks returns the ranks that were late by themselves more often than chance explains.
func (ev *Evidence) findLateRanks(waited float64) (named []Culprit) {
	ranks := ev.Causes.Ranks
	order := make([]int, 0, len(ranks))
	for i := range ranks {
		// The cost must be large enough without the most expensive occasion, too, which can be chance.
		if r := &ranks[i]; r.Cost() > 0 && ev.material(
			r.Cost()-r.Heaviest, waited-r.Heaviest, delayOf(r)*(1-r.Heaviest/r.Cost())) {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(ranks[b].Cost(), ranks[a].Cost()), cmp.Compare(a, b))
	})
	suspects := make(map[int]bool)
	for _, i := range order {
		suspects[i] = true
	}
	t := newTrial(ev.Causes, suspects)
	for _, i := range order {
		// Ranks that are late in turn hide each other, so the occasions of other suspects are left out. Where most
		// ranks are suspects, none is treated as one.
		clear(t.found)
		if len(order) < len(ranks) && len(order) <= max(2, len(ranks)/2) {
			maps.Copy(t.found, suspects)
			delete(t.found, i)
		}
		if c, ok := ev.culprit(t, i, waited, t.chance); ok {
			named = append(named, c)
		}
	}
	// Test the remaining suspects again, given the ranks that are named by now.
	for known := 0; len(named) > known && len(named) < len(ranks); {
		known = len(named)
		clear(t.found)
		for i := range named {
			t.found[named[i].Rank] = true
		}
		for _, i := range order {
			if t.found[i] {
				continue
			}
			if c, ok := ev.culprit(t, i, waited, t.chanceGivenNamed); ok {
				named = append(named, c)
			}
		}
	}
	slices.SortFunc(named, func(a, b Culprit) int {
		return cmp.Compare(slices.Index(order, a.Rank), slices.Index(order, b.Rank))
	})
	work := newWork(ev.Causes, -1, suspects)
	least := leastTime * float64(ev.Duration)
	named = standingOut(named, ranks, work, least)
	// So many ranks do not stand out at the same time, but some of them may.
	if few := atOnce(named, ranks); len(few) < len(named) {
		named = standingOut(few, ranks, work, least)
	}
	return named
}

// culprit returns a rank as a culprit if its cost is large enough, if it was late more often than chance explains, and
// if it worked longer than the others.
func (ev *Evidence) culprit(t *trial, i int, waited float64, by func(rank int) (chance, times float64)) (
	c Culprit, ok bool) {
	ranks := ev.Causes.Ranks
	r := &ranks[i]
	work := newWork(ev.Causes, i, t.found)
	kind := work.kind(r, likeWork(ranks, i))
	h := habitOf(ev, r, i, kind)
	if r.All && h.times < causes.LeastTimes { // one occasion that cost very much does not hide the others
		h = habitOf(ev, withoutWorst(r), i, kind)
	}
	chance, times := by(i)
	confidence, share, delay := (1-chance)*h.certainty, work.cost(r)/waited, delayOf(r)/float64(ev.Duration)
	least := leastConfidence
	if share >= mostShare && delay >= muchTime {
		least = enoughConfidence
	}
	if ev.heldUpTime(i) > r.Cost() {
		return c, false
	}
	if confidence < least || math.Round(times) < causes.LeastTimes || r.All && h.times < causes.LeastTimes ||
		r.Cost() < timesUsual*medianOfOthers(ranks, work.cost, i, t.found) {
		return c, false
	}
	longer := work.longer(r)
	often := 1 - r.Heaviest/r.Cost()
	if share*ev.besideTurns(i) < leastShare || work.cost(r) < leastWork*r.Cost() ||
		longer*often < leastTime*float64(ev.Duration) {
		return c, false
	}
	p := ev.Ranks[i]
	return Culprit{
		Rank: i, Host: p.Host, GPU: p.GPU, Kind: h.kind, Share: share, Caused: r.Cost() / waited,
		TimeShare:  min(1, delay, longer/float64(ev.Duration)),
		Confidence: confidence, Pattern: h.pattern, Evidence: h.sentence, Worst: worstOf(r.Occurrences),
	}, true
}

// withoutWorst returns a rank without the occasion that cost the most.
func withoutWorst(r *causes.Rank) *causes.Rank {
	least := *r
	worst := 0
	for i := range r.Occurrences {
		if r.Occurrences[i].Cost > r.Occurrences[worst].Cost {
			worst = i
		}
	}
	if len(r.Occurrences) > 0 {
		least.Occurrences = slices.Delete(slices.Clone(r.Occurrences), worst, worst+1)
	}
	return &least
}

// heldUpTime returns how long others waited because operations or transfers took longer on a rank. Such a rank leaves
// its operations late, and may therefore come late to the next ones.
func (ev *Evidence) heldUpTime(rank int) (ns float64) {
	ns = ev.Causes.Ranks[rank].Costs[causes.Transfer]
	for i := range ev.Slow {
		if s := &ev.Slow[i]; s.Rank == rank || s.Peer != nil && *s.Peer == rank {
			ns += s.Cost
		}
	}
	return ns
}

// atOnce returns those of the named ranks, the first ones first, that can stand out together: ranks that are late one
// after the other, because the cause moves, do not count as several.
func atOnce(named []Culprit, ranks []causes.Rank) (few []Culprit) {
	var kept []stretch
	for _, c := range named {
		s := stretchOf(ranks[c.Rank].Occurrences)
		if maxOverlap(append(kept, s)) <= maxNamed(len(ranks)) {
			kept, few = append(kept, s), append(few, c)
		}
	}
	return few
}

// stretch is the time in which a rank was late, but for the first and the last tenth of its occasions.
type stretch struct{ from, to otf2.Timestamp }

func stretchOf(all []causes.Occurrence) stretch {
	main := mainOf(all)
	if len(main) == 0 {
		return stretch{}
	}
	return stretch{main[len(main)/10].At, main[len(main)-1-len(main)/10].At}
}

// maxOverlap returns how many stretches at most have a moment in common.
func maxOverlap(all []stretch) (most int) {
	for _, at := range all {
		n := 0
		for _, s := range all {
			if s.from <= at.from && at.from <= s.to {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// maxNamed returns how many of a number of ranks can stand out together.
func maxNamed(ranks int) int { return max(2, ranks/4) }

// standingOut removes the ranks that do not differ enough from the others, or that worked less than least ns longer
// than they did. named is sorted by the waiting caused.
func standingOut(named []Culprit, ranks []causes.Rank, work work, least float64) []Culprit {
	for last := len(named) - 1; last >= 0; last-- {
		of := named[last].Rank
		isNamed := func(rank int) bool {
			return slices.ContainsFunc(
				named, func(c Culprit) bool { return c.Rank == rank })
		}
		near := ranks[of].Worked-longestUsualWork(ranks, isNamed) < least
		for i := 0; i < len(ranks) && !near; i++ {
			near = i != of && work.near(&ranks[of], &ranks[i], isNamed(i))
		}
		if near {
			named = slices.Delete(named, last, last+1)
			last = len(named)
		}
	}
	return named
}

// longestUsualWork returns the longest working time of the ranks that are not named. One rank in twenty is left out, as
// some work longer by chance.
func longestUsualWork(ranks []causes.Rank, named func(rank int) bool) float64 {
	var all []float64
	for i := range ranks {
		if !named(i) {
			all = append(all, ranks[i].Worked)
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)-1-len(all)/20]
}

// near reports whether rank r does not differ enough from rank o, which is named or not: o caused about as much waiting
// and worked about as much longer, because ranks with the same role are late alike; or the excess of r over o is not
// due to working longer.
func (w *work) near(r, o *causes.Rank, named bool) bool {
	cost, other := w.cost(r), w.cost(o)
	if !named && other-o.Heaviest > cost/timesNext && w.longer(o) > w.longer(r)/timesNext {
		return true
	}
	return (!named && o.Cost() < r.Cost() || other < cost/timesNamed) && !w.explains(r, o)
}

func workOf(r *causes.Rank) float64 { return r.Worked }

// medianOfOthers returns the median of a figure over all ranks but one and the suspected ones; 0 if no rank is left.
func medianOfOthers(ranks []causes.Rank, of func(*causes.Rank) float64, but int, others map[int]bool) float64 {
	var all []float64
	for i := range ranks {
		if i != but && !others[i] {
			all = append(all, of(&ranks[i]))
		}
	}
	return stats.Median(all)
}

func delayOf(r *causes.Rank) (sum float64) {
	for _, k := range causes.OwnKinds {
		sum += r.Delays[k]
	}
	return sum
}
