// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/hidden"
)

// Clock selects what the host's exported clock returns, and how its threads are synchronized.
type Clock string

// The clocks.
const (
	// ClockLive lets the threads run freely; a call only waits for calls of other threads that it depends on. The
	// exported clock is CLOCK_MONOTONIC_RAW.
	ClockLive Clock = "live"
	// ClockRecorded makes all calls of a process one at a time in the recorded order. The exported clock returns the
	// recorded time of the calling thread's current call, so that two replays are identical.
	ClockRecorded Clock = "recorded"
)

// Pace selects how fast calls follow each other.
type Pace string

// The possible paces.
const (
	PaceFast     Pace = "fast"     // as fast as the order allows
	PaceRecorded Pace = "recorded" // at the recorded intervals, with one time line for all processes
)

// DieAfterLast as Options.Die makes each process kill itself (SIGKILL) after its last call, without finalizing its
// communicators.
const DieAfterLast = "after-last"

// Options configure a replay. The zero value plays to the end with the live clock, as fast as possible.
type Options struct {
	Host   string // path of the host program; "": FindHost's
	Plugin string // value of NCCL_PROFILER_PLUGIN; "": from the environment
	Clock  Clock  // "": ClockLive
	Pace   Pace   // "": PaceFast

	// API limits the version of the plugin interface that is looked up, 1–7; 0: the version of the recording. It is
	// never newer than the NCCL release knows.
	API int
	// Library selects the library that poses as the caller: "nccl", "rccl" (which has a version 6 of its own), "self"
	// (the host program), or "" for the recording's library, if known.
	Library string

	// GPU is played as well; nil: none. It sets NCCL_OTF2_CUPTI=on. Env has the library's settings (FAKECUPTI_VERSION,
	// …).
	GPU *GPU

	Env []string // KEY=VALUE, added to this process's environment; the last value of a key counts

	// Die is "", DieAfterLast, or the number of calls of its program after which each process kills itself. Which
	// calls these are is deterministic only with ClockRecorded.
	Die string
	// StopAt returns the number of calls of its program after which a process stops itself (SIGSTOP); nil or 0: never.
	// Stopped is then called with its index and pid, and the process continues when Stopped returns.
	StopAt     func(process int) int
	Stopped    func(process, pid int)
	Ledger     bool // fill in ProcessResult.Returned
	NoFinalize bool // finalize is not called; apart from that, the process ends normally
	quickExit  bool // the process ends by _exit, without exit handlers
	noCUDA     bool // the CUDA driver's functions report that there is no driver
	Spool      bool // NCCL_OTF2_COLLECTOR=spool: the plugin writes files instead of starting collectors
	verbose    bool // the plugin's INFO lines also go to Stderr

	// Stderr receives what the hosts write to it: at once if it is an *os.File, otherwise process by process when all
	// have ended. Nil: it is only kept in the Result.
	Stderr io.Writer
}

// GPU is a simulated GPU that runs in addition to the calls.
type GPU struct {
	// Library replaces CUPTI (internal/replay/host/gpu.h; for tests tests/fakecupti). The hosts load it before the
	// plugin.
	Library string
	// Program returns what the host of a process runs on the GPU. With the live clock each kernel starts at its
	// launch, and takes 20 µs at most unless the pace is the recorded one.
	Program func(rec *Recording, process int) ([]byte, error)
}

// Result is the result of a replay.
type Result struct {
	Processes []ProcessResult // in order of rank
}

// ProcessResult is the result of one host process.
type ProcessResult struct {
	Rank     int
	PID      int
	ExitCode int            // -1 if a signal ended it
	Signal   syscall.Signal // signal that ended it, 0 if none
	Report   *Report        // nil if the host could not play
	// Returned has a value for each call, even if the process died: 0 if the call had not returned when the process
	// ended, the handle if the call was a start that got one, and otherwise 1. Nil without Options.Ledger.
	Returned []uint64
	GPU      []byte // output of the library of Options.GPU; nil if the process did not end normally
	Stderr   string // empty if Options.Stderr is an *os.File
}

