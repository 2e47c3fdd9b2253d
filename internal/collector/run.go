// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/gpu"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// costlyDescription is from how many bytes on a shard's description is not written for each request: that of a process
// which has made some hundred communicators. One that makes and ends them one after the other asks with each.
const costlyDescription = 256 << 10

// Options of Run.
type Options struct {
	// FD is the descriptor of the shared memory. Run takes it over.
	FD int
	// Profiles, if set, is sent the experiment directory each time that a profile of the running job is due: in the
	// collector of its first rank, at the setting PROFILE_INTERVAL. As long as nobody receives it is not due.
	Profiles chan<- string
	// Metrics, if set, is called with the experiment directory and a folder, in the collector of the job's first rank,
	// if the setting PROMETHEUS asks for metrics of the running job there. It must not block.
	Metrics func(experiment, folder string)
	// Processors is told how many processors the program should use at once at most: one as long as the job runs, as a
	// second one would be taken from the job and make the collector's work dearer, not shorter. Nil means that it is as
	// it is.
	Processors func(n int)
	// GPUs opens what knows the machine's GPUs; nil means gpu.Open. It is called in a goroutine of its own.
	GPUs func() (gpu.Library, error)
	// TimeService connects to what knows how far the machine's clock is off; nil means chronyd where it usually
	// listens.
	TimeService func() (net.Conn, error)
	// TimePatience is how long that may take for an answer; 0 means 200 ms.
	TimePatience time.Duration
	// Lookup gives the environment; nil means os.LookupEnv.
	Lookup config.Lookup
	// Log takes what the collector says of itself if the setting DEBUG is on; nil means os.Stderr.
	Log io.Writer
}

// Flush intervals: the first flush comes soon after the first record, so that a job that dies young leaves something;
// the interval then doubles. Operations wait in memory for two seconds before they are written (regions), so together
// with that the longest interval says how much of them a kill of everything takes.
const (
	firstFlush = 100 * time.Millisecond
	nearFlush  = 500 * time.Millisecond // where the file system is in this machine's memory
	lastFlush  = 2 * time.Second        // where a flush is messages to a server, which thousands may send
	hurryFlush = 200 * time.Millisecond
)

// Sleeps between rounds where much comes, or the collector prepares the job's memory: while records come, and the
// longest. Else scarcity says how long. A round costs some 50 µs whatever it finds, on a processor that the job may
// need; requests and the end of the process end a sleep.
const (
	shortSleep = 10 * time.Millisecond
	longSleep  = 20 * time.Millisecond
)

// hotPart is which part of the memory for records a round must have read for the next to follow at once: with less,
// they are far from using it up within a sleep.
const hotPart = 32

// leastSpares is how many chunks an idle process has prepared (2 MiB): more than it can use up while the collector
// sleeps longest, at 2.7 million callbacks a second. When more of them go in a round, twice as many are kept.
const leastSpares = 32

// mostProcessors is how many the collector uses at once when the job has ended.
const mostProcessors = 2

// Garbage is collected when the heap has grown by so many percent. When the job has ended its memory is free: what was
// put off is taken in a seventh less of the time.
const (
	garbage      = 100
	garbageAtEnd = 400
)

// graceAfterTerm is how long a collector that was told to end goes on if its process does, and graceOfRest how long it
// decodes what is left of one that has ended; what it does not come to is left to `unify`. Variables for the tests.
var (
	graceAfterTerm = 10 * time.Second
	graceOfRest    = 3 * time.Second
)

// heapBudget (bytes) is beyond which garbage is collected as often as it takes: what the model holds in memory has a
// bound far below (regions), chunks of events have 256 KiB a row.
const heapBudget = 192 << 20

// Outcome is what is left to be done when a process's shard is finished.
type Outcome struct {
	Experiment string // directory; "" if the collector could not begin
	// Unify: all processes of the job have finished, their archive is to be made (setting UNIFY), and they are few
	// enough for the collector that finds itself to be the last one. In record mode it is the recording.
	Unify  bool
	Record bool // the setting MODE is record
	Tables bool // the setting TABLES: of the archive, tables are to be written, too
	Debug  bool // the setting DEBUG
}

