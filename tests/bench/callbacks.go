// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"runtime"

	"github.com/nccl-otf2/nccl-otf2/internal/stats"
	"github.com/nccl-otf2/nccl-otf2/tests/bench/caller"
)

// pacedRate is how many callbacks a second all threads of a paced case make together. The collector keeps up
// with it on one processor beside them.
const pacedRate = 600_000

// callbacks measures what the plugin costs the job that loads it, against an empty plugin in the same run.
type callbacks struct {
	*bench
	mode                   string // NCCL_OTF2_MODE
	clock                  string // of the records
	costs, singles, others *Table
	timer, step            float64
	notes                  []string
}

const empty, ours = 0, 1

// both has runs with the empty plugin and with ours.
type both[T any] [2][]*T

// beside writes the medians of a figure: ours, the empty plugin's and the difference.
func (r *both[T]) beside(get func(*T) float64) string {
	o, e := median(r[ours], get), median(r[empty], get)
	return fmt.Sprintf("%s − %s = %s", digits(o), digits(e), digits(o-e))
}

// with writes the medians of a figure: ours and, in brackets, the empty plugin's.
func (r *both[T]) with(get func(*T) float64) string {
	return fmt.Sprintf("%s (%s)", digits(median(r[ours], get)), digits(median(r[empty], get)))
}

func prepareCallbacks(b *bench, flags *flag.FlagSet) func(context.Context) (*Page, error) {
	b.addFlags(flags, 3)
	c := newCallbacks(b)
	flags.StringVar(&c.mode, "mode", c.mode, "NCCL_OTF2_MODE of the job: trace or profile")
	return c.measure
}

func newCallbacks(b *bench) *callbacks {
	return &callbacks{bench: b, mode: "trace",
		costs: &Table{Title: "Cost of a callback, ns", Columns: []string{"case", "mean: ours − empty",
			"median: ours − empty", "p99 (empty)", "p99.9 (empty)", "max (empty), µs", "M callbacks/s",
			"starts refused", "aim", ""}},
		singles: &Table{Title: "Each kind of callback by itself, paced, ns", Columns: []string{"callback", "threads",
			"mean: ours − empty", "p99 (empty)", "p99.9 (empty)"}},
		others: &Table{Title: "Start, memory, rate", Columns: []string{"figure", "unit", "ours", "empty", "difference",
			"aim", ""}}}
}

func (c *callbacks) measure(ctx context.Context) (*Page, error) {
	heading := machine()
	if err := c.buildHost(); err != nil {
		return nil, err
	}
	for i := range costCases {
		if one := &costCases[i]; c.match.MatchString(one.name()) {
			say("%s", one.name())
			if err := c.cost(ctx, one); err != nil {
				return nil, fmt.Errorf("%s: %w", one.name(), err)
			}
		}
	}
	for _, other := range []struct {
		name    string
		measure func(context.Context) error
	}{{"start", c.start}, {"memory", c.memory}, {"sustained", c.sustained}} {
		if c.match.MatchString(other.name) {
			say("%s", other.name)
			if err := other.measure(ctx); err != nil {
				return nil, fmt.Errorf("%s: %w", other.name, err)
			}
		}
	}
	p := &Page{Heading: fmt.Sprintf("%s; %s; medians of %d rounds", heading, runtime.Version(), c.rounds),
		Notes: c.notes}
	if c.clock != "" {
		p.Heading += fmt.Sprintf("; clock of the records: %s; timer: %s ns, subtracted, single times in steps of %s ns",
			c.clock, digits(c.timer), digits(c.step))
	}
	for _, t := range []*Table{c.costs, c.singles, c.others} {
		if len(t.Rows) > 0 {
			p.Tables = append(p.Tables, t)
		}
	}
	if len(p.Tables) == 0 {
		return nil, fmt.Errorf("nothing matches %q", c.match)
	}
	return p, nil
}

