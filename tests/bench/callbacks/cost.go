// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/internal/stats"
	"github.com/nccl-otf2/nccl-otf2/tests/bench/caller"
)

// piece is a part of what NCCL calls, see tests/bench/host/calls.h.
type piece struct {
	name  string // the program's
	title string
	timed int // callbacks of the piece itself
	all   int // with those that make its parents
	aim   aim
}

// aim says which figure is aimed at.
type aim struct {
	median bool    // else the mean
	most   float64 // ns more than with the empty plugin
	p99    float64 // ns
}

var pieces = [...]piece{
	{name: "application", title: "application thread, one AllReduce", timed: 12, all: 12,
		aim: aim{median: true, most: 20, p99: 150}},
	{name: "proxy", title: "proxy thread, ProxyOp of 8 steps", timed: 43, all: 55, aim: aim{most: 20, p99: 150}},
	{name: "kernel", title: "proxy thread, KernelCh of 8 channels", timed: 24, all: 36, aim: aim{most: 20, p99: 150}},
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
	sequences := func(calls float64) uint64 {
		return max(2, uint64(calls*scale/float64(c.piece.all*c.threads)))
	}
	warmUp := uint64(0)
	if !c.first {
		warmUp = sequences(warm)
	}
	return []any{c.piece.name, c.threads, warmUp, sequences(count), uint64(period)}
}

// cost runs a case with both plugins in turn.
func (b *bench) cost(ctx context.Context, c *costCase, r *result) (*costRow, error) {
	var runs [2][]*caller.Cost
	for range b.rounds {
		b.say(".")
		for which := range b.plugins() {
			into := new(caller.Cost)
			recorded, err := b.call(ctx, which, into, "cost", c.arguments(which, b.scale)...)
			if err != nil {
				return nil, err
			}
			if which == ours {
				if recorded.Calls == 0 {
					return nil, fmt.Errorf("nothing was recorded of %d callbacks", into.Calls)
				}
				r.Clock = recorded.Clock
			}
			r.Timer, r.TimerStep = into.Timer, into.TimerStep
			runs[which] = append(runs[which], into)
		}
	}
	row := &costRow{Case: c.name(), Ours: summary(runs[ours]), Empty: summary(runs[empty]), kinds: c.paced && !c.first}
	row.judge(c)
	if made := row.Ours.Rate; c.paced && !c.first && made < 0.9*pacedRate {
		r.note("%s: the machine was too busy for the pace, %.2f M instead of %.2f M callbacks/s", c.name(), made/1e6,
			pacedRate/1e6)
	}
	return row, nil
}

// costFigures are the medians of some runs, ns per callback.
type costFigures struct {
	Mean        float64           `json:"mean_ns"`   // of callbacks among their neighbors
	Median      float64           `json:"median_ns"` // of the means of sequences
	P99         float64           `json:"p99_ns"`    // of single callbacks
	P999        float64           `json:"p999_ns"`
	Max         float64           `json:"max_ns"` // of all runs
	Rate        float64           `json:"callbacks_per_second"`
	Lost        float64           `json:"lost"`        // share of starts that were refused
	Interrupted float64           `json:"interrupted"` // sequences, of all runs, that are no part of mean and median
	Callbacks   []callbackFigures `json:"callbacks"`
}

// callbackFigures are those of one kind of callback, each timed by itself. The mean leaves out what the scheduler
// interrupted.
type callbackFigures struct {
	Name string  `json:"name"`
	Mean float64 `json:"mean_ns"`
	P99  float64 `json:"p99_ns"`
	P999 float64 `json:"p999_ns"`
}

func summary(runs []*caller.Cost) costFigures {
	of := func(get func(*caller.Cost) float64) float64 {
		var v []float64
		for _, r := range runs {
			v = append(v, get(r))
		}
		return stats.Median(v)
	}
	f := costFigures{
		Mean:   of(func(c *caller.Cost) float64 { return c.Sequences.Mean }),
		Median: of(func(c *caller.Cost) float64 { return c.Sequences.P50 }),
		P99:    of(func(c *caller.Cost) float64 { return c.Single.P99 }),
		P999:   of(func(c *caller.Cost) float64 { return c.Single.P999 }),
		Rate:   of(func(c *caller.Cost) float64 { return float64(c.Calls) / c.Seconds }),
		Lost:   of(func(c *caller.Cost) float64 { return float64(c.Refused) / float64(c.Starts) }),
	}
	for _, r := range runs {
		f.Max = max(f.Max, r.Single.Max)
		f.Interrupted += float64(r.Interrupted)
	}
	for i := range runs[0].Callbacks {
		f.Callbacks = append(f.Callbacks, callbackFigures{
			Name: runs[0].Callbacks[i].Name,
			Mean: of(func(c *caller.Cost) float64 { return c.Callbacks[i].Single.Mean }),
			P99:  of(func(c *caller.Cost) float64 { return c.Callbacks[i].Single.P99 }),
			P999: of(func(c *caller.Cost) float64 { return c.Callbacks[i].Single.P999 }),
		})
	}
	return f
}