// Err returns what went wrong, nil if the host played to the requested end.
func (r *ProcessResult) Err() error {
	switch {
	case r.Report != nil && r.ExitCode == 0, r.Report != nil && r.Signal == syscall.SIGKILL:
		return nil
	case r.Signal != 0:
		return fmt.Errorf("process %d was ended by signal: %s%s", r.Rank, r.Signal, lastLine(r.Stderr))
	}
	return fmt.Errorf("process %d ended with status %d%s", r.Rank, r.ExitCode, lastLine(r.Stderr))
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return ": " + last
	}
	return ""
}

// Report counts the calls that one host made to its plugin, by the name of the event type or state.
type Report struct {
	Delivered struct {
		Starts   map[string]int `json:"starts"`   // starts that the plugin gave a handle
		Declined map[string]int `json:"declined"` // starts that the plugin gave NULL
		Stops    map[string]int `json:"stops"`
		States   map[string]int `json:"states"`
	} `json:"delivered"`
	// Suppressed has recorded calls that were not made: excluded by the activation mask, or declined before.
	Suppressed struct {
		Starts    map[string]int `json:"starts"`
		Stops     map[string]int `json:"stops"`
		States    map[string]int `json:"states"`
		Finalizes int            `json:"finalizes"`
	} `json:"suppressed"`
	Inits       int `json:"inits"`
	Finalizes   int `json:"finalizes"`
	NullHandles int `json:"null_handles"` // stops and states made with NULL, as NCCL makes some
	// RawHandles counts stops and states with a number from the recording, or with another process's handle.
	RawHandles int    `json:"raw_handles"`
	StaleStops int    `json:"stale_stops"` // second stops of an event, after a mask change
	Unwritten  int    `json:"unwritten"`   // starts that did not set *eHandle
	Errors     int    `json:"errors"`      // callbacks that did not return success
	Loads      int    `json:"loads"`       // how often the library was opened
	Warnings   int    `json:"warnings"`    // lines of the plugin for NCCL's log
	Infos      int    `json:"infos"`
	TIDs       []int  `json:"tids"`   // the system's numbers of the threads, as in Process.Threads; 0: has not begun
	Plugin     string `json:"plugin"` // "v6"; "none" if there was no plugin
	Mask       int    `json:"mask"`   // activation mask at the end
}

// Err returns the first error of any process.
func (r *Result) Err() error {
	for i := range r.Processes {
		if err := r.Processes[i].Err(); err != nil {
			return err
		}
	}
	return nil
}

// environment returns the environment of process k of n.
func environment(opt *Options, k, n int) []string {
	var env []string
	numbering := config.NumberingVariables()
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); !slices.Contains(numbering, name) {
			env = append(env, kv)
		}
	}
	// Recordings contain features that NCCL does not use without these variables.
	for _, name := range []string{hidden.AllGatherV, hidden.RuntimeConnect} {
		if !slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") }) {
			env = append(env, name+"=0")
		}
	}
	env = append(env, "RANK="+strconv.Itoa(k), "LOCAL_RANK="+strconv.Itoa(k),
		"WORLD_SIZE="+strconv.Itoa(n), "LOCAL_WORLD_SIZE="+strconv.Itoa(n))
	if opt.Plugin != "" {
		env = append(env, "NCCL_PROFILER_PLUGIN="+opt.Plugin)
	}
	if opt.Clock == ClockRecorded {
		env = append(env, "NCCL_OTF2_CLOCK=host")
	}
	if opt.GPU != nil {
		env = append(env, "NCCL_OTF2_CUPTI=on")
		if opt.Clock == ClockRecorded {
			env = append(env, "FAKECUPTI_CLOCK=host")
		}
	}
	if opt.Spool {
		env = append(env, "NCCL_OTF2_COLLECTOR=spool")
	}
	return append(env, opt.Env...)
}

