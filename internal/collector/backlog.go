// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"io"
	"math"
	"path/filepath"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// A collector can put off what need not be done while the job runs (setting BACKLOG). It appends records to a file in
// its shard as they are, and gives their memory back at once. When there is time, rings give records from the file, so
// that everything behind the rings is the same as ever. A checkpoint says which records are in event files; all others
// are in the backlog or in the memory.
//
// Therefore nothing may be appended that no checkpoint precedes; while records are put off none are taken out of the
// memory, as its chunks are given back; and the file is emptied only when a checkpoint has all of it.
type backlog struct {
	backlogFile
	when    string    // setting BACKLOG; "": never
	asked   time.Time // when somebody looked at the job last
	pressed bool      // a request waits for the answer, before which much came
	failed  time.Time // when the disk failed last

	since    time.Time // when the oldest record that waits was put off; zero: nothing waits
	news     time.Time // when records came last
	lined    time.Time // when the time line was given a reading last
	reported time.Time // at the end of the process: when the rest was reported last
	waited   durations // from the first record put off until all had been taken
	draining bool      // what has been put off is being taken
	left     bool      // at the end of the process: the rest is left to `unify`
}

// backlogFile is the file of records that have been put off.
type backlogFile struct {
	file   *shm.Backlog // nil: it has not been made yet
	handle io.Closer
	path   string

	bytes   uint64 // of records that have been put off so far
	flushed uint64 // those of them before the last flush
	full    bool   // it is as large as it may be, and has not been emptied since
	filled  uint64 // how often that was so
	spent   spentBytes
}

// spentBytes are records that have been put off and are in event files by now.
type spentBytes struct {
	bytes      uint64 // that had been put off so far
	checkpoint uint64 // that brings them to the disk, in the count of diskSyncer.began; 0: nothing is spent
}

// Variables for the tests.
var (
	// mostBacklog is how many bytes the file has at most. Beyond it the collector takes what it has put off, and new
	// records as they come. If it is not quick enough for that, the memory for records fills up and the plugin counts
	// what it refuses. When everything is in event files the file is emptied.
	mostBacklog int64 = 256 << 20
	// mostAtRequest is from how many bytes of records in memory a request is answered sooner if they are put off.
	// Taking them costs some 8 ns a byte.
	mostAtRequest = 2 << 20
	// idleAfter is how long no record has come when the job counts as idle.
	idleAfter = time.Second
	// reportPeriod is how often a collector that takes the rest of a process reports how much is left, for those who
	// wait for it to see that it goes on.
	reportPeriod = 200 * time.Millisecond
)

const (
	longestBacklog = 10 * time.Minute // records are put off no longer than this even if more come
	// lookedFor is how long after a question somebody counts as looking at the job.
	lookedFor = 10 * time.Second
	// catchUp is how many records are taken in a step, which takes some 20 ms. Between steps a collector does what it
	// is asked and told.
	catchUp = 1 << 15
	// backlogRetry is how long nothing is put off after an error of the disk.
	backlogRetry = 10 * time.Second
	// seldomLined is the time between the readings of the clocks that the time line gets while nothing is taken. It
	// keeps a few thousand bends.
	seldomLined = time.Second
)

// waits is the file's path if something in it is in no event file yet; else "".
func (f *backlogFile) waits() string {
	if f.bytesWaiting() == 0 {
		return ""
	}
	return f.path
}

// bytesWaiting is how many bytes the file has, if something in it is in no event file yet.
func (f *backlogFile) bytesWaiting() uint64 {
	if f.spent.checkpoint != 0 && f.spent.bytes == f.bytes {
		return 0
	}
	return f.size()
}

// size is how many bytes the file has.
func (f *backlogFile) size() uint64 {
	if f.file == nil {
		return 0
	}
	return uint64(f.file.Size())
}

