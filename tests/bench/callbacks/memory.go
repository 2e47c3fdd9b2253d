// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/nccl-otf2/nccl-otf2/tests/bench/caller"
	"github.com/nccl-otf2/nccl-otf2/tests/bench/usage"
)

// callsPerOperation is how many callbacks the program's mode "job" makes for an operation of a rank.
const callsPerOperation = 190

// peak holds the greatest sizes seen of a process, MiB.
type peak struct{ own, shared, total float64 }

func (p *peak) see(pid int) error {
	u, err := usage.Of(pid)
	if err != nil {
		return err
	}
	const mib = 1 << 20
	p.own = max(p.own, float64(u.Own)/mib)
	p.shared = max(p.shared, float64(u.Shared)/mib)
	p.total = max(p.total, float64(u.Total())/mib)
	return nil
}

// watch looks at a run, and its collector, until the process ends or so long.
func watch(run *caller.Run, withCollector bool, last time.Duration) (job, collector peak, err error) {
	pid := 0
	if withCollector {
		if pid, err = usage.Collector(run.PID(), time.Minute); err != nil {
			return job, collector, err
		}
	}
	for end := time.Now().Add(last); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err := job.see(run.PID()); usage.Ended(err) {
			break
		} else if err != nil {
			return job, collector, err
		}
		if pid == 0 {
			continue
		}
		if err := collector.see(pid); usage.Ended(err) && usage.Ended(job.see(run.PID())) {
			break // the collector goes after the job, which has gone since
		} else if err != nil {
			return job, collector, fmt.Errorf("the collector: %w", err)
		}
	}
	return job, collector, nil
}

// memory measures what job and collector take, with nothing to do and at work.
func (b *bench) memory(ctx context.Context, r *result) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	const ranks = 2
	seconds := max(2, b.seconds(10)) // or it is over before the collector is found
	var idle, load [2]peak
	var idleCollector, loadCollector peak
	for which, plugin := range b.plugins() {
		b.say(".")
		_, settings := b.experiment()
		run, release, err := b.host.Idle(ctx, plugin, settings)
		if err != nil {
			return err
		}
		time.Sleep(time.Duration(b.seconds(1) * 1e9))
		var collector peak
		idle[which], collector, err = watch(run, which == ours, time.Duration(max(0.1, b.seconds(1))*1e9))
		if released := release(); err == nil {
			err = released
		}
		if err != nil {
			return err
		}
		if which == ours {
			idleCollector = collector
		}

		b.say(".")
		dir, settings := b.experiment()
		operations := pacedRate / callsPerOperation / ranks
		run, err = b.host.Start(ctx, plugin, settings, "job", ranks, 0, ranks, operations, seconds, 0)
		if err != nil {
			return err
		}
		load[which], collector, err = watch(run, which == ours, time.Duration(1.5*seconds*1e9))
		var job caller.Job
		if _, ended := run.Wait(&job); err == nil {
			err = ended
		}
		if err != nil {
			return err
		}
		if which == ours {
			loadCollector = collector
			recorded, err := caller.Await(ctx, dir, 1)
			if err != nil {
				return err
			}
			if recorded.Lost > 0 || recorded.Calls != job.Calls() {
				r.note("memory, under load: %d of %d callbacks were recorded, %d lost", recorded.Calls, job.Calls(),
					recorded.Lost)
			}
		}
	}
	rate := fmt.Sprintf("at %d callbacks/s", pacedRate)
	r.add(otherRow{Title: "job idle, without rings", Unit: "MiB", Ours: idle[ours].own, Empty: value(idle[empty].own),
		Aim: 4})
	r.add(otherRow{Title: "job idle, rings", Unit: "MiB", Ours: idle[ours].shared, Empty: value(idle[empty].shared)})
	r.add(otherRow{Title: "job " + rate + ", without rings", Unit: "MiB", Ours: load[ours].own,
		Empty: value(load[empty].own)})
	r.add(otherRow{Title: "job " + rate + ", rings (at most NCCL_OTF2_MEMORY)", Unit: "MiB", Ours: load[ours].shared,
		Empty: value(load[empty].shared), Aim: 256})
	r.add(otherRow{Title: "collector idle, without rings", Unit: "MiB", Ours: idleCollector.own, Aim: 32})
	r.add(otherRow{Title: "collector " + rate + ", without rings", Unit: "MiB", Ours: loadCollector.own, Aim: 32})
	r.add(otherRow{Title: "collector " + rate + ", with its view of the job's rings", Unit: "MiB",
		Ours: loadCollector.total})
	return nil
}
