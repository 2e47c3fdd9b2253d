// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"cmp"
	"math"
	"slices"
)

// lane is the regions of a row at one depth, which do not overlap (those deeper than maxDepth, which share one, do). Bars have numbers on the page: those of a lane
// follow each other, and lanes stand in the order of rows.
type lane struct {
	row   int
	first uint32   // number of its first bar
	bars  []uint32 // numbers of the regions on the row; nil: all of them, in their order
	count int
}

// of is the row's number of bar i of the lane.
func (l *lane) of(i int) int {
	if l.bars == nil {
		return i
	}
	return int(l.bars[i])
}

// layout gives bars their numbers on the page, and says which bars have been caused by which.
type layout struct {
	lanes    []lane
	lanesOf  [][2]int   // by row: first and behind the last lane
	index    [][]uint32 // by row and number: place on its lane; nil: one lane
	total    uint32
	firstKid []uint32 // by bar, one more than there are bars: index into kids
	kids     []uint32 // bars
	leaf     int      // bars of a node
}

// Nodes hold at least minLeaf bars each, and more where there were too many nodes.
const (
	minLeaf  = 16
	maxNodes = 1 << 19
)

func newLayout(d *Data) *layout {
	l := &layout{lanesOf: make([][2]int, len(d.rows)), index: make([][]uint32, len(d.rows)), leaf: minLeaf}
	for i := range d.rows {
		l.lanesOf[i] = [2]int{len(l.lanes), len(l.lanes)}
		if b := d.rows[i].bars; b != nil {
			l.addRow(i, b)
		}
	}
	for int(l.total)/l.leaf > maxNodes {
		l.leaf *= 4
	}
	l.children(d)
	return l
}

func (l *layout) addRow(row int, b *bars) {
	counts := make([]int, maxDepth+1)
	deepest := 0
	for _, d := range b.depth {
		counts[d]++
		deepest = max(deepest, int(d))
	}
	if len(b.depth) == 0 {
		return
	}
	if deepest == 0 {
		l.lanes = append(l.lanes, lane{row: row, first: l.total, count: len(b.start)})
		l.total += uint32(len(b.start))
		l.lanesOf[row][1] = len(l.lanes)
		return
	}
	base := len(l.lanes)
	for depth := range deepest + 1 {
		l.lanes = append(l.lanes, lane{row: row, first: l.total, bars: make([]uint32, 0, counts[depth]), count: counts[depth]})
		l.total += uint32(counts[depth])
	}
	index := make([]uint32, len(b.start))
	for i, depth := range b.depth {
		lane := &l.lanes[base+int(depth)]
		index[i] = uint32(len(lane.bars))
		lane.bars = append(lane.bars, uint32(i))
	}
	l.index[row] = index
	l.lanesOf[row][1] = len(l.lanes)
}

const noBar = math.MaxUint32

// bar is the number of a region on the page, noBar for nowhere.
func (l *layout) bar(d *Data, p place) uint32 {
	if p == nowhere {
		return noBar
	}
	base := l.lanesOf[p.row][0]
	if l.index[p.row] == nil {
		return l.lanes[base].first + p.number
	}
	return l.lanes[base+int(d.rows[p.row].depth[p.number])].first + l.index[p.row][p.number]
}

// children turns the regions' parents round.
func (l *layout) children(d *Data) {
	l.firstKid = make([]uint32, l.total+1)
	each := func(do func(parent, child uint32)) {
		for i := range d.rows {
			b := d.rows[i].bars
			if b == nil {
				continue
			}
			for n, p := range b.parent {
				if p != nowhere {
					do(l.bar(d, p), l.bar(d, place{uint32(i), uint32(n)}))
				}
			}
		}
	}
	each(func(parent, _ uint32) { l.firstKid[parent+1]++ })
	for i := range l.total {
		l.firstKid[i+1] += l.firstKid[i]
	}
	l.kids = make([]uint32, l.firstKid[l.total])
	next := slices.Clone(l.firstKid)
	each(func(parent, child uint32) {
		l.kids[next[parent]] = child
		next[parent]++
	})
}

// node sums up some bars that follow each other on a lane, or some transfers.
type node struct {
	start, end uint64
	busy       uint8  // share of the time between, of 255
	wait       uint8  // share of the time that was waiting
	region     uint32 // the one with the most time
}

// nodes sums up a lane, and tells how much time each region has.
func (l *layout) nodes(d *Data, at *lane) (all []node, sums map[uint32]*regionSum) {
	b := d.rows[at.row].bars
	sums = make(map[uint32]*regionSum)
	times := make(map[uint32]uint64)
	next := 0 // of b.waits
	for from := 0; from < at.count; from += l.leaf {
		to := min(from+l.leaf, at.count)
		clear(times)
		n := node{start: b.start[at.of(from)]}
		var busy, waiting uint64
		for i := from; i < to; i++ {
			bar := at.of(i)
			n.end = max(n.end, b.start[bar]+b.length[bar])
			busy += b.length[bar]
			times[b.region[bar]] += b.length[bar] + 1
			s := sums[b.region[bar]]
			if s == nil {
				s = new(regionSum)
				sums[b.region[bar]] = s
			}
			s.count++
			s.time += b.length[bar]
			for next < len(b.waits) && int(b.waits[next].number) < bar {
				next++
			}
			for ; next < len(b.waits) && int(b.waits[next].number) == bar; next++ {
				waiting += b.waits[next].length
			}
		}
		var most uint64
		for region, time := range times {
			if time > most || time == most && region < n.region {
				n.region, most = region, time
			}
		}
		n.busy, n.wait = share(busy, n.end-n.start), share(waiting, max(busy, 1))
		if busy > 0 && n.busy == 0 {
			n.busy = 1
		}
		all = append(all, n)
	}
	return all, sums
}

// regionSum is how often and how long a region was on a lane.
type regionSum struct{ count, time uint64 }

func share(part, whole uint64) uint8 {
	if whole == 0 {
		return 255
	}
	return uint8(min(255, math.Round(255*float64(part)/float64(whole))))
}

// transferNodes sums up a row's transfers. They can overlap: the end of a node is the last one up to there.
func (l *layout) transferNodes(b *bars) (all []node) {
	end := uint64(0)
	for from := 0; from < len(b.transfers); from += l.leaf {
		n := node{start: b.transfers[from].start, busy: 255}
		for _, t := range b.transfers[from:min(from+l.leaf, len(b.transfers))] {
			end = max(end, t.start+t.length)
		}
		n.end = end
		all = append(all, n)
	}
	return all
}

// waitOf is what a region of a row waited for. A region has one wait: that of its first collective, or the longest of its messages.
func (b *bars) waitOf(number uint32) *wait {
	at, ok := slices.BinarySearchFunc(b.waits, number, func(w wait, n uint32) int { return cmp.Compare(w.number, n) })
	if !ok {
		return nil
	}
	return &b.waits[at]
}
