// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"errors"
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// Rows of the timeline and their names. docs/internals.md, "Rows", lists what has a row of its own.

// location is one row of the timeline and the end of its event file.
type location struct {
	description.Location
	w        EventWriter
	over     bool // it takes no more events
	class    rowClass
	recorded uint8  // bits of derived metrics with events on this row
	request  uint64 // last id of an operation
	matching uint64 // last id of a transfer
}

// board holds the rows of the process, and the state that everything that writes to them shares.
type board struct {
	*ledger
	sink       Sink
	defs       *definitions
	attributes *otf2.AttributeList // of the event that is being written
	nested     []span              // reused memory of writeNested
	locations  []*location
	rows       rows
	gone       *location // stands for rows of communicator ranks that are gone
	err        error     // the first one
}

func newBoard(sink Sink, s *setup) *board {
	return &board{
		ledger: newLedger(s), sink: sink, defs: newDefinitions(s.process, s.opts.Paradigm),
		attributes: &otf2.AttributeList{},
		rows:       newRows(), gone: goneRow(),
	}
}

// emptyAttributes returns an empty attribute list for the next event.
func (b *board) emptyAttributes() *otf2.AttributeList {
	b.attributes.Reset()
	return b.attributes
}

// writeRegion writes a region from start to stop, raised to the location's last time if necessary.
func (b *board) writeRegion(loc *location, start, stop uint64, a *otf2.AttributeList, region otf2.RegionRef) {
	b.keepError(loc.w.Enter(loc.raiseTime(start), a, region))
	b.keepError(loc.w.Leave(loc.raiseTime(stop), nil, region))
}

// keepError keeps the first error and reports whether there was one.
func (b *board) keepError(err error) bool {
	if err == nil {
		return false
	}
	switch {
	case errors.Is(err, otf2.ErrClosed): // on the row of a communicator rank that is gone
		b.countOddity(oddAfterFinalize)
		return true
	case errors.Is(err, errRows):
		b.countOddity(oddNoRow)
		if !b.rows.full {
			b.rows.full = true
			b.addMarker(nil, b.last, SeverityHigh, "NCCL rows",
				fmt.Sprintf("the process has %d rows: what belongs on further ones is not drawn from here on",
					b.rows.most))
		}
		return true
	}
	if b.err == nil {
		b.err = err
	}
	return true
}

// raiseTime returns the time to write for an event at time t: at least the location's last time, because the events of
// a location must not go back (operations are never reordered instead).
func (l *location) raiseTime(t uint64) otf2.Timestamp {
	return max(otf2.Timestamp(t), l.w.LastTime())
}

// errRows reports that a process has reached maxRows.
var errRows = errors.New("too many rows")

// maxRows bounds the locations of a process: a rank's own, one for NCCL's threads and two for the network, for each of
// the communicators that the plugin can record. Events that would need more rows are counted and marked.
const maxRows = 4 * shm.CommMax

// newLocation makes the next location. Number 0 is always the first application thread, because readers expect every
// process to have one (OTF2 3.0: a PROCESS group holds at least one CPU_THREAD).
func (b *board) newLocation(kind description.LocationKind, typ otf2.LocationType, name string, comm, foreign int) (
	*location, error) {
	if len(b.locations) == 0 && kind != description.KindThread {
		if _, err := b.newLocation(description.KindThread, otf2.LocationTypeCPUThread, "Thread 0", -1, -1); err != nil {
			return nil, err
		}
	}
	if len(b.locations) >= b.rows.most {
		return nil, errRows
	}
	l := &location{Location: description.Location{
		Number: uint32(len(b.locations)), Kind: kind, Name: name, Type: typ, Comm: comm, Foreign: foreign,
	}}
	w, err := b.sink.EventWriter(l.Location)
	if err != nil {
		return nil, fmt.Errorf("make location %q: %w", name, err)
	}
	l.w = w
	b.locations = append(b.locations, l)
	// at once: other parts of the description refer to it before the next snapshot
	b.process.Locations = append(b.process.Locations, l.Location)
	return l, nil
}

// noTime is later than every time.
const noTime = 1<<64 - 1

// threadLocation returns the location of an application thread, made at its first event.
func (b *board) threadLocation(t *thread) *location {
	if t.loc != nil {
		return t.loc
	}
	who := description.Owner{TID: t.tid, Comm: -1, Name: fmt.Sprintf("Thread %d", b.rows.made[threadRows])}
	if b.rows.made[threadRows] == 0 && len(b.locations) > 0 {
		t.loc = b.locations[0] // made when a location of another kind came first
		t.loc.TID, t.loc.Thread = t.tid, t.name
		b.rows.made[threadRows]++
		return t.loc
	}
	if t.loc = b.findRow(threadRows, otf2.LocationTypeCPUThread, who, -1, noTime); t.loc != nil && !t.loc.Shared() {
		t.loc.Thread = t.name
	}
	return t.loc
}

// rankRows are the rows of a communicator rank besides those of its network; nil before their first events.
type rankRows struct {
	rank, enqueue *location
	channels      map[uint8]*location
}

// rowOf returns a location for a communicator rank, a new one or a released one.
func (b *board) rowOf(c *commRank, class rowClass, typ otf2.LocationType, name string) *location {
	if c.life.closed {
		return b.gone
	}
	return b.findRow(class, typ, description.Owner{Comm: c.index, Name: name}, -1, c.InitTime)
}

func (b *board) rankLocation(c *commRank) *location {
	if c.rows.rank == nil {
		c.rows.rank = b.rowOf(c, rowClass{kind: description.KindRank, gpu: c.GPU}, otf2.LocationTypeAcceleratorStream,
			fmt.Sprintf("%s"+RankRow+"%d", c.label, c.Rank))
	}
	return c.rows.rank
}

func (b *board) enqueueLocation(c *commRank) *location {
	if c.rows.enqueue == nil {
		c.rows.enqueue = b.rowOf(c, rowClass{kind: description.KindEnqueue}, otf2.LocationTypeCPUThread,
			EnqueueRow+c.label)
	}
	return c.rows.enqueue
}

// channelLocation returns the row of one channel of a communicator rank.
func (b *board) channelLocation(c *commRank, channel uint8) *location {
	if c.rows.channels[channel] == nil {
		if c.rows.channels == nil {
			c.rows.channels = make(map[uint8]*location)
		}
		c.rows.channels[channel] = b.rowOf(c, rowClass{kind: description.KindChannel, gpu: c.GPU, channel: channel},
			otf2.LocationTypeAcceleratorStream, fmt.Sprintf("%s"+ChannelRow+"%02d", c.label, channel))
	}
	return c.rows.channels[channel]
}
