// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/collector/control"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// A disk at fault does not end the recording of a live process. What could not be written stays in memory (at most one
// chunk of each location, and what the model holds), no further records are taken out of the rings, and writing is
// tried again. When that takes too long, or the rings fill up, the plugin is told to refuse what is new, and counts it.
// Once all that waits is on disk, recording goes on. Only when the process has ended, and its shard's folder is gone,
// is anything given up.

// Times of a disk at fault. Variables for the tests.
var (
	firstRetry = 20 * time.Millisecond // the pause is doubled each time,
	lastRetry  = 2 * time.Second       // up to this
	// diskPatience is how long nothing is refused as long as there is memory.
	diskPatience = 10 * time.Second
	// answerPatience is how long a disk must have failed for somebody who wants all to be on it not to wait, and
	// answerTries how many times, as time passes on a busy node without anything being tried.
	answerPatience = 200 * time.Millisecond
	// endPatience is how long a collector whose process has ended goes on trying.
	endPatience = 2 * time.Second
)

const answerTries = 8

// oddDiskErrors is the key of experiment.Counts.Oddities that counts the times at which the disk began to fail.
const oddDiskErrors = "DISK_ERRORS"

// disk is how the shard's disk behaves.
type disk struct {
	patient bool
	err     error // why it cannot be written; nil: it can
	errors  uint64
	since   time.Time // of err
	next    time.Time // when to try again
	pause   time.Duration
	end     time.Time           // until when a process that has ended is worth trying again
	final   error               // with which that was given up; nil: it was not
	outage  *outage             // nil: the plugin records
	stretch uint64              // outages that are over
	safe    *experiment.Process // as of the last flush; nil: there was none
}

// outage is a stretch of the job in which nothing new was recorded.
type outage struct {
	time     uint64                // when it began, on the time line
	replayed map[int]uint64        // how many operations of replayed graphs there had been of each communicator
	lost     [shm.TypeCount]uint64 // by the plugin until then
}

// writes reports whether the model may write.
func (r *recording) writes() bool { return r.failed == nil && r.disk.err == nil }

// hold takes an error of the disk in, which the next flush may find to be over.
func (r *recording) hold(err error) error {
	d := &r.disk
	switch {
	case err == nil || r.failed != nil:
	case !d.patient:
		r.fail(err)
	case d.err == nil:
		d.err, d.since, d.pause = err, time.Now(), firstRetry
		d.next = d.since.Add(d.pause)
		d.errors++
	default:
		d.err = err
	}
	return err
}

// closing counts a file whose end may not have come to the disk although all of it was taken: its size will tell.
func (r *recording) closing(err error) {
	if !r.disk.patient {
		r.fail(err)
		return
	}
	r.disk.errors++
}

// insist does what a flush does until it succeeds, or the time for that is over.
func (r *recording) insist(do func() error) error {
	d := &r.disk
	pause, counted := firstRetry, false
	for {
		err := do()
		if err == nil {
			return nil
		}
		if d.err == nil && !counted {
			d.errors++
			counted = true
		}
		if !d.patient || r.store.Gone() || time.Now().Add(pause).After(d.end) {
			d.final = cmp.Or(d.final, err)
			return err
		}
		r.makeRoom(err)
		time.Sleep(pause)
		pause = min(2*pause, lastRetry)
	}
}

// makeRoom removes what nobody needs any more of a process that has ended.
func (r *recording) makeRoom(err error) {
	if !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT) {
		return
	}
	_ = os.Remove(r.store.Path() + "/" + control.StatusFile)
	if !r.outlives() {
		_ = os.Remove(r.store.Path() + "/" + experiment.CheckpointFile)
	}
}

// outlives reports whether `unify` can go on from the last checkpoint with what is in the process's memory. Only traces
// are brought back to one as a whole.
func (r *recording) outlives() bool {
	return r.process.Memory.Kind == memoryShm && r.script == nil && r.profile == nil
}

// leaves reports whether what the disk did not take to the end is in the process's memory, where `unify` finds it.
func (c *live) leaves() bool {
	d := &c.disk
	return d.final != nil && (c.failed == nil || errors.Is(c.failed, d.final)) && c.outlives() && !c.gaveBack &&
		!c.store.Gone()
}

// keepSafe remembers what is on disk now.
func (r *recording) keepSafe() {
	p := *r.process
	p.Comms, p.Locations = slices.Clone(p.Comms), slices.Clone(p.Locations)
	p.Settings = maps.Clone(p.Settings)
	r.disk.safe = &p
}