// Run is what the plugin starts beside each job process. It returns when the process has ended and
// its shard is finished, or at once, with an error, if it cannot work; the plugin then finds the
// reason in the shared memory. When ctx ends, it leaves the shard unfinished.
//
// It changes limits, CPU affinity and signal handling of the whole program.
func Run(ctx context.Context, o Options) (out Outcome, err error) {
	if o.Lookup == nil {
		o.Lookup = os.LookupEnv
	}
	if o.Log == nil {
		o.Log = os.Stderr
	}
	if o.GPUs == nil {
		o.GPUs = gpu.Open
	}
	// A key at the terminal, or the end of a session, is for the job; the collector ends after it.
	signal.Ignore(unix.SIGINT, unix.SIGHUP, unix.SIGPIPE, unix.SIGXFSZ)
	term := make(chan os.Signal, 1)
	signal.Notify(term, unix.SIGTERM)
	defer signal.Stop(term)
	if o.Processors == nil {
		o.Processors = func(int) {}
	}
	debug.SetGCPercent(garbage)
	debug.SetMemoryLimit(heapBudget)

	go experiment.PrepareDescriptions() // on another processor, if there is one, while the shard is made
	inode := inodeOf(o.FD)
	memory, err := shm.Map(o.FD)
	if err != nil {
		return out, err
	}
	defer memory.Close()
	c := &live{memory: memory, inode: inode, term: term, log: o.Log, reported: make(map[string]bool),
		processors: o.Processors}
	if err := c.begin(o.Lookup); err != nil {
		memory.Post(err.Error())
		memory.SetState(shm.CollectorRefused)
		return out, err
	}
	// What the job does not wait for.
	o.Processors(1)
	defer o.Processors(mostProcessors)
	c.lookForRoom()
	nudged := make(chan struct{})
	go func() { // a sleep does not outlast the process
		defer close(nudged)
		<-c.watch.over
		memory.Nudge()
	}()
	defer func() {
		c.watch.close()
		<-nudged
	}()
	c.gpus = c.watchGPUs(o.GPUs)
	defer c.gpus.stop(0)
	c.service = c.watchTime(o.TimeService, o.TimePatience)
	defer c.service.stop()
	c.startProfiles(o.Profiles)
	c.startMetrics(o.Metrics)
	out.Experiment, out.Record, out.Tables, out.Debug = c.experiment, c.script != nil, c.settings.Tables,
		c.settings.Debug
	if err := c.run(ctx); err != nil {
		return out, err
	}
	if c.settings.Unify && c.ended {
		out.Unify, err = isLast(c.experiment)
	}
	return out, err
}

// live is the collector of a process that may still run.
type live struct {
	*recording
	memory     *shm.Memory
	inode      inode // of the memory
	settings   *config.Settings
	launcher   config.Launcher
	experiment string
	watch      *processWatch
	term       <-chan os.Signal
	log        io.Writer

	chosen   selection
	listener listener
	profiles profiles
	gpus     *gpuWatch // nil: they are not looked at

	now      shm.ClockTuple  // of the last round
	ended    bool            // the process has, and everything it left has been taken
	reported map[string]bool // why recording stopped, as far as it was said
	deadline time.Time       // after SIGTERM
	interval time.Duration
	flushAt  time.Time // zero until there is something to flush
	lately   time.Time // the last flush
	spares   int       // chunks that are kept prepared
	answered uint32
	flushed  uint64 // what had come as of the last flush, see came
	changed  uint64 // what time had brought about by then, see regions.Model.Changes
	sampled  uint64 // values of GPUs' sensors

	processors func(n int) // see Options

	gaveBack  bool // memory of records that are not on disk has been given back
	again     bool // another collector of the process has died
	gpusAsked int  // GPUs of the process that have been asked about
}

func (c *live) say(format string, args ...any) {
	if c.settings != nil && c.settings.Debug {
		_, _ = fmt.Fprintf(c.log, "nccl-otf2 collect[%d]: "+format+"\n", append([]any{os.Getpid()}, args...)...)
	}
}

