// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"testing"

	"github.com/klauspost/compress/flate"
)

// shown is what a page's blocks say, as numbers in rows.
type shown struct {
	// row, depth, start, length, region, parent + 1, waited, number of children, children, waits, attributes
	bars       [][]uint64
	transfers  [][]uint64 // row, start, length + 1, to, bytes, parent + 1, attributes
	operations [][]uint64 // row, bar, instance, sent, received, root + 1, size, attributes
	instances  [][]uint64 // kind, communicator, function, ordinal, expected, parts: rank, bar
	nodes      [][]uint64 // of lanes, then of transfers: start, end, busy, region, wait
	sums       [][]uint64 // by lane: region, count, time of each
	texts      []uint64
}

// fatals is a testing.TB or rapid.T.
type fatals interface {
	Helper()
	Fatalf(string, ...any)
}

// collector keeps blocks as they come.
type collector [][]byte

func (c *collector) block(packed []byte) error {
	*c = append(*c, bytes.Clone(packed))
	return nil
}

// unpacked reads the columns of a block.
type unpacked struct {
	fatals
	left []byte
}

func unpack(t fatals, packed []byte) *unpacked {
	t.Helper()
	b, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil {
		t.Fatalf("a block cannot be unpacked: %v", err)
	}
	return &unpacked{t, b}
}

func (u *unpacked) bytes(n uint64) []byte {
	if n > uint64(len(u.left)) {
		u.Fatalf("a column has %d bytes, %d are left", n, len(u.left))
	}
	b := u.left[:n]
	u.left = u.left[n:]
	return b
}

func (u *unpacked) column() *shownColumn {
	n, size := binary.Uvarint(u.left)
	u.bytes(uint64(max(size, 0)))
	return &shownColumn{u, u.bytes(n), 0}
}

func (u *unpacked) columns(n int) (all []*shownColumn) {
	for range n {
		all = append(all, u.column())
	}
	return all
}

// notes reads the attributes of all entries of a block: id and value of each.
func (u *unpacked) notes() func() []uint64 {
	of, table := u.column(), u.column()
	var ids [][]uint64
	var values [][]*shownColumn
	for table.more() {
		var list []uint64
		for range table.next() {
			list = append(list, table.next())
		}
		ids = append(ids, list)
	}
	for _, list := range ids {
		values = append(values, u.columns(len(list)))
	}
	return func() (list []uint64) {
		shape := of.next()
		for i, id := range ids[shape] {
			list = append(list, id, values[shape][i].signed())
		}
		return list
	}
}

type shownColumn struct {
	*unpacked
	values []byte
	last   uint64
}

func (c *shownColumn) more() bool { return len(c.values) > 0 }

func (c *shownColumn) next() uint64 {
	v, size := binary.Uvarint(c.values)
	if size <= 0 {
		c.Fatalf("a column ends too early")
	}
	c.values = c.values[size:]
	return v
}

func (c *shownColumn) difference() uint64 {
	c.last += c.next()
	return c.last
}

func (c *shownColumn) signed() uint64 {
	c.last += unzigzag(c.next())
	return c.last
}

