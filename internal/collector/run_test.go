// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shmtest"
)

// The test program plays two more parts: a job process, which waits for its standard input to close,
// and a collector that can be killed.
const roleVariable = "NCCL_OTF2_TEST_ROLE"

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVariable); role {
	case "":
		os.Exit(m.Run())
	case "job":
		io.Copy(io.Discard, os.Stdin)
	case "collector", "collector with small files":
		if role != "collector" {
			limit := uint64(128 << 10)
			if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(3)
			}
		}
		if _, err := Run(context.Background(), Options{FD: 3}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// takenAtOnce is what tests have that look at the shards of a process which still runs, or make its disk fail: whether
// records are put off there would depend on how busy the machine is. Tests of what is put off say so
// (backlogEnvironment).
const takenAtOnce = "NCCL_OTF2_BACKLOG=off"

func environment(vars ...string) config.Lookup {
	return func(name string) (string, bool) {
		for _, v := range append(vars, takenAtOnce) {
			if n, value, _ := strings.Cut(v, "="); n == name {
				return value, true
			}
		}
		return "", false
	}
}

// process is a job process that can be ended.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
}

func startProcess(t *testing.T) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{roleVariable + "=job"}
	stdin := testkit.Value(cmd.StdinPipe())(t)
	testkit.Must(t, cmd.Start())
	p := &process{cmd, stdin}
	t.Cleanup(p.end)
	return p
}

func (p *process) end() {
	p.stdin.Close()
	p.cmd.Wait()
}

// application writes what NCCL does in a thread that calls ncclAllReduce over and over.
type application struct {
	job    *shmtest.Job
	thread *shmtest.Thread
	comm   uint32
	now    func() uint64
	number uint64 // of handles; each application has its own range

	refused uint64 // starts that found no room
}

func newJob(t *testing.T, o shmtest.Options) (*shmtest.Job, *process) {
	t.Helper()
	p := startProcess(t)
	o.PID = p.cmd.Process.Pid
	start := testkit.Value(shm.ProcessStart(o.PID))(t)
	o.PIDStart = start
	job := testkit.Value(shmtest.New(o))(t)
	t.Cleanup(func() { job.Close() })
	return job, p
}

func monotonic() uint64 { return shm.ReadClock(shm.ClockMonotonic).Ticks }

// killedAgain lets an application make calls under collectors that are killed at any moment, one after the other, and
// ends with one that is not. It returns how many calls there were.
func killedAgain(t *testing.T, kills, calls int, chunks int, vars ...string) (n uint64) {
	t.Helper()
	job, process, a := newCaller(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: chunks})
	call := func() {
		for range calls {
			a.allReduce(n)
			n++
		}
	}
	for k := range kills {
		collector := startCollector(t, job, "collector", vars...)
		call()
		if k%2 == 1 {
			flushAll(t, job)
			call()
		}
		time.Sleep(time.Duration(k) * 30 * time.Millisecond) // some before their first flush, some after
		collector.Process.Kill()
		collector.Wait()
	}
	last := startCollector(t, job, "collector", vars...)
	process.end()
	err := last.Wait()
	testkit.Require(t, err == nil, "%v: %s", err, last.Stderr)
	return n
}

// fewUnderRace is how many of something a test tries: some under the race detector, where it is their number that needs
// as many and little runs at a time.
func fewUnderRace(usual, some int) int {
	if testkit.UnderRace {
		return some
	}
	return usual
}

func newApplication(job *shmtest.Job, index int, now func() uint64) *application {
	comm := job.Comm(shm.Comm{APIVersion: 6, ID: 0xc0ffee00 + uint64(index), NRanks: 2, Rank: index % 2, NNodes: 1,
		Device: index, InitTicks: now(),
		Name: fmt.Sprintf("c%d", index)}, nil)
	a := &application{job: job, comm: uint32(comm), now: now, number: uint64(index+1) << 32}
	a.thread = job.Thread(now(), 1000+index, fmt.Sprintf("app%d", index))
	a.write(shm.Record{Kind: shm.RecordInit, Aux: a.comm})
	return a
}

func (a *application) write(r shm.Record) bool {
	r.Ticks = a.now()
	return a.thread.Write(&r)
}

func (a *application) start(t shm.EventType, r shm.Record) uint64 {
	a.number++
	r.Kind, r.Type, r.Aux, r.Handle = shm.RecordStart, t, a.comm, a.job.Handle(t, a.number)
	if !a.write(r) {
		a.refused++
		return 0
	}
	return r.Handle
}

func (a *application) stop(h uint64) {
	if h != 0 {
		a.write(shm.Record{Kind: shm.RecordStop, Type: shm.TypeOf(h), Handle: h})
	}
}

// newCaller makes a job process that is ready to call NCCL in one communicator.
func newCaller(t *testing.T, o shmtest.Options) (*shmtest.Job, *process, *application) {
	t.Helper()
	job, process := newJob(t, o)
	return job, process, newApplication(job, 0, monotonic)
}

// allReduce is one call outside a group: GroupApi, in it CollApi and KernelLaunch, then Group and Coll.
func (a *application) allReduce(seq uint64) {
	group := a.start(shm.EventGroupApi, shm.Record{GroupDepth: 1})
	call := a.start(shm.EventCollApi, shm.Record{Arg: group, Count: 1024, Func: "AllReduce", Datatype: "ncclFloat32",
		Stream: 7})
	a.stop(call)
	tasks := a.start(shm.EventGroup, shm.Record{Arg: group})
	coll := a.start(shm.EventColl, shm.Record{Arg: call, ParentGroup: tasks, Seq: seq, Count: 1024, Func: "AllReduce",
		Datatype: "ncclFloat32",
		Algo:     "RING", Proto: "LL", NChannels: 1, NWarps: 16, Rank: 0})
	launch := a.start(shm.EventKernelLaunch, shm.Record{Arg: group, Stream: 7})
	a.stop(launch)
	a.stop(coll)
	a.stop(tasks)
	a.stop(group)
}

// perCall is how many starts an allReduce has.
const perCall = 5

func starts(p *description.Process) (n uint64) {
	for _, v := range p.Counts.Starts {
		n += v
	}
	return n
}

// onlyShard reads the experiment directory's one shard, whose files must all be whole.
func onlyShard(t *testing.T, dir string) experiment.Entry {
	t.Helper()
	list := shards(t, dir)
	testkit.Require(t, len(list) == 1, "%d shards, want 1", len(list))
	return list[0]
}

func shards(t *testing.T, dir string) []experiment.Entry {
	t.Helper()
	list := testkit.Value(experiment.List(dir))(t)
	for _, e := range list {
		testkit.Require(t, e.Err == nil, "%v", e.Err)
		files := testkit.Value(filepath.Glob(filepath.Join(e.Path, "*.evt")))(t)
		for _, f := range files {
			s, err := otf2.ScanEventFile(f, e.Process.EventChunkSize)
			testkit.Check(t, err == nil && s.Complete, "%s: %+v, %v", f, s, err)
		}
	}
	return list
}

// eventsOf counts the events in a shard's files.
func eventsOf(t *testing.T, e experiment.Entry) (n uint64) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(e.Path, "*.evt"))
	for _, f := range files {
		s := testkit.Value(otf2.ScanEventFile(f, e.Process.EventChunkSize))(t)
		n += s.Events
	}
	return n
}

// startRun runs a collector in this program.
func startRun(t *testing.T, job *shmtest.Job, o Options) (wait func() error) {
	t.Helper()
	outcome := startOutcome(t, job, o)
	return func() error {
		_, err := outcome()
		return err
	}
}

// startOutcome is startRun for tests that look at the outcome.
func startOutcome(t *testing.T, job *shmtest.Job, o Options) (wait func() (Outcome, error)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	o.FD = job.FD()
	ended := make(chan struct{})
	var out Outcome
	var err error
	go func() {
		defer close(ended)
		out, err = Run(ctx, o)
	}()
	wait = func() (Outcome, error) {
		<-ended
		return out, err
	}
	t.Cleanup(func() { cancel(); wait() })
	testkit.Require(t, shmtest.Await(func() bool { return job.State() != shm.CollectorNone }),
		"the collector says nothing")
	return wait
}

