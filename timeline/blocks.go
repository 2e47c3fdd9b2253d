// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"maps"
	"runtime"
	"slices"
)

// sink takes blocks in the order of their numbers.
type sink interface{ block(packed []byte) error }

// plan lists the blocks of an archive: what makes each, and where those of each lane and row begin.
type plan struct {
	make       []func() []byte
	bars       []int // by lane: number of the first block; that of the notes follows each
	transfers  []int // by row; −1
	operations []int // by row; −1
	firstOps   [][]uint32
	instances  int
	nodes      int
	ready      [][]byte // blocks of metrics, which have been packed; they follow those to be made
	metrics    headMetrics
}

func (d *Data) plan() *plan {
	p := &plan{}
	add := func(f func() []byte) int {
		p.make = append(p.make, f)
		return len(p.make) - 1
	}
	for i := range d.layout.lanes {
		l := &d.layout.lanes[i]
		p.bars = append(p.bars, len(p.make))
		for from := 0; from < l.count; from += chunk {
			to := min(from+chunk, l.count)
			add(func() []byte { return d.barBlock(l, from, to) })
			add(func() []byte { return d.noteBlock(l, from, to) })
		}
	}
	for i := range d.rows {
		b := d.rows[i].bars
		transfers, operations := -1, -1
		var firsts []uint32
		if b != nil {
			for from := 0; from < len(b.transfers); from += chunk {
				to := min(from+chunk, len(b.transfers))
				if at := add(func() []byte { return d.transferBlock(b, from, to) }); from == 0 {
					transfers = at
				}
			}
			for from := 0; from < len(b.operations); {
				to := min(from+chunk, len(b.operations))
				for to < len(b.operations) && b.operations[to].number == b.operations[to-1].number {
					to++ // those of one region stay together
				}
				begin := from
				firsts = append(firsts, d.layout.bar(d, place{uint32(i), b.operations[begin].number}))
				if at := add(func() []byte { return d.operationBlock(i, begin, to) }); begin == 0 {
					operations = at
				}
				from = to
			}
		}
		p.transfers, p.operations, p.firstOps = append(p.transfers, transfers), append(p.operations, operations), append(p.firstOps, firsts)
	}
	p.instances = len(p.make)
	for from := 0; from < len(d.instances); from += chunk {
		add(func() []byte { return d.instanceBlock(from, min(from+chunk, len(d.instances))) })
	}
	p.nodes = add(func() []byte { return d.nodeBlock() })
	d.planMetrics(p)
	return p
}

// write makes the blocks, some at a time, and hands them over in order.
func (p *plan) write(to sink, progress func(done, total int)) error {
	type future chan []byte
	workers := runtime.GOMAXPROCS(0)
	queue := make(chan future, 2*workers)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		defer close(queue)
		room := make(chan struct{}, workers)
		for _, f := range p.make {
			result := make(future, 1)
			select {
			case room <- struct{}{}:
			case <-stop:
				return
			}
			go func() {
				result <- pack(f())
				<-room
			}()
			select {
			case queue <- result:
			case <-stop:
				return
			}
		}
	}()
	done := 0
	for result := range queue {
		if err := to.block(<-result); err != nil {
			return err
		}
		if done++; progress != nil {
			progress(done, len(p.make))
		}
	}
	for _, b := range p.ready {
		if err := to.block(b); err != nil {
			return err
		}
	}
	return nil
}

func (d *Data) barBlock(l *lane, from, to int) []byte {
	var start, length, region, waits column
	b := d.rows[l.row].bars
	end := uint64(0)
	for i := from; i < to; i++ {
		n := l.of(i)
		at := max(b.start[n], end) // only regions deeper than maxDepth overlap
		start.add(at - end)
		length.add(b.length[n])
		end = at + b.length[n]
		region.add(uint64(b.region[n]))
		waited := uint64(0)
		if w := b.waitOf(uint32(n)); w != nil {
			waited = w.length
		}
		waits.add(waited)
	}
	var out block
	out.columns(&start, &length, &region, &waits)
	return out.buf
}

