// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/collectors"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/scenario"
)

// mostTime is how long a job may take that lasts a second, on whatever machine: what NCCL may wait for is some 10 s.
const mostTime = 5 * time.Minute

// play is a case that is being played.
type play struct {
	*plan
	t   *testing.T
	dir string // of the experiment
	own string // files of the case
	rec *replay.Recording
	opt replay.Options
	res *replay.Result

	kinds string // of calls, of failure
	log   string // of what is done to collectors; "": nothing is

	// What may be otherwise than usual:
	volatile bool // nobody is left who could write what is in memory
	lasting  bool // the disk cannot be written any more

	began time.Time
	ended func() // called when the job has ended

	hit     atomic.Bool // the fault came to pass
	mu      sync.Mutex
	signals map[int]syscall.Signal // of processes that are ended, by place
	pids    []int
	logs    int // of inject, for their names
}

func builtFile(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../build", name))
	if err == nil {
		_, err = os.Stat(path)
	}
	testkit.Require(t, err == nil, "%s is not built: run `make build` first", name)
	return path
}

func folder(t *testing.T, p *plan, name string) string {
	t.Helper()
	if *keepFlag == "" {
		return t.TempDir()
	}
	path, err := filepath.Abs(filepath.Join(*keepFlag, fmt.Sprintf("%d-%d", p.seed, p.number), name))
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.Mkdir(path, 0o700))
	}
	testkit.Must(t, err)
	return path
}

// one plays a case, and reports whether what was to happen did.
func one(t *testing.T, p *plan) bool {
	t.Logf("again: %s\n%v", p.again(), p)
	r := &play{plan: p, t: t, dir: filepath.Join(folder(t, p, "job"), "experiment"), own: folder(t, p, "own"),
		signals: make(map[int]syscall.Signal), kinds: "writes", began: time.Now()}
	s := scenario.Random(p.job, scenario.RandomOptions{Release: p.release, Processes: p.processes, Calls: p.calls,
		Hazards: p.hazards})
	r.rec = testkit.Value(s.Load(filepath.Join(r.own, "recording")))(t)
	r.prepare()
	if p.fault.plan != nil {
		p.fault.plan(r)
	}
	r.run()
	if p.fault.after != nil {
		p.fault.after(r)
	}
	r.unifyAll()
	r.judge("at the end")
	r.nothingIsLeft()
	return r.hit.Load() || p.fault.plan == nil && p.fault.after == nil
}

// prepare sets what is the same in all cases.
func (p *play) prepare() {
	p.opt = replay.Options{
		Host: builtFile(p.t, replay.HostFile), Plugin: builtFile(p.t, "libnccl-profiler-otf2.so"),
		Clock: replay.ClockLive, Ledger: true, Spool: p.spool,
		Env: []string{"NCCL_OTF2_DIR=" + p.dir, "NCCL_OTF2_EVENTS=all", "NCCL_OTF2_START_LIMIT=60",
			"NCCL_OTF2_RING=" + p.ring, "NCCL_OTF2_MEMORY=" + p.memory,
			"NCCL_OTF2_UNIFY=" + pick(p.plan, "off", "off", "off", "auto")},
	}
	if p.profile {
		p.opt.Env = append(p.opt.Env, "NCCL_OTF2_MODE=profile")
	}
	backlog := "off" // not by how busy the machine is: it runs again as it did
	if p.backlog {
		backlog = "on"
	}
	p.opt.Env = append(p.opt.Env, "NCCL_OTF2_BACKLOG="+backlog)
	if p.lasts > 0 {
		p.opt.Pace = replay.PaceRecorded
		stretch(p.rec, p.lasts)
	}
}

// stretch gives a recording another duration.
func stretch(rec *replay.Recording, to time.Duration) {
	first, last := ^uint64(0), uint64(0)
	for _, p := range rec.Processes {
		for _, c := range p.Calls {
			first, last = min(first, c.T), max(last, c.T)
		}
	}
	factor := float64(to) / float64(max(1, last-first))
	for _, p := range rec.Processes {
		for _, c := range p.Calls {
			c.T = first + uint64(float64(c.T-first)*factor)
		}
	}
}

// run plays the job, with unify beside it, until its collectors have ended, too.
func (p *play) run() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), mostTime)
	defer cancel()
	over := make(chan struct{})
	var beside sync.WaitGroup
	beside.Go(func() { p.unifyBeside(over) })
	var err error
	p.res, err = replay.Run(ctx, p.rec, p.opt)
	close(over)
	if p.ended != nil {
		p.ended()
	}
	beside.Wait()
	if err != nil {
		p.t.Fatalf("the job: %v", err)
	}
	for k, r := range p.res.Processes {
		p.pids = append(p.pids, r.PID)
		signal, ended := p.signals[k]
		if !ended && r.ExitCode == 0 || ended && r.Signal == signal {
			continue
		}
		p.t.Errorf("process %d ended with status %d, signal %v; signal sent: %v\n%s", k, r.ExitCode, r.Signal, signal,
			r.Stderr)
	}
	collectors.Await(p.t, p.dir)
}

// unifyBeside unifies what is there while the job runs.
func (p *play) unifyBeside(over <-chan struct{}) {
	for range p.beside {
		select {
		case <-over:
			return
		case <-time.After(p.lasts / 4):
		}
		if p.besideN > 0 {
			p.unify("kill", "writes,names", p.besideN, 1)
		} else {
			p.tool("unify", p.dir)
		}
	}
}

// some are the places of the processes that something happens to: one, or all.
func (p *play) some() []int {
	if n := len(p.rec.Processes); n > 1 && p.random.IntN(2) == 0 {
		return []int{p.random.IntN(n)}
	}
	var all []int
	for k := range p.rec.Processes {
		all = append(all, k)
	}
	return all
}

// at stops processes at some call, the earliest at which nobody waits for them any more, and does something then.
func (p *play) at(places []int, do func(process, pid int)) {
	calls := make(map[int]int)
	for _, k := range places {
		calls[k] = p.someCall(k)
	}
	p.opt.StopAt = func(process int) int { return calls[process] }
	p.opt.Stopped = do
}

// someCall is how many calls a process makes before something happens to it. Others wait for communicators to be made,
// and for handles of network operations.
func (p *play) someCall(process int) int {
	calls := p.rec.Processes[process].Calls
	first := 1
	if len(p.rec.Processes) > 1 {
		for i, c := range calls {
			e := c.Event
			if c.Kind == replay.CallInit || c.Kind == replay.CallStart && e != nil && e.Publish != nil {
				first = i + 1
			}
		}
	}
	return min(first+p.random.IntN(max(1, len(calls)-first)), len(calls)-1)
}

func (p *play) ends(process int, by syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signals[process] = by
}

func (p *play) kill(pid int, signal syscall.Signal) bool {
	sent := syscall.Kill(pid, signal) == nil
	if sent {
		p.hit.Store(true)
	}
	return sent
}

// injection is the environment of a program that inject becomes.
func (p *play) injection(program, what, kinds, log string, at, times int) []string {
	return []string{"INJECT_PROGRAM=" + program, "INJECT_BELOW=" + p.dir, "INJECT_LOG=" + log,
		fmt.Sprintf("INJECT_RULES=%s %d %d %s;", kinds, at, times, what)}
}

// injectCollector has something happen at some of the collector's calls, from a random one on. In the first collector
// only, or in each.
func (p *play) injectCollector(what, stop string, once bool, times int) {
	p.log = filepath.Join(p.own, "collector.inject")
	p.opt.Env = append(p.opt.Env, p.injection(builtFile(p.t, "nccl-otf2"), what, p.kinds, p.log, p.few(), times)...)
	p.opt.Env = append(p.opt.Env, "NCCL_OTF2_COLLECTOR="+builtFile(p.t, "inject"), "INJECT_STOP_MS="+stop)
	if once {
		p.opt.Env = append(p.opt.Env, "INJECT_ONCE="+filepath.Join(p.own, "injected"))
	}
	then := p.ended
	p.ended = func() {
		if then != nil {
			then()
		}
		p.t.Cleanup(func() { p.injected(p.log) })
		if p.injected(p.log) != "" {
			p.hit.Store(true)
		}
	}
}

// injected is what was done to calls, if anything.
func (p *play) injected(log string) string {
	text, err := os.ReadFile(log)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.t.Error(err)
	}
	var done []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "cannot") {
			p.t.Errorf("inject %s", line)
		}
		if strings.HasPrefix(line, "call ") {
			done = append(done, line)
		}
	}
	return strings.Join(done, "")
}

// unify runs it with something done to its calls. It may fail, but not break.
func (p *play) unify(what, kinds string, at, times int) (status int, injected, said string) {
	p.mu.Lock()
	log := filepath.Join(p.own, fmt.Sprintf("unify-%d.inject", p.logs))
	p.logs++
	p.mu.Unlock()
	cmd := exec.Command(builtFile(p.t, "inject"), "unify", p.dir)
	cmd.Env = append(os.Environ(), p.injection(builtFile(p.t, "nccl-otf2"), what, kinds, log, at, times)...)
	status, said = p.end(cmd)
	injected = p.injected(log)
	if injected != "" {
		p.hit.Store(true)
	}
	if status > 1 || status < 0 && what != "kill" {
		p.t.Errorf("unify, with %s, ended with %d:\n%s", injected, status, said)
	}
	return status, injected, said
}

// tool runs nccl-otf2, which may fail, but not break.
func (p *play) tool(args ...string) (status int, said string) {
	status, said = p.end(exec.Command(builtFile(p.t, "nccl-otf2"), args...))
	if status > 1 || status < 0 {
		p.t.Errorf("nccl-otf2 %v ended with %d:\n%s", args, status, said)
	}
	return status, said
}