// The job waits for a collector that is ready, not for what that does then.
func TestReadyBeforeAllElse(t *testing.T) {
	job, process := newJob(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 64})
	states := make(chan uint32, 16)
	wait := startRun(t, job, Options{
		Lookup:     environment("NCCL_OTF2_DIR="+t.TempDir(), "NCCL_OTF2_EVENTS=light"),
		Processors: func(int) { states <- uint32(job.State()) },
	})
	process.end()
	testkit.Must(t, wait())
	if n := len(states); n == 0 || <-states != uint32(shm.CollectorReady) {
		t.Errorf("the number of processors was set %d times, first when it was not ready", n)
	}
}

func TestRunFollowsAProcessToItsEnd(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "experiment")
	job, process := newJob(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 128, Reserve: 8})
	apps := []*application{newApplication(job, 0, monotonic), newApplication(job, 1, monotonic)}
	wait := startOutcome(t, job, Options{Lookup: environment(
		"NCCL_OTF2_DIR="+dir, "NCCL_OTF2_EVENTS=light", "RANK=0", "WORLD_SIZE=1")})
	if event, record := job.Masks(); job.State() != shm.CollectorReady || event != 0x0f07 || record != 0x0f07 {
		t.Fatalf("state %d, masks %#x, %#x", job.State(), event, record)
	}

	const calls = 300
	write := func() {
		var group sync.WaitGroup
		for _, a := range apps {
			group.Add(1)
			go func() {
				defer group.Done()
				for i := range uint64(calls) {
					a.allReduce(i)
				}
			}()
		}
		group.Wait()
	}
	write()
	request := job.Request()
	testkit.Require(t, shmtest.Await(func() bool { return job.Answered(request) }), "the request is not answered")
	// All that was recorded before the request is on disk, while the process lives.
	e := onlyShard(t, dir)
	testkit.Check(t, e.State == experiment.Writing && !e.Process.Finished && starts(e.Process) == 2*calls*perCall,
		"after the request: state %v, %d starts", e.State, starts(e.Process))
	onDisk := eventsOf(t, e)
	testkit.Check(t, onDisk >= 2*calls*4, "%d events on disk after %d calls", onDisk, 2*calls)

	write()
	for i, a := range apps {
		a.write(shm.Record{Kind: shm.RecordFinalize, Aux: a.comm})
		job.FinishComm(i, monotonic())
	}
	process.end()
	out := testkit.Value(wait())(t)
	e = onlyShard(t, dir)
	p := e.Process
	testkit.Check(t, e.State == experiment.Done && p.Finished && starts(p) == 4*calls*perCall && len(p.Pending) == 0,
		"at the end: state %v, finished %v, %d starts, pending %v", e.State, p.Finished, starts(p), p.Pending)
	delete(p.Counts.Oddities, "LATE_RECORDS") // the scheduler's doing
	testkit.Check(t, len(p.Counts.Lost) == 0 && len(p.Counts.Oddities) == 0 && len(p.Markers) == 0,
		"lost %v, oddities %v, markers %v", p.Counts.Lost, p.Counts.Oddities, p.Markers)
	total := uint64(0)
	for _, l := range p.Locations {
		total += l.Events
		info, err := os.Stat(filepath.Join(e.Path, fmt.Sprint(l.Number)+".evt"))
		testkit.Check(t, err == nil && info.Size() == l.Bytes, "location %d: %d bytes, %v", l.Number, l.Bytes, err)
	}
	if got := eventsOf(t, e); got != total || got <= onDisk {
		t.Errorf("%d events in files, %d in the description, %d before", got, total, onDisk)
	}
	testkit.Check(t, p.PID == process.cmd.Process.Pid && p.Host == "testhost" &&
		p.Launcher == (provenance.Launcher{Name: "torchrun", Rank: 0, Size: 1}) && p.Settings["EVENTS"] == "light" &&
		p.Clock.Source == "monotonic", "%+v", p)
	c := p.Comms
	testkit.Check(t, len(c) == 2 && c[1].Name == "c1" && c[1].NRanks == 2 && c[0].FinalTime != 0 &&
		c[0].FinalTime >= c[0].InitTime, "communicators: %+v", c)
	// Its clock is the machine's, anchored to real time.
	now := shm.ReadClock(shm.ClockMonotonic).Real
	testkit.Check(t, p.FirstTime <= now && p.FirstTime >= now-600e9 && p.LastTime >= p.FirstTime && p.LastTime <= now,
		"events from %d to %d, now %d", p.FirstTime, p.LastTime, now)
	testkit.Equal(t, out, (Outcome{Experiment: dir, Unify: true}), "outcome")
	free, spare := job.Free()
	testkit.Check(t, free+spare >= 120, "%d free and %d spare chunks of 128", free, spare)
}

