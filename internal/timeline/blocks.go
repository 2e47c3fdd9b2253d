// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"maps"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
)

// sink receives blocks in the order of their numbers.
type sink interface{ block(packed []byte) error }

// plan holds the numbers of the blocks written: where those of each lane and row begin.
type plan struct {
	bars       []int // by lane: number of the first block; that of the notes follows each
	transfers  []int // by row; −1
	operations []int // by row; −1
	firstOps   [][]uint32
	instances  int
	nodes      int
	texts      map[uint64]bool // referred to by attributes
	metrics    headMetrics
	path       *headPath    // nil: there is none
	waiting    *headWaits   // nil: there are no waits
	charges    *headCharges // nil: nothing is charged to any rank
}

// blockCompressor compresses blocks, several in parallel, and passes them on in order.
type blockCompressor struct {
	queue  chan chan *block
	made   int
	broken atomic.Bool // the sink failed
	end    chan error
}

// maxPacked bounds the blocks that are compressed or queued at a time.
const maxPacked = 8

func newPress(to sink, progress func(done int)) *blockCompressor {
	p := &blockCompressor{queue: make(chan chan *block, min(runtime.GOMAXPROCS(0), maxPacked)),
		end: make(chan error, 1)}
	go func() {
		var err error
		done := 0
		for result := range p.queue {
			b := <-result
			if err == nil {
				if err = to.block(b.packed.Bytes()); err != nil {
					p.broken.Store(true)
				}
			}
			b.release()
			done++
			progress(done)
		}
		p.end <- err
	}()
	return p
}

// block queues a block and returns its number.
func (p *blockCompressor) block(b *block) int {
	result := make(chan *block, 1)
	p.queue <- result
	go func() {
		b.pack()
		result <- b
	}()
	p.made++
	return p.made - 1
}

func (p *blockCompressor) close() error {
	close(p.queue)
	return <-p.end
}

// writer makes the blocks of lanes, rows and instances, and the sums over lanes.
type writer struct {
	*Data
	*blockCompressor
	plan

	deep, kids, waits, operations, asked, ends, askers, parts *merge

	parents       *cursor
	child, parent address // the next one of parents, nowhere at its end

	attributes shapes
	list       []note
	nodes      nodeColumns
}

// write makes all blocks. Memory holds a few blocks, and pieces of the temporary files.
func (d *Data) write(to sink, progress func(done, total int)) (*plan, error) {
	total := d.blocks()
	p := newPress(to, func(done int) {
		if progress != nil {
			progress(done, max(done, total))
		}
	})
	w := &writer{Data: d, blockCompressor: p, parents: d.parents.open(), plan: plan{texts: make(map[uint64]bool)}}
	w.attributes.texts = textsOf(d.attributes, w.texts)
	for _, s := range []struct {
		at   **merge
		from *sorter
	}{
		{&w.deep, d.deep}, {&w.kids, d.kids}, {&w.waits, d.waits}, {&w.operations, d.store.operations},
		{&w.asked, d.asked},
		{&w.ends, d.ends}, {&w.askers, d.askers}, {&w.parts, d.parts},
	} {
		*s.at = s.from.sorted()
	}
	w.nextParent()
	for i := range d.layout.lanes {
		w.writeLane(&d.layout.lanes[i])
	}
	for i := range d.rows {
		w.writeRow(d.rows[i].bars)
	}
	w.plan.instances = p.made
	w.allInstances()
	w.writePath()
	w.allWaits()
	w.allCharges()
	w.plan.nodes = p.block(w.nodes.block())
	err := p.close()
	if err == nil {
		w.plan.metrics, err = d.writeMetrics(to, p.made)
	}
	if failed := d.temp.failed(); err == nil {
		err = failed
	}
	return &w.plan, err
}

// blocks returns an upper bound of the number of blocks.
func (d *Data) blocks() int {
	of := func(count int) int { return (count + chunk - 1) / chunk }
	n := of(int(d.instanceCount)) + of(d.steps.count) + 1
	for i := range d.layout.lanes {
		n += 2 * of(d.layout.lanes[i].count)
	}
	for i := range d.rows {
		if b := d.rows[i].bars; b != nil {
			n += of(int(b.transferCount)) + of(b.operations)
		}
	}
	return n
}

// wait is a region's wait and the rank waited for.
type wait struct{ length, kind, rank, first uint64 }

func (w *writer) nextParent() {
	if !w.parents.hasNext() {
		w.child = nowhere
		return
	}
	w.child += address(w.parents.readNumber())
	w.parent = address(w.parents.readNumber())
}

