// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"cmp"
	"maps"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selection"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selfreport"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// nominal adds up what operations would send from rank to rank without intermediaries. An AllReduce counts as a
// ReduceScatter and an AllGather, so that the total a rank sends is what nccl-tests' bus bandwidth counts.
type nominal struct {
	toAll map[nominalKey]*Traffic // to every other rank
	to    map[[2]nominalKey]*Traffic
}

// nominalKey identifies a rank of a communicator.
type nominalKey struct {
	comm otf2.CommRef
	rank int
}

// Operations makes the matrix of an archive without recorded transfers from its operations alone, which the caller
// reads.
type Operations struct {
	m *matrix
	a *otf2.Archive
}

// OfOperations returns one for a selection; nil: the archive can have transfers, so that Read has to read all events.
func OfOperations(a *otf2.Archive, selected *selection.Selection) *Operations {
	m := newMatrix(a.Defs)
	if len(m.networks) > 0 {
		return nil
	}
	m.selected = selected
	return &Operations{m, a}
}

// Add takes the next operation that is selected.
func (o *Operations) Add(op *analysis.Operation) { o.m.nominal.add(op) }

// Report returns the same as Read, without Problems.
func (o *Operations) Report() *Report { return o.m.result(selfreport.PropertiesOf(o.a.Anchor)) }

func newNominal() *nominal {
	return &nominal{make(map[nominalKey]*Traffic), make(map[[2]nominalKey]*Traffic)}
}

func (n *nominal) add(o *analysis.Operation) {
	me, ranks := nominalKey{o.Communicator.Ref, o.Rank}, uint64(o.Communicator.Size())
	if o.Function == "Send" {
		n.send(me, nominalKey{me.comm, o.Peer}, 1, o.Size)
		return
	}
	if o.Collective == nil || ranks < 2 {
		return
	}
	root := nominalKey{me.comm, int(o.Root)}
	switch o.Collective.Op {
	case otf2.CollectiveOpAllreduce:
		n.sendToAll(me, 1, 2*o.Size/ranks)
	case otf2.CollectiveOpAllgather, otf2.CollectiveOpReduceScatterBlock, otf2.CollectiveOpAlltoall:
		n.sendToAll(me, 1, o.Size/ranks)
	case otf2.CollectiveOpBcast:
		if me == root {
			n.sendToAll(me, 1, o.Size)
		}
	case otf2.CollectiveOpScatter:
		if me == root {
			n.sendToAll(me, 1, o.Size/ranks)
		}
	case otf2.CollectiveOpReduce:
		n.send(me, root, 1, o.Size)
	case otf2.CollectiveOpGather:
		n.send(me, root, 1, o.Size/ranks)
	}
}

func (n *nominal) sendToAll(from nominalKey, operations, bytes uint64) {
	t := keyed.Entry(n.toAll, from)
	t.Transfers += operations
	t.Bytes += bytes
}

func (n *nominal) send(from, to nominalKey, operations, bytes uint64) {
	if from == to {
		return
	}
	t := keyed.Entry(n.to, [2]nominalKey{from, to})
	t.Transfers += operations
	t.Bytes += bytes
}

func (n *nominal) addLane(o *nominal) {
	for from, t := range o.toAll {
		n.sendToAll(from, t.Transfers, t.Bytes)
	}
	for pair, t := range o.to {
		n.send(pair[0], pair[1], t.Transfers, t.Bytes)
	}
}

// maxNominalPairs limits the pairs of ranks derived from operations with all members: the pairs of a communicator of
// 512 ranks.
const maxNominalPairs = 1 << 18

// expand returns the flows between ranks of the world for communicators that are not covered otherwise, the small ones
// first, until there are too many pairs. tooLarge is the number of communicators left out, least the fewest ranks of
// any.
func (m *matrix) expand(covered map[otf2.CommRef]bool) (flows map[[2]int]*flow, tooLarge, least int) {
	flows = make(map[[2]int]*flow)
	add := func(comm otf2.CommRef, from, to int, t *Traffic) {
		c := &networkCount{parent: m.comms[comm]}
		f := keyed.Entry(flows, [2]int{m.place(c, from), m.place(c, to)})
		f.Transfers += t.Transfers
		f.Bytes += t.Bytes
	}
	senders := make(map[otf2.CommRef][]int)
	for from := range m.nominal.toAll {
		if !covered[from.comm] {
			senders[from.comm] = append(senders[from.comm], from.rank)
		}
	}
	size := func(c otf2.CommRef) int { return m.comms[c].Size() }
	smallFirst := func(a, b otf2.CommRef) int { return cmp.Or(cmp.Compare(size(a), size(b)), cmp.Compare(a, b)) }
	room := maxNominalPairs
	for i, comms := 0, slices.SortedFunc(maps.Keys(senders), smallFirst); i < len(comms); i++ {
		comm := comms[i]
		if room -= len(senders[comm]) * size(comm); room < 0 {
			tooLarge, least = len(comms)-i, size(comm)
			break
		}
		for _, from := range senders[comm] {
			for to := range size(comm) {
				if to != from {
					add(comm, from, to, m.nominal.toAll[nominalKey{comm, from}])
				}
			}
		}
	}
	for pair, t := range m.nominal.to {
		if !covered[pair[0].comm] {
			add(pair[0].comm, pair[0].rank, pair[1].rank, t)
		}
	}
	return flows, tooLarge, least
}
