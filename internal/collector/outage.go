// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"math"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Only a live process has outages. A conversion whose disk fails is made again.

// outage is a stretch of the job in which the plugin records nothing new because the disk is at fault.
type outage struct {
	time     uint64                // when it began, on the time line
	replayed map[int]uint64        // by communicator: operations of replayed graphs until then
	lost     [shm.TypeCount]uint64 // by the plugin until then
}

// beginOutage has the plugin refuse new records, and note which calls those are of.
func (c *live) beginOutage() {
	o := &outage{time: c.drain.line.time(c.now.Ticks), replayed: make(map[int]uint64),
		lost: c.memory.Header().Lost[shm.LossDisk]}
	for i := range c.memory.Comms() {
		if comm, ok := c.memory.Comm(i); ok {
			o.replayed[i] = comm.Replayed
		}
	}
	c.memory.ForgetRefused()
	c.disk.outage = o
	c.plugin.refuseNew()
	c.tellStopped()
}

// endOutage takes what has been waiting. After that the plugin may record again.
func (c *live) endOutage() {
	o := c.disk.outage
	if o == nil {
		return
	}
	c.drain.line.add(c.now)
	if c.drainSteps(func() int { return c.drainBefore(c.now, c.drain.window) }); !c.writes() {
		return // at fault again: the outage goes on
	}
	c.disk.outage = nil
	if c.diskCap.reached == "" {
		c.plugin.recordNew()
	}
	o.markOutage(c)
}

// markOutage marks the outage, which is over, and tells the model what it is missing.
func (o *outage) markOutage(c *live) {
	end := c.drain.line.time(c.now.Ticks)
	length := end - min(end, o.time)
	lost := uint64(0)
	h := c.memory.Header()
	for t, n := range h.Lost[shm.LossDisk] {
		lost += n - o.lost[t]
	}
	c.shard.markers = append(c.shard.markers, description.Marker{
		Time: o.time, Duration: length, Severity: regions.SeverityHigh, Category: categoryStopped, Location: -1,
		Text: fmt.Sprintf("nothing new was recorded for %v, as the disk could not be written; events lost: %d",
			time.Duration(length).Round(time.Millisecond), lost),
	})
	if c.settings.Record {
		return
	}
	for i := range c.memory.Comms() {
		if from, to, ok := o.refused(c.memory, i); ok {
			c.failForGood(c.feed.model.Outage(i, from, to, o.time, end))
		}
	}
}

// refused returns the ordinals of a communicator's operations that were not recorded because of the outage. For calls
// they are exact. Operations of replayed graphs are refused without a note of their ordinals: for them, the range comes
// from the counter and may include one operation that was in progress.
func (o *outage) refused(memory *shm.Memory, i int) (from, to uint64, ok bool) {
	if from, to, ok = memory.Refused(i); ok {
		return from, to, true
	}
	comm, _ := memory.Comm(i)
	return o.replayed[i], comm.Replayed, comm.Replayed > o.replayed[i]
}

// retryDisk tries the disk again when that is due. As it turns out recording goes on, or ends.
func (c *live) retryDisk() {
	d := &c.disk
	if now := time.Now(); !now.Before(d.next) {
		c.flush()
		d.pause = min(2*d.pause, lastRetry)
		d.next = now.Add(d.pause)
	}
	switch {
	case d.failed != nil:
	case d.err == nil:
		c.endOutage()
	case d.outage == nil && (time.Since(d.since) > diskPatience || c.memoryShort()):
		c.beginOutage()
	}
}

// memoryShort reports whether half of the memory for records is in use.
func (c *live) memoryShort() bool {
	free, total := c.memory.FreeChunks()
	return free < total/2
}

// drainEnded takes everything that is left of a process that has ended, and tries the disk again as long as that is
// worth it.
func (c *live) drainEnded() {
	c.disk.end = time.Now().Add(endPatience)
	if !c.life.deadline.IsZero() {
		c.life.deadline = time.Now().Add(graceOfRest)
	}
	c.memory.TakeLive()
	c.describeBeforeStored()
	c.backlog.drainStored(c)
	for {
		if c.settings.Record { // it is quicker copied than put off
			c.drainAll()
		} else if !c.drainSteps(func() int { return c.drainRings(math.MaxUint64) }) {
			c.backlog.leaveRest(c)
			break
		}
		if c.disk.failed != nil || c.disk.err == nil {
			break
		}
		if c.drain.merge.stalled != nil {
			if time.Now().After(c.disk.end) {
				c.backlog.storeRest(c)
				break
			}
			time.Sleep(firstRetry)
		}
		c.memory.Mark()
		if err := c.disk.retryWrite(c.recording, c.recording.flush); err != nil {
			c.failForGood(err)
			continue
		}
		c.memory.Release()
	}
	c.backlog.endStored(c)
	if o := c.disk.outage; o != nil && c.disk.failed == nil {
		c.disk.outage = nil
		o.markOutage(c)
	}
}
