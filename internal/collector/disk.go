// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"cmp"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/collector/control"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/sequence"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// A failing disk does not end the recording of a live process. Data that could not be written stay in memory (at most
// one chunk per location, and what the model holds), no further records are taken from the rings, and the collector
// retries. If that takes too long, or the rings fill up, it makes the plugin refuse and count new records (outage.go).
// Recording continues once all waiting data are on disk. Nothing is discarded until the process has ended, or the
// shard's folder is gone.

// Times for a failing disk. They are variables so that tests can change them.
var (
	firstRetry = 20 * time.Millisecond // the pause doubles each time
	lastRetry  = 2 * time.Second       // maximum pause
	// diskPatience is how long the plugin continues to record while there is memory left.
	diskPatience = 10 * time.Second
	// A request for all records to be on disk is answered all the same once the disk has failed for answerPatience and
	// answerTries attempts. On a busy node, time may pass without an attempt.
	answerPatience = 200 * time.Millisecond
	// endPatience is how long a collector retries after its process has ended.
	endPatience = 2 * time.Second
)

const answerTries = 8

// oddDiskErrors is the key of description.Counts.Oddities that counts how often the disk started to fail.
const oddDiskErrors = "DISK_ERRORS"

// disk is the state of writing a recording.
type disk struct {
	failed error // permanent error, after which nothing is written; nil: none

	patient bool   // errors are held and writing is retried; otherwise the first error ends the recording
	err     error  // the current error; nil: none
	errors  uint64 // how often the disk started to fail
	since   time.Time
	next    time.Time // time of the next attempt
	pause   time.Duration

	end    time.Time            // deadline for retries after the process has ended
	final  error                // error when retries were given up; nil: they were not
	outage *outage              // nil: the plugin records
	safe   *description.Process // what the last flush brought to disk; nil: no flush yet
}

// writes reports whether the model may write.
func (r *recording) writes() bool { return r.disk.failed == nil && r.disk.err == nil }

// failForGood ends the recording if err is not nil. After that, callbacks cost no more than being counted.
func (r *recording) failForGood(err error) {
	if err != nil && r.disk.failed == nil {
		r.disk.failed = err
		r.plugin.refuseNew()
		r.mark(categoryStopped, "nothing is recorded from here on: "+err.Error())
	}
}

// holdDiskError records a disk error, which may be over at the next flush, and returns it.
func (r *recording) holdDiskError(err error) error {
	d := &r.disk
	switch {
	case err == nil || d.failed != nil:
	case !d.patient:
		r.failForGood(err)
	case d.err == nil:
		d.err, d.since, d.pause = err, time.Now(), firstRetry
		d.next = d.since.Add(d.pause)
		d.errors++
	default:
		d.err = err
	}
	return err
}

// noteCloseError counts a file whose end may not be on disk although all writes succeeded. Its size will show that.
func (r *recording) noteCloseError(err error) {
	if !r.disk.patient {
		r.failForGood(err)
		return
	}
	r.disk.errors++
}

// retryWrite calls write until it succeeds or the time for retries is over.
func (d *disk) retryWrite(r *recording, write func() error) error {
	pause, counted := firstRetry, false
	for {
		err := write()
		if err == nil {
			return nil
		}
		if d.err == nil && !counted {
			d.errors++
			counted = true
		}
		if !d.patient || r.shard.store.Gone() || time.Now().Add(pause).After(d.end) {
			d.final = cmp.Or(d.final, err)
			return err
		}
		if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
			r.freeSpace()
		}
		time.Sleep(pause)
		pause = min(2*pause, lastRetry)
	}
}

// freeSpace removes files of an ended process that are no longer needed.
func (r *recording) freeSpace() {
	_ = os.Remove(filepath.Join(r.shard.store.Path(), control.StatusFile))
	if !r.outlives() {
		_ = os.Remove(filepath.Join(r.shard.store.Path(), experiment.CheckpointFile))
	}
}

// outlives reports whether `unify` can continue from the last checkpoint with the process's memory.
func (r *recording) outlives() bool {
	return r.shard.process.Memory.Kind == memoryShm && r.output.rewindable()
}

// copyOf returns a copy of a description that does not change when the process continues.
func copyOf(now *description.Process) *description.Process {
	p := *now
	p.Comms, p.Locations, p.Settings = slices.Clone(p.Comms), slices.Clone(p.Locations), maps.Clone(p.Settings)
	return &p
}

// describeLost writes shard.json of a process whose data could not all be written. It cuts the files back to the last
// flush, at which they are consistent, and counts everything later as lost.
func (r *recording) describeLost() error {
	r.snapshot()
	starts, whole := r.output.startsTaken()
	p := *r.shard.process
	if !whole {
		p = asOfFlush(r.disk.safe, r.shard.process)
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
	for name, n := range starts {
		if n > p.Counts.Starts[name] {
			disk[name] += n - p.Counts.Starts[name]
		}
	}
	if len(disk) > 0 {
		p.Counts.Lost[shm.LossDisk.String()] = disk
	}
	// Cut the files last: the description must never claim more than they contain.
	err := r.shard.store.Write(&p)
	if err != nil && len(p.Pending) > 0 {
		// If files cannot grow, there may be no space for the numbers of losses. They matter more than operations in
		// progress.
		p.Pending = []description.Pending{}
		err = r.shard.store.Write(&p)
	}
	if err == nil {
		r.output.cutBack(&p)
	}
	return err
}

// asOfFlush returns a description of the process in which the files are as of the last flush (safe; nil if there was
// none) and everything else as of now.
func asOfFlush(safe, now *description.Process) description.Process {
	if safe == nil {
		p := *now
		p.Counts.Starts, p.Counts.Stops, p.Counts.States = nil, nil, nil
		p.Locations, p.Pending, p.Comms = nil, nil, slices.Clone(now.Comms)
		for i := range p.Comms {
			p.Comms[i].Sequences, p.Comms[i].Held, p.Comms[i].Location = nil, nil, -1
		}
		return p
	}
	p := *safe
	p.Markers, p.End, p.Clock, p.Costs, p.Masks, p.Cupti = now.Markers, now.End, now.Clock, now.Costs, now.Masks,
		now.Cupti
	p.Counts = now.Counts
	p.Counts.Starts, p.Counts.Stops, p.Counts.States = safe.Counts.Starts, safe.Counts.Stops, safe.Counts.States
	p.Counts.Timing, p.Counts.Ends, p.Counts.Network, p.Counts.CUPTI = safe.Counts.Timing, safe.Counts.Ends,
		safe.Counts.Network, safe.Counts.CUPTI
	p.Counts.Starts = maps.Clone(p.Counts.Starts)
	for i := range p.Comms {
		for key, n := range safe.Unwritten(i) { // in no file at that time, because their times were not known yet
			moveToLost(p.Counts.Starts, key, n)
		}
	}
	return p
}

// moveToLost removes operations of a function from the counts of recorded ones, so that they count as lost.
func moveToLost(recorded map[string]uint64, key string, n uint64) {
	types := []shm.EventType{shm.EventColl, shm.EventCeColl}
	if sequence.FunctionOf(key) != key {
		types = []shm.EventType{shm.EventP2p}
	}
	for _, t := range types {
		k := min(n, recorded[t.String()])
		recorded[t.String()] -= k
		n -= k
	}
}

// cause returns a name that distinguishes disk errors, so that each is reported once.
func cause(err error) string {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return unix.ErrnoName(errno)
	}
	return err.Error()
}
