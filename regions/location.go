// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"fmt"

	"ncclotf2/otf2"
	"ncclotf2/shard"
)

// location is one row of the timeline and the end of its event file.
type location struct {
	shard.Location
	w        EventWriter
	recorded uint8 // derived metrics (bits) that it has events of
}

// at returns the time to write for an event of time t: times that run ahead of the location are
// raised, because events of a location never go back (operations are never reordered instead).
func (l *location) at(t uint64) otf2.Timestamp {
	return max(otf2.Timestamp(t), l.w.LastTime())
}

// newLocation makes the next location. Number 0 is always the first application thread: readers
// expect every process to have one (OTF2 3.0: a PROCESS group holds at least one CPU_THREAD).
func (m *Model) newLocation(kind shard.LocationKind, typ otf2.LocationType, name string, comm, foreign int) (*location, error) {
	if len(m.locations) == 0 && kind != shard.KindThread {
		if _, err := m.newLocation(shard.KindThread, otf2.LocationTypeCPUThread, "Thread 0", -1, -1); err != nil {
			return nil, err
		}
	}
	l := &location{Location: shard.Location{
		Number: uint32(len(m.locations)), Kind: kind, Name: name, Type: typ, Comm: comm, Foreign: foreign,
	}}
	w, err := m.sink.EventWriter(l.Location)
	if err != nil {
		return nil, fmt.Errorf("make location %q: %w", name, err)
	}
	l.w = w
	m.locations = append(m.locations, l)
	return l, nil
}

// maxThreadRows is from how many threads on the rows of ended ones are used again (Options.Lasting).
const maxThreadRows = 256

// threadLocation is the location of an application thread, made at its first event.
func (m *Model) threadLocation(t *thread) *location {
	if t.loc != nil {
		return t.loc
	}
	if n := len(m.threadsIdle); n > 0 && m.threadsNamed >= maxThreadRows {
		t.loc, m.threadsIdle = m.threadsIdle[n-1], m.threadsIdle[:n-1]
		return t.loc
	}
	if m.threadsNamed == 0 && len(m.locations) > 0 {
		t.loc = m.locations[0] // made ahead of time by another kind of location
	} else {
		loc, err := m.newLocation(shard.KindThread, otf2.LocationTypeCPUThread, fmt.Sprintf("Thread %d", m.threadsNamed), -1, -1)
		if m.fail(err) {
			return nil
		}
		t.loc = loc
	}
	m.threadsNamed++
	t.loc.TID = t.tid
	return t.loc
}

func (m *Model) rankLocation(c *commRank) *location {
	if c.loc == nil {
		loc, err := m.newLocation(shard.KindRank, otf2.LocationTypeAcceleratorStream, fmt.Sprintf("%s rank %d", c.label, c.Rank), c.index, -1)
		if m.fail(err) {
			return nil
		}
		c.loc = loc
	}
	return c.loc
}

func (m *Model) enqueueLocation(c *commRank) *location {
	if c.enqueue == nil {
		loc, err := m.newLocation(shard.KindEnqueue, otf2.LocationTypeCPUThread, "NCCL enqueue "+c.label, c.index, -1)
		if m.fail(err) {
			return nil
		}
		c.enqueue = loc
	}
	return c.enqueue
}

// callsReported tells whether NCCL reports the application's calls: since API v5. Version 0 is an unknown one.
// Without them nothing tells which threads are the application's, and plans stand on the enqueue row.
func (m *Model) callsReported() bool { return m.process.APIVersion == 0 || m.process.APIVersion > 4 }

// channelLocation is the row of one channel of a communicator rank.
func (m *Model) channelLocation(c *commRank, channel uint8) *location {
	loc := c.channels[channel]
	if loc == nil {
		var err error
		loc, err = m.newLocation(shard.KindChannel, otf2.LocationTypeAcceleratorStream, fmt.Sprintf("%s ch %02d", c.label, channel), c.index, -1)
		if m.fail(err) {
			return nil
		}
		c.channels[channel] = loc
	}
	return loc
}
