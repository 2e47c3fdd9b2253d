// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"io"
	"math"
	"path/filepath"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// A collector can put off what need not be done while the job runs (setting BACKLOG): it appends records to a file in
// its shard as they are, and gives their memory back at once. Rings give records from there when there is room, so that
// all that comes behind them is the same as ever. A checkpoint says which records are in event files: all others are in
// the file, or in the memory.
//
// So nothing may be appended that a checkpoint does not precede; while records are put off none are taken out of the
// memory, for its chunks are given back; and the file is emptied when a checkpoint has all of it.
type backlog struct {
	when   string       // setting BACKLOG; "": never
	asked  time.Time    // when somebody looked at the job last
	file   *shm.Backlog // nil: not made yet
	handle io.Closer
	path   string
	failed time.Time // when the disk failed last

	since    time.Time // when the oldest that waits was put off; zero: nothing waits
	news     time.Time // when records came last
	lined    time.Time // when the time line was given a reading last
	bytes    uint64    // of records that have been put off so far
	secured  uint64    // of those, as of the last flush
	waited   longTimes // from the first record put off to when all had been taken
	taking   bool      // what has been put off
	pressed  bool      // somebody waits for the answer to a request, before which much came
	reported time.Time // at the end of the process: when it was told last how much is left
	full     bool      // it is as large as it may be, and has not been emptied since
	filled   uint64    // how often that was so
	spent    spent
}

// spent says that all which had been put off at some time is in event files.
type spent struct {
	bytes uint64 // that had been put off so far
	when  uint64 // the checkpoint that has it on the disk, in the count of securing; 0: nothing is spent
}

// Variables for the tests.
var (
	// mostBacklog is how many bytes the file has at most. Then the collector takes what it has put off, and all that
	// comes as it comes: where that is not quick enough the memory for records fills up, and the plugin counts what it
	// refuses. When all is in event files the file is emptied.
	mostBacklog int64 = 256 << 20
	// mostAtRequest is from how many bytes of records in memory on a request is answered sooner if they are put off: as
	// they come they take some 8 ns a byte.
	mostAtRequest = 2 << 20
	// idleAfter is how long no record has come when the job idles.
	idleAfter = time.Second
)

const (
	longestBacklog = 10 * time.Minute // for which anything is put off before the collector takes it although more comes
	// lookedFor is how long after a question somebody is taken to look at the job.
	lookedFor = 10 * time.Second
	// catchUp is how many records are taken in a step: some 20 ms. Between steps a collector heeds what it is asked and
	// told.
	catchUp = 1 << 15
	// backlogRetry is how long nothing is put off after an error of the disk.
	backlogRetry = 10 * time.Second
	// seldomLined is the time between readings of the clocks that the time line needs as long as nothing is taken. It
	// keeps a few thousand bends.
	seldomLined = time.Second
)

// waits is the file's path if anything of it is in no event file yet, else "".
func (b *backlog) waits() string {
	if b.bytesWaiting() == 0 {
		return ""
	}
	return b.path
}

// bytesWaiting is how many bytes the file has, of which something is in no event file yet.
func (b *backlog) bytesWaiting() uint64 {
	if b.spent.when != 0 && b.spent.bytes == b.bytes {
		return 0
	}
	return b.size()
}

// left is how many bytes are to be told to those who wait: at the end of the process, those that have not been taken.
func (c *live) left() uint64 {
	if c.ended {
		return c.memory.StoredBytes()
	}
	return c.backlog.bytesWaiting()
}

// size is how many bytes the file has.
func (b *backlog) size() uint64 {
	if b.file == nil {
		return 0
	}
	return uint64(b.file.Size())
}

// looked reports whether somebody looks at the job.
func (b *backlog) looked(now time.Time) bool { return now.Sub(b.asked) < lookedFor }

// wanted reports whether records are to be put off, as long as more come, or until a request has been answered.
func (b *backlog) wanted(scarce bool, now time.Time) bool {
	return (b.when == "on" || b.when == "auto" && (scarce || b.pressed)) && !b.looked(now)
}

// heedRequest is before a round that ends with the answer to a request, or with none: a job that waits does not wait
// for what can come later.
func (c *live) heedRequest(pending bool) {
	free, total := c.memory.FreeChunks()
	c.backlog.pressed = pending && (total-free)*shm.ChunkSize >= mostAtRequest
}

// unsecured reports whether records have been put off since the last flush.
func (b *backlog) unsecured() bool { return b.bytes != b.secured }

// costs says how long records waited.
func (b *backlog) costs() []experiment.Cost { return b.waited.cost("PutOff") }

// putsOff reports whether records are put off in this round, and begins with it where that is wanted and nothing is in
// the way.
func (c *live) putsOff() bool {
	b := &c.backlog
	switch {
	case c.failed != nil:
		c.memory.TakeLive()
		return false
	case c.memory.PutsOff():
		return true
	case c.memory.Stored() || b.full || time.Since(b.failed) < backlogRetry || !b.wanted(c.scarcity.scarce, time.Now()):
		return false
	}
	c.settle() // it could wait for as long as records are put off
	if c.disk.safe == nil || !c.unchanged() {
		if c.flush(); !c.writes() {
			return false
		}
	}
	if err := c.makeBacklog(); err != nil {
		c.backlogFailed(err)
		return false
	}
	return true
}

func (c *live) makeBacklog() error {
	b := &c.backlog
	if b.file != nil {
		return nil
	}
	file, err := c.store.Backlog()
	if err != nil {
		return err
	}
	b.file, b.handle, b.path = shm.NewBacklog(file, mostBacklog), file,
		filepath.Join(c.store.Path(), experiment.BacklogFile)
	return nil
}

