// SPDX-License-Identifier: Apache-2.0

// Package soak lets a job run for a long time with the plugin, at a moderate rate, and watches that nothing grows:
// memory, open files and threads of the job and of its collector. Communicators and threads come and go all the while.
// Then it checks that nothing was lost, and that the archive is whole.
//
//	make soak SOAK_TIME=10m
package soak

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/nccl-otf2/nccl-otf2/tests/bench/caller"
)

// options of a soak.
type options struct {
	time time.Duration
	rate float64 // collectives per second and rank
	dir  string  // for the experiment
	mode string  // NCCL_OTF2_MODE
}

// ranks of the job, all in one process, as a process with several GPUs has them.
const ranks = 2

// Communicators come and go at least this often, and as many in all where the time is short. They stay in the archive,
// so an archive of many hours has fewer each second.
const (
	leastChurn    = 1.0 / 30 // per second
	communicators = 60
)

// sample is what was seen at one moment.
type sample struct {
	at             time.Duration
	job, collector caller.Usage
}

// soak runs the job and looks at it.
func soak(ctx context.Context, host *caller.Host, o options) (*report, error) {
	if _, err := exec.LookPath(printer); err != nil {
		return nil, fmt.Errorf("%w: the reference reader: %w", caller.ErrUnavailable, err)
	}
	ctx, cancel := context.WithTimeout(ctx, o.time+10*time.Minute)
	defer cancel()
	churn := max(leastChurn, communicators/o.time.Seconds())
	experiment := filepath.Join(o.dir, "experiment")
	settings := []string{"NCCL_OTF2_DIR=" + experiment, "NCCL_OTF2_EVENTS=net", "NCCL_OTF2_MODE=" + o.mode}
	run, err := host.Start(ctx, host.Plugin, settings, "job", ranks, 0, ranks, o.rate, o.time.Seconds(), churn)
	if err != nil {
		return nil, err
	}
	r := &report{time: o.time, churn: churn}
	if r.samples, err = watch(run.PID(), o); err != nil {
		cancel() // not to wait for the rest of the job's time
	}
	logged, ended := run.Wait(&r.job)
	if err = errors.Join(err, ended); err != nil {
		return nil, err
	}
	if logged != "" {
		r.fault("the plugin logged: %s", logged)
	}
	if r.recorded, err = caller.Await(ctx, experiment, 1); err != nil {
		return nil, err
	}
	if r.recorded.Lost > 0 || r.job.Refused > 0 {
		r.fault("%d callbacks were lost: %v", max(r.recorded.Lost, r.job.Refused), r.recorded.Reasons)
	}
	if made := r.job.Calls(); r.recorded.Calls != made {
		r.fault("%d callbacks were made, %d recorded", made, r.recorded.Calls)
	}
	product, err := caller.AwaitProduct(ctx, experiment, o.mode)
	if err != nil {
		return nil, err
	}
	if o.mode == "profile" {
		if out, err := exec.CommandContext(ctx, host.Tool, "print", "--cube", product).CombinedOutput(); err != nil {
			r.fault("nccl-otf2 print --cube: %v: %s", err, tail(out))
		}
		r.judge()
		return r, nil
	}
	if out, err := exec.CommandContext(ctx, host.Tool, "check", experiment).CombinedOutput(); err != nil {
		r.fault("nccl-otf2 check: %v: %s", err, tail(out))
	}
	if err := reference(ctx, product); err != nil {
		r.fault("%v", err)
	}
	r.judge()
	return r, nil
}

// watch looks at the job and its collector until the job has run for its time.
func watch(job int, o options) (samples []sample, err error) {
	begin := time.Now()
	collector, err := caller.Collector(job, time.Minute)
	if err != nil {
		return nil, err
	}
	every := min(max(o.time/600, 50*time.Millisecond), 2*time.Second)
	said := begin
	for ; time.Since(begin) < o.time; time.Sleep(every) {
		s := sample{at: time.Since(begin)}
		if s.job, err = caller.UsageOf(job); err == nil {
			s.collector, err = caller.UsageOf(collector)
		}
		if caller.Ended(err) {
			// The job may be a little faster than we are, and its collector goes after it. Before its time none may.
			if _, gone := caller.UsageOf(job); caller.Ended(gone) && time.Since(begin) > o.time-2*every {
				return samples, nil
			}
		}
		if err != nil {
			return samples, fmt.Errorf("job or collector, after %v: %w", s.at, err)
		}
		samples = append(samples, s)
		if time.Since(said) > time.Minute {
			said = time.Now()
			fmt.Printf("soak: %s: job %.1f MiB, collector %.1f MiB, %d descriptors\n", s.at.Round(time.Second),
				mib(s.job.Own), mib(s.collector.Own), s.collector.Files)
		}
	}
	return samples, nil
}

// printer is the reference reader.
const printer = "otf2-print"

// reference has the archive read by the reference reader.
func reference(ctx context.Context, anchor string) error {
	cmd := exec.CommandContext(ctx, printer, "-Werror", anchor)
	var errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = nil, &errs // events by the million are not kept
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s -Werror: %w: %s", printer, err, tail(errs.Bytes()))
	}
	return nil
}

func tail(out []byte) string {
	const most = 1000
	text := strings.TrimSpace(string(out))
	if len(text) > most {
		text = "… " + text[len(text)-most:]
	}
	return text
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }
