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
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// A disk at fault does not end the recording of a live process. What could not be written stays in memory (at most one
// chunk of each location, and what the model holds), no further records are taken out of the rings, and writing is
// tried again. When that takes too long, or the rings fill up, the plugin is told to refuse new records, and counts
// them (outage.go). Once everything that waits is on disk, recording goes on. Nothing is given up until the process has
// ended, or the shard's folder is gone.

// Times of a disk at fault. Variables for the tests.
var (
	firstRetry = 20 * time.Millisecond // the pause is doubled each time,
	lastRetry  = 2 * time.Second       // up to this
	// diskPatience is how long nothing is refused while there is memory left.
	diskPatience = 10 * time.Second
	// Somebody who wants all records on disk waits until the disk has failed for answerPatience and has been tried
	// answerTries times. On a busy node time may pass without a try.
	answerPatience = 200 * time.Millisecond
	// endPatience is how long a collector whose process has ended goes on trying.
	endPatience = 2 * time.Second
)

const answerTries = 8

// oddDiskErrors is the key of experiment.Counts.Oddities that counts how often the disk began to fail.
const oddDiskErrors = "DISK_ERRORS"

// disk is the state of what a recording is written to.
type disk struct {
	failed error // why nothing is written any more, for good; nil: something is

	patient bool   // errors are held and writing is tried again; else the first one ends the recording
	err     error  // the error held; nil: the disk can be written
	errors  uint64 // how often it began to fail
	since   time.Time
	next    time.Time // when to try again
	pause   time.Duration

	end    time.Time           // until when writing is tried again after the process has ended
	final  error               // with which that was given up; nil: it was not
	outage *outage             // nil: the plugin records
	safe   *experiment.Process // what is on disk, as of the last flush; nil: there was none
}

// writes reports whether the model may write.
func (r *recording) writes() bool { return r.disk.failed == nil && r.disk.err == nil }

// failForGood ends the recording because of an error, if there is one. From here on what NCCL reports costs no more
// than being counted.
func (r *recording) failForGood(err error) {
	if err != nil && r.disk.failed == nil {
		r.disk.failed = err
		r.plugin.refuseNew()
		r.mark(categoryStopped, "nothing is recorded from here on: "+err.Error())
	}
}

// holdDiskError notes an error of the disk, which may be over at the next flush, and returns it.
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

// noteCloseError counts a file whose end may not be on disk although everything was written: its size will tell.
func (r *recording) noteCloseError(err error) {
	if !r.disk.patient {
		r.failForGood(err)
		return
	}
	r.disk.errors++
}

// retryWrite writes until that succeeds or the time for it is over.
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

// freeSpace removes files of an ended process that nobody needs any more.
func (r *recording) freeSpace() {
	_ = os.Remove(filepath.Join(r.shard.store.Path(), control.StatusFile))
	if !r.outlives() {
		_ = os.Remove(filepath.Join(r.shard.store.Path(), experiment.CheckpointFile))
	}
}

// outlives reports whether `unify` can go on from the last checkpoint with what is in the process's memory.
func (r *recording) outlives() bool {
	return r.shard.process.Memory.Kind == memoryShm && r.output.rewindable()
}

// copyOf is a description that stays as it is when the process goes on.
func copyOf(now *experiment.Process) *experiment.Process {
	p := *now
	p.Comms, p.Locations, p.Settings = slices.Clone(p.Comms), slices.Clone(p.Locations), maps.Clone(p.Settings)
	return &p
}

// describeLost writes shard.json of a process of which not everything could be written. Its files are brought back to
// the last flush, at which they agree with each other, and what came later is counted as lost.
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
	// The files are cut last: the description must never claim more than they have.
	err := r.shard.store.Write(&p)
	if err != nil && len(p.Pending) > 0 {
		// Where files cannot grow there may be no space for the numbers of what was lost. They matter more than the
		// operations under way.
		p.Pending = []experiment.Pending{}
		err = r.shard.store.Write(&p)
	}
	if err == nil {
		r.output.cutBack(&p)
	}
	return err
}

// asOfFlush is a description of a process whose files are those of its last flush (safe; nil if there was none), with
// everything else as it is now.
func asOfFlush(safe, now *experiment.Process) experiment.Process {
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
		for key, n := range safe.Unwritten(i) { // in no file then, as they waited for their times
			moveToLost(p.Counts.Starts, key, n)
		}
	}
	return p
}

// moveToLost takes operations of a function out of the counts of what was recorded. That makes them losses.
func moveToLost(recorded map[string]uint64, key string, n uint64) {
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

// cause is the name by which errors of the disk are told apart, so that each is reported once.
func cause(err error) string {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return unix.ErrnoName(errno)
	}
	return err.Error()
}