// show reads all blocks of a page.
func show(t fatals, d *Data) (s shown) {
	t.Helper()
	var all collector
	p, err := d.write(&all, nil)
	if err != nil {
		t.Fatalf("%v", err)
	}
	h := d.head(p, &Options{})
	series := func(at headSeries, columns int, entry func(i int, of []*shownColumn, notes func() []uint64)) {
		for i := range at.Count {
			var of []*shownColumn
			var notes func() []uint64
			if i%chunk == 0 {
				u := unpack(t, all[at.Block+i/chunk])
				of = u.columns(columns)
				notes = u.notes()
			}
			entry(i, of, notes)
		}
	}
	for at, l := range h.Lanes {
		row := slices.IndexFunc(h.Rows, func(r headRow) bool { return at >= r.Lanes[0] && at < r.Lanes[1] })
		var bars, of []*shownColumn
		var notes func() []uint64
		var end uint64
		var waits []uint64
		for i := range l.Count {
			if i%chunk == 0 {
				block := l.Block + 2*(i/chunk)
				bars = unpack(t, all[block]).columns(4)
				u := unpack(t, all[block+1])
				of = u.columns(4)
				notes = u.notes()
				end, waits = 0, nil
				for of[3].more() {
					waits = append(waits, of[3].next())
				}
			}
			if int(l.First)+i != len(s.bars) {
				t.Fatalf("lane %d begins with bar %d, which is the %dth", at, l.First, len(s.bars))
			}
			start := end + bars[0].next()
			length := bars[1].next()
			end = start + length
			bar := []uint64{uint64(row), uint64(at - h.Rows[row].Lanes[0]), start, length, bars[2].next(),
				of[0].signed(), bars[3].next(), of[1].next()}
			for range bar[7] {
				bar = append(bar, of[2].signed())
			}
			for ; len(waits) > 0 && waits[0] == uint64(i%chunk); waits = waits[4:] {
				bar = append(bar, waits[1:4]...)
			}
			s.bars = append(s.bars, append(bar, notes()...))
		}
	}
	for at, r := range h.Rows {
		var of []*shownColumn
		var notes func() []uint64
		series(r.Transfers, 5, func(i int, c []*shownColumn, n func() []uint64) {
			if c != nil {
				of, notes = c, n
			}
			one := []uint64{uint64(at), of[0].difference(), of[1].next(), of[2].next(), of[3].next(), of[4].signed()}
			s.transfers = append(s.transfers, append(one, notes()...))
		})
		for k, first := range r.FirstOps {
			u := unpack(t, all[r.Operations.Block+k])
			of := u.columns(6)
			notes := u.notes()
			for of[0].more() {
				one := []uint64{uint64(at), of[0].difference(), of[1].signed(), of[2].next(), of[3].next(),
					of[4].next(), of[5].next()}
				if of[0].last != uint64(first) && of[0].last < uint64(first) {
					t.Fatalf("block %d of operations of row %d begins with bar %d, and has %d", k, at, first,
						of[0].last)
				}
				s.operations = append(s.operations, append(one, notes()...))
			}
		}
	}
	var of []*shownColumn
	var before []uint64
	for i := range h.Instances.Count {
		if i%chunk == 0 {
			of = unpack(t, all[h.Instances.Block+i/chunk]).columns(8)
			before = nil
		}
		one := []uint64{of[0].next(), of[1].next(), of[2].next(), of[3].signed(), of[4].next()}
		for k := range int(of[5].next()) {
			if k == len(before) {
				before = append(before, 0)
			}
			before[k] += unzigzag(of[7].next())
			one = append(one, of[6].next(), before[k])
		}
		s.instances = append(s.instances, one)
	}
	of = unpack(t, all[h.Nodes]).columns(6)
	nodes := func(count int) {
		begin := uint64(0)
		for range (count + h.Leaf - 1) / h.Leaf {
			begin += of[0].next()
			s.nodes = append(s.nodes, []uint64{begin, begin + of[1].next(), of[2].next(), of[3].next(), of[4].next()})
		}
	}
	for _, l := range h.Lanes {
		nodes(l.Count)
		var sums []uint64
		for range of[5].next() {
			sums = append(sums, of[5].next(), of[5].next(), of[5].next())
		}
		s.sums = append(s.sums, sums)
	}
	for _, r := range h.Rows {
		nodes(r.Transfers.Count)
	}
	last := h.Nodes
	if len(h.Metrics.Series) > 0 { // theirs are behind all others
		last = h.Metrics.Nodes
	}
	if last != len(all)-1 || of[0].more() || of[5].more() {
		t.Fatalf("the nodes are block %d of %d, with too many", h.Nodes, len(all))
	}
	for ref := range h.Texts {
		s.texts = append(s.texts, ref)
	}
	slices.Sort(s.texts)
	return s
}

// compare fails at the first difference.
func (s *shown) compare(t fatals, want *shown) {
	t.Helper()
	for _, c := range []struct {
		what      string
		got, want [][]uint64
	}{
		{"bar", s.bars, want.bars},
		{"transfer", s.transfers, want.transfers},
		{"operation", s.operations, want.operations},
		{"instance", s.instances, want.instances},
		{"node", s.nodes, want.nodes},
		{"sums of lane", s.sums, want.sums},
		{"texts", [][]uint64{s.texts}, [][]uint64{want.texts}},
	} {
		if len(c.got) != len(c.want) {
			t.Fatalf("%d of %s, want %d", len(c.got), c.what, len(c.want))
		}
		for i := range c.got {
			if !slices.Equal(c.got[i], c.want[i]) {
				t.Fatalf("%s %d: %d\nwant %d", c.what, i, c.got[i], c.want[i])
			}
		}
	}
}

var _ fatals = (*testing.T)(nil)
