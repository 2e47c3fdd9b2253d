// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// Sleeps between rounds while records arrive, or while the collector prepares the job's memory. Otherwise scarcity
// determines them. A round takes some 50 µs even if there are no records, on a processor that the job may need.
// Requests and the end of the process end a sleep.
const (
	shortSleep = 10 * time.Millisecond
	longSleep  = 20 * time.Millisecond
)

// hotPart determines when a round follows at once: when the previous one has read at least 1/hotPart of the memory for
// records. Otherwise the writers are far from filling the memory within a sleep.
const hotPart = 32

// leastSpares is the number of chunks kept prepared for an idle process (2 MiB). That is more than it can use during
// the collector's longest sleep, at 2.7 million callbacks a second. If a round finds more of them used, it doubles the
// number.
const leastSpares = 32

// graceAfterTerm is how long a collector continues after SIGTERM if its process does. graceOfRest is how long it
// decodes the rest of a process that has ended; `unify` does what remains. They are variables so that tests can change
// them.
var (
	graceAfterTerm = 10 * time.Second
	graceOfRest    = 3 * time.Second
)

// live is the collector of a process that may still run.
type live struct {
	*recording
	memory     *shm.Memory
	inode      inode // identifies the memory's file
	options    Options
	settings   *config.Settings
	launcher   config.Launcher
	experiment string

	life     lifetime
	flushes  flushSchedule
	listener listener
	profiles profileSchedule
	gpus     *gpuWatch // nil: GPUs are not watched

	now      shm.ClockTuple  // time of the last round
	spares   int             // number of chunks to keep prepared
	reported map[string]bool // reasons for stopping already reported
}

// lifetime determines how long a collector runs.
type lifetime struct {
	watch    *processWatch
	ended    bool // the process has ended, and all its records are taken
	term     <-chan os.Signal
	deadline time.Time // after SIGTERM

	another  bool // another collector of the process has died
	gaveBack bool // memory of records that are not on disk has been given back
}

// logLine logs a line if the setting DEBUG is on.
func (c *live) logLine(format string, args ...any) {
	if c.settings != nil && c.settings.Debug {
		_, _ = fmt.Fprintf(c.options.Log, "nccl-otf2 collect[%d]: "+format+"\n", append([]any{os.Getpid()}, args...)...)
	}
}

// begin prepares everything, then makes the plugin start recording.
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
	if c.life.watch, err = watchProcess(int(h.PID), h.PIDStart); err != nil {
		return err
	}
	var first uint64
	if comm, ok := c.memory.Comm(0); ok {
		first = comm.ID
	}
	if c.experiment, err = filepath.Abs(c.settings.Directory(lookup, first)); err != nil {
		return err
	}
	c.life.another = h.CollectorPID != 0
	if err = c.startRecording(); err != nil {
		c.life.watch.close()
		return fmt.Errorf("nothing can be recorded in %s: %w: set NCCL_OTF2_DIR to where this process can write",
			c.experiment, err)
	}
	c.shard.noteLibrary(lookup)
	if !c.settings.Record && !c.settings.Profile && c.diskCap.most == 0 {
		c.backlog.when = c.settings.Backlog
	}
	c.spares = leastSpares
	c.memory.KeepSpares(c.spares)
	// Earlier requests belong to a collector that died; they are still open.
	_, c.flushes.answered = c.memory.Requested()
	c.plugin = newPluginMasks(c.memory, selectBy(c.settings, c.launcher, &h))
	c.listener.begin(c)
	if early := c.settings.Environment(); len(early) > 0 {
		c.memory.Post(fmt.Sprintf("%s: no effect from there, set them in the environment (or use nccl-otf2 run): %s",
			c.settings.Config, strings.Join(early, " ")))
	} else if len(c.settings.Ranks) > 0 && c.launcher.Rank < 0 {
		c.memory.Post(config.Prefix + "RANKS has no effect: no launcher tells this process's rank")
	}
	c.memory.SetPlace(c.experiment)
	c.memory.SetState(shm.CollectorReady)
	c.logLine("records process %d in %s, events %s", h.PID, c.shard.store.Path(),
		c.plugin.eventList(c.plugin.recorded()))
	return nil
}