// begin gets everything ready and tells the plugin.
func (c *live) begin(lookup config.Lookup) (err error) {
	if c.settings, err = config.Load(lookup); err != nil {
		return err
	}
	c.launcher = config.FindLauncher(lookup)
	h := c.memory.Header()
	if !shm.HasCounter(h.ClockSource) {
		return fmt.Errorf("the collector cannot read the clock %q of the records", h.ClockSource)
	}
	if err := pin(c.settings.CPUs); err != nil {
		return fmt.Errorf("%sCPUS: %w", config.Prefix, err)
	}
	if c.watch, err = watchProcess(int(h.PID), h.PIDStart); err != nil {
		return err
	}
	var first uint64
	if comm, ok := c.memory.Comm(0); ok {
		first = comm.ID
	}
	if c.experiment, err = filepath.Abs(c.settings.Directory(lookup, first)); err != nil {
		return err
	}
	c.again = h.CollectorPID != 0
	if err = c.startRecording(); err != nil {
		c.watch.close()
		return fmt.Errorf("nothing can be recorded in %s: %w: set NCCL_OTF2_DIR to where this process can write",
			c.experiment, err)
	}
	c.recording.notePlace(lookup)
	if c.script == nil && c.profile == nil && c.cap == 0 {
		c.backlog.when = c.settings.Backlog
	}
	c.spares = leastSpares
	c.memory.KeepSpares(c.spares)
	// Requests of before belong to a collector that died; they are open still.
	_, c.answered = c.memory.Requested()
	c.chosen = choose(c.memory, selectBy(c.settings, c.launcher, &h))
	c.refuse = func() {
		c.chosen.record |= shm.RecordFull
		c.memory.SetMasks(c.chosen.event, c.chosen.record)
	}
	c.listen()
	if early := c.settings.Environment(); len(early) > 0 {
		c.memory.Post(fmt.Sprintf("%s: no effect from there, set them in the environment (or use nccl-otf2 run): %s",
			c.settings.Config, strings.Join(early, " ")))
	} else if len(c.settings.Ranks) > 0 && c.launcher.Rank < 0 {
		c.memory.Post(config.Prefix + "RANKS has no effect: no launcher tells this process's rank")
	}
	c.memory.SetPlace(c.experiment)
	c.memory.SetState(shm.CollectorReady)
	c.say("records process %d in %s, events %s", h.PID, c.store.Path(), c.eventList(c.chosen.record&allTypes))
	return nil
}

// lookForRoom begins to look how scarce processors are.
func (c *live) lookForRoom() {
	c.scarcity.pressure, c.scarcity.room = cpuPressure, newRoom("/")
	if comm, ok := c.memory.Comm(0); ok && comm.NNodes > 0 {
		c.scarcity.expect((comm.NRanks + comm.NNodes - 1) / comm.NNodes)
	}
}

// startRecording makes the shard. One error of the disk does not keep a job from being recorded.
func (c *live) startRecording() (err error) {
	for failures := range uint64(4) {
		c.recording, err = newRecording(c.memory, c.settings, c.launcher, c.experiment, uuid.NewString())
		if err == nil {
			c.disk = disk{patient: true, errors: failures}
			return nil
		}
		time.Sleep(firstRetry)
	}
	return err
}

// run drains the memory until the process has ended.
func (c *live) run(ctx context.Context) error {
	sleep, hot := shortSleep, c.memory.Capacity()/hotPart
	for !c.stop(ctx) {
		// The number before the clock, so that the round's time is later than the request.
		request, _ := c.memory.Requested()
		read := c.memory.BytesRead()
		c.heedRequest(request != c.answered)
		n, err := c.round()
		if err != nil {
			return errors.Join(err, c.finish(false))
		}
		c.heed()
		if request != c.answered {
			if err := c.answer(request); err != nil {
				return errors.Join(err, c.finish(false))
			}
			sleep = shortSleep
			continue
		}
		switch {
		case c.failed == nil && (c.disk.err != nil || c.disk.outage != nil):
			c.retryDue()
		case c.flushDue():
			c.flush()
		}
		c.profileDue()
		read = c.memory.BytesRead() - read
		c.scarcity.busy = c.scarcity.busy || n > 0 || read > 0
		if read > hot || n >= catchUp {
			continue
		}
		seldom := time.Duration(0)
		if c.memory.Prepared() { // else the collector prepares it
			seldom = c.scarcity.sleep()
		}
		sleep = nextSleep(sleep, n, read, hot, seldom)
		began := time.Now()
		c.memory.AwaitRequest(request, sleep)
		if now := time.Now(); !c.line.host {
			c.scarcity.slept(sleep, now.Sub(began), now)
		}
	}
	return c.end()
}

// nextSleep is how long to sleep after a round that took n records of some bytes, before which the sleep was another.
// seldom is for how long it may where little comes; 0: no longer than else.
func nextSleep(before time.Duration, n int, read, hot uint64, seldom time.Duration) time.Duration {
	switch {
	case seldom > 0 && read < hot/coolPart:
		return seldom
	case n > 0:
		return shortSleep
	}
	return min(2*before, longSleep)
}

// stop reports whether the process has ended, or that it is not to be waited for any longer.
func (c *live) stop(ctx context.Context) bool {
	if c.watch.gone() {
		c.ended = true
		return true
	}
	return ctx.Err() != nil || c.mustEnd()
}