// describeLost writes shard.json of a process of which not everything could be written: its files are brought back to
// the last flush, at which they agree with each other, and what came later is counted as lost.
func (r *recording) describeLost() error {
	r.snapshot()
	now := r.process
	p := *now
	switch safe := r.disk.safe; {
	case r.script != nil: // whose counts are those of the file
	case safe == nil:
		p.Counts.Starts, p.Counts.Stops, p.Counts.States = nil, nil, nil
		p.Locations, p.Pending, p.Comms = nil, nil, slices.Clone(now.Comms)
		for i := range p.Comms {
			p.Comms[i].Sequences, p.Comms[i].Held, p.Comms[i].Location = nil, nil, -1
		}
	default:
		p = *safe
		p.Markers, p.End, p.Clock, p.Costs, p.Masks, p.Cupti = now.Markers, now.End, now.Clock, now.Costs, now.Masks,
			now.Cupti
		p.Counts = now.Counts
		p.Counts.Starts, p.Counts.Stops, p.Counts.States = safe.Counts.Starts, safe.Counts.Stops, safe.Counts.States
		p.Counts.Timing, p.Counts.Ends, p.Counts.Network, p.Counts.CUPTI = safe.Counts.Timing, safe.Counts.Ends,
			safe.Counts.Network, safe.Counts.CUPTI
		p.Counts.Starts = maps.Clone(p.Counts.Starts)
		for i := range p.Comms {
			for key, n := range safe.Unwritten(i) { // in no file then, as they waited for their times
				moveLost(p.Counts.Starts, key, n)
			}
		}
	}
	p.Finished, p.Ended = false, false
	p.Markers = slices.Clone(p.Markers)
	for i := range p.Markers {
		if m := &p.Markers[i]; m.Location >= len(p.Locations) {
			m.Location = -1
		}
	}
	p.Counts.Lost = maps.Clone(p.Counts.Lost)
	disk := maps.Clone(p.Counts.Lost[shm.LossDisk.String()])
	if disk == nil {
		disk = make(map[string]uint64)
	}
	for name, n := range r.taking() {
		if n > p.Counts.Starts[name] {
			disk[name] += n - p.Counts.Starts[name]
		}
	}
	if len(disk) > 0 {
		p.Counts.Lost[shm.LossDisk.String()] = disk
	}
	// The files last: what is said of them must never be more than they have.
	err := r.store.Write(&p)
	if err != nil && len(p.Pending) > 0 {
		// Where files cannot grow, there may be no room for how much was lost. That matters more than what was under
		// way.
		p.Pending = []experiment.Pending{}
		err = r.store.Write(&p)
	}
	if err == nil && r.script == nil {
		r.cutBack(&p)
	}
	return err
}

// moveLost takes operations out of what is counted as recorded, which makes them losses.
func moveLost(recorded map[string]uint64, key string, n uint64) {
	types := []shm.EventType{shm.EventColl, shm.EventCeColl}
	if experiment.FunctionOf(key) != key {
		types = []shm.EventType{shm.EventP2p}
	}
	for _, t := range types {
		k := min(n, recorded[t.String()])
		recorded[t.String()] -= k
		n -= k
	}
}

// taking counts the starts that have been taken, by type.
func (r *recording) taking() map[string]uint64 {
	if r.script != nil {
		return shm.ByName(r.script.Starts())
	}
	return r.process.Counts.Starts
}

// cutBack brings the event files to what a description says of them. Where that fails `unify` finds the difference.
func (r *recording) cutBack(p *experiment.Process) {
	known := make(map[uint32]bool)
	for i := range p.Locations {
		l := &p.Locations[i]
		known[l.Number] = true
		path := r.store.EventFile(l.Number)
		if info, err := os.Lstat(path); err == nil && info.Size() != l.Bytes {
			_ = cutEvents(path, int64(p.EventChunkSize), l.Bytes, l.Events)
		}
	}
	for number := range r.files {
		if n := uint32(number); !known[n] {
			_ = os.Remove(r.store.EventFile(n))
		}
	}
}

// The rest is of live processes only: a conversion whose disk fails is made again.

