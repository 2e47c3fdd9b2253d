// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/facts/effect"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// maxDepth bounds how many regions of a row lie within each other on the page; deeper ones are on the last lane.
const maxDepth = 15

// address identifies a region: row and depth in the upper 32 bits; in the lower 32 bits its index among the regions of
// that row and depth, in the order in which they were entered. It is known when the region is entered. The numbers of
// bars on the page, which are known only when all regions have been entered, have the same order.
type address uint64

const nowhere address = math.MaxUint64

func addressOf(row uint32, depth int, index uint32) address {
	return address(uint64(row)*(maxDepth+1)+uint64(depth))<<32 | address(index)
}

func (a address) row() uint32   { return uint32(a >> 32 / (maxDepth + 1)) }
func (a address) depth() int    { return int(a >> 32 % (maxDepth + 1)) }
func (a address) index() uint32 { return uint32(a) }

// numbered returns a key for the item of a row with a number.
func numbered(row, number uint32) uint64 { return uint64(row)<<32 | uint64(number) }

// bars holds a location's regions, by depth, and its transfers. One goroutine fills it from the events.
type bars struct {
	row     uint32
	levels  []*level   // by depth
	count   uint32     // regions entered, hidden ones included; numbers of regions count all of these
	open    []frame    // open regions that are shown
	under   []underway // all open regions
	first   uint64     // ns of the first event; the greatest time if there was none
	last    uint64     // ns of the last event
	cut     int        // regions without an end, and ends without a region
	overlap bool       // open regions are not all nested

	// depths are the depths of the regions in the order in which they were entered, run-length encoded: depth, length
	// of the run.
	depths stream
	run    struct{ depth, count uint64 }

	transfers     stream // see reader.beginTransfer
	transferCount uint32
	transferStart uint64 // of the last transfer
	puts          map[effect.PutName]openTransfer
	operations    int

	process *process
}

// level is the regions of one depth. They do not overlap, so they end in the order in which they begin.
type level struct {
	stream           // see frame.record
	count     uint32 // entered
	start     uint64 // of the last one in the stream
	enclosing uint32 // index of the region around it
}

// underway is an open region, shown or not.
type underway struct {
	ref    otf2.RegionRef
	shown  bool
	number uint32 // of the row's regions
}

// frame is an open region that is shown.
type frame struct {
	at        address
	enclosing address
	number    uint32 // of the row's regions
	region    uint32 // index into Data.regions
	start     uint64 // ns since the begin of the archive
	until     uint64 // when the first region around it ended while this one continued; 0: none has
	notes     notes
}

// openTransfer is an open transfer.
type openTransfer struct {
	number uint32
	start  uint64
}

const noRow = math.MaxUint32

func newBars(row uint32, to *spool, piece int) *bars {
	empty := stream{to: to, piece: piece}
	return &bars{row: row, depths: empty, transfers: empty, puts: make(map[effect.PutName]openTransfer),
		first: math.MaxUint64}
}

// hiddenDepth is the depth of regions that are not shown.
const hiddenDepth = maxDepth + 1

// begins notes that a region begins, and returns whether it is shown.
func (b *bars) begins(ref otf2.RegionRef, shown bool) bool {
	b.under = append(b.under, underway{ref, shown, b.count})
	if !shown {
		b.extendRun(hiddenDepth)
		b.count++
	}
	return shown
}

// inner reports whether the innermost region is shown.
func (b *bars) inner() bool { return len(b.under) == 0 || b.under[len(b.under)-1].shown }

// ends notes that a region ends, and returns its index among the open regions that are shown, −1 for a hidden one.
// found is false for an end without a begin.
func (b *bars) ends(ref otf2.RegionRef) (place int, found bool) {
	at := effect.NewestOpen(b.under, ref, func(u *underway) otf2.RegionRef { return u.ref })
	if at < 0 {
		b.cut++
		return -1, false
	}
	of := b.under[at]
	b.under = slices.Delete(b.under, at, at+1)
	if !of.shown {
		return -1, true
	}
	shown := len(b.open) - 1
	for shown >= 0 && b.open[shown].number != of.number {
		shown--
	}
	return shown, true
}

// freeDepth returns the least depth without an open region, and the open region above it, or nil. That is the innermost
// region unless regions overlap.
func (b *bars) freeDepth() (depth int, above *frame) {
	switch n := len(b.open); {
	case n == 0:
		return 0, nil
	case !b.overlap:
		return min(n, maxDepth), &b.open[n-1]
	}
	var used [maxDepth + 1]*frame
	for i := range b.open {
		used[b.open[i].at.depth()] = &b.open[i]
	}
	for depth < maxDepth && used[depth] != nil {
		above = used[depth]
		depth++
	}
	if depth == maxDepth {
		above = &b.open[len(b.open)-1]
	}
	return depth, above
}

// extendRun adds a region of a depth to the present run, or starts a run.
func (b *bars) extendRun(depth uint64) {
	if b.run.depth != depth {
		b.endRun()
		b.run.depth = depth
	}
	b.run.count++
}

// enter begins a region that is shown.
func (b *bars) enterRegion(time uint64, region uint32, attributes []otf2.AttributeValue) *frame {
	depth, above := b.freeDepth()
	if depth == len(b.levels) {
		b.levels = append(b.levels, &level{stream: stream{to: b.depths.to, piece: b.depths.piece}})
	}
	level := b.levels[depth]
	b.extendRun(uint64(depth))
	enclosing := nowhere
	if above != nil {
		enclosing = above.at
	}
	if n := len(b.open); n < cap(b.open) {
		b.open = b.open[:n+1]
	} else {
		b.open = append(b.open, frame{})
	}
	f := &b.open[len(b.open)-1]
	*f = frame{addressOf(b.row, depth, level.count), enclosing, b.count, region, time, 0,
		notes{bytes: f.notes.bytes[:0]}}
	f.notes.add(attributes)
	level.count++
	b.count++
	return f
}

func (b *bars) endRun() {
	if b.run.count > 0 {
		b.depths.writeNumber(b.run.depth)
		b.depths.writeNumber(b.run.count)
		b.depths.endRecord()
		b.run.count = 0
	}
}

// leaveRegion ends an open region that is shown. Attributes of the end follow those of the begin. deep receives regions
// at maxDepth, where they may overlap.
func (b *bars) leaveRegion(at int, time uint64, attributes []otf2.AttributeValue, deep *sorterBuffer) {
	n := len(b.open)
	f := &b.open[n-1]
	for i := at + 1; i < n; i++ {
		if b.open[i].until == 0 {
			b.open[i].until = max(time, 1)
		}
	}
	if at < n-1 { // the innermost region's buffer is kept
		ended := b.open[at]
		copy(b.open[at:], b.open[at+1:])
		b.open[n-1] = ended
	}
	if b.open = b.open[:n-1]; at < n-1 || n == 1 {
		b.overlap = n > 1
	}
	f.notes.add(attributes)
	if f.at.depth() == maxDepth {
		from := len(deep.data)
		deep.data = f.record(deep.data, 0, time, uint64(f.enclosing))
		deep.endEntry(uint64(f.at), 0, from)
		return
	}
	l := b.levels[f.at.depth()]
	l.buf = f.record(l.buf, l.start, time, uint64(f.enclosing.index()-l.enclosing))
	l.endRecord()
	l.start, l.enclosing = f.start, f.enclosing.index()
}

// record appends a region: start (from base), length, region, enclosing region, attributes. The enclosing region is one
// depth above; it is given by its index (difference to that of the region before), at the last level by its address.
func (f *frame) record(b []byte, base, end, enclosing uint64) []byte {
	b = binary.AppendUvarint(b, f.start-base)
	b = binary.AppendUvarint(b, end-min(end, f.start))
	b = binary.AppendUvarint(b, uint64(f.region))
	b = binary.AppendUvarint(b, enclosing)
	return f.notes.record(b)
}

// closeOpen closes what is still open after the last event.
func (b *bars) closeOpen(deep *sorterBuffer) {
	b.cut += len(b.open)
	for len(b.open) > 0 {
		n := len(b.open) - 1
		end := b.last
		if lost := b.open[n].until; lost != 0 {
			end = lost
		}
		b.leaveRegion(n, end, nil, deep)
	}
	b.endRun()
	b.open, b.puts = nil, nil
}

// places looks up the regions of a row by ascending numbers.
type places struct {
	row    uint32
	runs   *cursor
	counts [hiddenDepth + 1]uint32 // of the runs before
	depth  int
	from   uint32 // number of the first of the run
	to     uint32
}

func (b *bars) places() *places { return &places{row: b.row, runs: b.depths.open()} }

// addressAt returns the region with a number, which must not be less than in the last call. ok is false if there is
// none or it is hidden.
func (p *places) addressAt(number uint32) (a address, ok bool) {
	for number >= p.to {
		if !p.runs.hasNext() {
			return nowhere, false
		}
		p.counts[p.depth] += p.to - p.from
		p.depth = min(int(p.runs.readNumber()), hiddenDepth)
		p.from = p.to
		p.to += uint32(p.runs.readNumber())
	}
	if p.depth == hiddenDepth {
		return nowhere, false
	}
	return addressOf(p.row, p.depth, p.counts[p.depth]+number-p.from), true
}

// notes are attributes: id and value of each, as varints.
type notes struct {
	count uint64
	bytes []byte
}

func (n *notes) add(list []otf2.AttributeValue) {
	for i := range list {
		n.bytes = binary.AppendUvarint(n.bytes, uint64(list[i].ID))
		n.bytes = binary.AppendUvarint(n.bytes, list[i].Bits)
	}
	n.count += uint64(len(list))
}

// record appends the attributes to a record.
func (n *notes) record(b []byte) []byte {
	b = binary.AppendUvarint(b, n.count)
	return append(b, n.bytes...)
}

// note is one attribute of a list.
type note struct {
	id    uint32
	value uint64
}

// notes reads the attributes of a record.
func (c *cursor) notes(list []note) []note {
	list = list[:0]
	count := c.readNumber()
	for range min(count, uint64(len(c.buf)-c.at)) {
		id := c.readNumber()
		list = append(list, note{uint32(id), c.readNumber()})
	}
	return list
}