// mustEnd reports whether the collector was told to end, and has gone on as long as it may since.
func (c *live) mustEnd() bool {
	select {
	case <-c.term:
		switch {
		case !c.deadline.IsZero():
		case c.ended:
			c.deadline = time.Now().Add(graceOfRest)
		default:
			c.say("asked to end; waiting for the process")
			c.deadline, c.interval = time.Now().Add(graceAfterTerm), hurryFlush
		}
	default:
	}
	return !c.deadline.IsZero() && time.Now().After(c.deadline)
}

// interrupted tells, between the steps of what may take long, not to go on: the collector is to end, or there is
// nothing left to write to.
func (c *live) interrupted() bool { return c.mustEnd() || c.store.Gone() }

// takeSteps takes all that there is, in steps between which it can be interrupted; then it returns false. take takes
// recording.atOnce records at most.
func (c *live) takeSteps(take func() int) (all bool) {
	c.atOnce = catchUp
	defer func() { c.atOnce = allAtOnce }()
	for take() >= catchUp && (c.failed != nil || c.disk.err == nil) {
		if c.interrupted() {
			return false
		}
	}
	return true
}

// round takes what has been recorded up to now less the window, and keeps the plugin in memory.
func (c *live) round() (n int, err error) {
	round, err := c.memory.Refresh()
	if err != nil {
		return 0, err
	}
	c.now = round.Clock
	c.atOnce = catchUp
	switch {
	case c.disk.err != nil && c.failed == nil:
		c.line.add(round.Clock)
	case c.putsOff():
		n = c.putOff(round.Clock)
	default:
		n = c.advanceTo(round.Clock)
		if !c.memory.Stored() {
			c.backlog.end(time.Now())
		}
	}
	c.atOnce = allAtOnce
	c.forgetSpent()
	c.takeGPUs()
	c.checkCap()
	c.tell()
	_, used := c.memory.KeepSpares(c.spares)
	c.spares = min(max(leastSpares, 2*used, c.spares-1), shm.SpareMax)
	return n, nil
}

// tell says in NCCL's log that recording has stopped, once for each cause.
func (c *live) tell() {
	if reason := c.stopped(); reason != "" {
		why := reason
		if err := cmp.Or(c.failed, c.disk.err); err != nil {
			why = cause(err)
		}
		c.tellWhy(why, reason)
	}
}

func (c *live) tellWhy(cause, reason string) {
	if c.reported[cause] {
		return
	}
	c.reported[cause] = true
	line := "recording stopped in %s (what is there is whole; the next time give it more room, or set NCCL_OTF2_DIR " +
		"elsewhere): %s"
	if c.failed == nil && c.capped == "" {
		line = "%s cannot be written: what is recorded waits in memory, then nothing new is recorded until it can be " +
			"(what is there is whole; make room, or set NCCL_OTF2_DIR elsewhere the next time): %s"
	}
	c.memory.Post(fmt.Sprintf(line, c.experiment, reason))
	c.say("recording stopped: %s", reason)
}

// answer brings everything recorded before a request to disk and tells so.
func (c *live) answer(request uint32) error {
	if c.waits() || c.allPutOff() {
		c.answered = request
		c.memory.Answer(request)
		return nil
	}
	switch {
	case c.line.host:
		// The program's clock stands still while it waits for the answer.
		c.takeRest()
	case c.memory.LiveComms() == 0:
		// NCCL is in no call of a communicator's that could publish anything older, and the job waits.
		c.takeSteps(func() int { return c.advance(c.now, 0) })
	default:
		if err := c.awaitWindow(c.now.Raw); err != nil { // which was read after the request
			return err
		}
	}
	c.settle()
	c.flush()
	for tries := 0; !c.writes() && c.failed == nil &&
		(tries < answerTries || time.Since(c.disk.since) < answerPatience); tries++ {
		time.Sleep(firstRetry)
		c.flush()
	}
	if !c.writes() && c.failed == nil {
		// Who asks may not be there for long.
		c.tellWhy(cause(c.disk.err), c.disk.err.Error())
	}
	c.answered = request
	c.memory.Answer(request)
	c.say("request %d answered, %d records so far", request, c.records)
	return nil
}

// awaitWindow takes all that had been recorded at a time of the raw clock. A writer may be held up between reading the
// clock and publishing as long as the window.
func (c *live) awaitWindow(asked uint64) error {
	for c.now.Raw < asked+c.window+c.window/4 {
		time.Sleep(time.Duration(c.window) / 4)
		if _, err := c.round(); err != nil {
			return err
		}
	}
	c.takeSteps(func() int { return c.advance(c.now, c.window) }) // a round takes but one
	return nil
}

