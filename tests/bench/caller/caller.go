// SPDX-License-Identifier: Apache-2.0

// Package caller runs the program of tests/bench/host, which calls a profiler plugin in NCCL's place.
package caller

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ErrUnavailable says what is not there: a compiler, or what `make build` makes.
var ErrUnavailable = errors.New("unavailable")

// Host is the program, and the plugins it can call.
type Host struct {
	Program string
	Empty   string // a plugin that does nothing
	Plugin  string // ours
	Tool    string // nccl-otf2
}

// Build compiles the program and the empty plugin into dir. root is the folder of the repository, build that of
// `make build`.
func Build(root, build, dir string) (*Host, error) {
	build, err := filepath.Abs(build)
	if err != nil {
		return nil, err
	}
	h := &Host{
		Program: filepath.Join(dir, "host"),
		Empty:   filepath.Join(dir, "empty_plugin.so"),
		Plugin:  filepath.Join(build, "libnccl-profiler-otf2.so"),
		Tool:    filepath.Join(build, "nccl-otf2"),
	}
	for _, path := range []string{h.Plugin, h.Tool} {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("%w: run `make build` first: %w", ErrUnavailable, err)
		}
	}
	sources := filepath.Join(root, "tests/bench/host")
	files, err := filepath.Glob(filepath.Join(sources, "*.c"))
	if err != nil {
		return nil, err
	}
	empty := filepath.Join(sources, "empty_plugin.c")
	files = slices.DeleteFunc(files, func(f string) bool { return f == empty })
	program := append(files, "-I"+root, "-o", h.Program, "-pthread", "-ldl")
	return h, errors.Join(Compile(program...),
		Compile("-I"+root, "-fPIC", "-shared", "-fvisibility=hidden", "-o", h.Empty, empty))
}

// Compile runs the C compiler.
func Compile(args ...string) error {
	cc := cmp.Or(os.Getenv("CC"), "cc")
	if _, err := exec.LookPath(cc); err != nil {
		return fmt.Errorf("%w: a C compiler: %w", ErrUnavailable, err)
	}
	args = append([]string{"-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-D_GNU_SOURCE"},
		args...)
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", cc, strings.Join(args, " "), err, out)
	}
	return nil
}

// Run is one run of the program.
type Run struct {
	cmd *exec.Cmd
	out bytes.Buffer
	err bytes.Buffer
}

// Start begins a run with a plugin, in one of the program's modes. The settings are environment variables, as
// NAME=value; those of nccl-otf2 and NCCL in this process's environment do not reach the program.
func (h *Host) Start(ctx context.Context, plugin string, settings []string, mode string, args ...any) (*Run, error) {
	r := h.command(ctx, plugin, settings, mode, args...)
	r.cmd.Stdout = &r.out
	return r, r.cmd.Start()
}

// Idle begins a run that has a communicator, and does nothing until it is released.
func (h *Host) Idle(ctx context.Context, plugin string, settings []string) (r *Run, release func() error, err error) {
	r = h.command(ctx, plugin, settings, "idle")
	in, err := r.cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := r.cmd.Start(); err != nil {
		return nil, nil, err
	}
	release = func() error { return errors.Join(in.Close(), r.cmd.Wait()) }
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		return nil, nil, fmt.Errorf("host idle: %w: %s", errors.Join(err, release()), strings.TrimSpace(r.err.String()))
	}
	return r, release, nil
}

func (h *Host) command(ctx context.Context, plugin string, settings []string, mode string, args ...any) *Run {
	r := new(Run)
	list := []string{plugin, mode}
	for _, a := range args {
		list = append(list, fmt.Sprint(a))
	}
	r.cmd = exec.CommandContext(ctx, h.Program, list...)
	r.cmd.Env = append(Environment(), settings...)
	r.cmd.Stderr = &r.err
	return r
}

// Environment is this process's without the settings of nccl-otf2, NCCL and RCCL.
func Environment() []string {
	return slices.DeleteFunc(os.Environ(),
		func(kv string) bool { return strings.HasPrefix(kv, "NCCL_") || strings.HasPrefix(kv, "RCCL_") })
}

// PID is the process that calls.
func (r *Run) PID() int { return r.cmd.Process.Pid }

// Wait waits for the end of the run and fills in what it printed. What the plugin logged is returned: it speaks only
// if something is amiss.
func (r *Run) Wait(into any) (log string, err error) {
	err = r.cmd.Wait()
	log = strings.TrimSpace(r.err.String())
	if err != nil {
		return log, fmt.Errorf("%s: %w: %s", strings.Join(r.cmd.Args[1:], " "), err, log)
	}
	if err := json.Unmarshal(r.out.Bytes(), into); err != nil {
		return log, fmt.Errorf("%s printed %q: %w", strings.Join(r.cmd.Args[1:], " "), r.out.String(), err)
	}
	return log, nil
}

// Processor is the time that the threads of a run that is over were given.
func (r *Run) Processor() time.Duration {
	return r.cmd.ProcessState.UserTime() + r.cmd.ProcessState.SystemTime()
}

// Distribution is one of times, in nanoseconds per callback, without the timer's cost. The mean leaves out those of
// more than 0.1 ms: they were interrupted.
type Distribution struct {
	Samples uint64  `json:"samples"`
	Mean    float64 `json:"mean_ns"`
	P50     float64 `json:"p50_ns"`
	P99     float64 `json:"p99_ns"`
	P999    float64 `json:"p999_ns"`
	Max     float64 `json:"max_ns"`
}

// Cost is what the mode "cost" prints.
type Cost struct {
	Timer           float64      `json:"timer_ns"`      // its cost, which is subtracted
	TimerStep       float64      `json:"timer_step_ns"` // the least by which two single times differ
	Seconds         float64      `json:"seconds"`
	Calls           uint64       `json:"calls"`
	Starts          uint64       `json:"starts"`
	Refused         uint64       `json:"refused"`     // starts that got no handle
	Late            uint64       `json:"late"`        // sequences that began more than a period late
	Interrupted     uint64       `json:"interrupted"` // sequences that the scheduler interrupted; not in Sequences
	InterruptedMost float64      `json:"interrupted_most_ns"`
	Sequences       Distribution `json:"sequences"` // of the means of whole sequences
	Single          Distribution `json:"single"`    // of single callbacks
	Callbacks       []struct {
		Name   string       `json:"name"`
		Single Distribution `json:"single"`
	} `json:"callbacks"`
}

// Start is what the mode "start" prints, ns.
type Start struct {
	First        float64   `json:"first_ns"`
	Later        []float64 `json:"later_ns"`
	LastFinalize float64   `json:"last_finalize_ns"`
}

// Job is what the mode "job" prints.
type Job struct {
	Starts        uint64  `json:"starts"`
	Stops         uint64  `json:"stops"`
	States        uint64  `json:"states"`
	Refused       uint64  `json:"refused"` // starts that got no handle
	Operations    uint64  `json:"operations"`
	Communicators uint64  `json:"communicators"`
	Threads       uint64  `json:"threads"` // that called
	Seconds       float64 `json:"seconds"` // from the first call to the last
	OnDiskSeconds float64 `json:"on_disk_seconds"`
	Init          float64 `json:"init_ns"`     // the first
	Finalize      float64 `json:"finalize_ns"` // of all ranks of the process
	// page faults of threads of lasting communicators, after their second operation
	Faults int `json:"faults"`
}

// Calls is the number of callbacks.
func (j *Job) Calls() uint64 { return j.Starts + j.Stops + j.States }
