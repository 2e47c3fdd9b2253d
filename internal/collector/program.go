// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/config"
)

// RecordProcess is all that the program does beside a process of the job, whose shared memory is descriptor fd. It
// records the process. It has another program, the tool, make profiles of the running job when they are due, keep the
// job's metrics, and make what the job's mode asks for if this is the job's last collector. The channel gives the path
// of the tool once. That may be after the job's process has stopped waiting for this one.
func RecordProcess(ctx context.Context, fd int, tool <-chan string) error {
	// Launchers send SIGTERM to what is left when their processes have ended. The collector obeys it, but still makes
	// an archive that does not take long.
	term := make(chan os.Signal, 1)
	signal.Notify(term, unix.SIGTERM)
	path := sync.OnceValue(func() string { return <-tool })
	due, made := make(chan string), make(chan error, 1)
	go func() {
		var failed error
		for dir := range due {
			if err := finish(path(), &Outcome{Experiment: dir}, term); err != nil {
				failed = fmt.Errorf("profile of %s: %w", dir, err)
			}
		}
		made <- failed
	}()
	all := runtime.GOMAXPROCS(0)
	var metrics metricsTool
	out, err := Run(ctx, Options{
		FD: fd, Profiles: due, Processors: func(n int) { runtime.GOMAXPROCS(min(n, all)) },
		Metrics: func(dir, folder string) { metrics.start(path(), dir, folder) },
	})
	close(due)
	metrics.endMetrics()
	if failed := <-made; failed != nil && out.Debug {
		fmt.Fprintf(os.Stderr, "nccl-otf2 collect[%d]: %v\n", os.Getpid(), failed)
	}
	if err != nil || !out.Unify {
		return err
	}
	if err := finish(path(), &out, term); err != nil {
		return fmt.Errorf("unify %s: %w", out.Experiment, err)
	}
	return nil
}

// metricsEvery is the time between two writings of a running job's metrics.
const metricsEvery = "15s"

// metricsTool is the tool while it keeps the metrics of a running job. It ends by itself, after the job.
type metricsTool struct{ life io.Closer } // its standard input, which ends with this program at the latest

func (k *metricsTool) start(tool, dir, folder string) {
	if st, err := os.Stat(folder); err != nil || !st.IsDir() {
		fmt.Fprintf(os.Stderr, "nccl-otf2: %sPROMETHEUS: %s is not a folder: no metrics are kept\n", config.Prefix,
			folder)
		return
	}
	cmd := exec.Command(tool, "export", "--prometheus", "--every", metricsEvery, "--beside", "-o", folder, dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // keys at the terminal are for the job
	life, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "nccl-otf2: no metrics are kept in %s: %v\n", folder, err)
		return
	}
	k.life = life
}

// endMetrics ends the tool after it has written the metrics a last time, before the archive is made.
func (k *metricsTool) endMetrics() {
	if k.life != nil {
		_ = k.life.Close()
	}
}

// finish has the tool make what the mode of a job asks for, and tables if they are wanted. If the program has been told
// to end, or is meanwhile, finish gives up after a while: "nccl-otf2 unify" makes it later.
func finish(tool string, out *Outcome, term chan os.Signal) error {
	ctx, giveUp := context.WithCancelCause(context.Background())
	defer giveUp(nil)
	go func() {
		select {
		case s := <-term:
			term <- s // it holds for all that is still to be made
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(graceAfterTerm):
			giveUp(errGivenUp)
		case <-ctx.Done():
		}
	}()
	cmd := exec.CommandContext(ctx, tool, "collect", "--finish", out.Experiment,
		"--record="+strconv.FormatBool(out.Record), "--tables="+strconv.FormatBool(out.Tables))
	cmd.Stderr = os.Stderr
	err := cmd.Run()
	if errors.Is(context.Cause(ctx), errGivenUp) {
		return errGivenUp
	}
	return err
}

var errGivenUp = errors.New("told to end before it was made: run nccl-otf2 unify")