// startRecording creates the shard. A single disk error does not prevent a recording.
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
	for !c.mustStop(ctx) {
		// Read the request's number before the clock, so that the time of the round is later than the request.
		request, _ := c.memory.Requested()
		read := c.memory.BytesRead()
		c.backlog.expectRequest(c.memory, request != c.flushes.answered)
		n, err := c.round()
		if err != nil {
			return errors.Join(err, c.finish(false))
		}
		c.listener.readControl(c)
		if request != c.flushes.answered {
			if err := c.answer(request); err != nil {
				return errors.Join(err, c.finish(false))
			}
			sleep = shortSleep
			continue
		}
		switch {
		case c.disk.failed == nil && (c.disk.err != nil || c.disk.outage != nil):
			c.retryDisk()
		case c.flushes.due(c):
			c.flush()
		}
		c.profiles.request(c.experiment)
		read = c.memory.BytesRead() - read
		c.scarcity.busy = c.scarcity.busy || n > 0 || read > 0
		if read > hot || n >= catchUp {
			continue
		}
		seldom := time.Duration(0)
		if c.memory.Prepared() { // otherwise the collector still prepares it
			seldom = c.scarcity.sleepTime()
		}
		sleep = nextSleep(sleep, n, read, hot, seldom)
		began := time.Now()
		c.memory.AwaitRequest(request, sleep)
		if now := time.Now(); !c.drain.line.host {
			c.scarcity.noteSleep(sleep, now.Sub(began), now)
		}
	}
	return c.end()
}

// nextSleep returns how long to sleep after a round that took n records, read bytes in all. before is the last sleep.
// seldom is a longer sleep for when few records arrive; 0: none.
func nextSleep(before time.Duration, n int, read, hot uint64, seldom time.Duration) time.Duration {
	switch {
	case seldom > 0 && read < hot/coolPart:
		return seldom
	case n > 0:
		return shortSleep
	}
	return min(2*before, longSleep)
}

// mustStop reports whether the process has ended, or the collector must not wait for it any longer.
func (c *live) mustStop(ctx context.Context) bool {
	if c.life.watch.hasEnded() {
		c.life.ended = true
		return true
	}
	return ctx.Err() != nil || c.mustEnd()
}

// mustEnd reports whether the collector got SIGTERM, and the time that it may continue after that is over.
func (c *live) mustEnd() bool {
	l := &c.life
	select {
	case <-l.term:
		switch {
		case !l.deadline.IsZero():
		case l.ended:
			l.deadline = time.Now().Add(graceOfRest)
		default:
			c.logLine("asked to end; waiting for the process")
			l.deadline, c.flushes.interval = time.Now().Add(graceAfterTerm), hurryFlush
		}
	default:
	}
	return !l.deadline.IsZero() && time.Now().After(l.deadline)
}

// interrupted reports, between steps of long work, whether the collector must end, or the shard is gone.
func (c *live) interrupted() bool { return c.mustEnd() || c.shard.store.Gone() }

// drainSteps takes all records, by calls of step, each of which takes at most drain.limit. It returns false if it was
// interrupted between two calls.
func (c *live) drainSteps(step func() int) (all bool) {
	c.drain.limit = catchUp
	defer func() { c.drain.limit = noLimit }()
	for step() >= catchUp && (c.disk.failed != nil || c.disk.err == nil) {
		if c.interrupted() {
			return false
		}
	}
	return true
}

// round takes the records older than the window, and keeps memory prepared for the plugin.
func (c *live) round() (n int, err error) {
	round, err := c.memory.Refresh()
	if err != nil {
		return 0, err
	}
	c.now = round.Clock
	c.drain.limit = catchUp
	switch {
	case c.disk.err != nil && c.disk.failed == nil:
		c.drain.line.add(round.Clock)
	case c.backlog.begins(c):
		n = c.backlog.round(c, round.Clock)
	default:
		n = c.drainRound(round.Clock)
		if !c.memory.Stored() {
			c.backlog.end(time.Now())
		}
	}
	c.drain.limit = noLimit
	c.backlog.empty(c)
	c.gpus.handOver(c)
	c.diskCap.check(c.recording)
	c.tellStopped()
	_, used := c.memory.KeepSpares(c.spares)
	c.spares = min(max(leastSpares, 2*used, c.spares-1), shm.SpareMax)
	return n, nil
}