// create makes the file if there is none yet.
func (f *backlogFile) create(store *experiment.Store) error {
	if f.file != nil {
		return nil
	}
	file, err := store.Backlog()
	if err != nil {
		return err
	}
	f.file, f.handle, f.path = shm.NewBacklog(file, mostBacklog), file,
		filepath.Join(store.Path(), experiment.BacklogFile)
	return nil
}

// watched reports whether somebody looks at the job.
func (b *backlog) watched(now time.Time) bool { return now.Sub(b.asked) < lookedFor }

// wanted reports whether records are to be put off while more come, or until a request has been answered.
func (b *backlog) wanted(scarce bool, now time.Time) bool {
	return (b.when == "on" || b.when == "auto" && (scarce || b.pressed)) && !b.watched(now)
}

// expectRequest is called before a round that ends with the answer to a request (pending), or with none. A job that
// waits for the answer must not wait for what can be done later.
func (b *backlog) expectRequest(memory *shm.Memory, pending bool) {
	free, total := memory.FreeChunks()
	b.pressed = pending && (total-free)*shm.ChunkSize >= mostAtRequest
}

// costs says how long records waited.
func (b *backlog) costs() []provenance.Cost { return b.waited.cost("PutOff") }

// begins reports whether records are put off in this round. It begins to put them off where that is wanted and
// possible.
func (b *backlog) begins(c *live) bool {
	switch {
	case c.disk.failed != nil:
		c.memory.TakeLive()
		return false
	case c.memory.PutsOff():
		return true
	case c.memory.Stored() || b.full || time.Since(b.failed) < backlogRetry || !b.wanted(c.scarcity.scarce, time.Now()):
		return false
	}
	c.settleModel() // it could wait for as long as records are put off
	if c.disk.safe == nil || !c.flushes.unchanged(c) {
		if c.flush(); !c.writes() {
			return false
		}
	}
	if err := b.create(c.shard.store); err != nil {
		b.noteError(c, err)
		return false
	}
	return true
}

// noteError has records taken as they come for a while.
func (b *backlog) noteError(c *live, err error) {
	c.disk.errors++
	b.failed = time.Now()
	c.memory.TakeLive()
	c.logLine("nothing is put off for a while: %v", err)
}

// round appends new records to the backlog, and drains a part of the backlog if the collector is idle. It returns how
// many records it has drained.
func (b *backlog) round(c *live, clock shm.ClockTuple) int {
	if !b.append(c, clock) {
		return c.drainRound(clock)
	}
	now := time.Now()
	c.feed.announceComms(&c.drain)
	over := !b.wanted(c.scarcity.scarce, now)
	if !c.memory.Stored() {
		b.end(now)
		n := c.drainRound(clock)
		if over {
			c.memory.TakeLive()
		}
		return n
	}
	idle := now.Sub(b.news) >= idleAfter
	over = over || now.Sub(b.since) >= longestBacklog
	if !idle && !over {
		b.draining = false
		if now.Sub(b.lined) >= seldomLined {
			b.lined = now
			c.drain.line.add(clock)
		}
		return 0
	}
	if !b.draining {
		c.describeBeforeStored()
	}
	b.draining = true
	n := c.drainRound(clock)
	if n < catchUp && over {
		// All but the latest has been taken. The rest is as soon as it is old enough; then the file is emptied.
		b.end(now)
		c.memory.TakeLive()
	}
	return n
}

// describeBeforeStored describes the process as it is now, before what has been put off is taken. It has been long
// since a flush, and the size of chunks of events must be known before there is one (see widenChunks).
func (c *live) describeBeforeStored() {
	if c.memory.Stored() && c.writes() {
		c.shard.process.Ended = c.life.ended
		_ = c.holdDiskError(c.describe())
	}
}

// drainStored takes what a process that has ended had put off, and reports its progress meanwhile. If the disk fails it
// returns: the rest is taken in another way.
func (b *backlog) drainStored(c *live) {
	c.drain.limit = catchUp
	for c.memory.Stored() && c.writes() && c.drainRings(math.MaxUint64) > 0 && !c.interrupted() {
		if now := time.Now(); now.Sub(b.reported) >= reportPeriod {
			b.reported = now
			c.listener.readControl(c)
			_ = c.listener.publishStatus(c) // it is of use only for those who look
		}
	}
	c.drain.limit = noLimit
}

