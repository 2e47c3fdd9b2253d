// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// Beside is the whole life of the program beside a process of the job, whose shared memory is descriptor fd: it records the
// process, has profiles of the running job made when they are due, and, as the job's last collector, what the job's mode asks
// for. Both are work of a program, which reads what all collectors have written: tool gives its path once, which may be later than the job's
// process waits for this one.
func Beside(ctx context.Context, fd int, tool <-chan string) error {
	// Launchers send SIGTERM to what is left when their processes have ended: the collector heeds it, the archive is made all the same.
	signal.Notify(make(chan os.Signal, 1), unix.SIGTERM)
	path := sync.OnceValue(func() string { return <-tool })
	due, made := make(chan string), make(chan error, 1)
	go func() {
		var failed error
		for dir := range due {
			if err := finish(path(), &Outcome{Experiment: dir}); err != nil {
				failed = fmt.Errorf("profile of %s: %w", dir, err)
			}
		}
		made <- failed
	}()
	all := runtime.GOMAXPROCS(0)
	out, err := Run(ctx, Options{FD: fd, Profiles: due, Processors: func(n int) { runtime.GOMAXPROCS(min(n, all)) }})
	close(due)
	if failed := <-made; failed != nil && out.Debug {
		fmt.Fprintf(os.Stderr, "nccl-otf2 collect[%d]: %v\n", os.Getpid(), failed)
	}
	if err != nil || !out.Unify {
		return err
	}
	if err := finish(path(), &out); err != nil {
		return fmt.Errorf("unify %s: %w", out.Experiment, err)
	}
	return nil
}

// finish has the tool make what the mode of a job asks for, and tables if they are wanted.
func finish(tool string, out *Outcome) error {
	cmd := exec.Command(tool, "collect", "--finish", out.Experiment, "--record="+strconv.FormatBool(out.Record), "--tables="+strconv.FormatBool(out.Tables))
	cmd.Stderr = os.Stderr
	return cmd.Run()
}
