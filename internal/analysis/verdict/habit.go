// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Describes when and how a rank was late, from the occasions that cost the others most.

// habit describes how a rank was late.
type habit struct {
	kind      Kind
	pattern   string
	sentence  string
	times     int     // number of occasions that cost the others most
	certainty float64 // part of its lateness that exceeds the uncertainty of the times
}

// series identifies an operation that a communicator repeats.
type series struct {
	comm     otf2.CommRef
	function string
	message  bool
}

// habitOf describes how a rank was late in one way, from its occurrences.
func habitOf(ev *Evidence, r *causes.Rank, rank int, kind Kind) habit {
	all := mainOf(r.Occurrences)
	if len(all) == 0 {
		return habit{kind: kind}
	}
	h := habit{kind: kind, times: len(all), certainty: certaintyOf(all)}
	main := mainSeries(all)
	var in []causes.Occurrence
	late, called, known, stated, mayWait := 0.0, 0.0, 0, 0, 0
	for _, o := range all {
		if (series{o.Comm, o.Function, o.Message}) != main {
			continue
		}
		in = append(in, o)
		if o.MayWait {
			mayWait++
		}
		late += o.Late
		if !math.IsNaN(o.Called) {
			stated++
		}
		if o.Called > 0 {
			called += o.Called
			known++
		}
	}
	late /= float64(len(in))
	times, of := timesOf(ev.Causes, r, rank, all, in, main)
	h.pattern = patternOf(ev, in, times, of)
	call, others := "nccl"+main.function, "the others"
	if main.message {
		call, others = strings.ReplaceAll(call, " and ", " and nccl"), "the rank at the other end"
	}
	if ev.MPI[main.comm] {
		call = "MPI's " + main.function
	}
	if ev.Comm != nil {
		if name := ev.Comm(main.comm); name != "" {
			call += " on " + name
		}
	}
	switch {
	case h.kind == HostLate:
		h.sentence = fmt.Sprintf("It called %s %s after %s", call, units.Time(late), others)
		if known > 0 {
			h.sentence = calledLate(call, others, called/float64(known), late)
		}
		if r.Costs[causes.Call] > r.Costs[causes.Host] {
			h.sentence = fmt.Sprintf("It was in NCCL's calls %s longer than %s before %s", units.Time(late), others,
				call)
		}
	case stated > 0 && called/float64(stated) >= late/2: // both its GPU and its host were late
		h.sentence = fmt.Sprintf("Its GPU began %s %s after %s", call, units.Time(late), others)
	case stated > 0:
		h.sentence = fmt.Sprintf("Its GPU began %s %s after %s, though it was called in time", call, units.Time(late),
			others)
	default:
		h.sentence = fmt.Sprintf("It began %s %s after %s; when it was called is not known", call, units.Time(late),
			others)
	}
	h.sentence += fmt.Sprintf(", %d of %d times", times, of)
	if h.pattern != "" {
		h.sentence += ", " + h.pattern
	}
	if r.All {
		h.sentence += elsewhere(len(all) - len(in))
	}
	busy := ""
	if h.kind != HostLate {
		busy = busyWith(causes.BusyWith(in), ev.Kernel)
	}
	h.sentence += busy + "."
	if h.kind != HostLate && busy == "" && 2*mayWait >= len(in) {
		h.sentence += inOperationBefore
	}
	return h
}

// inOperationBefore follows where a GPU may not have been late, but in the operation before.
const inOperationBefore = " Or it was still in the operation before: NCCL stamped when a part of that had ended " +
	"(NCCL_OTF2_EVENTS=net records when all had)."

// elsewhere says on how many occasions a rank was late before other calls than the one that is named.
func elsewhere(times int) string {
	switch times {
	case 0:
		return ""
	case 1:
		return "; once before another call"
	}
	return fmt.Sprintf("; %d times before other calls", times)
}

// calledLate states by how much calls were late. Where the host of the other rank runs ahead of its GPU, the time
// between the two calls overstates the lateness, because nobody waits until an operation begins: the sentence then
// gives the delay of the beginning instead.
func calledLate(call, others string, called, late float64) string {
	if called > mostAhead*late {
		return fmt.Sprintf("It called %s so late that this began %s after %s", call, units.Time(late), others)
	}
	return fmt.Sprintf("It called %s %s after %s", call, units.Time(called), others)
}

// mostAhead is the largest ratio of the lateness of the call to the lateness of the beginning with which calledLate
// states the former.
const mostAhead = 1.5

// mostBusy is the number of kernels that a sentence names.
const mostBusy = 3

// busyWith names the kernels that delayed late operations, each with its share of the delay.
func busyWith(busy []causes.Busy, name func(otf2.RegionRef) string) string {
	var words []string
	for _, b := range busy[:min(len(busy), mostBusy)] {
		words = append(words, fmt.Sprintf("%s (%.0f %%)", name(b.Region), 100*b.Share))
	}
	if len(words) == 0 {
		return ""
	}
	return ": busy with " + strings.Join(words, ", ")
}