// waits reports whether what a request asks for can wait for the next flush: the process goes on, what it recorded
// outlives it, and all of a large shard has just been described.
func (c *live) waits() bool {
	return c.script == nil && !c.line.host && c.writes() && !c.memory.Ended() && c.memory.Header().PID != 1 &&
		c.store.Described() > costlyDescription && time.Since(c.lately) < lastFlush
}

// flushDue reports whether it is time to flush: the interval is over, or memory is getting short.
func (c *live) flushDue() bool {
	if c.spentDue(time.Now()) {
		return true
	}
	now := time.Now()
	if c.unchanged() {
		return c.backlog.unsecured() && now.Sub(c.lately) >= lastSecure
	}
	if c.came() == c.flushed && now.Sub(c.lately) >= hurryFlush && !c.model.Holds() {
		return true // nothing more comes by waiting
	}
	if c.backlog.looked(now) && c.backlog.waits() != "" && !c.memory.PutsOff() && !c.memory.Stored() {
		return true // who looks waits for it
	}
	if c.flushAt.IsZero() {
		if c.interval == 0 {
			c.interval = firstFlush
		}
		c.flushAt = now.Add(c.interval)
	}
	if !now.Before(c.flushAt) {
		return true
	}
	free, total := c.memory.FreeChunks()
	return free < total/2 && c.memory.Behind() >= max(1, total/16)
}

// came is what has come so far: records, and samples.
func (c *live) came() uint64 { return c.records + c.sampled }

// unchanged reports whether all is on the disk: nothing has come since the last flush, and nothing that was waiting has
// been written.
func (c *live) unchanged() bool { return c.came() == c.flushed && c.model.Changes() == c.changed }

// flush brings everything taken so far to disk and gives its memory back. When recording has ended
// it only gives memory back, so that the plugin does not count the same losses for want of memory.
func (c *live) flush() {
	c.memory.Mark()
	began, secured := time.Now(), c.securing.began
	switch err := c.recording.flush(); {
	case err == nil:
	case c.failed == nil && !c.store.Gone():
		return
	default:
		c.fail(err)
		c.tell()
		c.gaveBack = true
	}
	c.memory.Release()
	c.noteSpent(secured)
	c.backlog.secured = c.backlog.bytes
	c.flushed, c.changed = c.came(), c.model.Changes()
	c.flushAt, c.lately = time.Time{}, time.Now()
	if c.deadline.IsZero() {
		// Seldom enough to cost little on a slow file system, too.
		last := lastFlush
		if c.profile == nil && c.listener.Near() { // a profile is written as a whole each time
			last = nearFlush
		}
		c.interval = max(min(2*max(c.interval, firstFlush), last), 20*time.Since(began))
	}
}

// end takes everything that is left and finishes the shard.
func (c *live) end() error {
	round, err := c.memory.Refresh()
	if err != nil {
		return errors.Join(err, c.finish(false))
	}
	if c.ended {
		c.processors(mostProcessors)
		debug.SetGCPercent(garbageAtEnd)
	}
	c.now = round.Clock
	c.line.add(round.Clock)
	c.rest()
	c.endWatches()
	if c.ended {
		c.recording.end = c.watch.end.of(c.memory, c.line, round.Clock)
	}
	err = c.finish(c.ended)
	c.say("%d records taken, process ended: %v", c.records, c.ended)
	switch {
	case !c.ended || errors.Is(err, errUnread):
	case c.leaves():
		err = fmt.Errorf("%w; what is not on disk is in %s: unify on this machine when the disk can be written", err,
			c.process.Memory.Path)
	default:
		c.inode.remove(c.process.Memory) // nothing is left in it that could be saved
		if c.failed == nil {             // else `unify` takes from there what the disk did not take otherwise
			c.dropBacklogs()
		}
	}
	if err != nil {
		return fmt.Errorf("shard %s: %w", c.store.Path(), err)
	}
	return nil
}

// pin binds all threads of this program to the CPUs, if there are any. Threads that begin later
// inherit it.
func pin(cpus config.NumberSet) error {
	if len(cpus) == 0 {
		return nil
	}
	var set unix.CPUSet
	for _, r := range cpus {
		for n := r.First; n <= r.Last && n < len(set)*64; n++ {
			set.Set(n)
		}
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, t := range threads {
		var tid int
		if _, err := fmt.Sscan(t.Name(), &tid); err != nil {
			continue
		}
		if err := unix.SchedSetaffinity(tid, &set); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("none of these CPUs may be used: %w", err)
		}
	}
	return nil
}
