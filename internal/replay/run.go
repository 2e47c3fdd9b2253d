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

// Clock says what the host's exported clock tells, and how its threads are kept in step.
type Clock string

// The clocks.
const (
	// ClockLive lets the threads run freely, held back only where a call follows from another
	// thread's. The exported clock is CLOCK_MONOTONIC_RAW.
	ClockLive Clock = "live"
	// ClockRecorded makes all calls of a process one at a time in the recorded order, and the exported
	// clock tells the recorded time of the call that the asking thread is in: two replays are the same.
	ClockRecorded Clock = "recorded"
)

// Pace says how fast the calls follow each other.
type Pace string

// The paces.
const (
	PaceFast     Pace = "fast"     // as fast as the order allows
	PaceRecorded Pace = "recorded" // at the recorded distances in time, all processes on one time line
)

// DieAfterLast as Options.Die: each process kills itself (SIGKILL) after its last call, with its
// communicators not finalized.
const DieAfterLast = "after-last"

// Options are the ways to run. The zero value plays with the live clock, fast, to the end.
type Options struct {
	Host   string // host program; "": FindHost's
	Plugin string // value of NCCL_PROFILER_PLUGIN; "": as the environment has it
	Clock  Clock  // "": ClockLive
	Pace   Pace   // "": PaceFast

	// API is the newest version of the plugin interface that is looked up, 1–7; 0: what the recording was
	// made with. Never newer than the NCCL release knows.
	API int
	// Library is which library seems to call: "nccl", "rccl" (which has a version 6 of its own), "self" (the host
	// program), or "" for what the recording says, if anything.
	Library string

	// GPU is played, too; nil: none. NCCL_OTF2_CUPTI=on is set. Env has the library's settings (FAKECUPTI_VERSION, …).
	GPU *GPU

	Env []string // KEY=VALUE, on top of this process's environment; the last of a key counts

	// Die is "", DieAfterLast, or after how many calls of its program each process kills itself; which
	// calls these are is certain only with ClockRecorded.
	Die string
	// StopAt tells after how many calls of its program a process stops (SIGSTOP); nil or 0: never. Stopped is then
	// called with its place and pid, and when it returns the process goes on.
	StopAt     func(process int) int
	Stopped    func(process, pid int)
	Ledger     bool // ProcessResult.Returned is wanted
	NoFinalize bool // finalize is not called; the process ends in order otherwise
	quickExit  bool // the process ends by _exit, without exit handlers
	noCUDA     bool // the CUDA driver's functions answer that there is no driver
	Spool      bool // NCCL_OTF2_COLLECTOR=spool: the plugin writes files instead of starting collectors
	verbose    bool // the plugin's INFO lines go to Stderr, too

	// Stderr gets what the hosts write there: at once if it is an *os.File, otherwise process after
	// process when all have ended. Nil: it is only kept in the Result.
	Stderr io.Writer
}

// GPU is a GPU that is played beside the calls.
type GPU struct {
	// Library stands for CUPTI (internal/replay/host/gpu.h; for tests tests/fakecupti). The hosts load it before the
	// plugin.
	Library string
	// Program is what the host of a process plays on it. With the live clock each kernel runs from its launch on, 20 µs
	// at most unless the pace is the recorded one.
	Program func(rec *Recording, process int) ([]byte, error)
}

// Result is what came of a run.
type Result struct {
	Processes []ProcessResult // in order of rank
}

// ProcessResult is what came of one host process.
type ProcessResult struct {
	Rank     int
	PID      int
	ExitCode int            // -1 if a signal ended it
	Signal   syscall.Signal // that ended it, 0 if none
	Report   *Report        // nil if the host could not play
	// Returned says, by call, whether it had returned when the process ended, whatever it died of: 0 if not, the handle
	// of a start that was given one, and 1 of any other call. Nil without Options.Ledger.
	Returned []uint64
	GPU      []byte // what the library of Options.GPU wrote of what ran; nil if the process did not end in order
	Stderr   string // empty if Options.Stderr is an *os.File
}

// Err says what went wrong, nil if the host played to the end that was asked for.
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

