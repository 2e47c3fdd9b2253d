// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"errors"
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// Rows of the timeline: which there are, and what they are called. Who has a row of its own stands in
// docs/architecture.md, "Rows".

// location is one row of the timeline and the end of its event file.
type location struct {
	experiment.Location
	w        EventWriter
	over     bool // it takes nothing any more
	class    rowClass
	recorded uint8  // derived metrics (bits) that it has events of
	request  uint64 // last id of an operation
	matching uint64 // last id of a transfer
}

// board is where everything is drawn: the rows of the process, and what all that draw on them share.
type board struct {
	*ledger
	sink       Sink
	defs       *definitions
	attributes *otf2.AttributeList // of the event that is being written
	nested     []span              // of writeNested: memory that is used again
	locations  []*location
	rows       rows
	gone       *location // in the place of rows of communicator ranks that are
	err        error     // the first one
}

func newBoard(sink Sink, s *setup) *board {
	return &board{
		ledger: newLedger(s), sink: sink, defs: newDefinitions(s.process, s.opts.Paradigm),
		attributes: &otf2.AttributeList{},
		rows:       newRows(), gone: goneRow(),
	}
}

// blank is an empty list for the attributes of the next event.
func (b *board) blank() *otf2.AttributeList {
	b.attributes.Reset()
	return b.attributes
}

// draw writes a region from start to stop, as far as the location allows.
func (b *board) draw(loc *location, start, stop uint64, a *otf2.AttributeList, region otf2.RegionRef) {
	b.fail(loc.w.Enter(loc.at(start), a, region))
	b.fail(loc.w.Leave(loc.at(stop), nil, region))
}

// fail keeps the first error and reports whether there was one.
func (b *board) fail(err error) bool {
	if err == nil {
		return false
	}
	switch {
	case errors.Is(err, otf2.ErrClosed): // on the row of a communicator rank that is gone
		b.oddity(oddAfterFinalize)
		return true
	case errors.Is(err, errRows):
		b.oddity(oddNoRow)
		if !b.rows.full {
			b.rows.full = true
			b.mark(nil, b.last, SeverityHigh, "NCCL rows",
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

// at returns the time to write for an event of time t: times that run ahead of the location are
// raised, because events of a location never go back (operations are never reordered instead).
func (l *location) at(t uint64) otf2.Timestamp {
	return max(otf2.Timestamp(t), l.w.LastTime())
}

// errRows says that a process has as many locations as it may have.
var errRows = errors.New("too many rows")

// maxRows is how many locations a process has at most: a rank's, one for NCCL's threads and two for the network, of
// each of as many communicators as the plugin records. What would be drawn on further ones is counted, and a marker
// says so.
const maxRows = 4 * shm.CommMax

// newLocation makes the next location. Number 0 is always the first application thread: readers
// expect every process to have one (OTF2 3.0: a PROCESS group holds at least one CPU_THREAD).
func (b *board) newLocation(kind experiment.LocationKind, typ otf2.LocationType, name string, comm, foreign int) (
	*location, error) {
	if len(b.locations) == 0 && kind != experiment.KindThread {
		if _, err := b.newLocation(experiment.KindThread, otf2.LocationTypeCPUThread, "Thread 0", -1, -1); err != nil {
			return nil, err
		}
	}
	if len(b.locations) >= b.rows.most {
		return nil, errRows
	}
	l := &location{Location: experiment.Location{
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

// threadLocation is the location of an application thread, made at its first event.
func (b *board) threadLocation(t *thread) *location {
	if t.loc != nil {
		return t.loc
	}
	who := experiment.Owner{TID: t.tid, Comm: -1, Name: fmt.Sprintf("Thread %d", b.rows.made[threadRows])}
	if b.rows.made[threadRows] == 0 && len(b.locations) > 0 {
		t.loc = b.locations[0] // made ahead of time by another kind of location
		t.loc.TID, t.loc.Thread = t.tid, t.name
		b.rows.made[threadRows]++
		return t.loc
	}
	if t.loc = b.row(threadRows, otf2.LocationTypeCPUThread, who, -1, noTime); t.loc != nil && !t.loc.Shared() {
		t.loc.Thread = t.name
	}
	return t.loc
}

// rowOf makes the location of a communicator rank, or gives it that of one that is gone.
func (b *board) rowOf(c *commRank, class rowClass, typ otf2.LocationType, name string) *location {
	if c.closed {
		return b.gone
	}
	return b.row(class, typ, experiment.Owner{Comm: c.index, Name: name}, -1, c.InitTime)
}

func (b *board) rankLocation(c *commRank) *location {
	if c.loc == nil {
		c.loc = b.rowOf(c, rowClass{kind: experiment.KindRank, gpu: c.GPU}, otf2.LocationTypeAcceleratorStream,
			fmt.Sprintf("%s"+RankRow+"%d", c.label, c.Rank))
	}
	return c.loc
}

func (b *board) enqueueLocation(c *commRank) *location {
	if c.enqueue == nil {
		c.enqueue = b.rowOf(c, rowClass{kind: experiment.KindEnqueue}, otf2.LocationTypeCPUThread, EnqueueRow+c.label)
	}
	return c.enqueue
}

// channelLocation is the row of one channel of a communicator rank.
func (b *board) channelLocation(c *commRank, channel uint8) *location {
	if c.channels[channel] == nil {
		if c.channels == nil {
			c.channels = make(map[uint8]*location)
		}
		c.channels[channel] = b.rowOf(c, rowClass{kind: experiment.KindChannel, gpu: c.GPU, channel: channel},
			otf2.LocationTypeAcceleratorStream,
			fmt.Sprintf("%s"+ChannelRow+"%02d", c.label, channel))
	}
	return c.channels[channel]
}
