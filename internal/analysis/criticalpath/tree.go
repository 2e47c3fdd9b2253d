// SPDX-License-Identifier: Apache-2.0

package criticalpath

import "github.com/nccl-otf2/nccl-otf2/otf2"

// The paths of all ranks, as far as they are needed: a tree, whose branches are what paths do not have in common.

// key is what an amount of time on a path was spent in.
type key struct {
	rank int32 // of the world; nobody for activities without a rank
	// an Activity; from numActivities on an operation of Path.names; below 0 a kernel, whose time is told beside the
	// rest
	what int32
}

// sums are ns by key. Few are looked for one by one.
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

// stretch is what a path was made of from the end of its parent to a moment, the begin of an operation.
type stretch struct {
	sums
	changes uint64 // times that it went on on another rank than before
	// ns of ranks' own of which it is not certain that they were on the path: another rank came as late, as far as
	// times are exact
	doubtful uint64
	unstated uint64 // operations of which nobody says how exact their times are
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
	rank   int32          // on whose row it ends
	at     otf2.Timestamp // where it ends
	since  otf2.Timestamp // where the path begins
	lost   bool           // what was before it is not known
	step   uint64         // with which it ends, as the tracer numbers it; 0: nobody asked

	users    int32 // departures of ranks, and children
	children int32
	which    int32 // the numbers of the children, in exclusive or: of one child its number
}

// tree holds the nodes. One that only a child needs is made one with it.
type tree struct {
	nodes []node
	free  []int32
}

// grow makes a node behind another one, or behind none. It is nobody's until it is taken.
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

func (t *tree) take(n int32) { t.nodes[n].users++ }

// drop reports whether one user less needs a node.
func (t *tree) drop(n int32) {
	for n != noNode {
		x := &t.nodes[n]
		x.users--
		if x.users > 0 {
			if x.users == 1 && x.children == 1 {
				t.join(n)
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

// join makes a node one with its only child.
func (t *tree) join(n int32) {
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

// sum adds up a path until a node.
func (t *tree) sum(n int32) (all stretch) {
	for ; n != noNode; n = t.nodes[n].parent {
		all.addAll(&t.nodes[n].stretch)
	}
	return all
}