// lane writes the bars of a lane and their notes, and sums them up.
func (w *writer) writeLane(l *lane) {
	w.plan.bars = append(w.plan.bars, w.made)
	var start, length, region, waited column
	var parent, kidCount, kid, waits column
	level := w.rows[l.row].levels[l.depth]
	records := level.open()
	sum := newLaneSum()
	w.nodes.begin = 0
	var begin, end uint64
	var enclosing uint32
	for i := range l.count {
		at := addressOf(uint32(l.row), l.depth, uint32(i))
		record := records
		if l.depth == maxDepth {
			begin = 0
			if record = &w.deep.entry; !w.deep.skipTo(uint64(at)) {
				break
			}
		} else if !records.hasNext() {
			break // the file cannot be read: write returns the error
		}
		begin += record.readNumber()
		long := record.readNumber()
		of := uint32(record.readNumber())
		around := nowhere
		switch inside := record.readNumber(); l.depth {
		case 0:
		case maxDepth:
			around = address(inside)
		default:
			enclosing += uint32(inside)
			around = addressOf(uint32(l.row), l.depth-1, enclosing)
		}
		w.list = record.notes(w.list)

		from := max(begin, end) // regions overlap only at maxDepth
		start.add(from - end)
		length.add(long)
		region.add(uint64(of))
		end = from + long
		if w.child == at {
			around = w.parent
			w.nextParent()
		}
		parent.signed(w.layout.reference(around))
		kidCount.add(w.addChildren(at, &kid))
		longest, waiting := w.waitsOf(at)
		if longest.length > 0 {
			waits.add(uint64(i % chunk))
			waits.add(longest.kind)
			waits.add(longest.rank)
			waits.add(longest.first)
		}
		waited.add(longest.length)
		w.attributes.add(w.list)
		if l.depth == maxDepth {
			w.deep.next()
		}
		if sum.add(begin, long, of, waiting); sum.count == w.layout.leaf || i == l.count-1 {
			w.nodes.add(sum.finishNode())
		}
		if i%chunk == chunk-1 || i == l.count-1 {
			w.block(newBlock(&start, &length, &region, &waited))
			notes := newBlock(&parent, &kidCount, &kid, &waits)
			w.attributes.write(notes)
			w.block(notes)
			end = 0
			if w.broken.Load() {
				return
			}
		}
	}
	w.addRegionSums(sum)
}

// addChildren adds the bars that have a bar as parent, and returns their number.
func (w *writer) addChildren(at address, kid *column) (kids uint64) {
	for ; w.kids.skipTo(uint64(at)); w.kids.next() {
		kid.signed(uint64(w.layout.bar(address(w.kids.entry.readNumber()))))
		kids++
	}
	return kids
}

// waitsOf returns the longest wait of a region (an MPI_Sendrecv has one for each message), and the sum of its waits.
func (w *writer) waitsOf(at address) (longest wait, waiting uint64) {
	for ; w.waits.skipTo(uint64(at)); w.waits.next() {
		e := &w.waits.entry
		one := wait{e.readNumber(), e.readNumber(), e.readNumber(), e.readNumber()}
		if waiting += one.length; one.length > longest.length {
			longest = one
		}
	}
	return longest, waiting
}

// addRegionSums adds the sums of a lane's regions.
func (w *writer) addRegionSums(sum *laneSum) {
	w.nodes.regions.add(uint64(len(sum.regions)))
	for _, id := range slices.Sorted(maps.Keys(sum.regions)) {
		w.nodes.regions.add(uint64(id))
		w.nodes.regions.add(sum.regions[id].count)
		w.nodes.regions.add(sum.regions[id].time)
	}
}

// row writes the transfers and operations of a row that has bars.
func (w *writer) writeRow(b *bars) {
	transfers, operations := -1, -1
	var firsts []uint32
	if b != nil && !w.broken.Load() {
		if b.transferCount > 0 {
			transfers = w.made
			w.writeTransfers(b)
		}
		if b.operations > 0 {
			operations = w.made
			firsts = w.writeOperations(b)
		}
	}
	p := &w.plan
	p.transfers, p.operations, p.firstOps = append(p.transfers, transfers), append(p.operations, operations),
		append(p.firstOps, firsts)
}