// end waits for a program; −1 if a signal ended it.
func (p *play) end(cmd *exec.Cmd) (status int, said string) {
	tmp := filepath.Join(p.own, "tmp")
	err := os.MkdirAll(tmp, 0o700)
	testkit.Check(p.t, err == nil, "%v", err)
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 10 * time.Second
	killer := time.AfterFunc(mostTime, func() {
		p.t.Errorf("%v does not end", cmd.Args)
		cmd.Process.Kill()
	})
	defer killer.Stop()
	var exit *exec.ExitError
	err = cmd.Run()
	testkit.Require(p.t, err == nil || errors.As(err, &exit), "%v", err)
	return cmd.ProcessState.ExitCode(), out.String()
}

// nobodyIsLeft is what inject adds where it kills a collector whose process has ended, or waits for nothing any more:
// it died of no other cause than in the fault "collector-and-job".
const nobodyIsLeft = ", nobody is left"

// mayMiss reports whether operations may be missing without being counted: the memory that they were in is gone, as it
// was no file, or there was no room for one, or the disk takes nothing any more.
func (p *play) mayMiss() bool {
	volatile := p.volatile || p.log != "" && strings.Contains(p.injected(p.log), nobodyIsLeft)
	if p.lasting || volatile && p.ring == "memfd" {
		return true
	}
	entries, err := experiment.List(p.dir)
	return err == nil && volatile && slices.ContainsFunc(
		entries, func(e experiment.Entry) bool { return e.Process == nil || e.Process.Memory.Kind != "shm" })
}

// recorded reports whether anything was: processes may be killed, and disks full, before.
func (p *play) recorded() bool {
	entries, err := os.ReadDir(filepath.Join(p.dir, "shards"))
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		if info, err := e.Info(); err != nil || strings.HasSuffix(e.Name(), ".spool") && info.Size() == 0 &&
			p.ring == "memfd" {
			return false
		}
		return e.IsDir() || strings.Contains(e.Name(), ".spool")
	})
}

func (p *play) anchor() string { return filepath.Join(p.dir, "traces.otf2") }

func (p *play) summary() string { return filepath.Join(p.dir, "profile.json") }

// archived says that there is a result: in profile mode also a trace alone, where all that is left are raw files.
func (p *play) archived() bool {
	_, traced := os.Stat(p.anchor())
	_, profiled := os.Stat(p.summary())
	return traced == nil || p.profile && profiled == nil
}

// unifyAll makes the archive of all that is there.
func (p *play) unifyAll() {
	p.t.Helper()
	if !p.recorded() {
		return
	}
	status, said := p.tool("unify", p.dir)
	p.t.Logf("unify ended with %d:\n%s", status, said)
	nothing := p.mayMiss() && !p.archived() // all was in memory that is gone: there is nothing to make an archive of
	if status != 0 && !p.lasting && !nothing && len(p.acknowledged()) > 0 {
		p.t.Errorf("unify ended with %d", status)
	}
}

func (p *play) temporaries() (all []string) {
	err := filepath.WalkDir(p.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && (strings.HasSuffix(path, ".new") || strings.HasSuffix(path, ".tmp")) {
			all = append(all, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.t.Error(err)
	}
	return all
}

// nothingIsLeft looks for processes, temporary files and shared memory of the case.
func (p *play) nothingIsLeft() {
	p.t.Helper()
	left := p.temporaries()
	if len(left) > 0 { // unify removes them when they are old
		for _, path := range left {
			err := os.Chtimes(path, time.Time{}, time.Now().Add(-time.Hour))
			testkit.Check(p.t, err == nil, "%v", err)
		}
		p.tool("unify", p.dir)
		left = p.temporaries()
	}
	tmp, _ := filepath.Glob(filepath.Join(p.own, "tmp", "*"))
	left = append(left, tmp...)
	for _, pid := range p.pids {
		memory, _ := filepath.Glob(fmt.Sprintf("/dev/shm/nccl-otf2-%d-%d-*", os.Geteuid(), pid))
		for _, path := range memory { // numbers of processes come again
			if info, err := os.Stat(path); err == nil && info.ModTime().After(p.began) {
				left = append(left, path)
			}
		}
	}
	programs := func() []int {
		return collectors.Of(p.dir, append([]string{"inject", "replay-host"}, collectors.Programs...)...)
	}
	for deadline := time.Now().Add(mostTime); len(programs()) > 0 &&
		time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
	}
	for _, pid := range programs() {
		left = append(left, fmt.Sprint("process ", pid))
	}
	if len(left) > 0 {
		p.t.Errorf("left behind: %s", strings.Join(left, ", "))
	}
}

// needInjection ends the test where system calls cannot be made to fail.
func needInjection(t *testing.T) {
	t.Helper()
	cmd := exec.Command(builtFile(t, "inject"), "-c", "exit 3")
	cmd.Env = append(os.Environ(), "INJECT_PROGRAM=/bin/sh", "INJECT_BELOW=/nowhere", "INJECT_RULES=writes 1 1 kill;")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == 3 {
		return
	}
	need.NoError(t, "seccomp's user notification (Linux 5.5)", fmt.Errorf("%w: %s", err, out))
}
