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

// Bounds of the interval between updates of a running job's metrics.
const (
	leastEvery = time.Second
	mostEvery  = time.Minute
)

// metricsPatience is how long after the end of a job's last process another one may still start: the processes of a job
// need not run at the same time.
const metricsPatience = 30 * time.Second

// metricsKeeper keeps the metrics of a running job in a file.
type metricsKeeper struct {
	path    string
	every   time.Duration
	running *cubex.Running
	meter   *export.Meter
	written os.FileInfo // of the last update; nil: none yet
	began   bool        // the job has been found
	jobs    []export.RunningJob
}

// keepMetrics writes the metrics of a running or starting job once per interval, and removes them one interval after
// the job's end, or when it is interrupted. beside: the end of standard input signals the end of a process of the job,
// and causes an immediate update.
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
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 19) // the job has priority
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
	return k.keepWriting(interrupted, over)
}

func (k *metricsKeeper) keepWriting(interrupted context.Context, over <-chan struct{}) error {
	idle := time.Time{} // since when no process has been running
	for last, closing := false, false; ; {
		began := time.Now()
		running, waits, err := k.updateFile(began, last)
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
			continue // update once more, after the end of the job
		}
		if closing && !k.began {
			return nil // it has left no data
		}
		took := time.Since(began)
		select {
		case <-interrupted.Done():
			return k.removeFile()
		case <-over:
			closing, over = true, nil
		case <-time.After(max(k.every-took, time.Duration(float64(took)/topShare)-took)):
			if last {
				return k.removeFile()
			}
		}
		if k.isForeign() {
			return nil // another process maintains the file
		}
	}
}

// updateFile rewrites the file. waits: the processes of the job have not written any data yet.
func (k *metricsKeeper) updateFile(now time.Time, last bool) (running, waits bool, err error) {
	sums, _, err := k.running.Look()
	if err != nil && !k.began { // the job has not started, or its shards are not described yet
		return false, true, nil
	}
	k.began = true
	if err == nil { // otherwise the archive has been made, and the last metrics stay
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

// isForeign reports whether another process has replaced the file.
func (k *metricsKeeper) isForeign() bool {
	if k.written == nil {
		return false
	}
	st, err := os.Lstat(k.path)
	return err != nil || !os.SameFile(st, k.written)
}

// removeFile removes the file unless another process has replaced it.
func (k *metricsKeeper) removeFile() error {
	if k.written == nil || k.isForeign() {
		return nil
	}
	return os.Remove(k.path)
}