// Run plays a recording: one host per recorded process, all at the same time, each with its rank in RANK, LOCAL_RANK
// and WORLD_SIZE. With ClockRecorded it sets NCCL_OTF2_CLOCK=host.
//
// It returns when all hosts have ended. If ctx is done, or a host cannot be started, the running hosts are killed. The
// error says what prevented hosts from running, or is ctx's; the results of the hosts that were started are in the
// Result (Result.Err).
func Run(ctx context.Context, rec *Recording, opt Options) (*Result, error) {
	host, err := hostOf(&opt)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "nccl-otf2-replay-")
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	jobs, err := prepare(ctx, rec, &opt, dir, host)
	defer func() {
		for _, j := range jobs {
			j.close()
		}
	}()
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	started, notStarted := jobs, error(nil)
	for k, j := range jobs {
		if notStarted = j.cmd.Start(); notStarted != nil {
			cancel() // the others would wait for it
			started = jobs[:k]
			break
		}
	}
	wait(started, &opt)
	res, err := results(started, &opt)
	switch {
	case err != nil:
		return nil, err
	case notStarted != nil:
		return res, fmt.Errorf("replay: process %d was not started: %w", len(started), notStarted)
	case slices.ContainsFunc(started, func(j *job) bool { return j.killed }):
		return res, fmt.Errorf("replay: hosts were killed before their end: %w", ctx.Err())
	}
	return res, nil
}

// hostOf returns the path of the host program.
func hostOf(opt *Options) (string, error) {
	if opt.Host == "" {
		return FindHost()
	}
	if abs, err := filepath.Abs(opt.Host); err == nil {
		return abs, nil
	}
	return opt.Host, nil
}

// prepare makes a job for each recorded process, and the files in dir that the jobs read and write. If it fails, it
// also returns the jobs made so far, because they hold files.
func prepare(ctx context.Context, rec *Recording, opt *Options, dir, host string) (jobs []*job, err error) {
	args, err := together(rec, opt, dir)
	if err != nil {
		return nil, err
	}
	for k := range rec.Processes {
		own, ledger, err := alone(rec, opt, dir, k)
		if err != nil {
			return jobs, err
		}
		j, err := newJob(ctx, opt, dir, host, slices.Concat(args, own), k, len(rec.Processes))
		if err != nil {
			return jobs, err
		}
		j.ledger = ledger
		jobs = append(jobs, j)
	}
	return jobs, nil
}

// together returns the arguments common to all hosts, with the files through which they communicate.
func together(rec *Recording, opt *Options, dir string) (args []string, err error) {
	args = arguments(opt)
	if opt.Clock != ClockRecorded { // with the recorded clock, times already show which members met
		_, count := rec.meetings()
		if args, err = withFile(args, "--together", filepath.Join(dir, "meetings"), make([]byte, 4*count)); err != nil {
			return nil, err
		}
	}
	if library := cmp.Or(opt.Library, rec.Run.Library); library != "" {
		args = append(args, "--library", library)
	}
	if n := rec.publications(); n > 0 {
		return withFile(args, "--published", filepath.Join(dir, "published"), make([]byte, publicationSize*n))
	}
	return args, nil
}

// alone returns the arguments of process k, its program last, and its ledger, the file that records which calls have
// returned.
func alone(rec *Recording, opt *Options, dir string, k int) (args []string, ledger string, err error) {
	file := func(kind string) string { return filepath.Join(dir, fmt.Sprintf("p%d.%s", k, kind)) }
	if opt.GPU != nil {
		kernels, err := opt.GPU.Program(rec, k)
		if err != nil {
			return nil, "", err
		}
		if args, err = withFile(args, "--kernels", file("kernels"), kernels); err != nil {
			return nil, "", err
		}
		args = append(args, "--gpu", opt.GPU.Library)
	}
	if opt.Ledger {
		ledger = file("ledger")
		if args, err = withFile(args, "--ledger", ledger,
			make([]byte, ledgerSize*len(rec.Processes[k].Calls))); err != nil {
			return nil, "", err
		}
	}
	if n := opt.stopAt(k); n > 0 {
		args = append(args, "--stop-at", strconv.Itoa(n))
	}
	program, err := Compile(rec, k)
	if err != nil {
		return nil, "", err
	}
	if err := os.WriteFile(file("program"), program, 0o600); err != nil {
		return nil, "", err
	}
	return append(args, file("program")), ledger, nil
}

// withFile writes a file, and appends its option to the arguments.
func withFile(args []string, option, path string, content []byte) ([]string, error) {
	return append(args, option, path), os.WriteFile(path, content, 0o600)
}

