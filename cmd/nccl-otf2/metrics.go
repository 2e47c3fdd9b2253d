// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/export"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/internal/profile/cubex"
)

// Bounds of the time between two writings of the metrics of a running job.
const (
	leastEvery = time.Second
	mostEvery  = time.Minute
)

// metricsPatience is how long after a job's last process another one may still begin: processes need not run at the
// same time.
const metricsPatience = 30 * time.Second

// metricsKeeper keeps the metrics of a running job in a file.
type metricsKeeper struct {
	path    string
	every   time.Duration
	running *cubex.Running
	meter   *export.Meter
	written os.FileInfo // as it was written last; nil: not yet
	began   bool        // the job was there
	jobs    []export.RunningJob
}

// keepMetrics writes the metrics of a job that runs, or is about to, each time that the interval is over, and removes
// them an interval after its end, or when it is ended. beside: the end of standard input says that a process of the job
// has ended, and has it look at once.
func keepMetrics(cmd *cobra.Command, dir, output, job string, every time.Duration, beside bool) error {
	if output == "-" {
		return usagef("--every writes a file: -o must name it, or its folder")
	}
	directory, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if output == "" {
		output = filepath.Join(directory, "nccl_otf2.prom")
	}
	if isDir(output) {
		for _, path := range export.RemoveStale(output, time.Now()) {
			printable.Fprintf(cmd.ErrOrStderr(), "removed %s, which nobody has written any more\n", path)
		}
		output = filepath.Join(output, export.RunningName(directory))
	}
	if !strings.HasSuffix(output, export.RunningSuffix) {
		return fmt.Errorf("%s is no folder, and no name that ends in %s, as the node exporter takes them", output,
			export.RunningSuffix)
	}
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 19) // the job comes first
	k := &metricsKeeper{path: output, every: every, running: cubex.NewRunning(directory),
		meter: export.NewMeter(job, directory)}
	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM, unix.SIGHUP)
	defer stop()
	over := make(chan struct{})
	if beside {
		go func() {
			_, _ = io.Copy(io.Discard, cmd.InOrStdin())
			close(over)
		}()
	}
	return k.keep(interrupted, over)
}

func (k *metricsKeeper) keep(interrupted context.Context, over <-chan struct{}) error {
	idle := time.Time{} // since when no process has run
	for last, closing := false, false; ; {
		began := time.Now()
		running, waits, err := k.look(began, last)
		switch {
		case err != nil:
			return err
		case running || !k.began:
			idle = time.Time{}
		case idle.IsZero():
			idle = began
		}
		if k.began && !running && !last && (closing || !waits || began.Sub(idle) >= metricsPatience) {
			last = true
			continue // once more, as that of a job that has ended
		}
		if closing && !k.began {
			return nil // it has left nothing
		}
		took := time.Since(began)
		select {
		case <-interrupted.Done():
			return k.remove()
		case <-over:
			closing, over = true, nil
		case <-time.After(max(k.every-took, time.Duration(float64(took)/topShare)-took)):
			if last {
				return k.remove()
			}
		}
		if k.foreign() {
			return nil // somebody else keeps it
		}
	}
}

// look writes the file anew. waits: processes of the job have left nothing yet.
func (k *metricsKeeper) look(now time.Time, last bool) (running, waits bool, err error) {
	sums, _, err := k.running.Look()
	if err != nil && !k.began { // there is none yet, or nobody has described it
		return false, true, nil
	}
	k.began = true
	if err == nil { // else its archive has been made, and what was there before stays
		k.jobs = k.jobs[:0]
	}
	for _, s := range sums {
		running = running || s.Running > 0
		waits = waits || s.Missing > 0
		k.jobs = append(k.jobs, export.RunningJob{Defs: s.Defs, Properties: s.Properties, Rows: s.Rows,
			Processes: map[string]int{"running": s.Running, "ended": s.Ended, "crashed": s.Crashed,
				"missing": s.Missing}})
	}
	if err := export.ReplaceMetrics(k.path, k.meter.Write(k.jobs, now, last)); err != nil {
		return false, false, err
	}
	k.written, err = os.Lstat(k.path)
	return running, waits, err
}

// foreign reports whether the file is not the one that was written.
func (k *metricsKeeper) foreign() bool {
	if k.written == nil {
		return false
	}
	st, err := os.Lstat(k.path)
	return err != nil || !os.SameFile(st, k.written)
}

// remove removes the file, if it is the one that was written.
func (k *metricsKeeper) remove() error {
	if k.written == nil || k.foreign() {
		return nil
	}
	return os.Remove(k.path)
}