func (c *callbacks) note(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// settings are those of a run that records in a folder.
func (c *callbacks) settings(dir string) []string {
	return []string{"NCCL_OTF2_DIR=" + dir, "NCCL_OTF2_EVENTS=net", "NCCL_OTF2_MODE=" + c.mode}
}

// plugins are the two that are compared.
func (c *callbacks) plugins() [2]string { return [2]string{c.host.Empty, c.host.Plugin} }

// call runs the program with one of the plugins, by itself, and waits until all is recorded.
func (c *callbacks) call(ctx context.Context, which int, into any, mode string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	dir := c.newRun()
	// An archive is made of all members of the communicators; here there is one. Nothing is to run on after the
	// process.
	run, err := c.host.Start(ctx, c.plugins()[which], append(c.settings(dir), "NCCL_OTF2_UNIFY=off"), mode, args...)
	if err != nil {
		return err
	}
	if _, err := run.Wait(into); err != nil || which == empty {
		return err
	}
	recorded, err := caller.Await(ctx, dir, 1)
	if err != nil {
		return err
	}
	if c.clock = recorded.Clock; mode == "cost" && recorded.Calls == 0 {
		return fmt.Errorf("nothing was recorded")
	}
	return removeAll(dir)
}

// piece is a part of what NCCL calls, see tests/bench/host/calls.h.
type piece struct {
	name   string // the program's
	title  string
	timed  int  // callbacks of the piece itself
	all    int  // with those that make its parents
	median bool // is aimed at, else the mean
}

// What paced cases aim at: ns more than with the empty plugin, and the 99th percentile.
const mostMore, mostP99 = 20, 150

var pieces = [...]piece{
	{name: "application", title: "application thread, one AllReduce", timed: 12, all: 12, median: true},
	{name: "proxy", title: "proxy thread, ProxyOp of 8 steps", timed: 43, all: 55},
	{name: "kernel", title: "proxy thread, KernelCh of 8 channels", timed: 24, all: 36},
}

// costCase is a piece called by some threads.
type costCase struct {
	piece   *piece
	threads int
	paced   bool // else without a pause
	first   bool // and from the first callback on
}

var costCases = func() (all []costCase) {
	for _, paced := range []bool{true, false} {
		for i := range pieces {
			for _, threads := range []int{1, 8} {
				all = append(all, costCase{piece: &pieces[i], threads: threads, paced: paced})
			}
		}
	}
	for i := range pieces[1:] {
		all = append(all, costCase{piece: &pieces[1+i], threads: 1, paced: true, first: true})
	}
	return all
}()

func (c *costCase) name() string {
	speed, plural := "paced", ""
	switch {
	case c.first:
		speed = fmt.Sprintf("the first %d s, at %.1f M callbacks/s", firstSeconds, firstRate/1e6)
	case !c.paced:
		speed = "full speed"
	}
	if c.threads > 1 {
		plural = "s"
	}
	return fmt.Sprintf("%s, %s, %d thread%s", c.piece.title, speed, c.threads, plural)
}

// How long a case is warmed up and measured, in seconds if it is paced: memory goes round after some flushes, which are
// up to 2 s apart; the empty plugin has none. Otherwise in callbacks of all threads: more than the memory for records
// holds.
const pacedSeconds, warmCalls, fullCalls = 4, 2e6, 24e6

// The first seconds of a fast job: faster than one processor beside it takes the records, so that fresh memory is used
// all the while.
const firstSeconds, firstRate = 3, 2.7e6

var warmSeconds = [2]float64{empty: 0.5, ours: 6}

// arguments are those of the program's mode "cost".
func (c *costCase) arguments(which int, scale float64) []any {
	warm, count, period := warmCalls, fullCalls, 0.0
	switch {
	case c.first:
		warm, count = 0, firstSeconds*firstRate
		period = 1e9 * float64(c.piece.all*c.threads) / firstRate
	case c.paced:
		warm, count = warmSeconds[which]*pacedRate, pacedSeconds*pacedRate
		period = 1e9 * float64(c.piece.all*c.threads) / pacedRate
	}
	sequences := func(calls float64) uint64 { return max(2, uint64(calls*scale/float64(c.piece.all*c.threads))) }
	warmUp := uint64(0)
	if !c.first {
		warmUp = sequences(warm)
	}
	return []any{c.piece.name, c.threads, warmUp, sequences(count), uint64(period)}
}

// cost runs a case with both plugins in turn.
func (c *callbacks) cost(ctx context.Context, one *costCase) error {
	var runs both[caller.Cost]
	for range c.rounds {
		for which := range c.plugins() {
			into := new(caller.Cost)
			if err := c.call(ctx, which, into, "cost", one.arguments(which, c.scale)...); err != nil {
				return err
			}
			c.timer, c.step = into.Timer, into.TimerStep
			runs[which] = append(runs[which], into)
		}
	}
	c.costs.Rows = append(c.costs.Rows, one.cells(&runs))
	if !one.paced || one.first {
		return nil
	}
	if made := median(runs[ours], callRate); made < 0.9*pacedRate {
		c.note("%s: the machine was too busy for the pace, %.2f M instead of %.2f M callbacks/s", one.name(), made/1e6,
			pacedRate/1e6)
	}
	for k, kind := range runs[ours][0].Callbacks {
		of := func(get func(*caller.Distribution) float64) func(*caller.Cost) float64 {
			return func(r *caller.Cost) float64 { return get(&r.Callbacks[k].Single) }
		}
		c.singles.Rows = append(c.singles.Rows, []string{kind.Name, fmt.Sprint(one.threads),
			runs.beside(of(func(d *caller.Distribution) float64 { return d.Mean })),
			runs.with(of(func(d *caller.Distribution) float64 { return d.P99 })),
			runs.with(of(func(d *caller.Distribution) float64 { return d.P999 }))})
	}
	return nil
}

func callRate(r *caller.Cost) float64 { return float64(r.Calls) / r.Seconds }

// cells are the texts of a case's row.
func (c *costCase) cells(runs *both[caller.Cost]) []string {
	mean := func(r *caller.Cost) float64 { return r.Sequences.Mean } // of callbacks among their neighbors
	middle := func(r *caller.Cost) float64 { return r.Sequences.P50 }
	p99 := func(r *caller.Cost) float64 { return r.Single.P99 }
	most := func(r *caller.Cost) float64 { return r.Single.Max / 1e3 }
	lost, aim, met := "0", none, ""
	if l := median(runs[ours], func(r *caller.Cost) float64 { return float64(r.Refused) / float64(r.Starts) }); l > 0 {
		lost = fmt.Sprintf("%.2f %%", 100*l)
	}
	if c.paced {
		what, of := "mean", mean
		if c.piece.median {
			what, of = "median", middle
		}
		aim = fmt.Sprintf("%s +%d, p99 %d", what, mostMore, mostP99)
		met = verdict(median(runs[ours], of)-median(runs[empty], of), mostMore) + ", " +
			verdict(median(runs[ours], p99), mostP99)
	}
	return []string{c.name(), runs.beside(mean), runs.beside(middle), runs.with(p99),
		runs.with(func(r *caller.Cost) float64 { return r.Single.P999 }),
		fmt.Sprintf("%s (%s)", digits(extreme(math.Max, runs[ours], most)),
			digits(extreme(math.Max, runs[empty], most))),
		digits(median(runs[ours], callRate) / 1e6), lost, aim, met}
}

// other is a figure of the last table.
type other struct {
	title, unit string
	ours        float64
	empty       float64 // NaN: there is none
	most        float64 // what ours may have more than the empty plugin; 0: no aim
	least       float64 // what it must have; 0: no aim
}

func (c *callbacks) add(o other) {
	row := []string{o.title, o.unit, digits(o.ours), none, none, none, ""}
	more := o.ours
	if !math.IsNaN(o.empty) {
		more -= o.empty
		row[3], row[4] = digits(o.empty), digits(more)
	}
	switch {
	case o.most > 0:
		row[5], row[6] = fmt.Sprintf("≤ %g", o.most), verdict(more, o.most)
	case o.least > 0:
		row[5], row[6] = fmt.Sprintf("≥ %g", o.least), "met"
		if more < o.least {
			row[6] = fmt.Sprintf("missed by %.0f %%", 100*(1-more/o.least))
		}
	}
	c.others.Rows = append(c.others.Rows, row)
}

// start measures init and the last finalize.
func (c *callbacks) start(ctx context.Context) error {
	const times, later = 5, 16
	var runs both[caller.Start]
	for range times * c.rounds {
		for which := range c.plugins() {
			into := new(caller.Start)
			if err := c.call(ctx, which, into, "start", later); err != nil {
				return err
			}
			runs[which] = append(runs[which], into)
		}
	}
	first := func(r *caller.Start) float64 { return r.First / 1e6 }
	of := func(title, unit string, most float64, get func(*caller.Start) float64) {
		c.add(other{title: title + ", median", unit: unit, ours: median(runs[ours], get),
			empty: median(runs[empty], get), most: most})
	}
	of("first init", "ms", 30, first)
	c.add(other{title: "first init, longest", unit: "ms", ours: extreme(math.Max, runs[ours], first),
		empty: extreme(math.Max, runs[empty], first)})
	of("later inits", "µs", 0, func(r *caller.Start) float64 { return stats.Median(r.Later) / 1e3 })
	of("last finalize", "ms", 0, func(r *caller.Start) float64 { return r.LastFinalize / 1e6 })
	return nil
}