func (w *writer) writeTransfers(b *bars) {
	var start, length, row, bytes, parent column
	records := b.transfers.open()
	sum := node{busy: 255} // transfers can overlap: the end of a node is the latest end so far
	w.nodes.begin = 0
	begin := uint64(0)
	for i := range b.transferCount {
		if !records.hasNext() {
			break
		}
		begin += records.readNumber()
		key := numbered(b.row, i)
		long, ended := uint64(0), w.ends.skipTo(key)
		if ended {
			long = w.ends.entry.readNumber()
		}
		asker := nowhere
		if w.askers.skipTo(key) {
			asker = address(w.askers.entry.readNumber())
		}
		start.difference(begin)
		length.add((long + 1) * analysis.BoolCount(ended))
		bytes.add(records.readNumber())
		row.add(records.readNumber())
		parent.signed(w.layout.reference(asker))
		w.list = records.notes(w.list)
		w.attributes.add(w.list)
		if int(i)%w.layout.leaf == 0 {
			sum.start = begin
		}
		sum.end = max(sum.end, begin+long)
		last := i == b.transferCount-1
		if last || int(i)%w.layout.leaf == w.layout.leaf-1 {
			w.nodes.add(sum)
		}
		if last || i%chunk == chunk-1 {
			all := newBlock(&start, &length, &row, &bytes, &parent)
			w.attributes.write(all)
			w.block(all)
		}
	}
}

// writeOperations writes the operations of a row and returns the first bar of each block.
func (w *writer) writeOperations(b *bars) (firsts []uint32) {
	var bar, instance, sent, received, root, size column
	var asked []asking // of the present region
	count, last := 0, nowhere
	full := func() {
		all := newBlock(&bar, &instance, &sent, &received, &root, &size)
		w.attributes.write(all)
		w.block(all)
		count = 0
	}
	for m := w.operations; m.more && address(m.a).row() == b.row; m.next() {
		at := address(m.a)
		if at != last {
			if count >= chunk {
				full() // operations of one region share a block
			}
			asked = asked[:0]
			for ; w.asked.skipTo(m.a); w.asked.next() {
				asked = append(asked, asking{w.asked.b, w.asked.entry.notes(nil)})
			}
			last = at
		}
		number := w.layout.bar(at)
		if count == 0 {
			firsts = append(firsts, number)
		}
		count++
		bar.difference(uint64(number))
		e := &m.entry
		instance.signed(e.readNumber())
		sent.add(e.readNumber())
		received.add(e.readNumber())
		root.add(uint64(uint32(e.readNumber() + 1))) // +1 wraps "none", the greatest number, to 0
		size.add(e.readNumber())
		w.attributes.add(lastOf(asked, e.readNumber()))
	}
	if count > 0 {
		full()
	}
	return firsts
}

// asking is the attributes of the request of an operation.
type asking struct {
	event uint64
	notes []note
}

// lastOf returns the last attributes of an event.
func lastOf(all []asking, event uint64) []note {
	for _, a := range slices.Backward(all) {
		if a.event == event {
			return a.notes
		}
	}
	return nil
}

func (w *writer) allInstances() {
	var kind, comm, function, ordinal, expected, count, ranks, bar column
	var before []uint64 // bars, by place in an instance
	records := w.store.instances.open()
	for i := range w.instanceCount {
		if !records.hasNext() {
			break
		}
		kind.add(records.readNumber())
		comm.add(records.readNumber())
		function.add(records.readNumber())
		ordinal.signed(records.readNumber())
		expected.add(records.readNumber())
		parts := 0
		for ; w.parts.skipTo(i); w.parts.next() {
			if parts == len(before) {
				before = append(before, 0)
			}
			ranks.add(w.parts.entry.readNumber())
			n := uint64(w.layout.bar(address(w.parts.entry.readNumber())))
			bar.zigzag(n - before[parts])
			before[parts] = n
			parts++
		}
		count.add(uint64(parts))
		if i%chunk == chunk-1 || i == w.instanceCount-1 {
			w.block(newBlock(&kind, &comm, &function, &ordinal, &expected, &count, &ranks, &bar))
			before = before[:0]
			if w.broken.Load() {
				return
			}
		}
	}
}

// nodeColumns are the nodes of all lanes, then of all rows with transfers.
type nodeColumns struct {
	start, length, busy, region, waits, regions column
	begin                                       uint64
}

func (c *nodeColumns) add(n node) {
	c.start.add(n.start - c.begin)
	c.begin = n.start
	c.length.add(n.end - n.start)
	c.busy.add(uint64(n.busy))
	c.region.add(uint64(n.region))
	c.waits.add(uint64(n.wait))
}

func (c *nodeColumns) block() *block {
	return newBlock(&c.start, &c.length, &c.busy, &c.region, &c.waits, &c.regions)
}