// A job that records more than the memory holds, at a speed the collector keeps up with, loses nothing.
func TestMemoryIsReused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job, process, a := newCaller(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 32, Reserve: 2})
	wait := startRun(t, job, Options{Lookup: environment("NCCL_OTF2_DIR=" + dir)})
	const rounds, calls = 12, 600 // 600 calls are about 6 chunks: all are used more than twice
	for range rounds {
		for i := range uint64(calls) {
			a.allReduce(i)
		}
		testkit.Require(t, shmtest.Await(func() bool { free, spare := job.Free(); return free+spare > 16 }),
			"no memory comes back")
	}
	process.end()
	testkit.Must(t, wait())
	p := onlyShard(t, dir).Process
	testkit.Check(t, starts(p) == rounds*calls*perCall && len(p.Counts.Lost) == 0,
		"%d starts of %d, lost %v", starts(p), rounds*calls*perCall, p.Counts.Lost)
}

// Where Score-P is in the process, event chunks are as large as its, also if that is known after the first events.
func TestChunksOfScorepsSize(t *testing.T) {
	for _, c := range []struct {
		name         string
		before, late int // batches of calls before and after Score-P is seen
		state        shm.ScorepState
		substrate    uint32
		backlog      string
		want         uint64
	}{
		{"without", 0, 1, shm.ScorepOff, 0, "off", chunkSize},
		{"from the start", 0, 17, shm.ScorepOn, 0, "off", scorepChunkSize},
		{"after the first events", 1, 17, shm.ScorepUnusable, 0, "off", scorepChunkSize},
		{"after several chunks", 8, 9, shm.ScorepOn, 0, "off", chunkSize},
		{"not forwarding", 0, 17, shm.ScorepOff, 1, "off", scorepChunkSize},
		{"put off", 8, 9, shm.ScorepOn, 0, "on", scorepChunkSize},
		{"put off, without", 8, 9, shm.ScorepOff, 0, "on", chunkSize},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			job, process, a := newCaller(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 32, Reserve: 2})
			wait := startRun(t, job, Options{Lookup: environment("NCCL_OTF2_DIR="+dir, "NCCL_OTF2_BACKLOG="+c.backlog)})
			const calls = 600
			play := func(batches int) {
				for range batches {
					for i := range uint64(calls) {
						a.allReduce(i)
					}
					flushAll(t, job)
				}
			}
			play(c.before)
			atomic.StoreUint32((*uint32)(&job.Header().ScorepState), uint32(c.state))
			atomic.StoreUint32(&job.Header().ScorepMeasured, c.substrate)
			play(c.late)
			process.end()
			testkit.Must(t, wait())
			e := onlyShard(t, dir)
			if p := e.Process; p.EventChunkSize != c.want || starts(p) != uint64(c.before+c.late)*calls*perCall {
				t.Errorf("chunks of %d, %d starts, lost %v", p.EventChunkSize, starts(p), p.Counts.Lost)
			}
			largest := int64(0)
			events := uint64(0)
			for _, l := range e.Process.Locations {
				largest, events = max(largest, l.Bytes), events+l.Events
			}
			testkit.Check(t, c.late <= 1 || largest >= scorepChunkSize*5/4, "the largest file has %d bytes", largest)
			if n := eventsOf(t, e); n != events { // reads all chunks
				t.Errorf("%d events, the description says %d", n, events)
			}
		})
	}
}

// A process that dies inside a call leaves what was under way.
func TestPendingOperationsOfADeadProcess(t *testing.T) {
	dir := t.TempDir()
	job, process, a := newCaller(t, shmtest.Options{Clock: shm.ClockMonotonic})
	wait := startRun(t, job, Options{Lookup: environment("NCCL_OTF2_DIR="+dir, "NCCL_OTF2_EVENTS=light")})
	a.allReduce(0)
	group := a.start(shm.EventGroupApi, shm.Record{GroupDepth: 1})
	a.stop(a.start(shm.EventCollApi, shm.Record{Arg: group, Count: 8, Func: "Broadcast", Datatype: "ncclInt8"}))
	process.end()
	testkit.Must(t, wait())
	e := onlyShard(t, dir)
	p := e.Process.Pending
	testkit.Check(t, e.State == experiment.Done && len(p) == 1 && p[0].Function == "Broadcast" &&
		p[0].State == "calling", "state %v, pending %+v", e.State, p)
}

