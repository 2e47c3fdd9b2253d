// SPDX-License-Identifier: Apache-2.0

package verdict

// Who is named: decided from what package causes has charged to each rank, from findings of others, and from the length
// of the run.

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/stats"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Evidence is what a verdict is made of.
type Evidence struct {
	MPI      map[otf2.CommRef]bool // communicators of MPI, in archives that have any
	Causes   *causes.Result
	Ranks    []Place        // of the world, as those of Causes
	Begin    otf2.Timestamp // of the run
	Duration uint64         // of the run, ns
	Slow     []Slow         // links and ranks whose transfers were slow
	Shared   []SharedGPU    // by their first ranks; Share is not set
	Stuck    []Culprit      // who stopped the job, or called it wrongly: named first, as they are
	// Enqueued is how many collectives have times that say when they were enqueued and nothing else; Compared how many
	// have better ones.
	Enqueued, Compared uint64
	Uncompared         bool   // no operation has comparable times on two ranks
	Lost               uint64 // events, or operations, that are missing
	// why no better times are known, or what to record for that: a clause
	Untimed   string
	Transfers bool                        // some operations have what their transfers took (preset net)
	Kernel    func(otf2.RegionRef) string // the name of a kernel
}

// Place is where a rank of the world is.
type Place struct {
	Name, Host, GPU string
}

// Slow is a link, or a rank, whose transfers held operations up. Times are ns.
type Slow struct {
	Rank             int
	Peer             *int // the other end of the link; nil: all that the rank transfers
	Kind             Kind // SlowTransfer, or GPULate of a GPU that works slowly
	Cost             float64
	Inherited        float64 // of what Causes has waited: for members on whom slow operations ended later
	Delay            float64 // by which operations would have ended earlier
	Confidence       float64
	Pattern, Because string // as of Culprit
	Turns            bool   // the GPU is shared, and the turns of others explain it
}

// Judge makes the verdict.
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
			v.Culprits = append(v.Culprits, ev.slow(s, waited))
		}
	}
	v.Culprits = append(v.Culprits, ev.late(waited)...)
	slices.SortFunc(v.Culprits, func(a, b Culprit) int { return a.Compare(&b) })
	v.Culprits = joined(v.Culprits)
	v.StandsOut = len(v.Culprits) > 0
	v.SharedGPUs = ev.shared(waited)
	v.Text = ev.text(v)
	if !v.stopped() {
		v.Text = ev.withSharing(v, v.Text)
	}
	return v
}

// untraced is what was waited because operations took longer on some members than on others, and nothing tells which
// link or GPU was slow.
func (ev *Evidence) untraced() (ns float64) {
	ns = ev.Causes.Transfers()
	for i := range ev.Slow {
		ns -= ev.Slow[i].Inherited
	}
	return max(ns, 0)
}

// longest is the rank on which operations took longest, and what others waited for that. Where it is spread over all of
// them, it is scatter.
func (ev *Evidence) longest() (on int, ns float64) {
	for i := range ev.Causes.Ranks {
		if cost := ev.Causes.Ranks[i].Costs[causes.Transfer]; cost > ns {
			on, ns = i, cost
		}
	}
	return on, ns
}

// joined gives each rank and kind once: what a GPU held up within operations and before them is one thing. The greater
// one's evidence stays.
func joined(sorted []Culprit) []Culprit {
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
		all[at].TimeShare = max(all[at].TimeShare, c.TimeShare)
	}
	slices.SortFunc(all, func(a, b Culprit) int { return a.Compare(&b) })
	return all
}

// material reports whether a cost, and the delay that comes with it, is worth a name.
func (ev *Evidence) material(cost, waited, delay float64) bool {
	return cost > 0 && cost >= leastShare*waited && delay >= leastTime*float64(ev.Duration)
}

func (ev *Evidence) slow(s *Slow, waited float64) Culprit {
	p := ev.Ranks[s.Rank]
	return Culprit{
		Rank: s.Rank, Host: p.Host, GPU: p.GPU, Kind: s.Kind, Peer: s.Peer, Share: (s.Cost + s.Inherited) / waited,
		TimeShare:  min(1, s.Delay/float64(ev.Duration)),
		Confidence: s.Confidence, Pattern: s.Pattern, Evidence: s.Because,
	}
}

