// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"bytes"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/nccl-otf2/nccl-otf2/tests/bench/caller"
)

// report is what was seen, and what is wrong with it.
type report struct {
	time     time.Duration
	churn    float64
	samples  []sample
	job      caller.Job
	recorded *caller.Recorded
	series   []series
	faults   []string
}

func (r *report) fault(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

// growth is how much something may grow in the second half.
type growth struct {
	perMinute       float64
	perCommunicator float64 // for each communicator that is made: its definitions stay in memory
	wobble          float64 // in all: it goes up and down, and a line through that rises by chance
}

// allowed is the steepest slope, per minute.
func (g growth) allowed(r *report) float64 {
	return g.perMinute + g.perCommunicator*r.churn*60 + g.wobble/(r.time/2).Minutes()
}

// series is one figure over time.
type series struct {
	name, unit string
	of         func(*sample) float64
	bound      growth

	first, half, last, most float64
	slope                   float64 // per minute, over the second half
	allowed                 float64 // the same
	judged                  bool
}

// judgedFrom is how long a run must be for its slopes to be judged: before that, everything is still warming up.
const judgedFrom = 2 * time.Minute

func allSeries() []series {
	return []series{
		{name: "job: memory without rings", unit: "MiB", of: func(s *sample) float64 { return mib(s.job.Own) },
			bound: growth{perMinute: 0.02, wobble: 0.1}},
		{name: "job: rings", unit: "MiB", of: func(s *sample) float64 { return mib(s.job.Shared) },
			bound: growth{perMinute: 0.02, perCommunicator: 0.002, wobble: 1}},
		{name: "job: descriptors", unit: "files", of: func(s *sample) float64 { return float64(s.job.Files) },
			bound: growth{wobble: 0.2}},
		{name: "job: threads", unit: "threads", of: func(s *sample) float64 { return float64(s.job.Threads) },
			bound: growth{wobble: 0.5}},
		{name: "collector: memory without rings", unit: "MiB",
			of:    func(s *sample) float64 { return mib(s.collector.Own) },
			bound: growth{perMinute: 0.1, perCommunicator: 0.03, wobble: 1}},
		{name: "collector: its view of the rings", unit: "MiB",
			of:    func(s *sample) float64 { return mib(s.collector.Shared) },
			bound: growth{perMinute: 0.02, perCommunicator: 0.002, wobble: 1}},
		{name: "collector: descriptors", unit: "files",
			of: func(s *sample) float64 { return float64(s.collector.Files) }, bound: growth{wobble: 2}},
		{name: "collector: threads", unit: "threads",
			of: func(s *sample) float64 { return float64(s.collector.Threads) }, bound: growth{wobble: 2}},
	}
}

// slope fits a line and returns how much it rises in a minute.
func slope(samples []sample, of func(*sample) float64) float64 {
	n := float64(len(samples))
	var x, y float64
	for i := range samples {
		x += samples[i].at.Minutes() / n
		y += of(&samples[i]) / n
	}
	var above, below float64
	for i := range samples {
		dx := samples[i].at.Minutes() - x
		above += dx * (of(&samples[i]) - y)
		below += dx * dx
	}
	if below == 0 {
		return 0
	}
	return above / below
}

// judge looks at how everything went on.
func (r *report) judge() {
	if len(r.samples) < 4 {
		r.fault("only %d samples were taken in %v", len(r.samples), r.time)
		return
	}
	half := r.samples[len(r.samples)/2:]
	r.series = allSeries()
	for i := range r.series {
		s := &r.series[i]
		s.first, s.half, s.last = s.of(&r.samples[0]), s.of(&half[0]), s.of(&half[len(half)-1])
		for k := range r.samples {
			s.most = max(s.most, s.of(&r.samples[k]))
		}
		s.slope = slope(half, s.of)
		s.allowed = s.bound.allowed(r)
		if s.judged = r.time >= judgedFrom; s.judged && s.slope > s.allowed {
			r.fault("%s grows by %.3f %s a minute in the second half, at most %.3f are allowed", s.name, s.slope,
				s.unit, s.allowed)
		}
	}
}

func (r *report) text() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%v, %d ranks, %d collectives of ranks, %d communicators, %d threads that called\n", r.time, ranks,
		r.job.Operations, r.job.Communicators, r.job.Threads)
	fmt.Fprintf(&b, "%d callbacks made, %d recorded, %d lost; %d events in %.1f MiB\n\n", r.job.Calls(),
		r.recorded.Calls, r.recorded.Lost, r.recorded.Events, mib(r.recorded.Bytes))
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "figure\tunit\tfirst\thalf-way\tlast\tmost\tgrowth/min in the second half\tallowed\t")
	for i := range r.series {
		s := &r.series[i]
		verdict := "ok"
		switch {
		case !s.judged:
			verdict = fmt.Sprintf("not judged: shorter than %v", judgedFrom)
		case s.slope > s.allowed:
			verdict = "GROWS"
		}
		fmt.Fprintf(w, "%s\t%s\t%.1f\t%.1f\t%.1f\t%.1f\t%+.3f\t%.3f\t%s\n", s.name, s.unit, s.first, s.half, s.last,
			s.most, s.slope, s.allowed, verdict)
	}
	_ = w.Flush() // into memory
	if len(r.faults) == 0 {
		fmt.Fprint(&b, "\nnothing was lost, and the archive is whole\n")
	}
	for _, f := range r.faults {
		fmt.Fprintf(&b, "\nFAULT: %s\n", f)
	}
	return b.String()
}