// tellStopped reports in NCCL's log that recording has stopped, once per cause.
func (c *live) tellStopped() {
	if reason := c.stopped(); reason != "" {
		why := reason
		if err := cmp.Or(c.disk.failed, c.disk.err); err != nil {
			why = cause(err)
		}
		c.tellCause(why, reason)
	}
}

func (c *live) tellCause(cause, reason string) {
	if c.reported[cause] {
		return
	}
	c.reported[cause] = true
	line := "recording stopped in %s (what is there is whole; the next time give it more room, or set NCCL_OTF2_DIR " +
		"elsewhere): %s"
	if c.disk.failed == nil && c.diskCap.reached == "" {
		line = "%s cannot be written: what is recorded waits in memory, then nothing new is recorded until it can be " +
			"(what is there is whole; make room, or set NCCL_OTF2_DIR elsewhere the next time): %s"
	}
	c.memory.Post(fmt.Sprintf(line, c.experiment, reason))
	c.logLine("recording stopped: %s", reason)
}

// answer brings everything recorded before a request to disk, then answers it.
func (c *live) answer(request uint32) error {
	if c.flushes.canWait(c) || c.backlog.appendAll(c) {
		c.flushes.answered = request
		c.memory.Answer(request)
		return nil
	}
	switch {
	case c.drain.line.host:
		// The program's clock stands still while it waits for the answer.
		c.drainAll()
	case c.memory.LiveComms() == 0:
		// Without communicators, NCCL is in no call that could publish an older record, and the job waits.
		c.drainSteps(func() int { return c.drainBefore(c.now, 0) })
	default:
		if err := c.awaitWindow(c.now.Raw); err != nil { // read after the request
			return err
		}
	}
	c.settleModel()
	c.flush()
	for tries := 0; !c.writes() && c.disk.failed == nil &&
		(tries < answerTries || time.Since(c.disk.since) < answerPatience); tries++ {
		time.Sleep(firstRetry)
		c.flush()
	}
	if !c.writes() && c.disk.failed == nil {
		// The requester may end soon.
		c.tellCause(cause(c.disk.err), c.disk.err.Error())
	}
	c.flushes.answered = request
	c.memory.Answer(request)
	c.logLine("request %d answered, %d records so far", request, c.drain.records)
	return nil
}

// awaitWindow takes everything recorded before a time of the raw clock. A writer may be delayed by up to the window
// between reading the clock and publishing its record.
func (c *live) awaitWindow(asked uint64) error {
	for c.now.Raw < asked+c.drain.window+c.drain.window/4 {
		time.Sleep(time.Duration(c.drain.window) / 4)
		if _, err := c.round(); err != nil {
			return err
		}
	}
	c.drainSteps(func() int { return c.drainBefore(c.now, c.drain.window) }) // a round takes only one step
	return nil
}

// end takes all remaining records and finishes the shard.
func (c *live) end() error {
	round, err := c.memory.Refresh()
	if err != nil {
		return errors.Join(err, c.finish(false))
	}
	if c.life.ended {
		c.options.Processors(mostProcessors)
		debug.SetGCPercent(garbageAtEnd)
	}
	c.now = round.Clock
	c.drain.line.add(round.Clock)
	c.drainEnded()
	c.endWatches()
	if c.life.ended {
		c.shard.end = c.life.watch.end.describe(c.memory, c.drain.line, round.Clock)
	}
	err = c.finish(c.life.ended)
	c.logLine("%d records taken, process ended: %v", c.drain.records, c.life.ended)
	memory := c.shard.process.Memory
	switch {
	case !c.life.ended || errors.Is(err, errUnread):
	case c.leavesMemory():
		err = fmt.Errorf("%w; what is not on disk is in %s: unify on this machine when the disk can be written", err,
			memory.Path)
	default:
		c.inode.remove(memory)    // it contains nothing more to save
		if c.disk.failed == nil { // otherwise `unify` takes from them what could not be written
			c.removeBacklogs()
		}
	}
	if err != nil {
		return fmt.Errorf("shard %s: %w", c.shard.store.Path(), err)
	}
	return nil
}

// leavesMemory reports whether records that could not be written remain in the process's memory, where `unify` finds
// them.
func (c *live) leavesMemory() bool {
	d := &c.disk
	return d.final != nil && (d.failed == nil || errors.Is(d.failed, d.final)) && c.outlives() && !c.life.gaveBack &&
		!c.shard.store.Gone()
}
