// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
)

// harness is where everything is.
type harness struct {
	python, job   string // interpreter and job.py
	plugin, empty string // libraries
	tool          string // nccl-otf2
	work          string // folder for the cases
	nccl          string // library in the place of PyTorch's own, "": none
}

// Limits of waiting.
const (
	caseLimit    = 90 * time.Second
	graceLimit   = 5 * time.Second  // for the other ranks when one has failed, and for a dump of stacks
	collectLimit = 20 * time.Second // for collectors, after the last process
	hangTime     = 8 * time.Second  // until a job that hangs is looked at and killed: a hang counts after 5 s
)

// job is one start of job.py on all ranks.
type job struct {
	mode     string
	ranks    int
	settings []string // environment, beside what every job has
	args     []string
	// Called when all ranks wait for what never comes; then they are killed, as a launcher's time limit does it. nil:
	// the job ends.
	hanging func()
}

// environment is that of every rank: ranks on one GPU are let pass for ranks on several hosts, so that NCCL connects
// them, through sockets on the loopback.
func (j *job) environment(rank int) []string {
	var env []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		ours := strings.HasPrefix(name, "NCCL_") || strings.HasPrefix(name, "TORCH_NCCL_") ||
			strings.HasPrefix(name, "TORCHELASTIC_") ||
			strings.HasPrefix(name, "SLURM_") || strings.HasPrefix(name, "PMI") || strings.HasPrefix(name, "OMPI_")
		if !ours {
			env = append(env, kv)
		}
	}
	env = append(env,
		"RANK="+strconv.Itoa(rank), "LOCAL_RANK="+strconv.Itoa(rank), "WORLD_SIZE="+strconv.Itoa(j.ranks),
		"LOCAL_WORLD_SIZE="+strconv.Itoa(j.ranks),
		"NCCL_HOSTID=gputest-rank"+strconv.Itoa(rank),
		"NCCL_NET=Socket", "NCCL_SOCKET_IFNAME=lo", "NCCL_IB_DISABLE=1", "NCCL_MNNVL_ENABLE=0", "NCCL_MAX_NCHANNELS=2",
		"NCCL_ALLGATHERV_ENABLE=0",
		"NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=INIT,ENV,PROFILE",
		"PYTHONUNBUFFERED=1", "PYTHONDONTWRITEBYTECODE=1", "PYTHONFAULTHANDLER=1")
	return append(env, j.settings...)
}

// instead is the environment in which another NCCL takes the place of PyTorch's own.
func (h *harness) instead() []string {
	if h.nccl == "" {
		return nil
	}
	return []string{"LD_PRELOAD=" + h.nccl}
}

// run starts the ranks and waits for them. It returns what they wrote, log and output, as far as they came; the error
// says which ended otherwise than well. Output and logs are kept in dir.
func (h *harness) run(ctx context.Context, j *job, dir string) (logs []*jobLog, said []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, caseLimit)
	defer cancel()
	ended := make(chan error)
	var commands []*exec.Cmd
	for rank := range j.ranks {
		args := append([]string{h.job, "--mode", j.mode, "--store", filepath.Join(dir, "store"), "--log",
			logFile(dir, rank)}, j.args...)
		cmd := exec.CommandContext(ctx, h.python, args...)
		cmd.Env = append(j.environment(rank), h.instead()...)
		cmd.Dir = dir
		// Python's stacks first, then the end.
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGABRT) }
		cmd.WaitDelay = graceLimit
		out, fault := os.Create(outputFile(dir, rank))
		if fault == nil {
			defer out.Close()
			cmd.Stdout, cmd.Stderr = out, out
			fault = cmd.Start()
		}
		if fault != nil {
			err = errors.Join(err, fmt.Errorf("rank %d: %w", rank, fault))
			cancel()
			break
		}
		commands = append(commands, cmd)
	}
	for rank, cmd := range commands {
		go func() {
			fault := cmd.Wait()
			if fault != nil {
				fault = fmt.Errorf("rank %d: %w", rank, fault)
			}
			ended <- fault
		}()
	}
	looked := make(chan bool)
	go func() {
		defer close(looked)
		if j.hanging == nil || len(commands) < j.ranks || !j.waitUntilItHangs(ctx, dir) {
			return
		}
		j.hanging()
		for _, cmd := range commands {
			_ = cmd.Process.Kill() // it may have ended, which is found below
		}
	}()
	for range commands {
		fault := <-ended
		if j.hanging != nil && fault != nil && strings.HasSuffix(fault.Error(), "signal: killed") {
			continue
		}
		if fault != nil {
			err = errors.Join(err, fault)
			time.AfterFunc(graceLimit, cancel) // the others wait for it in vain
		}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = errors.Join(err, fmt.Errorf("not done after %v", caseLimit))
	}
	cancel()
	<-looked
	for rank := range j.ranks {
		text, _ := os.ReadFile(outputFile(dir, rank)) // what is missing was said above
		said = append(said, string(text))
		l, fault := readJobLog(logFile(dir, rank))
		if fault == nil && !l.ended && j.hanging == nil {
			fault = fmt.Errorf("rank %d did not come to its end", rank)
		}
		err = errors.Join(err, fault)
		logs = append(logs, l)
	}
	return logs, said, err
}

// waitUntilItHangs waits until all ranks have said that they are about to hang, and for as long as makes it certain for
// whoever looks. It is false if that does not come.
func (j *job) waitUntilItHangs(ctx context.Context, dir string) bool {
	for rank := 0; rank < j.ranks; {
		if l, err := readJobLog(logFile(dir, rank)); err == nil && l.hanging {
			rank++
			continue
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(hangTime):
		return true
	}
}

func logFile(dir string, rank int) string {
	return filepath.Join(dir, fmt.Sprintf("rank%d.jsonl", rank))
}
func outputFile(dir string, rank int) string {
	return filepath.Join(dir, fmt.Sprintf("rank%d.out", rank))
}

// collect waits until the collectors have finished and, if there is to be one, made the archive. If they do not make
// it, that is a failure, and the tool makes it.
func (h *harness) collect(ctx context.Context, v *verdict, directory string, archived bool) error {
	deadline := time.Now().Add(collectLimit)
	made := func() bool {
		_, err := os.Stat(filepath.Join(directory, "traces.otf2"))
		return err == nil || !archived
	}
	for {
		entries, err := experiment.List(directory)
		if err != nil {
			return err
		}
		working := slices.ContainsFunc(entries, func(e experiment.Entry) bool {
			return e.State == experiment.Writing || e.State == experiment.Starting
		})
		if len(entries) > 0 && !working && made() {
			break
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			if working || len(entries) == 0 {
				return fmt.Errorf("%d collectors left something in %s, and not all have finished", len(entries),
					directory)
			}
			v.fail("the last collector made no archive")
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	// Also where there is an archive already: making it again must be possible, once the collector is done with it.
	for {
		out, err := exec.CommandContext(ctx, h.tool, "unify", directory).CombinedOutput()
		switch {
		case err == nil:
			return nil
		case !strings.Contains(string(out), "is being unified") || time.Now().After(deadline):
			return fmt.Errorf("nccl-otf2 unify: %w: %s", err, out)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