// late names the ranks that were late by themselves, more often than chance would have it.
func (ev *Evidence) late(waited float64) (named []Culprit) {
	ranks := ev.Causes.Ranks
	order := make([]int, 0, len(ranks))
	for i := range ranks {
		// Without the one occasion that cost the most, too: that can be chance.
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
		// Several that are late in turn hide each other: what others are suspected of is left out. Where most are,
		// nobody is.
		clear(t.found)
		if len(order) < len(ranks) && len(order) <= max(2, len(ranks)/2) {
			maps.Copy(t.found, suspects)
			delete(t.found, i)
		}
		if c, ok := ev.culprit(t, i, waited, t.chance); ok {
			named = append(named, c)
		}
	}
	// Of those that are left it is asked once more, as some are known now.
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
			if c, ok := ev.culprit(t, i, waited, t.besides); ok {
				named = append(named, c)
			}
		}
	}
	slices.SortFunc(named, func(a, b Culprit) int {
		return cmp.Compare(slices.Index(order, a.Rank), slices.Index(order, b.Rank))
	})
	work := newWork(ev.Causes, -1, suspects)
	least := leastTime * float64(ev.Duration)
	// so many do not stand out, but some of them may
	if named = standingOut(named, ranks, work, least); len(named) > mostOf(len(ranks)) {
		named = standingOut(named[:mostOf(len(ranks))], ranks, work, least)
	}
	return named
}

// culprit names a rank if it matters, if it was late more often than by chance, and if it worked longer.
func (ev *Evidence) culprit(t *trial, i int, waited float64, by func(rank int) (chance, times float64)) (
	c Culprit, ok bool) {
	ranks := ev.Causes.Ranks
	r := &ranks[i]
	work := newWork(ev.Causes, i, t.found)
	h := habitOf(ev, r, i, work.kind(r, likeWork(ranks, i)))
	chance, times := by(i)
	confidence, share, delay := (1-chance)*h.certainty, work.cost(r)/waited, delayOf(r)/float64(ev.Duration)
	least := leastConfidence
	if share >= mostShare && delay >= muchTime {
		least = enoughConfidence
	}
	if ev.held(i) > r.Cost() {
		return c, false
	}
	if confidence < least || math.Round(times) < leastTimes ||
		r.Cost() < timesUsual*middle(ranks, work.cost, i, t.found) {
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
		Rank: i, Host: p.Host, GPU: p.GPU, Kind: h.kind, Share: share,
		TimeShare:  min(1, delay, longer/float64(ev.Duration)),
		Confidence: confidence, Pattern: h.pattern, Evidence: h.sentence, Worst: worstOf(r.Occurrences),
	}, true
}

// held is what others waited because operations took longer on a rank, or by what it transferred: it leaves them late,
// and may come late for that.
func (ev *Evidence) held(rank int) (ns float64) {
	ns = ev.Causes.Ranks[rank].Costs[causes.Transfer]
	for i := range ev.Slow {
		if s := &ev.Slow[i]; s.Rank == rank || s.Peer != nil && *s.Peer == rank {
			ns += s.Cost
		}
	}
	return ns
}

// mostOf is how many of a number of ranks can stand out together.
func mostOf(ranks int) int { return max(2, ranks/4) }

