// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/nccl-otf2/nccl-otf2/tests/bench/caller"
)

// callsPerOperation is how many callbacks the program's mode "job" makes for an operation of a rank.
const callsPerOperation = 190

// peak holds the greatest sizes seen of a process, MiB.
type peak struct{ own, shared, total float64 }

func (p *peak) see(pid int) error {
	u, err := caller.UsageOf(pid)
	if err != nil {
		return err
	}
	p.own, p.shared = max(p.own, inMiB(u.Own)), max(p.shared, inMiB(u.Shared))
	p.total = max(p.total, inMiB(u.Total()))
	return nil
}

func inMiB(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// watch looks at a run, and its collector, until the process ends or so long.
func watch(run *caller.Run, withCollector bool, last float64) (job, collector peak, err error) {
	pid := 0
	if withCollector {
		if pid, err = caller.Collector(run.PID(), time.Minute); err != nil {
			return job, collector, err
		}
	}
	end := time.Now().Add(time.Duration(last * float64(time.Second)))
	for ; time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err := job.see(run.PID()); caller.Ended(err) {
			break
		} else if err != nil {
			return job, collector, err
		}
		if pid == 0 {
			continue
		}
		if err := collector.see(pid); caller.Ended(err) && caller.Ended(job.see(run.PID())) {
			break // the collector goes after the job, which has gone since
		} else if err != nil {
			return job, collector, fmt.Errorf("the collector: %w", err)
		}
	}
	return job, collector, nil
}

// memory measures what job and collector take, with nothing to do and at work.
func (c *callbacks) memory(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var idle, load [2]peak
	var idleCollector, loadCollector peak // ours is the last
	for which := range c.plugins() {
		var err error
		if idle[which], idleCollector, err = c.idle(ctx, which); err != nil {
			return err
		}
		if load[which], loadCollector, err = c.load(ctx, which); err != nil {
			return err
		}
	}
	rate := fmt.Sprintf("at %d callbacks/s", pacedRate)
	for _, o := range []other{
		{title: "job idle, without rings", ours: idle[ours].own, empty: idle[empty].own, most: 4},
		{title: "job idle, rings", ours: idle[ours].shared, empty: idle[empty].shared},
		{title: "job " + rate + ", without rings", ours: load[ours].own, empty: load[empty].own},
		{title: "job " + rate + ", rings (at most NCCL_OTF2_MEMORY)", ours: load[ours].shared,
			empty: load[empty].shared, most: 256},
		{title: "collector idle, without rings", ours: idleCollector.own, empty: math.NaN(), most: 32},
		{title: "collector " + rate + ", without rings", ours: loadCollector.own, empty: math.NaN(), most: 32},
		{title: "collector " + rate + ", with its view of the job's rings", ours: loadCollector.total,
			empty: math.NaN()},
	} {
		o.unit = "MiB"
		c.add(o)
	}
	return nil
}

// idle looks at a job with nothing to do.
func (c *callbacks) idle(ctx context.Context, which int) (job, collector peak, err error) {
	run, release, err := c.host.Idle(ctx, c.plugins()[which], c.settings(c.newRun()))
	if err != nil {
		return job, collector, err
	}
	time.Sleep(time.Duration(c.scale * float64(time.Second)))
	job, collector, err = watch(run, which == ours, max(0.1, c.scale))
	return job, collector, errors.Join(err, release())
}

// load looks at a job at work.
func (c *callbacks) load(ctx context.Context, which int) (job, collector peak, err error) {
	const ranks = 2
	seconds := max(2, 10*c.scale) // or it is over before the collector is found
	dir := c.newRun()
	run, err := c.host.Start(ctx, c.plugins()[which], c.settings(dir), "job", ranks, 0, ranks,
		pacedRate/callsPerOperation/ranks, seconds, 0)
	if err != nil {
		return job, collector, err
	}
	job, collector, err = watch(run, which == ours, 1.5*seconds)
	var made caller.Job
	_, ended := run.Wait(&made)
	if err = errors.Join(err, ended); err != nil || which == empty {
		return job, collector, err
	}
	recorded, err := caller.Await(ctx, dir, 1)
	if err == nil && (recorded.Lost > 0 || recorded.Calls != made.Calls()) {
		c.note("memory, under load: %d of %d callbacks were recorded, %d lost", recorded.Calls, made.Calls(),
			recorded.Lost)
	}
	return job, collector, err
}
