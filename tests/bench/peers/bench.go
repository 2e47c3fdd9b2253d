// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/stats"
	"github.com/nccl-otf2/nccl-otf2/tests/bench/caller"
	"github.com/nccl-otf2/nccl-otf2/tests/bench/measure"
	"github.com/nccl-otf2/nccl-otf2/tests/bench/peer"
)

// bench lets each plugin see the same storms.
type bench struct {
	host       *caller.Host
	dir        string
	rounds     int
	ranks      numbers // of a process, one after the other
	operations int     // of each rank in a burst
	seconds    float64 // of what is paced
	events     string
	log        io.Writer // may be nil
	runs       int
}

const limit = 5 * time.Minute

// storms are how many ranks call, and how fast operations come, of each rank.
func (b *bench) storms() (all []storm) {
	for _, ranks := range b.ranks {
		of := fmt.Sprintf("%d ranks: ", ranks)
		if ranks == 1 {
			of = "1 rank: "
		}
		all = append(all,
			storm{of + "paced, 300 operations a second", ranks, 300, b.seconds},
			storm{of + "burst", ranks, 1e6, float64(b.operations) / 1e6})
	}
	return all
}

type storm struct {
	name          string
	ranks         int // of one process
	rate, seconds float64
}

// run is what one run took, of all that it called.
type run struct {
	loop       float64 // µs per operation of a rank
	processor  float64 // µs of the job's threads per operation, init and finalize included
	init       float64 // ms
	finalize   float64 // ms
	faults     float64
	bytes      float64 // per operation
	collecting float64 // the collector's processor time per operation, µs, up to its end
	memory
	kept float64 // part of the operations; -1: nobody can tell
}

func (b *bench) run(ctx context.Context, peers []peer.Plugin) (*result, error) {
	if err := adopt(); err != nil {
		return nil, err
	}
	mask, err := config.ParseEvents(b.events)
	if err != nil {
		return nil, err
	}
	all := append([]peer.Plugin{
		{Name: "empty", File: b.host.Empty, Settings: []string{fmt.Sprintf("EMPTY_PLUGIN_EVENTS=%#x", mask)}},
		{Name: "ours, " + b.events, File: b.host.Plugin,
			Settings: []string{"NCCL_OTF2_DIR={dir}", "NCCL_OTF2_EVENTS=" + b.events, "NCCL_OTF2_UNIFY=off"}},
	}, peers...)
	r := &result{Machine: measure.Machine(), Rounds: b.rounds, Events: b.events}
	for _, s := range b.storms() {
		runs := make([][]run, len(all))
		for range b.rounds {
			for i := range all {
				if b.log != nil {
					fmt.Fprintf(b.log, "%s, %s\n", s.name, all[i].Name)
				}
				one, err := b.one(ctx, &all[i], s)
				if err != nil {
					return nil, fmt.Errorf("%s, %s: %w", s.name, all[i].Name, err)
				}
				runs[i] = append(runs[i], one)
			}
		}
		for i := range all {
			r.Rows = append(r.Rows, rowOf(s.name, all[i].Name, runs[i], runs[0]))
		}
	}
	return r, nil
}

// one lets a storm go through a plugin.
func (b *bench) one(ctx context.Context, p *peer.Plugin, s storm) (one run, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	b.runs++
	dir := filepath.Join(b.dir, fmt.Sprintf("run-%d", b.runs))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return one, err
	}
	r, err := b.host.Start(ctx, p.File, p.Environment(dir), "job", s.ranks, 0, s.ranks, s.rate, s.seconds, 0)
	if err != nil {
		return one, err
	}
	seen := watch(r.PID())
	var job caller.Job
	if _, err := r.Wait(&job); err != nil {
		return one, err
	}
	operations := float64(job.Operations)
	one = run{
		memory:    <-seen,
		loop:      job.Seconds * 1e6 / (operations / float64(s.ranks)),
		processor: float64(r.Processor().Nanoseconds()) / 1e3 / operations,
		init:      job.Init / 1e6, finalize: job.Finalize / 1e6, faults: float64(job.Faults), kept: -1,
	}
	if p.File == b.host.Plugin {
		recorded, err := caller.Await(ctx, dir, 1)
		if err != nil {
			return one, err
		}
		one.bytes, one.kept = float64(recorded.Bytes)/operations,
			float64(recorded.Calls)/float64(recorded.Calls+recorded.Lost)
	} else {
		left, err := p.Look(dir)
		if err != nil {
			return one, err
		}
		one.bytes = float64(left.Bytes) / operations
		if left.Operations >= 0 {
			one.kept = float64(left.Operations) / operations
		}
	}
	spent, err := reap()
	if err != nil {
		return one, err
	}
	one.collecting = float64(spent.Nanoseconds()) / 1e3 / operations
	for os.RemoveAll(dir) != nil { // a collector clears up behind itself, too
		time.Sleep(10 * time.Millisecond)
	}
	return one, nil
}

func median(v []float64) float64 { return stats.Median(slices.Clone(v)) }