func (d *Data) noteBlock(l *lane, from, to int) []byte {
	var parent, kids, kid, waits column
	var attributes shapes
	var list []note
	b := d.rows[l.row].bars
	for i := from; i < to; i++ {
		n := l.of(i)
		parent.signed(uint64(d.layout.bar(d, b.parent[n])+1) & 0xffffffff)
		bar := l.first + uint32(i)
		children := d.layout.kids[d.layout.firstKid[bar]:d.layout.firstKid[bar+1]]
		kids.add(uint64(len(children)))
		for _, c := range children {
			kid.signed(uint64(c))
		}
		if w := b.waitOf(uint32(n)); w != nil {
			waits.add(uint64(i - from))
			waits.add(uint64(w.kind))
			waits.add(uint64(w.rank))
			waits.add(bit(w.first))
		}
		list = b.notes.at(b.attribute[n], list)
		attributes.add(list)
	}
	var out block
	out.columns(&parent, &kids, &kid, &waits)
	attributes.write(&out)
	return out.buf
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func (d *Data) transferBlock(b *bars, from, to int) []byte {
	var start, length, row, bytes, parent column
	var attributes shapes
	var list []note
	for i := range b.transfers[from:to] {
		t := &b.transfers[from+i]
		start.difference(t.start)
		length.add((t.length + 1) * bit(t.ended))
		row.add(uint64(t.to+1) & 0xffffffff)
		bytes.add(t.bytes)
		parent.signed(uint64(d.layout.bar(d, t.parent)+1) & 0xffffffff)
		list = b.notes.at(t.notes, list)
		attributes.add(list)
	}
	var out block
	out.columns(&start, &length, &row, &bytes, &parent)
	attributes.write(&out)
	return out.buf
}

func (d *Data) operationBlock(row, from, to int) []byte {
	var bar, instance, sent, received, root column
	var attributes shapes
	var list []note
	b := d.rows[row].bars
	for i := range b.operations[from:to] {
		op := &b.operations[from+i]
		bar.difference(uint64(d.layout.bar(d, place{uint32(row), op.number})))
		instance.signed(uint64(op.instance))
		sent.add(op.sent)
		received.add(op.received)
		root.add(uint64(op.root + 1)) // none is the greatest number: 0
		list = list[:0]
		if at, ok := b.asked[request{op.number, op.event}]; ok {
			list = b.notes.at(at, list)
		}
		attributes.add(list)
	}
	var out block
	out.columns(&bar, &instance, &sent, &received, &root)
	attributes.write(&out)
	return out.buf
}

func (d *Data) instanceBlock(from, to int) []byte {
	var kind, comm, function, ordinal, expected, parts, ranks, bar column
	var before []uint64
	for i := range d.instances[from:to] {
		in := &d.instances[from+i]
		kind.add(bit(in.message) | bit(in.unlike)<<1)
		comm.add(uint64(in.comm))
		function.add(uint64(in.function))
		ordinal.signed(in.ordinal)
		expected.add(uint64(in.expected))
		parts.add(uint64(len(in.parts)))
		for j, p := range in.parts {
			if j == len(before) {
				before = append(before, 0)
			}
			ranks.add(uint64(p.rank))
			n := uint64(d.layout.bar(d, p.place))
			bar.zigzag(n - before[j])
			before[j] = n
		}
	}
	var out block
	out.columns(&kind, &comm, &function, &ordinal, &expected, &parts, &ranks, &bar)
	return out.buf
}

func (d *Data) nodeBlock() []byte {
	var start, length, busy, region, waits, regions column
	write := func(all []node) {
		begin := uint64(0)
		for _, n := range all {
			start.add(n.start - begin)
			begin = n.start
			length.add(n.end - n.start)
			busy.add(uint64(n.busy))
			region.add(uint64(n.region))
			waits.add(uint64(n.wait))
		}
	}
	for i := range d.layout.lanes {
		all, sums := d.layout.nodes(d, &d.layout.lanes[i])
		write(all)
		regions.add(uint64(len(sums)))
		for _, id := range slices.Sorted(maps.Keys(sums)) {
			regions.add(uint64(id))
			regions.add(sums[id].count)
			regions.add(sums[id].time)
		}
	}
	for i := range d.rows {
		if b := d.rows[i].bars; b != nil && len(b.transfers) > 0 {
			write(d.layout.transferNodes(b))
		}
	}
	var out block
	out.columns(&start, &length, &busy, &region, &waits, &regions)
	return out.buf
}