func TestLossesFiltersAndForeignHandlesAreCounted(t *testing.T) {
	dir := t.TempDir()
	job, process := newJob(t, shmtest.Options{})
	h := job.Header()
	h.Lost[shm.LossMemory][shm.EventProxyStep] = 5
	h.Lost[shm.LossRing][shm.EventColl] = 1
	h.Filtered[shm.EventGroup] = 7
	h.Foreign = 3
	process.end()
	testkit.Must(t, startRun(t, job, Options{Lookup: environment("NCCL_OTF2_DIR=" + dir)})())
	c := onlyShard(t, dir).Process.Counts
	testkit.Check(t, c.Lost["memory"]["ProxyStep"] == 5 && c.Lost["ring"]["Coll"] == 1 && len(c.Lost) == 2 &&
		c.Filtered["Group"] == 7 && c.Oddities["FOREIGN_HANDLES"] == 3, "%+v", c)
}

// With the program's own clock, times are exactly what the program says.
func TestHostClock(t *testing.T) {
	dir := t.TempDir()
	job, process := newJob(t, shmtest.Options{Created: shm.ClockTuple{Ticks: 1e9, Raw: 2e9, Mono: 3e9, Real: 4e18}})
	now := uint64(1e9)
	a := newApplication(job, 0, func() uint64 { now += 1000; return now })
	wait := startRun(t, job, Options{Lookup: environment("NCCL_OTF2_DIR=" + dir)})
	for i := range uint64(10) {
		a.allReduce(i)
	}
	job.Tick(now)
	request := job.Request()
	testkit.Require(t, shmtest.Await(func() bool { return job.Answered(request) }), "not answered")
	if p := onlyShard(t, dir).Process; starts(p) != 10*perCall {
		t.Errorf("%d starts after the request", starts(p))
	}
	process.end()
	testkit.Must(t, wait())
	p := onlyShard(t, dir).Process
	if c := p.Clock; c.Source != "host" || c.AnchorRaw != 2e9 || c.AnchorReal != 4e18 || c.Tuples != nil {
		t.Errorf("%+v", p.Clock)
	}
	// The first record is the thread's, at 2000 after the anchor; the communicator's INIT comes at 3000.
	testkit.Check(t, p.FirstTime == 4e18+2000 && p.LastTime == 4e18+now-1e9 && p.Comms[0].InitTime == 4e18+3000,
		"first %d, last %d, init %d", p.FirstTime-4e18, p.LastTime-4e18, p.Comms[0].InitTime-4e18)
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	testkit.Write(t, file, nil)
	for _, tc := range []struct{ name, variable, want string }{
		{"setting", "NCCL_OTF2_EVENTS=Cool", `NCCL_OTF2_EVENTS: "Cool" is neither a preset nor an event`},
		{"directory", "NCCL_OTF2_DIR=" + file, "nothing can be recorded in " + file},
		{"cpus", "NCCL_OTF2_CPUS=1000", "NCCL_OTF2_CPUS: none of these CPUs may be used"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			job, _ := newJob(t, shmtest.Options{})
			vars := []string{tc.variable, "NCCL_OTF2_DIR=" + dir}
			err := startRun(t, job, Options{Lookup: environment(vars...)})()
			testkit.Check(t, err != nil && strings.Contains(err.Error(), tc.want), "error %v, want %s", err, tc.want)
			testkit.Equal(t, job.State(), shm.CollectorRefused, "state")
			memory := testkit.Value(shm.Map(job.FD()))(t)
			defer memory.Close()
			text, n := memory.Message()
			testkit.Check(t, strings.Contains(text, tc.want) && n == 1, "message %d: %q", n, text)
			list, _ := filepath.Glob(filepath.Join(dir, "shards", "*"))
			testkit.Check(t, len(list) == 0, "left behind: %v", list)
		})
	}
}