// wait returns when all hosts have ended. A host that stops itself is continued after Stopped.
func wait(jobs []*job, opt *Options) {
	var all sync.WaitGroup
	for k, j := range jobs {
		ended := make(chan struct{})
		all.Go(func() {
			j.waitErr = j.cmd.Wait()
			close(ended)
		})
		if opt.stopAt(k) > 0 {
			all.Go(func() { j.resume(ended, func(pid int) { opt.Stopped(k, pid) }) })
		}
	}
	all.Wait()
}

// results collects the results of hosts that have ended, and copies their standard error to Options.Stderr.
func results(jobs []*job, opt *Options) (*Result, error) {
	res := new(Result)
	for k, j := range jobs {
		p, err := j.result(k)
		if err != nil {
			return nil, fmt.Errorf("replay: process %d: %w", k, err)
		}
		res.Processes = append(res.Processes, p)
		if opt.Stderr != nil && j.errFile != nil {
			if _, err := io.WriteString(opt.Stderr, p.Stderr); err != nil {
				return nil, fmt.Errorf("replay: %w", err)
			}
		}
	}
	return res, nil
}

// resume waits until a host has stopped itself, calls do, and continues the host. It returns without that if the host
// ends first.
func (j *job) resume(ended <-chan struct{}, do func(pid int)) {
	pid := j.cmd.Process.Pid
	for {
		select {
		case <-ended:
			return
		case <-time.After(time.Millisecond):
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		// The state follows the name, which may contain any character.
		if at := bytes.LastIndexByte(stat, ')'); at > 0 && bytes.HasPrefix(stat[at:], []byte(") T")) {
			do(pid)
			_ = j.cmd.Process.Signal(syscall.SIGCONT)
			return
		}
	}
}

// publicationSize is the size, in bytes, of one number in the file through which hosts exchange handles
// (host/publish.h).
const publicationSize = 16

// ledgerSize is the size, in bytes, of one call in the file that records which calls of a host have returned
// (host/ledger.h).
const ledgerSize = 8

// startDelay is the time for the hosts to start and read their programs before the first call is due, with
// PaceRecorded.
const startDelay = 300 * time.Millisecond

func arguments(opt *Options) []string {
	var args []string
	if opt.Clock != "" {
		args = append(args, "--clock", string(opt.Clock))
	}
	if opt.Pace == PaceRecorded {
		var now unix.Timespec
		// This cannot fail: the clock exists on every Linux, and the pointer is valid.
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
		args = append(args, "--pace", "recorded", "--start-at", strconv.FormatInt(now.Nano()+int64(startDelay), 10))
	} else if opt.Pace != "" {
		args = append(args, "--pace", string(opt.Pace))
	}
	if opt.API != 0 {
		args = append(args, "--api", strconv.Itoa(opt.API))
	}
	if opt.Die != "" {
		args = append(args, "--die", opt.Die)
	}
	for _, flag := range []struct {
		on   bool
		args []string
	}{
		{opt.NoFinalize, []string{"--no-finalize"}},
		{opt.quickExit, []string{"--exit", "_exit"}},
		{opt.noCUDA, []string{"--no-cuda"}},
		{opt.verbose, []string{"--verbose"}},
	} {
		if flag.on {
			args = append(args, flag.args...)
		}
	}
	return args
}

func (o *Options) stopAt(process int) int {
	if o.StopAt == nil {
		return 0
	}
	return o.StopAt(process)
}

// job is one host process. Its output goes to files instead of pipes: a collector that the plugin starts inherits the
// descriptors and may outlive the host, and a pipe would then keep Wait waiting.
type job struct {
	cmd              *exec.Cmd
	outFile, errFile *os.File // errFile is nil if standard error goes to the caller's file
	truth            string   // the file of the fake CUPTI; "": none
	ledger           string   // the file for Options.Ledger
	waitErr          error
	killed           bool // because ctx was done; written before Wait returns
}

func newJob(ctx context.Context, opt *Options, dir, host string, args []string, k, n int) (*job, error) {
	j := &job{cmd: exec.CommandContext(ctx, host, args...)}
	j.cmd.Cancel = func() error {
		err := j.cmd.Process.Kill()
		j.killed = err == nil
		return err
	}
	j.cmd.Env = environment(opt, k, n)
	if opt.GPU != nil {
		j.truth = filepath.Join(dir, fmt.Sprintf("p%d.truth", k))
		j.cmd.Env = append(j.cmd.Env, "FAKECUPTI_TRUTH="+j.truth)
	}
	var err error
	if j.outFile, err = os.Create(filepath.Join(dir, fmt.Sprintf("p%d.out", k))); err != nil {
		return nil, err
	}
	j.cmd.Stdout = j.outFile
	if direct, ok := opt.Stderr.(*os.File); ok {
		j.cmd.Stderr = direct
		return j, nil
	}
	if j.errFile, err = os.Create(filepath.Join(dir, fmt.Sprintf("p%d.err", k))); err != nil {
		j.close()
		return nil, err
	}
	j.cmd.Stderr = j.errFile
	return j, nil
}

func (j *job) close() {
	j.outFile.Close()
	if j.errFile != nil {
		j.errFile.Close()
	}
}

func (j *job) result(k int) (ProcessResult, error) {
	p := ProcessResult{Rank: k, PID: j.cmd.Process.Pid}
	state := j.cmd.ProcessState
	if state == nil {
		return p, j.waitErr
	}
	p.ExitCode = state.ExitCode()
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		p.Signal = ws.Signal()
	}
	out, err := os.ReadFile(j.outFile.Name())
	if err != nil {
		return p, err
	}
	if j.errFile != nil {
		text, err := os.ReadFile(j.errFile.Name())
		if err != nil {
			return p, err
		}
		p.Stderr = string(text)
	}
	if j.ledger != "" {
		file, err := os.ReadFile(j.ledger)
		if err != nil {
			return p, err
		}
		for ; len(file) >= ledgerSize; file = file[ledgerSize:] {
			p.Returned = append(p.Returned, binary.NativeEndian.Uint64(file))
		}
	}
	if p.Report, err = parseReport(out); err != nil || j.truth == "" {
		return p, err
	}
	if p.GPU, err = os.ReadFile(j.truth); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return p, err
}

