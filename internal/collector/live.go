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

// Sleeps between rounds while records come, or while the collector prepares the job's memory. Otherwise scarcity says
// how long a sleep is. A round costs some 50 µs whatever it finds, on a processor that the job may need. Requests and
// the end of the process end a sleep.
const (
	shortSleep = 10 * time.Millisecond
	longSleep  = 20 * time.Millisecond
)

// hotPart is the part of the memory for records that a round must have read for the next to follow at once. If it has
// read less, the writers are far from using the memory up within a sleep.
const hotPart = 32

// leastSpares is how many chunks an idle process has prepared (2 MiB). That is more than it can use up while the
// collector sleeps longest, at 2.7 million callbacks a second. When a round finds more of them used, twice as many are
// kept.
const leastSpares = 32

// graceAfterTerm is how long a collector that was told to end goes on if its process does. graceOfRest is how long it
// decodes what is left of a process that has ended; the remainder is left to `unify`. Variables for the tests.
var (
	graceAfterTerm = 10 * time.Second
	graceOfRest    = 3 * time.Second
)

// live is the collector of a process that may still run.
type live struct {
	*recording
	memory     *shm.Memory
	inode      inode // of the memory
	options    Options
	settings   *config.Settings
	launcher   config.Launcher
	experiment string

	life     lifetime
	flushes  flushSchedule
	listener listener
	profiles profileSchedule
	gpus     *gpuWatch // nil: they are not looked at

	now      shm.ClockTuple  // of the last round
	spares   int             // chunks that are kept prepared
	reported map[string]bool // why recording stopped, as far as that was reported
}

// lifetime is how long a collector goes on.
type lifetime struct {
	watch    *processWatch
	ended    bool // the process has ended, and everything it left is taken
	term     <-chan os.Signal
	deadline time.Time // after SIGTERM

	another  bool // another collector of the process has died
	gaveBack bool // memory of records that are not on disk has been given back
}

// say logs a line if the setting DEBUG is on.
func (c *live) say(format string, args ...any) {
	if c.settings != nil && c.settings.Debug {
		_, _ = fmt.Fprintf(c.options.Log, "nccl-otf2 collect[%d]: "+format+"\n", append([]any{os.Getpid()}, args...)...)
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
	c.say("records process %d in %s, events %s", h.PID, c.shard.store.Path(), c.plugin.eventList(c.plugin.recorded()))
	return nil
}

// startRecording makes the shard. A single error of the disk does not keep a job from being recorded.
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
		// The request's number before the clock, so that the time of the round is later than the request.
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
		if c.memory.Prepared() { // else the collector prepares it
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

// nextSleep is how long to sleep after a round that took n records of so many bytes. before is the last sleep, and
// seldom a longer one for when little comes; 0: there is none.
func nextSleep(before time.Duration, n int, read, hot uint64, seldom time.Duration) time.Duration {
	switch {
	case seldom > 0 && read < hot/coolPart:
		return seldom
	case n > 0:
		return shortSleep
	}
	return min(2*before, longSleep)
}

// mustStop reports whether the process has ended, or is not to be waited for any longer.
func (c *live) mustStop(ctx context.Context) bool {
	if c.life.watch.gone() {
		c.life.ended = true
		return true
	}
	return ctx.Err() != nil || c.mustEnd()
}

// mustEnd reports whether the collector was told to end, and has gone on as long as it may since.
func (c *live) mustEnd() bool {
	l := &c.life
	select {
	case <-l.term:
		switch {
		case !l.deadline.IsZero():
		case l.ended:
			l.deadline = time.Now().Add(graceOfRest)
		default:
			c.say("asked to end; waiting for the process")
			l.deadline, c.flushes.interval = time.Now().Add(graceAfterTerm), hurryFlush
		}
	default:
	}
	return !l.deadline.IsZero() && time.Now().After(l.deadline)
}

// interrupted reports, between the steps of what may take long, that the collector is to end, or that there is nothing
// left to write to.
func (c *live) interrupted() bool { return c.mustEnd() || c.shard.store.Gone() }

// drainSteps takes all records that there are, by calls of a function that takes drain.limit of them at most. It
// returns false if it was interrupted between two calls.
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

// round takes what has been recorded up to now without the window, and keeps memory ready for the plugin.
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

// tellStopped reports in NCCL's log that recording has stopped, once for each cause.
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
	c.say("recording stopped: %s", reason)
}

// answer brings everything recorded before a request to disk and answers it.
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
		// NCCL is in no call of a communicator that could publish anything older, and the job waits.
		c.drainSteps(func() int { return c.drainBefore(c.now, 0) })
	default:
		if err := c.awaitWindow(c.now.Raw); err != nil { // which was read after the request
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
		// Who asks may not be there for long.
		c.tellCause(cause(c.disk.err), c.disk.err.Error())
	}
	c.flushes.answered = request
	c.memory.Answer(request)
	c.say("request %d answered, %d records so far", request, c.drain.records)
	return nil
}

// awaitWindow takes everything that had been recorded at a time of the raw clock. A writer may be held up between
// reading the clock and publishing for as long as the window.
func (c *live) awaitWindow(asked uint64) error {
	for c.now.Raw < asked+c.drain.window+c.drain.window/4 {
		time.Sleep(time.Duration(c.drain.window) / 4)
		if _, err := c.round(); err != nil {
			return err
		}
	}
	c.drainSteps(func() int { return c.drainBefore(c.now, c.drain.window) }) // a round takes but one step
	return nil
}

// end takes everything that is left and finishes the shard.
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
	c.say("%d records taken, process ended: %v", c.drain.records, c.life.ended)
	memory := c.shard.process.Memory
	switch {
	case !c.life.ended || errors.Is(err, errUnread):
	case c.leavesMemory():
		err = fmt.Errorf("%w; what is not on disk is in %s: unify on this machine when the disk can be written", err,
			memory.Path)
	default:
		c.inode.remove(memory)    // nothing is left in it that could be saved
		if c.disk.failed == nil { // else `unify` takes from there what the disk did not take otherwise
			c.removeBacklogs()
		}
	}
	if err != nil {
		return fmt.Errorf("shard %s: %w", c.shard.store.Path(), err)
	}
	return nil
}

// leavesMemory reports whether what the disk did not take to the end is in the process's memory, where `unify` finds
// it.
func (c *live) leavesMemory() bool {
	d := &c.disk
	return d.final != nil && (d.failed == nil || errors.Is(d.failed, d.final)) && c.outlives() && !c.life.gaveBack &&
		!c.shard.store.Gone()
}
