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

// When and how a rank was late: decided from the times that cost the others most.

// habit is how a rank was late.
type habit struct {
	kind      Kind
	pattern   string
	sentence  string
	times     int     // that cost the others most
	certainty float64 // part of its lateness that is more than the uncertainty of times
}

// series is an operation of a communicator, again and again.
type series struct {
	comm     otf2.CommRef
	function string
	message  bool
}

// habitOf looks at the times that a rank was late in some way.
func habitOf(ev *Evidence, r *causes.Rank, rank int, kind Kind) habit {
	all := mainOf(r.Occurrences)
	if len(all) == 0 {
		return habit{kind: kind}
	}
	h := habit{kind: kind, times: len(all), certainty: certaintyOf(all)}
	main := mainSeries(all)
	var in []causes.Occurrence
	late, called, known, stated := 0.0, 0.0, 0, 0
	for _, o := range all {
		if (series{o.Comm, o.Function, o.Message}) != main {
			continue
		}
		in = append(in, o)
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
	case stated > 0 && called/float64(stated) >= late/2: // its GPU was late, and its host as well
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
	if h.kind == GPULate {
		h.sentence += busyWith(causes.BusyWith(in), ev.Kernel)
	}
	h.sentence += "."
	return h
}

// calledLate says that calls came late. Where the other's host has gone ahead of its GPU, by how much later the call
// came is no lateness: nobody waits until an operation begins.
func calledLate(call, others string, called, late float64) string {
	if called > mostAhead*late {
		return fmt.Sprintf("It called %s so late that this began %s after %s", call, units.Time(late), others)
	}
	return fmt.Sprintf("It called %s %s after %s", call, units.Time(called), others)
}

// mostAhead is how many times as late as it began an operation may have been called, for the call to be told by how
// late it came.
const mostAhead = 1.5

// mostBusy is how many kernels a sentence names.
const mostBusy = 3

// busyWith names the kernels that were in the way of late operations, each with its share of the time by which they
// began late.
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

// mainOf are the times of the greatest cost, in order of time.
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
	// Clocks may be wrong by their uncertainty; twice of that is ruled out.
	if ratio := uncertain / late; ratio > 0.5 {
		return max(0, 1-ratio)
	}
	return 1
}

// mainSeries is the operation with the greatest cost.
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

// timesOf is how often it was late in a series, and how many operations this has. Where not all times are kept, it is
// what the levels of costs tell.
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

// ordinals are those of patterns.
var ordinals = []string{2: "second", 3: "third", 4: "fourth", 5: "fifth", 6: "sixth", 7: "seventh", 8: "eighth",
	9: "ninth", 10: "tenth"}

// usual is the part of times that must follow a pattern.
const usual = 0.9

// patternOf says in which of the operations of a series a rank was late.
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
	// Of a stretch it is said where it lies if there was time enough for more outside of it.
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

// stepOf is the usual distance of times in a series, 0 if there is none.
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