func TestRanksAreSelected(t *testing.T) {
	for _, tc := range []struct {
		vars    string
		want    uint32
		message string
	}{
		{"NCCL_OTF2_RANKS=0,4-7 RANK=5 WORLD_SIZE=8", 0x0f47, ""},
		{"NCCL_OTF2_RANKS=0,4-7 RANK=3 WORLD_SIZE=8", 0, ""},
		{"NCCL_OTF2_RANKS=0,4-7", 0x0f47, "NCCL_OTF2_RANKS has no effect: no launcher tells this process's rank"},
		{"NCCL_OTF2_EVENTS=all,KernelPhase", 0x7fff, ""}, // API v6 has no bit 15
	} {
		job, process := newJob(t, shmtest.Options{})
		wait := startRun(t, job, Options{Lookup: environment(
			append(strings.Fields(tc.vars), "NCCL_OTF2_DIR="+t.TempDir())...)})
		event, record := job.Masks()
		testkit.Check(t, event == tc.want && record == tc.want, "%s: masks %#x, %#x", tc.vars, event, record)
		memory := testkit.Value(shm.Map(job.FD()))(t)
		text, _ := memory.Message()
		testkit.Check(t, text == tc.message, "%s: message %q", tc.vars, text)
		memory.Close()
		process.end()
		err := wait()
		testkit.Check(t, err == nil, "%v", err)
	}
}

// startCollector runs a collector in a program of its own.
func startCollector(t *testing.T, job *shmtest.Job, role string, vars ...string) *exec.Cmd {
	t.Helper()
	memory := os.NewFile(uintptr(job.FD()), "memory")
	defer memory.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append([]string{takenAtOnce, roleVariable + "=" + role}, vars...)
	cmd.ExtraFiles = []*os.File{memory}
	cmd.Stderr = &bytes.Buffer{}
	testkit.Must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	testkit.Require(t,
		shmtest.Await(func() bool { return job.State() == shm.CollectorReady && job.CollectorPID() == cmd.Process.Pid }),
		"not ready: %s", cmd.Stderr)
	return cmd
}

// A collector that is killed leaves whole files; the next one goes on where it was, and no record is
// in both shards or in none.
func TestKilledCollectorIsReplaced(t *testing.T) {
	dir := t.TempDir()
	job, process, a := newCaller(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 128})
	first := startCollector(t, job, "collector", "NCCL_OTF2_DIR="+dir)
	const calls = 500
	for i := range uint64(calls) {
		a.allReduce(i)
	}
	request := job.Request()
	testkit.Require(t, shmtest.Await(func() bool { return job.Answered(request) }), "not answered")
	for i := range uint64(10) {
		a.allReduce(calls + i) // perhaps taken, perhaps not
	}
	first.Process.Kill()
	first.Wait()
	dead := onlyShard(t, dir)
	if dead.State != experiment.Dead || dead.Process.Finished || eventsOf(t, dead) < 4*calls {
		t.Fatalf("after the kill: state %v, %d events", dead.State, eventsOf(t, dead))
	}

	second := startCollector(t, job, "collector", "NCCL_OTF2_DIR="+dir)
	for i := range uint64(calls) {
		a.allReduce(calls + 10 + i)
	}
	process.end()
	err := second.Wait()
	testkit.Require(t, err == nil, "%v: %s", err, second.Stderr)
	total := uint64(0)
	for _, e := range shards(t, dir) {
		total += starts(e.Process)
		if e.Process.UUID == dead.Process.UUID {
			continue
		}
		p := e.Process
		testkit.Check(t, e.State == experiment.Done && p.Finished && p.Settings["CONTINUES"] == dead.Process.UUID,
			"state %v, finished %v, settings %v", e.State, p.Finished, p.Settings)
		testkit.Check(t, len(p.Markers) != 0 && p.Markers[0].Category == "NCCL collector", "markers %v", p.Markers)
	}
	want := uint64((2*calls + 10) * perCall)
	testkit.Check(t, total == want, "%d starts in both shards, want %d", total, want)
}

