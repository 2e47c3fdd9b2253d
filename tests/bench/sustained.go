// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/nccl-otf2/nccl-otf2/tests/bench/caller"
)

// trial is what became of one rate that was tried.
type trial struct {
	rate    float64 // callbacks/s of both processes until everything was on disk
	calls   uint64
	events  uint64
	bytes   int64
	lost    uint64
	archive float64 // seconds from the processes' end until the archive was there
	holds   bool
}

// tolerance is how much longer than asked for the calls may take, and from there until all is on disk, for a rate to
// hold.
const tolerance = 1.05

// search finds the greatest rate that holds, to a few percent, with few tries: it doubles, more or less, until one
// fails, and then halves what is between. It returns 0 if none holds.
func search(first float64, holds func(rate float64) (bool, error)) (best float64, err error) {
	const tries, near = 12, 1.04
	fails, rate := 0.0, first
	for range tries {
		ok, err := holds(rate)
		if err != nil {
			return 0, err
		}
		if ok {
			best = rate
		} else {
			fails = rate
		}
		switch {
		case fails == 0:
			rate = best * 1.6
		case best == 0:
			rate = fails / 2
		case fails <= near*best:
			return best, nil
		default:
			rate = (best + fails) / 2
		}
	}
	return best, nil
}

// sustained finds the greatest rate at which two processes, each with an application and a proxy thread, are
// recorded as fast as they call, and nothing is lost.
func (c *callbacks) sustained(ctx context.Context) error {
	seconds := max(0.2, 10*c.scale)
	var best *trial
	_, err := search(1e6, func(rate float64) (bool, error) {
		t, err := c.try(ctx, rate, seconds)
		if err != nil {
			return false, err
		}
		if say("%.2f M/s: %v", rate/1e6, t.holds); t.holds {
			best = t
		}
		return t.holds, nil
	})
	if err != nil {
		return err
	}
	if best == nil {
		c.note("sustained capture: no rate was found that holds")
		return nil
	}
	for _, o := range []other{
		{title: fmt.Sprintf("sustained capture, 2 × (application + proxy thread), %.3g s", seconds),
			unit: "M callbacks/s", ours: best.rate / 1e6, least: 3},
		{title: "– events per callback", unit: "events", ours: float64(best.events) / float64(best.calls)},
		{title: "– bytes of event files per callback", unit: "bytes", ours: float64(best.bytes) / float64(best.calls)},
		{title: "– from the processes' end until the archive was there", unit: "s", ours: best.archive},
	} {
		o.empty = math.NaN()
		c.add(o)
	}
	return nil
}

// try lets the processes call at a rate.
func (c *callbacks) try(ctx context.Context, rate, seconds float64) (*trial, error) {
	const processes = 2
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	dir := c.newRun()
	var runs [processes]*caller.Run
	for p := range runs {
		var err error
		if runs[p], err = c.host.Start(ctx, c.host.Plugin, c.settings(dir), "job", processes, p, 1,
			rate/callsPerOperation/processes, seconds, 0); err != nil {
			return nil, err
		}
	}
	t := new(trial)
	var refused uint64
	var longest, onDisk float64
	for _, run := range runs {
		var j caller.Job
		if _, err := run.Wait(&j); err != nil {
			return nil, err
		}
		t.calls += j.Calls()
		refused += j.Refused
		longest, onDisk = max(longest, j.Seconds), max(onDisk, j.OnDiskSeconds)
	}
	ended := time.Now()
	recorded, err := caller.Await(ctx, dir, processes)
	if err != nil {
		return nil, err
	}
	if _, err := caller.AwaitProduct(ctx, dir, c.mode); err != nil {
		return nil, err
	}
	t.archive, t.rate = time.Since(ended).Seconds(), float64(t.calls)/onDisk
	t.lost, t.events, t.bytes = recorded.Lost, recorded.Events, recorded.Bytes
	complete := refused == 0 && recorded.Lost == 0
	if complete && recorded.Calls != t.calls {
		return nil, fmt.Errorf("%d callbacks were made and none lost, but %d recorded", t.calls, recorded.Calls)
	}
	t.holds = complete && longest <= tolerance*seconds && onDisk <= tolerance*longest
	return t, os.RemoveAll(dir)
}
