// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/nccl-otf2/nccl-otf2/tests/bench/caller"
)

// trial is one rate that was tried.
type trial struct {
	Asked   float64 `json:"asked"`   // callbacks/s of both processes
	Made    float64 `json:"made"`    // while they called
	OnDisk  float64 `json:"on_disk"` // until everything was on disk
	Calls   uint64  `json:"calls"`
	Lost    uint64  `json:"lost"`
	Events  uint64  `json:"events"`
	Bytes   int64   `json:"bytes"`
	Archive float64 `json:"archive_seconds"` // from the processes' end until the archive was there
	Holds   bool    `json:"holds"`
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
func (b *bench) sustained(ctx context.Context, r *result) error {
	seconds := max(0.2, b.seconds(10))
	var best *trial
	_, err := search(1e6, func(rate float64) (bool, error) {
		t, err := b.try(ctx, rate, seconds)
		if err != nil {
			return false, err
		}
		b.say("%.2f M/s: %v, ", rate/1e6, t.Holds)
		r.Trials = append(r.Trials, *t)
		if t.Holds {
			best = t
		}
		return t.Holds, nil
	})
	if err != nil {
		return err
	}
	if best == nil {
		r.note("sustained capture: no rate was found that holds, down to %.2g callbacks/s",
			r.Trials[len(r.Trials)-1].Asked)
		return nil
	}
	r.add(otherRow{Title: fmt.Sprintf("sustained capture, 2 × (application + proxy thread), %.3g s", seconds),
		Unit: "M callbacks/s",
		Ours: best.OnDisk / 1e6, Aim: 3, AtLeast: true})
	r.add(otherRow{Title: "– events per callback", Unit: "events", Ours: float64(best.Events) / float64(best.Calls)})
	r.add(otherRow{Title: "– bytes of event files per callback", Unit: "bytes",
		Ours: float64(best.Bytes) / float64(best.Calls)})
	r.add(otherRow{Title: "– from the processes' end until the archive was there", Unit: "s", Ours: best.Archive})
	return nil
}

// try lets the processes call at a rate.
func (b *bench) try(ctx context.Context, rate, seconds float64) (*trial, error) {
	const processes = 2
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	dir, settings := b.experiment()
	var runs [processes]*caller.Run
	for p := range runs {
		var err error
		if runs[p], err = b.host.Start(ctx, b.host.Plugin, settings, "job", processes, p, 1,
			rate/callsPerOperation/processes, seconds, 0); err != nil {
			return nil, err
		}
	}
	t := &trial{Asked: rate}
	var refused uint64
	var longest, onDisk float64
	for _, run := range runs {
		var j caller.Job
		if _, err := run.Wait(&j); err != nil {
			return nil, err
		}
		t.Calls += j.Calls()
		refused += j.Refused
		longest, onDisk = max(longest, j.Seconds), max(onDisk, j.OnDiskSeconds)
	}
	ended := time.Now()
	recorded, err := caller.Await(ctx, dir, processes)
	if err != nil {
		return nil, err
	}
	if _, err := caller.AwaitProduct(ctx, dir, b.mode); err != nil {
		return nil, err
	}
	t.Archive = time.Since(ended).Seconds()
	t.Made, t.OnDisk = float64(t.Calls)/longest, float64(t.Calls)/onDisk
	t.Lost, t.Events, t.Bytes = recorded.Lost, recorded.Events, recorded.Bytes
	if refused == 0 && recorded.Lost == 0 && recorded.Calls != t.Calls {
		return nil, fmt.Errorf("%d callbacks were made and none lost, but %d recorded", t.Calls, recorded.Calls)
	}
	t.Holds = refused == 0 && recorded.Lost == 0 && longest <= tolerance*seconds && onDisk <= tolerance*longest
	return t, os.RemoveAll(dir)
}