// mainOf returns the occasions with the greatest costs, sorted by time.
func mainOf(all []causes.Occurrence) []causes.Occurrence {
	by := slices.Clone(all)
	slices.SortFunc(by, func(a, b causes.Occurrence) int { return cmp.Compare(b.Cost, a.Cost) })
	sum := 0.0
	for i := range by {
		sum += by[i].Cost
	}
	half, middle := 0.0, 0
	for middle < len(by)-1 && half+by[middle].Cost < sum/2 {
		half += by[middle].Cost
		middle++
	}
	n := middle
	for n < len(by) && by[n].Cost >= mainPart*by[middle].Cost {
		n++
	}
	by = by[:n]
	slices.SortFunc(by, func(a, b causes.Occurrence) int { return cmp.Compare(a.At, b.At) })
	return by
}

func certaintyOf(all []causes.Occurrence) float64 {
	late, uncertain := 0.0, 0.0
	for i := range all {
		late += all[i].Late
		if all[i].Stated {
			uncertain += float64(all[i].Uncertainty)
		}
	}
	if late <= 0 {
		return 0
	}
	// Clocks may be wrong by their uncertainty, but not by twice as much.
	if ratio := uncertain / late; ratio > 0.5 {
		return max(0, 1-ratio)
	}
	return 1
}

// mainSeries returns the series with the greatest cost.
func mainSeries(all []causes.Occurrence) (main series) {
	costs := make(map[series]float64)
	most := 0.0
	for i := range all {
		s := series{all[i].Comm, all[i].Function, all[i].Message}
		costs[s] += all[i].Cost
		if costs[s] > most {
			main, most = s, costs[s]
		}
	}
	return main
}

// timesOf returns how often a rank was late in a series, and how many operations the series has. Where not all
// occasions are kept, it estimates the former from the counts by cost level.
func timesOf(c *causes.Result, r *causes.Rank, rank int, all, in []causes.Occurrence, main series) (times, of uint64) {
	times = uint64(len(in))
	for i := range c.Comms {
		comm := &c.Comms[i]
		if comm.Ref != main.comm || (comm.Took != nil) != main.message {
			continue
		}
		member := slices.Index(comm.Ranks, int32(rank))
		of = max(comm.Count(member, main.function), times)
		if !r.All {
			least := math.Inf(1)
			for _, o := range all {
				least = min(least, o.Cost)
			}
			led := uint64(0)
			for level := causes.Level(least); level < causes.Levels; level++ {
				led += uint64(comm.Led[member][level])
			}
			times = min(max(times, led), of)
		}
	}
	return times, of
}

// ordinals are the words for the steps of patterns.
var ordinals = []string{2: "second", 3: "third", 4: "fourth", 5: "fifth", 6: "sixth", 7: "seventh", 8: "eighth",
	9: "ninth", 10: "tenth"}

// usual is the part of the occasions that must follow a pattern.
const usual = 0.9

// patternOf describes in which operations of a series a rank was late; "" if there is no pattern.
func patternOf(ev *Evidence, in []causes.Occurrence, times, of uint64) string {
	since := units.Time(float64(in[0].At - ev.Begin))
	until := units.Time(float64(in[len(in)-1].At - ev.Begin))
	switch {
	case len(in) == 1:
		return "once, at " + since
	case len(in) < 3:
		return ""
	}
	step, span := stepOf(in), in[len(in)-1].Nth-in[0].Nth+1
	regular := step > 0 && float64(times*step) >= usual*float64(span)
	before, after := in[0].Nth-1, of-min(of, in[len(in)-1].Nth)
	// The begin or end of a stretch is stated if there were enough calls outside of it.
	outside := func(calls uint64) bool { return calls >= 3*max(step, 1) && float64(calls) >= (1-usual)*float64(of) }
	text := ""
	switch {
	case regular && step == 1:
		text = "always"
	case regular && int(step) < len(ordinals):
		text = fmt.Sprintf("every %s call", ordinals[step])
	case regular:
		text = fmt.Sprintf("every %dth call", step)
	case float64(times) < 0.5*float64(span):
		return ""
	}
	switch {
	case outside(after) && text != "" && text != "always":
		return fmt.Sprintf("%s from %s to %s", text, since, until)
	case outside(after):
		return fmt.Sprintf("from %s to %s", since, until)
	case outside(before) && text != "" && text != "always":
		return text + " since " + since
	case outside(before):
		return "since " + since
	}
	return text
}

// stepOf returns the usual distance between occasions in a series, 0 if there is none.
func stepOf(in []causes.Occurrence) uint64 {
	counts := make(map[uint64]int)
	for i := range in[1:] {
		counts[in[i+1].Nth-in[i].Nth]++
	}
	best := uint64(0)
	for step, n := range counts {
		if n > counts[best] || n == counts[best] && step < best {
			best = step
		}
	}
	if float64(counts[best]) < 0.8*float64(len(in)-1) {
		return 0
	}
	return best
}
