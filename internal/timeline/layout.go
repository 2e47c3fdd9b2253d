// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"math"

	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
)

// lane is the regions of a row at one depth, which do not overlap, except at maxDepth. The bars of a lane have
// consecutive numbers; lanes are in the order of rows.
type lane struct {
	row, depth int
	first      uint32 // number of its first bar
	count      int
}

// layout assigns bars their numbers on the page.
type layout struct {
	lanes   []lane
	lanesOf [][2]int // by row: first lane, and the one after the last
	total   uint32
	leaf    int // bars of a node
}

// Nodes hold at least minLeaf bars each, more if there would be too many nodes.
const (
	minLeaf  = 16
	maxNodes = 1 << 19
)

func newLayout(d *Data) *layout {
	l := &layout{lanesOf: make([][2]int, len(d.rows)), leaf: minLeaf}
	for i := range d.rows {
		l.lanesOf[i] = [2]int{len(l.lanes), len(l.lanes)}
		if b := d.rows[i].bars; b != nil {
			for depth, at := range b.levels {
				l.lanes = append(l.lanes, lane{row: i, depth: depth, first: l.total, count: int(at.count)})
				l.total += at.count
			}
			l.lanesOf[i][1] = len(l.lanes)
		}
	}
	for int(l.total)/l.leaf > maxNodes {
		l.leaf *= 4
	}
	return l
}

const noBar = math.MaxUint32

// bar returns the number of a region on the page, noBar for nowhere.
func (l *layout) bar(a address) uint32 {
	if a == nowhere {
		return noBar
	}
	return l.lanes[l.lanesOf[a.row()][0]+a.depth()].first + a.index()
}

// reference returns a bar as columns store it: its number + 1, 0 for nowhere.
func (l *layout) reference(a address) uint64 { return uint64(l.bar(a) + 1) }

// node sums up consecutive bars of a lane, or transfers.
type node struct {
	start, end uint64
	busy       uint8  // share of the time between, of 255
	wait       uint8  // share of the time that was waiting
	region     uint32 // the region with the most time
}

// laneSum sums up a lane, bar by bar.
type laneSum struct {
	regions map[uint32]*regionSum

	count         int // of the node's bars
	node          node
	busy, waiting uint64
	times         map[uint32]uint64 // by region
}

// regionSum is the number and total time of a region on a lane.
type regionSum struct{ count, time uint64 }

func newLaneSum() *laneSum {
	return &laneSum{regions: make(map[uint32]*regionSum), times: make(map[uint32]uint64)}
}

func (s *laneSum) add(start, length uint64, region uint32, waited uint64) {
	if s.count == 0 {
		s.node = node{start: start}
		s.busy, s.waiting = 0, 0
		clear(s.times)
	}
	s.count++
	s.node.end = max(s.node.end, start+length)
	s.busy += length
	s.waiting += waited
	s.times[region] += length + 1
	sum := keyed.Entry(s.regions, region)
	sum.count++
	sum.time += length
}

// finishNode returns the node of the bars since the last node.
func (s *laneSum) finishNode() node {
	n := s.node
	var most uint64
	for region, time := range s.times {
		if time > most || time == most && region < n.region {
			n.region, most = region, time
		}
	}
	n.busy, n.wait = share(s.busy, n.end-n.start), share(s.waiting, max(s.busy, 1))
	if s.busy > 0 && n.busy == 0 {
		n.busy = 1
	}
	s.count = 0
	return n
}

func share(part, whole uint64) uint8 {
	if whole == 0 {
		return 255
	}
	return uint8(min(255, math.Round(255*float64(part)/float64(whole))))
}
