// SPDX-License-Identifier: Apache-2.0

package collector

import "time"

// Flush intervals. The first flush comes soon after the first record, so that a job that dies young leaves something;
// then the interval doubles. Operations wait in memory for two seconds before they are written (regions). With the
// longest interval that makes up how much of them is lost when everything is killed.
const (
	firstFlush = 100 * time.Millisecond
	nearFlush  = 500 * time.Millisecond // where the file system is in this machine's memory
	lastFlush  = 2 * time.Second        // where a flush is messages to a server, which thousands may send
	hurryFlush = 200 * time.Millisecond
)

// costlyDescription is from how many bytes a shard's description is not written for each request. A process that has
// made some hundred communicators has one of that size, and if it makes and ends them one after the other it asks with
// each.
const costlyDescription = 256 << 10

// flushSchedule says when a live collector flushes.
type flushSchedule struct {
	interval time.Duration
	next     time.Time // zero until there is something to flush
	last     time.Time
	came     uint64 // records and samples as of the last flush
	changes  uint64 // see regions.Model.Changes, as of the last flush
	answered uint32 // the last request to flush that was answered
}

// cameTo counts the records and samples that have come to a collector.
func cameTo(c *live) uint64 { return c.drain.records + c.sensors.values }

// unchanged reports whether everything is on the disk: nothing has come since the last flush, and nothing that waited
// has been written.
func (s *flushSchedule) unchanged(c *live) bool {
	return cameTo(c) == s.came && c.feed.model.Changes() == s.changes
}

// canWait reports whether what a request asks for can wait for the next flush: the process goes on, what it recorded
// outlives it, and all of a large shard has just been described.
func (s *flushSchedule) canWait(c *live) bool {
	return !c.settings.Record && !c.drain.line.host && c.writes() && !c.memory.Ended() && c.memory.Header().PID != 1 &&
		c.shard.store.Described() > costlyDescription && time.Since(s.last) < lastFlush
}

// due reports whether it is time to flush: the interval is over, somebody waits, or memory is getting short.
func (s *flushSchedule) due(c *live) bool {
	now, b := time.Now(), &c.backlog
	if b.emptyDue(&c.syncer, now) {
		return true
	}
	if s.unchanged(c) {
		return b.bytes != b.flushed && now.Sub(s.last) >= lastSync
	}
	if cameTo(c) == s.came && now.Sub(s.last) >= hurryFlush && !c.feed.model.Holds() {
		return true // nothing more comes by waiting
	}
	if b.watched(now) && b.waits() != "" && !c.memory.PutsOff() && !c.memory.Stored() {
		return true // who looks waits for it
	}
	if s.next.IsZero() {
		if s.interval == 0 {
			s.interval = firstFlush
		}
		s.next = now.Add(s.interval)
	}
	if !now.Before(s.next) {
		return true
	}
	_, total := c.memory.FreeChunks()
	return c.memoryShort() && c.memory.Behind() >= max(1, total/16)
}

// flush brings everything taken so far to disk and gives its memory back. When recording has ended it only gives memory
// back, so that the plugin does not count the same losses again for want of memory.
func (c *live) flush() {
	c.memory.Mark()
	began, syncs := time.Now(), c.syncer.began
	switch err := c.recording.flush(); {
	case err == nil:
	case c.disk.failed == nil && !c.shard.store.Gone():
		return
	default:
		c.failForGood(err)
		c.tellStopped()
		c.life.gaveBack = true
	}
	c.memory.Release()
	c.backlog.noteSpent(c, syncs)
	c.backlog.flushed = c.backlog.bytes
	s := &c.flushes
	s.came, s.changes = cameTo(c), c.feed.model.Changes()
	s.next, s.last = time.Time{}, time.Now()
	if c.life.deadline.IsZero() {
		// Flushes are rare enough to cost little on a slow file system, too.
		longest := lastFlush
		if !c.settings.Profile && c.listener.Near() { // a profile is written as a whole each time
			longest = nearFlush
		}
		s.interval = max(min(2*max(s.interval, firstFlush), longest), 20*time.Since(began))
	}
}
