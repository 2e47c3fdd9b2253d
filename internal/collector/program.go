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

// Beside is the whole life of the program beside a process of the job, whose shared memory is descriptor fd: it records
// the process, has profiles of the running job made when they are due, its metrics kept, and, as the job's last
// collector, what the job's mode asks for. All of this is work of a program, which reads what all collectors have
// written: tool gives its path once, which may be later than the job's process waits for this one.
func Beside(ctx context.Context, fd int, tool <-chan string) error {
	// Launchers send SIGTERM to what is left when their processes have ended: the collector heeds it, and an archive
	// that is quickly made is made all the same.
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
	var metrics keeper
	out, err := Run(ctx, Options{
		FD: fd, Profiles: due, Processors: func(n int) { runtime.GOMAXPROCS(min(n, all)) },
		Metrics: func(dir, folder string) { metrics.start(path(), dir, folder) },
	})
	close(due)
	metrics.over()
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

// keeper is the tool as it keeps the metrics of a running job. It ends by itself, after the job.
type keeper struct{ life io.Closer } // its standard input, which ends with this program at the latest

func (k *keeper) start(tool, dir, folder string) {
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

// over has it look once more before the archive is made.
func (k *keeper) over() {
	if k.life != nil {
		_ = k.life.Close()
	}
}

// finish has the tool make what the mode of a job asks for, and tables if they are wanted. If it was told to end, or is
// now, it gives that up after a while: "nccl-otf2 unify" makes it later.
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