// parseReport finds the host's report in its output. It is no error if there is none.
func parseReport(out []byte) (*Report, error) {
	for line := range bytes.Lines(out) {
		if !bytes.HasPrefix(line, []byte(`{"delivered"`)) {
			continue
		}
		r := new(Report)
		if err := json.Unmarshal(line, r); err != nil {
			return nil, fmt.Errorf("the host's report: %w", err)
		}
		return r, nil
	}
	return nil, nil
}

// Total adds up the reports of all processes that have one.
func (r *Result) Total() Report {
	var sum Report
	add := func(to *map[string]int, from map[string]int) {
		if *to == nil {
			*to = map[string]int{}
		}
		for name, n := range from {
			(*to)[name] += n
		}
	}
	for _, p := range r.Processes {
		if p.Report == nil {
			continue
		}
		add(&sum.Delivered.Starts, p.Report.Delivered.Starts)
		add(&sum.Delivered.Declined, p.Report.Delivered.Declined)
		add(&sum.Delivered.Stops, p.Report.Delivered.Stops)
		add(&sum.Delivered.States, p.Report.Delivered.States)
		add(&sum.Suppressed.Starts, p.Report.Suppressed.Starts)
		add(&sum.Suppressed.Stops, p.Report.Suppressed.Stops)
		add(&sum.Suppressed.States, p.Report.Suppressed.States)
		sum.Suppressed.Finalizes += p.Report.Suppressed.Finalizes
		sum.Inits += p.Report.Inits
		sum.Finalizes += p.Report.Finalizes
		sum.NullHandles += p.Report.NullHandles
		sum.RawHandles += p.Report.RawHandles
		sum.StaleStops += p.Report.StaleStops
		sum.Unwritten += p.Report.Unwritten
		sum.Errors += p.Report.Errors
		sum.Loads += p.Report.Loads
		sum.Warnings += p.Report.Warnings
		sum.Infos += p.Report.Infos
		sum.Plugin = p.Report.Plugin
		sum.Mask = p.Report.Mask
	}
	return sum
}