// retryDue tries the disk again when it is time to, and goes on recording, or ends that, as it turns out.
func (c *live) retryDue() {
	d := &c.disk
	if now := time.Now(); !now.Before(d.next) {
		c.flush()
		d.pause = min(2*d.pause, lastRetry)
		d.next = now.Add(d.pause)
	}
	switch {
	case c.failed != nil:
	case d.err == nil:
		c.goOn()
	case d.outage == nil && (time.Since(d.since) > diskPatience || c.short()):
		c.stopNew()
	}
}

// short reports whether half of the memory for records is in use.
func (c *live) short() bool {
	free, total := c.memory.FreeChunks()
	return free < total/2
}

// stopNew has the plugin refuse what is new, and note which calls those are.
func (c *live) stopNew() {
	o := &outage{time: c.line.time(c.now.Ticks), replayed: make(map[int]uint64),
		lost: c.memory.Header().Lost[shm.LossDisk]}
	for i := range c.memory.Comms() {
		if comm, ok := c.memory.Comm(i); ok {
			o.replayed[i] = comm.Replayed
		}
	}
	c.memory.ForgetRefused()
	c.disk.outage = o
	c.refuse()
	c.tell()
}

// goOn takes what has been waiting, after which the plugin may record again.
func (c *live) goOn() {
	o := c.disk.outage
	if o == nil {
		return
	}
	c.line.add(c.now)
	if c.takeSteps(func() int { return c.advance(c.now, c.window) }); !c.writes() {
		return // at fault again: the outage goes on
	}
	c.disk.outage = nil
	c.disk.stretch++
	if c.capped == "" {
		c.chosen.record &^= shm.RecordFull
		c.memory.SetMasks(c.chosen.event, c.chosen.record)
	}
	c.noteOutage(o)
}

// noteOutage marks a stretch of which nothing was recorded.
func (c *live) noteOutage(o *outage) {
	end := c.line.time(c.now.Ticks)
	lost := uint64(0)
	h := c.memory.Header()
	for t, n := range h.Lost[shm.LossDisk] {
		lost += n - o.lost[t]
	}
	c.markers = append(c.markers, experiment.Marker{
		Time: o.time, Duration: end - min(end, o.time), Severity: severityHigh, Category: categoryStopped, Location: -1,
		Text: fmt.Sprintf("nothing new was recorded for %v, as the disk could not be written; events lost: %d",
			time.Duration(end-min(end, o.time)).Round(time.Millisecond), lost),
	})
	if c.script != nil {
		return
	}
	for i := range c.memory.Comms() {
		if from, to, ok := c.refused(i, o); ok {
			c.fail(c.model.Outage(i, from, to, o.time, end))
		}
	}
}

// refused is which operations of a communicator an outage has taken, by their ordinals. Of calls that is known exactly.
// Operations of replayed graphs are refused without their ordinals being noted: of those it is what was counted
// meanwhile, one too many where one was under way.
func (c *live) refused(i int, o *outage) (from, to uint64, ok bool) {
	if from, to, ok = c.memory.Refused(i); ok {
		return from, to, true
	}
	comm, _ := c.memory.Comm(i)
	return o.replayed[i], comm.Replayed, comm.Replayed > o.replayed[i]
}

// rest takes everything that is left of a process that has ended, trying the disk again as long as that is worth it.
func (c *live) rest() {
	c.disk.end = time.Now().Add(endPatience)
	if !c.deadline.IsZero() {
		c.deadline = time.Now().Add(graceOfRest)
	}
	c.memory.TakeLive()
	c.beforeStored()
	c.takeStored()
	for {
		if c.script != nil { // it is quicker copied than put off
			c.takeRest()
		} else if !c.takeSteps(func() int { return c.take(math.MaxUint64) }) {
			c.leaveRest()
			break
		}
		if c.failed != nil || c.disk.err == nil {
			break
		}
		if c.merge.stalled != nil {
			if time.Now().After(c.disk.end) {
				c.leaveBacklog()
				break
			}
			time.Sleep(firstRetry)
		}
		c.memory.Mark()
		if err := c.insist(c.recording.flush); err != nil {
			c.fail(err)
			continue
		}
		c.memory.Release()
	}
	c.storedTaken()
	if o := c.disk.outage; o != nil && c.failed == nil {
		c.disk.outage = nil
		c.disk.stretch++
		c.noteOutage(o)
	}
}

// cause is what errors are told apart by: one of the system's is said once.
func cause(err error) string {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return unix.ErrnoName(errno)
	}
	return err.Error()
}