// Report is what one host delivered to its plugin: how many calls, by name of the event type or the
// state.
type Report struct {
	Delivered struct {
		Starts   map[string]int `json:"starts"`   // that the plugin gave a handle
		Declined map[string]int `json:"declined"` // … NULL
		Stops    map[string]int `json:"stops"`
		States   map[string]int `json:"states"`
	} `json:"delivered"`
	// Suppressed were recorded but not called: left out by the activation mask, or declined before.
	Suppressed struct {
		Starts    map[string]int `json:"starts"`
		Stops     map[string]int `json:"stops"`
		States    map[string]int `json:"states"`
		Finalizes int            `json:"finalizes"`
	} `json:"suppressed"`
	Inits       int `json:"inits"`
	Finalizes   int `json:"finalizes"`
	NullHandles int `json:"null_handles"` // stops and states made with NULL, as NCCL makes some
	// stops and states with a number from the recording, or another process's handle
	RawHandles int    `json:"raw_handles"`
	StaleStops int    `json:"stale_stops"` // second stops of one event, after a mask change
	Unwritten  int    `json:"unwritten"`   // starts that left *eHandle as it was
	Errors     int    `json:"errors"`      // callbacks that answered other than success
	Loads      int    `json:"loads"`       // how often the library was opened
	Warnings   int    `json:"warnings"`    // lines of the plugin for NCCL's log
	Infos      int    `json:"infos"`
	Plugin     string `json:"plugin"` // "v6"; "none" if there was none
	Mask       int    `json:"mask"`   // activation mask at the end
}

// Err is the first error of the processes.
func (r *Result) Err() error {
	for i := range r.Processes {
		if err := r.Processes[i].Err(); err != nil {
			return err
		}
	}
	return nil
}

// environment is that of process k of n.
func environment(opt *Options, k, n int) []string {
	var env []string
	numbering := config.NumberingVariables()
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); !slices.Contains(numbering, name) {
			env = append(env, kv)
		}
	}
	// Recordings have what NCCL is not asked for without these.
	for _, name := range []string{hidden.AllGatherV, hidden.RuntimeConnect} {
		if !slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") }) {
			env = append(env, name+"=0")
		}
	}
	env = append(env,
		"RANK="+strconv.Itoa(k), "LOCAL_RANK="+strconv.Itoa(k),
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

// Run plays a recording: one host per recorded process, all at the same time, each with its rank in
// RANK, LOCAL_RANK and WORLD_SIZE. With ClockRecorded it sets NCCL_OTF2_CLOCK=host.
//
// It returns when all hosts have ended. When ctx is done the hosts still running are killed, and so they are when one
// of them cannot be started. The error is about what kept hosts from running at all, or ctx's; what became of those
// that were started is in the Result (Result.Err).
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

// hostOf is the program that plays.
func hostOf(opt *Options) (string, error) {
	if opt.Host == "" {
		return FindHost()
	}
	if abs, err := filepath.Abs(opt.Host); err == nil {
		return abs, nil
	}
	return opt.Host, nil
}

// prepare makes a job of each recorded process, and the files that they read and write in dir. With an error it gives
// those that it has made, for they hold files.
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

// together are the arguments that all hosts have, with the files through which they meet.
func together(rec *Recording, opt *Options, dir string) (args []string, err error) {
	args = arguments(opt)
	if opt.Clock != ClockRecorded { // whose times are those of members that did meet
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

// alone are the arguments of process k, its program last, and the file in which it says which calls have returned.
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

// withFile writes a file, and adds it to arguments.
func withFile(args []string, option, path string, content []byte) ([]string, error) {
	return append(args, option, path), os.WriteFile(path, content, 0o600)
}

// wait returns when all hosts have ended; those that stop themselves go on when their Stopped was called.
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

// results are what became of hosts that have ended; what they said goes where the options say.
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

// resume waits until a host has stopped itself, calls do, and lets it go on. It returns when the host has ended
// before that.
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
		// The state follows the name, which may hold anything.
		if at := bytes.LastIndexByte(stat, ')'); at > 0 && bytes.HasPrefix(stat[at:], []byte(") T")) {
			do(pid)
			_ = j.cmd.Process.Signal(syscall.SIGCONT)
			return
		}
	}
}

// publicationSize is the room, in bytes, for one number in the file by which hosts tell each other
// handles (host/publish.h).
const publicationSize = 16

// ledgerSize is the room, in bytes, for one call in the file in which a host says which have returned
// (host/ledger.h).
const ledgerSize = 8

// startDelay is the time that the hosts have to start and read their programs before the first call
// is due, with PaceRecorded.
const startDelay = 300 * time.Millisecond

func arguments(opt *Options) []string {
	var args []string
	if opt.Clock != "" {
		args = append(args, "--clock", string(opt.Clock))
	}
	if opt.Pace == PaceRecorded {
		var now unix.Timespec
		// Cannot fail: the clock exists on every Linux, and the pointer is good.
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

// job is one host process. Its output goes to files, not pipes: a collector that the plugin starts
// inherits the descriptors and may outlive the host, and a pipe would then keep Wait waiting.
type job struct {
	cmd              *exec.Cmd
	outFile, errFile *os.File // errFile is nil if standard error goes to the caller's file
	truth            string   // the file of the fake CUPTI; "" without
	ledger           string   // Options.Ledger: its file
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

// parseReport finds the host's line; none is no error.
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

// Total adds the reports of all processes; processes without one add nothing.
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
