// SPDX-License-Identifier: Apache-2.0

package criticalpath

import "github.com/nccl-otf2/nccl-otf2/otf2"

// The paths of all ranks, as far as they are needed: a tree whose branches are the parts that paths do not share.

// key identifies what a part of the time on a path was spent in.
type key struct {
	rank int32 // in the world; nobody for activities without a rank
	// what is an Activity; from numActivities on an operation of Path.names; below 0 a kernel, whose time is
	// additional.
	what int32
}

// sums has ns by key. Lookups of single keys are rare.
type sums struct {
	list  []entry
	index map[key]int32
}

type entry struct {
	key
	ns uint64
}

const fewSums = 12

func (s *sums) add(k key, ns uint64) {
	if ns == 0 {
		return
	}
	if s.index == nil {
		for i := range s.list {
			if s.list[i].key == k {
				s.list[i].ns += ns
				return
			}
		}
		s.list = append(s.list, entry{k, ns})
		if len(s.list) > fewSums {
			s.index = make(map[key]int32, 2*fewSums)
			for i := range s.list {
				s.index[s.list[i].key] = int32(i)
			}
		}
		return
	}
	if i, ok := s.index[k]; ok {
		s.list[i].ns += ns
		return
	}
	s.index[k] = int32(len(s.list))
	s.list = append(s.list, entry{k, ns})
}

// stretch is the contents of a path from the end of its parent to the begin of an operation.
type stretch struct {
	sums
	changes uint64 // how often it changed to another rank
	// doubtful is the part of the ranks' own ns that may not be on the path, because another rank came as late within
	// the uncertainty of times.
	doubtful uint64
	unstated uint64 // operations whose times have an unknown uncertainty
}

func (s *stretch) addAll(o *stretch) {
	for i := range o.list {
		s.add(o.list[i].key, o.list[i].ns)
	}
	s.changes += o.changes
	s.doubtful += o.doubtful
	s.unstated += o.unstated
}

const noNode = int32(-1)

type node struct {
	stretch
	parent int32
	rank   int32          // the rank on whose row it ends
	at     otf2.Timestamp // its end
	since  otf2.Timestamp // begin of the path
	lost   bool           // what came before it is unknown
	step   uint64         // the tracer's number of the step at its end; 0: none

	users    int32 // departures of ranks, and children
	children int32
	which    int32 // exclusive or of the children's numbers: with one child, its number
}

// tree has the nodes. A node that only one child needs is merged with it.
type tree struct {
	nodes []node
	free  []int32
}

// grow adds a node behind another one, or behind none. It has no users until it is taken.
func (t *tree) grow(parent, rank int32, since, at otf2.Timestamp) int32 {
	var n int32
	if k := len(t.free); k > 0 {
		n, t.free = t.free[k-1], t.free[:k-1]
	} else {
		n = int32(len(t.nodes))
		t.nodes = append(t.nodes, node{})
	}
	x := &t.nodes[n]
	*x = node{stretch: stretch{sums: sums{list: x.list[:0]}}, parent: parent, rank: rank, at: at, since: since}
	if parent != noNode {
		p := &t.nodes[parent]
		x.since, x.lost = p.since, p.lost
		p.users++
		p.children++
		p.which ^= n
		if p.rank != rank {
			x.changes = 1
		}
	}
	return n
}

func (t *tree) addUser(n int32) { t.nodes[n].users++ }

// drop removes one user of a node, and frees or merges the node if possible.
func (t *tree) drop(n int32) {
	for n != noNode {
		x := &t.nodes[n]
		x.users--
		if x.users > 0 {
			if x.users == 1 && x.children == 1 {
				t.joinWithChild(n)
			}
			return
		}
		parent := x.parent
		x.index = nil
		t.free = append(t.free, n)
		if parent != noNode {
			p := &t.nodes[parent]
			p.children--
			p.which ^= n
		}
		n = parent
	}
}

// joinWithChild merges a node with its only child.
func (t *tree) joinWithChild(n int32) {
	x := &t.nodes[n]
	child := x.which
	c := &t.nodes[child]
	x.stretch.addAll(&c.stretch)
	c.list, x.list = x.list, c.list
	c.index = x.index
	x.index = nil
	c.changes, c.doubtful, c.unstated = x.changes, x.doubtful, x.unstated
	c.parent = x.parent
	if p := x.parent; p != noNode {
		t.nodes[p].which ^= n ^ child
	}
	t.free = append(t.free, n)
}

// sum adds up a path up to a node.
func (t *tree) sum(n int32) (all stretch) {
	for ; n != noNode; n = t.nodes[n].parent {
		all.addAll(&t.nodes[n].stretch)
	}
	return all
}
