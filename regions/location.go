// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"errors"
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/experiment"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// location is one row of the timeline and the end of its event file.
type location struct {
	experiment.Location
	w        EventWriter
	class    rowClass
	recorded uint8  // derived metrics (bits) that it has events of
	request  uint64 // last id of an operation
	matching uint64 // last id of a transfer
}

// at returns the time to write for an event of time t: times that run ahead of the location are
// raised, because events of a location never go back (operations are never reordered instead).
func (l *location) at(t uint64) otf2.Timestamp {
	return max(otf2.Timestamp(t), l.w.LastTime())
}

// errRows says that a process has as many locations as it may have.
var errRows = errors.New("too many rows")

// MaxRows is how many locations a process has at most: a rank's, one for NCCL's threads and two for the network, of each of as many
// communicators as the plugin records. What would be drawn on further ones is counted, and a marker says so.
const MaxRows = 4 * shm.CommMax

// newLocation makes the next location. Number 0 is always the first application thread: readers
// expect every process to have one (OTF2 3.0: a PROCESS group holds at least one CPU_THREAD).
func (m *Model) newLocation(kind experiment.LocationKind, typ otf2.LocationType, name string, comm, foreign int) (*location, error) {
	if len(m.locations) == 0 && kind != experiment.KindThread {
		if _, err := m.newLocation(experiment.KindThread, otf2.LocationTypeCPUThread, "Thread 0", -1, -1); err != nil {
			return nil, err
		}
	}
	if len(m.locations) >= m.rows.most {
		return nil, errRows
	}
	l := &location{Location: experiment.Location{
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

// threadLocation is the location of an application thread, made at its first event.
func (m *Model) threadLocation(t *thread) *location {
	if t.loc != nil {
		return t.loc
	}
	who := experiment.Owner{TID: t.tid, Comm: -1, Name: fmt.Sprintf("Thread %d", m.rows.made[threadRows])}
	if m.rows.made[threadRows] == 0 && len(m.locations) > 0 {
		t.loc = m.locations[0] // made ahead of time by another kind of location
		t.loc.TID = t.tid
		m.rows.made[threadRows]++
		return t.loc
	}
	t.loc = m.row(threadRows, otf2.LocationTypeCPUThread, who, -1, noTime)
	return t.loc
}

// rowOf makes the location of a communicator rank, or gives it that of one that is gone.
func (m *Model) rowOf(c *commRank, class rowClass, typ otf2.LocationType, name string) *location {
	if c.closed {
		return m.gone
	}
	return m.row(class, typ, experiment.Owner{Comm: c.index, Name: name}, -1, c.InitTime)
}

func (m *Model) rankLocation(c *commRank) *location {
	if c.loc == nil {
		c.loc = m.rowOf(c, rowClass{kind: experiment.KindRank, gpu: c.GPU}, otf2.LocationTypeAcceleratorStream, fmt.Sprintf("%s"+RankRow+"%d", c.label, c.Rank))
	}
	return c.loc
}

func (m *Model) enqueueLocation(c *commRank) *location {
	if c.enqueue == nil {
		c.enqueue = m.rowOf(c, rowClass{kind: experiment.KindEnqueue}, otf2.LocationTypeCPUThread, EnqueueRow+c.label)
	}
	return c.enqueue
}

// callsReported tells whether NCCL reports the application's calls: since API v5. Version 0 is an unknown one.
// Without them nothing tells which threads are the application's, and plans stand on the enqueue row.
func (m *Model) callsReported() bool { return m.process.APIVersion == 0 || m.process.APIVersion > 4 }

// channelLocation is the row of one channel of a communicator rank.
func (m *Model) channelLocation(c *commRank, channel uint8) *location {
	if c.channels[channel] == nil {
		if c.channels == nil {
			c.channels = make(map[uint8]*location)
		}
		c.channels[channel] = m.rowOf(c, rowClass{kind: experiment.KindChannel, gpu: c.GPU, channel: channel}, otf2.LocationTypeAcceleratorStream,
			fmt.Sprintf("%s"+ChannelRow+"%02d", c.label, channel))
	}
	return c.channels[channel]
}