// backlogFailed has records taken as they come for a while.
func (c *live) backlogFailed(err error) {
	c.disk.errors++
	c.backlog.failed = time.Now()
	c.memory.TakeLive()
	c.say("nothing is put off for a while: %v", err)
}

// putOff appends what is new to the backlog, and takes some of what is there when there is room for that.
func (c *live) putOff(clock shm.ClockTuple) int {
	if !c.append(clock) {
		return c.advanceTo(clock)
	}
	b, now := &c.backlog, time.Now()
	c.announce()
	over := !b.wanted(c.scarcity.scarce, now)
	if !c.memory.Stored() {
		b.end(now)
		n := c.advanceTo(clock)
		if over {
			c.memory.TakeLive()
		}
		return n
	}
	idle := now.Sub(b.news) >= idleAfter
	over = over || now.Sub(b.since) >= longestBacklog
	if !idle && !over {
		b.taking = false
		if now.Sub(b.lined) >= seldomLined {
			b.lined = now
			c.line.add(clock)
		}
		return 0
	}
	if !b.taking {
		c.beforeStored()
	}
	b.taking = true
	n := c.advanceTo(clock)
	if n < catchUp && over {
		// All but the latest has been taken. The rest is as soon as it is old enough; then the file is emptied.
		b.end(now)
		c.memory.TakeLive()
	}
	return n
}

// beforeStored describes the process as it is now before what has been put off is taken: how large chunks of events are
// must be known before there is one (see widen), and it has been long since a flush.
func (c *live) beforeStored() {
	if c.memory.Stored() && c.writes() {
		c.process.Ended = c.ended
		_ = c.hold(c.describe())
	}
}

// tellPeriod is how often a collector that takes the rest of a process tells how much is left: those who wait for it
// see that it goes on. Variable for the tests.
var tellPeriod = 200 * time.Millisecond

// takeStored takes what a process that has ended had put off, and tells how far it is meanwhile. A disk that fails is
// left to who takes the rest.
func (c *live) takeStored() {
	c.atOnce = catchUp
	for c.memory.Stored() && c.writes() && c.take(math.MaxUint64) > 0 && !c.interrupted() {
		if now := time.Now(); now.Sub(c.backlog.reported) >= tellPeriod {
			c.backlog.reported = now
			c.heed()
			_ = c.publish() // it is of use only for those who look
		}
	}
	c.atOnce = allAtOnce
}

// storedTaken is behind the last record of a process.
func (c *live) storedTaken() {
	if !c.unread() {
		c.process.Ended = false
		c.backlog.end(time.Now())
	}
	if !c.backlog.reported.IsZero() {
		_ = c.publish()
	}
}

// end notes that nothing waits any more.
func (b *backlog) end(now time.Time) {
	b.taking = false
	if !b.since.IsZero() {
		b.waited.add(now.Sub(b.since))
		b.since = time.Time{}
	}
}

// append puts off what is new. It returns false where that cannot be done: then nothing of it has happened, and nothing
// is put off any more.
func (c *live) append(clock shm.ClockTuple) bool {
	b := &c.backlog
	n, err := c.memory.PutOff(b.file, clock)
	switch {
	case errors.Is(err, shm.ErrFull):
		b.full = b.size() > 0 // else it is just too much at once
		b.filled++
		c.memory.TakeLive()
		c.say("the backlog has %d bytes: records are decoded as they come until it has been emptied", b.size())
		return false
	case err != nil:
		c.backlogFailed(err)
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

// allPutOff reports whether everything recorded by now is in the backlog, if records are put off.
func (c *live) allPutOff() bool {
	if !c.memory.PutsOff() || !c.writes() {
		return false
	}
	round, err := c.memory.Refresh()
	return err == nil && c.append(round.Clock)
}

// noteSpent is behind a flush, before which so many checkpoints had been brought to the disk, or were under way.
func (c *live) noteSpent(before uint64) {
	if c.failed != nil || c.memory.Stored() || c.backlog.size() == 0 && len(c.adopted) == 0 {
		return
	}
	number := c.securing.began
	if number == before { // it was not this one's turn
		number++
	}
	c.backlog.spent = spent{c.backlog.bytes, number}
}

// spentDue reports whether only a checkpoint on the disk is missing for a backlog to be emptied, and that it may be
// made.
func (c *live) spentDue(now time.Time) bool {
	return c.backlog.spent.when > c.securing.began && c.securing.due(now)
}

// forgetSpent empties the backlog, and removes those of dead collectors, when all that they have is in event files, and
// these and what says so are on the disk: a power cut would take what a checkpoint of before spoke of, else.
func (c *live) forgetSpent() {
	b := &c.backlog
	if b.spent.when == 0 {
		return
	}
	if c.takeSecured(); c.securing.over < b.spent.when {
		return
	}
	c.dropAdopted()
	if b.bytes == b.spent.bytes && b.size() > 0 && b.file.Reset() != nil {
		return // it is tried again
	}
	b.spent, b.full = spent{}, b.full && b.size() > 0
}

// leaveRest leaves to `unify` what has not been decoded by now: all before is in event files.
func (c *live) leaveRest() {
	c.leaving = true
	c.settle()
	c.memory.Mark()
	if err := c.recording.flush(); err != nil {
		c.say("%v", err)
		return
	}
	c.memory.Release()
	c.leaveBacklog()
	c.say("told to end: %d bytes of records are left to unify", c.memory.StoredBytes())
}

// leaveBacklog puts the rest off at the end, as what comes before it cannot be read now, or there is no time for it:
// `unify` may be able to. All of it is put off, however large the file becomes: it would be lost.
func (c *live) leaveBacklog() {
	if err := c.makeBacklog(); err != nil {
		c.say("%v", err)
		return
	}
	c.backlog.file.Most = math.MaxInt64
	c.append(c.now)
}