// standingOut leaves out who does not stand apart from the others, or worked longer than they did by less than so many
// ns. The ones named are in the order of what they caused.
func standingOut(named []Culprit, ranks []causes.Rank, work work, least float64) []Culprit {
	for last := len(named) - 1; last >= 0; last-- {
		of := named[last].Rank
		isNamed := func(rank int) bool {
			return slices.ContainsFunc(
				named, func(c Culprit) bool { return c.Rank == rank })
		}
		near := ranks[of].Worked-most(ranks, isNamed) < least
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

// most is how long the one worked that worked longest of the ranks that are not named; of many, one in twenty is left
// out: some work longer by chance.
func most(ranks []causes.Rank, named func(rank int) bool) float64 {
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

// near reports whether a rank does not stand apart from another one, which is named or not: that caused about as much,
// and worked about as much longer, as ranks that do the same in a job are late alike; or what the rank caused more is
// not for working longer.
func (w *work) near(r, o *causes.Rank, named bool) bool {
	cost, other := w.cost(r), w.cost(o)
	if !named && other-o.Heaviest > cost/timesNext && w.longer(o) > w.longer(r)/timesNext {
		return true
	}
	return (!named && o.Cost() < r.Cost() || other < cost/timesNext) && !w.explains(r, o)
}

func worked(r *causes.Rank) float64 { return r.Worked }

// middle is the figure of the middle one of the ranks but for one, and for others that are suspected; 0 if there is
// none.
func middle(ranks []causes.Rank, of func(*causes.Rank) float64, but int, others map[int]bool) float64 {
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

// text says it in one sentence.
func (ev *Evidence) text(v *Verdict) string {
	if len(v.Culprits) > 0 {
		return ev.named(v)
	}
	c := ev.Causes
	worst, by := 0, 0.0
	for i := range c.Ranks {
		if cost := c.Ranks[i].Cost(); cost > by {
			worst, by = i, cost
		}
	}
	on, longer := ev.longest()
	switch {
	case v.Waited == 0 && ev.Enqueued > 0 && ev.Compared == 0:
		return notKnown + "only the times of enqueueing are known. " + sentence(ev.Untimed) + ev.rests()
	case v.Waited == 0 && v.StartUp > 0:
		return fmt.Sprintf(
			"Nobody stands out: ranks waited %s at the first operations of communicators, and not later.",
			units.Time(c.StartUp))
	case v.Waited == 0 && (ev.Uncompared || ev.Compared == 0):
		return notKnown + "no operation has comparable times on two ranks." + ev.rests()
	case v.Waited == 0:
		return "Nobody stands out: nobody waited." + ev.rests()
	case !ev.Transfers && longer >= mostShare*c.Waited && longer >= muchTime*float64(ev.Duration):
		return fmt.Sprintf(notKnown+"%.0f %% of %s, was caused by operations that took longer on %s than on others, "+
			"because of a slow link to it or for a reason of its own, and how long transfers took was not recorded. "+
			"Record with NCCL_OTF2_EVENTS=net.", 100*longer/c.Waited, ev.waited(c.Waited), ev.Ranks[on].Name)
	case v.sharing() >= mostShare: // is said instead
		return ""
	case by == 0:
		return fmt.Sprintf("Nobody stands out: ranks waited %s in all, and none was late by itself.",
			units.Time(c.Waited))
	}
	if once := ev.once(worst); once != "" {
		return once
	}
	if by < c.Waited/100 {
		return fmt.Sprintf(
			"Nobody stands out: ranks waited %s in all, and none caused as much as 1 %% of it by itself.",
			units.Time(c.Waited))
	}
	return fmt.Sprintf(
		"Nobody stands out: ranks waited %s in all, and the one that caused the most, %s, caused %.0f %% of it.",
		units.Time(c.Waited), ev.Ranks[worst].Name, 100*by/c.Waited)
}

// notKnown begins the sentence where what was recorded does not tell who made others wait.
const notKnown = "Not known who made the others wait: "

// rests says what a verdict without a name rests on where something is missing; "" where nothing is.
func (ev *Evidence) rests() string {
	if ev.Lost == 0 {
		return ""
	}
	return fmt.Sprintf(" It rests on what was recorded: %s missing.",
		units.Count(int(min(ev.Lost, math.MaxInt32)), "event is", "events are"))
}

// named says who it was.
func (ev *Evidence) named(v *Verdict) string {
	first := &v.Culprits[0]
	if first.Stops() {
		return sentence(first.Evidence) + " " + Sureness(first.Confidence)
	}
	name := func(c *Culprit) string {
		p := ev.Ranks[c.Rank]
		if p.Host == "" {
			return p.Name
		}
		return p.Name + " on " + p.Host
	}
	text := fmt.Sprintf("%s made the others wait: %.0f %% of %s. %s", name(first), 100*first.Share,
		ev.waited(float64(v.Waited)), first.Evidence)
	text += " " + Sureness(first.Confidence)
	var more []string
	for i := range v.Culprits[1:] {
		c := &v.Culprits[i+1]
		more = append(more, fmt.Sprintf("%s (%.0f %%)", name(c), 100*c.Share))
	}
	switch {
	case len(more) == 1:
		second := &v.Culprits[1]
		text += fmt.Sprintf(" So did %s. %s %s", more[0], second.Evidence, Sureness(second.Confidence))
	case len(more) > mostNamed:
		text += fmt.Sprintf(" So did %s and %d others.", strings.Join(more[:mostNamed], ", "), len(more)-mostNamed)
	case len(more) > 0:
		text += fmt.Sprintf(" So did %s.", strings.Join(more, ", "))
	}
	return text
}

// waited says how long all ranks waited together.
func (ev *Evidence) waited(ns float64) string {
	return fmt.Sprintf("%s waited, summed over %d ranks", units.Time(ns), len(ev.Ranks))
}

// sentence makes one of a clause.
func sentence(clause string) string {
	n := min(1, len(clause))
	return strings.ToUpper(clause[:n]) + clause[n:] + "."
}

// Sureness says how sure a name is, as a sentence.
func Sureness(confidence float64) string {
	if confidence > 0.999 {
		return "Confidence: over 99.9 %."
	}
	return fmt.Sprintf("Confidence: %.1f %%.", math.Floor(1000*confidence)/10)
}

// mostNamed is how many further culprits the sentence names.
const mostNamed = 3