// Where files cannot grow on, recording stops, the job goes on, and what is on disk is whole. What is lost is counted
// in any case, also where it is the description that cannot grow by as much as that takes.
func TestFullDisk(t *testing.T) {
	for _, tc := range []struct {
		name, role, events string
		limited            func(t *testing.T, collector int, dir string) // after the first calls
	}{
		{"event files", "collector with small files", "light", func(*testing.T, int, string) {}},
		{"description", "collector", "gpu", func(t *testing.T, collector int, dir string) {
			// No operation ever ran on a GPU: the description names them all.
			info := testkit.Value(os.Stat(filepath.Join(onlyShard(t, dir).Path, experiment.CheckpointFile)))(t)
			limit := uint64(info.Size()) + 64
			testkit.Must(t, unix.Prlimit(collector, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: limit, Max: limit}, nil))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			job, process, a := newCaller(t, shmtest.Options{Clock: shm.ClockMonotonic, Chunks: 32})
			collector := startCollector(t, job, tc.role, "NCCL_OTF2_DIR="+dir, "NCCL_OTF2_EVENTS="+tc.events)
			written := uint64(0)
			call := func(n int) {
				for range n {
					a.allReduce(written)
					written++
				}
			}
			call(100)
			flushAll(t, job)
			tc.limited(t, collector.Process.Pid, dir)
			memory := mapped(t, job)
			stopped := func() bool {
				text, _ := memory.Message()
				return strings.Contains(text, dir+" cannot be written")
			}
			for i := 0; i < 200 && !stopped(); i++ {
				call(100)
				flushAll(t, job)
			}
			text, _ := memory.Message()
			testkit.Require(t, stopped() && !strings.Contains(text, "\n"), "message: %q", text)
			call(50) // what threads record before they see that they should not
			process.end()
			err := collector.Wait()
			testkit.Check(t, err != nil && strings.Contains(fmt.Sprint(collector.Stderr), "file too large"), "%v: %s",
				err, collector.Stderr)
			e := onlyShard(t, dir)
			p := e.Process
			lost := uint64(0)
			for _, n := range p.Counts.Lost["disk"] {
				lost += n
			}
			testkit.Check(t, starts(p)+lost == written*perCall && lost >= 50*perCall,
				"%d starts and %d lost, want %d together", starts(p), lost, written*perCall)
			if p.Finished || len(p.Markers) == 0 || p.Markers[len(p.Markers)-1].Category != "NCCL recording stopped" {
				t.Errorf("finished %v, markers %v", p.Finished, p.Markers)
			}
			testkit.Check(t, eventsOf(t, e) != 0, "no events on disk")
		})
	}
}

// SIGTERM goes to whole process groups and cgroups: the collector lets the process end first.
func TestTermWaitsForTheProcess(t *testing.T) {
	dir := t.TempDir()
	job, process, a := newCaller(t, shmtest.Options{Clock: shm.ClockMonotonic})
	collector := startCollector(t, job, "collector", "NCCL_OTF2_DIR="+dir)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE, syscall.SIGTERM} {
		testkit.Must(t, collector.Process.Signal(s))
	}
	for i := range uint64(100) {
		a.allReduce(i)
	}
	request := job.Request()
	testkit.Require(t, shmtest.Await(func() bool { return job.Answered(request) }), "not answered after SIGTERM")
	a.allReduce(100)
	process.end()
	err := collector.Wait()
	testkit.Require(t, err == nil, "%v: %s", err, collector.Stderr)
	if e := onlyShard(t, dir); e.State != experiment.Done || starts(e.Process) != 101*perCall {
		t.Errorf("state %v, %d starts", e.State, starts(e.Process))
	}
}

// A ring that the job has damaged costs its own records, and the archive says so.
func TestDamagedRing(t *testing.T) {
	dir := t.TempDir()
	job, process := newJob(t, shmtest.Options{})
	now := uint64(1e9)
	clock := func() uint64 { now += 1000; return now }
	a, b := newApplication(job, 0, clock), newApplication(job, 1, clock)
	a.allReduce(0)
	b.allReduce(0)
	job.Corrupt(job.Header().ChunkOffset+shm.ChunkHead+8, 99) // the first record of the first ring
	process.end()
	testkit.Must(t, startRun(t, job, Options{Lookup: environment("NCCL_OTF2_DIR=" + dir)})())
	p := onlyShard(t, dir).Process
	testkit.Check(t, starts(p) == perCall && p.Counts.Oddities["BROKEN_RINGS"] == 1,
		"%d starts, oddities %v", starts(p), p.Counts.Oddities)
	testkit.Check(t, len(p.Markers) == 1 && strings.HasPrefix(p.Markers[0].Text, "ring 0: "), "markers %v", p.Markers)
}