// endStored is called after the last record of a process has been taken.
func (b *backlog) endStored(c *live) {
	if !c.drain.hasStored() {
		c.shard.process.Ended = false
		b.end(time.Now())
	}
	if !b.reported.IsZero() {
		_ = c.listener.publishStatus(c)
	}
}

// end notes that nothing waits any more.
func (b *backlog) end(now time.Time) {
	b.draining = false
	if !b.since.IsZero() {
		b.waited.add(now.Sub(b.since))
		b.since = time.Time{}
	}
}

// append puts off new records. If it returns false it has put off none, and from now on none are.
func (b *backlog) append(c *live, clock shm.ClockTuple) bool {
	n, err := c.memory.PutOff(b.file, clock)
	switch {
	case errors.Is(err, shm.ErrFull):
		b.full = b.size() > 0 // else it is just too much at once
		b.filled++
		c.memory.TakeLive()
		c.logLine("the backlog has %d bytes: records are decoded as they come until it has been emptied", b.size())
		return false
	case err != nil:
		b.noteError(c, err)
		return false
	}
	c.memory.Mark()
	c.memory.Release()
	if n == 0 {
		return true
	}
	b.bytes += n
	b.news = time.Now()
	if b.since.IsZero() {
		b.since = b.news
	}
	return true
}

// appendAll reports whether records are put off and everything recorded by now is in the backlog.
func (b *backlog) appendAll(c *live) bool {
	if !c.memory.PutsOff() || !c.writes() {
		return false
	}
	round, err := c.memory.Refresh()
	return err == nil && b.append(c, round.Clock)
}

// noteSpent is called after a flush. before is how many syncs had been begun before it.
func (b *backlog) noteSpent(c *live, before uint64) {
	if c.disk.failed != nil || c.memory.Stored() || b.size() == 0 && len(c.dead.backlogs) == 0 {
		return
	}
	number := c.syncer.began
	if number == before { // the flush has not begun one
		number++
	}
	b.spent = spentBytes{b.bytes, number}
}

// emptyDue reports whether the backlog can be emptied but for a checkpoint on the disk, and one may be made.
func (b *backlog) emptyDue(s *diskSyncer, now time.Time) bool {
	return b.spent.checkpoint > s.began && s.due(now)
}

// empty empties the backlog and removes those of dead collectors if all their records are in event files, and these and
// the checkpoint that says so are on the disk. Otherwise a power cut would take what an earlier checkpoint speaks of.
func (b *backlog) empty(c *live) {
	if b.spent.checkpoint == 0 {
		return
	}
	if c.syncer.noteResult(c.recording); c.syncer.over < b.spent.checkpoint {
		return
	}
	c.dead.removeBacklogs()
	if b.bytes == b.spent.bytes && b.size() > 0 && b.file.Reset() != nil {
		return // it is tried again
	}
	b.spent, b.full = spentBytes{}, b.full && b.size() > 0
}

// leaveRest leaves to `unify` what has not been decoded by now: everything before it is in event files.
func (b *backlog) leaveRest(c *live) {
	b.left = true
	c.settleModel()
	c.memory.Mark()
	if err := c.recording.flush(); err != nil {
		c.logLine("%v", err)
		return
	}
	c.memory.Release()
	b.storeRest(c)
	c.logLine("told to end: %d bytes of records are left to unify", c.memory.StoredBytes())
}

// storeRest puts the rest off at the end, when what comes before it cannot be read, or there is no time: `unify` may be
// able to. The file may become as large as it takes, as the rest would be lost otherwise.
func (b *backlog) storeRest(c *live) {
	if err := b.create(c.shard.store); err != nil {
		c.logLine("%v", err)
		return
	}
	b.file.Most = math.MaxInt64
	b.append(c, c.now)
}
