// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions/gpuclock"
)

// What host and device count of each plan, for giving stamps back that were handed to later plans (package gpuclock).
// How NCCL makes works of operations stands in docs/nccl-profiler-api.md §7.4.

// Releases in which the host does not count messages to oneself, and reports stamps; from the second one on they are on
// the first channels, before that on one channel they are on the first one.
const (
	firstParting = 22700
	firstInOrder = 22800
	firstCounted = 23100
)

// follow returns the plans at the head of a queue that are complete what is to be known of their works, in order and
// once.
func (ti *timing) follow(c *commRank) {
	for ; c.followed < len(c.queue); c.followed++ {
		p := c.queue[c.followed]
		if p.completeAt == 0 {
			return
		}
		switch {
		case p.measurement != 0 || p.uncertainCount():
			c.stamps.Uncounted()
		case c.stamps.Follows() || ti.mayPart(p):
			c.stamps.Follow(&p.stamps, ti.bounds(p), ti.works(p))
		}
	}
}

// releases are the first that ask for a version of the API.
var releases = map[int]int{4: 22700, 5: 22800, 6: 22900, 7: 23100}

// countsAlone takes note of calls of which nothing more was reported, which have come to ascending places in the queue.
// Several in one group are Broadcasts of several roots, which the device alone counts.
func (ti *timing) countsAlone(c *commRank, places []int) {
	for _, place := range places {
		if place < c.followed {
			c.followed++
			c.stamps.Uncounted()
		}
	}
	first := slices.IndexFunc(places, func(place int) bool {
		return place > 0 && c.queue[place-1].callOnly && c.queue[place-1].newest() == c.queue[place].newest()
	})
	if first < 0 || ti.release() >= firstCounted {
		return
	}
	next := c.issued + 1
	for _, later := range c.queue[places[first]+1:] {
		if later.stamps.Number > 0 {
			next = later.stamps.Number
			break
		}
	}
	c.stamps.Suspect(next)
}

// release is NCCL's, at least: where it is not known, the first with its API.
func (ti *timing) release() int {
	return cmp.Or(ti.process.LibraryVersion, releases[ti.process.APIVersion])
}

// uncertainCount reports whether host and device may have counted a plan, or others at its place, in ways that nobody
// tells.
func (p *plan) uncertainCount() bool { return p.graph || p.captureOnly || p.gone != nil }

// works are what the host and the device have counted of a plan.
func (ti *timing) works(p *plan) (w gpuclock.Works) {
	v := ti.release()
	switch {
	case v < firstParting || v >= firstCounted || ti.opts.Paradigm != otf2.ParadigmCUDA ||
		!ti.records(shm.EventKernelCh) || ti.opts.Resume != nil,
		ti.opts.LostParts != nil && ti.opts.LostParts():
		w.Uncounted = true
		return w
	case p.callOnly && p.sharesGroup(): // Broadcasts of several roots
		w.Uncounted = true
		return w
	}
	w.Own, w.Uncounted = p.ownMessages(v)
	numbers, ok := p.workNumbers()
	ok = ok && !p.callOnly && !p.incomplete && p.stamps.Unstamped == 0 && !p.sharesGroup()
	for _, op := range p.ops {
		// Not counted: symmetric kernels, copies, and where it is not known how many there are.
		ok = ok && op.task && !op.sym && !op.copied && !op.anyChannels && op.kernelsDone == op.kernelsDue()
	}
	if ok {
		w.Host, ok = p.hostWorks(numbers)
	}
	w.Unsure = !ok
	return w
}

// sharesGroup reports whether its group of calls has one of which NCCL reported nothing more, whose kernel may be
// anywhere among the group's.
func (p *plan) sharesGroup() bool {
	c, group := p.comm, p.newest()
	if c.calls.collectives[group] > 0 {
		return true
	}
	for _, o := range c.queue[c.followed+1:] {
		if o.newest() != group {
			return false
		}
		if o.callOnly {
			return true
		}
	}
	return false
}

// ownMessages are the plan's messages to oneself, each with the number of its channels. bad: they are not as is known.
func (p *plan) ownMessages(version int) (channels []int, bad bool) {
	var sent, received []int
	for _, op := range p.ops {
		switch {
		case !op.p2p || int(op.peer) != p.comm.Rank:
		case op.name == "Send":
			sent = append(sent, int(op.channels))
		default:
			received = append(received, int(op.channels))
		}
	}
	if len(sent) != len(received) {
		return nil, true
	}
	for i, n := range sent {
		n = max(n, received[i])
		if n < 1 || n > 64 || n > 1 && version < firstInOrder {
			return nil, true
		}
		channels = append(channels, n)
	}
	return channels, false
}

// workNumbers gives each operation of a plan the number of its work: a message sent and the one received in the same
// round of NCCL's schedule are one. False if that cannot be told.
func (p *plan) workNumbers() ([]int32, bool) {
	numbers := make([]int32, len(p.ops))
	for i, op := range p.ops {
		numbers[i] = int32(i)
		if i == 0 || !op.p2p || op.name == "Send" || p.ops[i-1].name != "Send" || int(op.peer) == p.comm.Rank {
			continue
		}
		paired, known := p.comm.inOneRound(p.ops[i-1].peer, op.peer)
		if !known && !p.exchangesAll() {
			return nil, false
		}
		if paired || !known {
			numbers[i] = int32(i - 1)
		}
	}
	return numbers, true
}

// inOneRound reports whether the ranks that a message is sent to and received from are those of one round. That is
// known where ranks are as many as hosts, or all on one.
func (c *commRank) inOneRound(to, from int32) (paired, known bool) {
	n := int32(c.NRanks)
	if n == 0 || c.NNodes != 1 && c.NNodes != c.NRanks {
		return false, false
	}
	rank := int32(c.Rank)
	return (to-rank+n)%n == (rank-from+n)%n, true
}

// exchangesAll reports whether a plan sends a message to each other rank and receives one from each: then all rounds
// have both.
func (p *plan) exchangesAll() bool {
	sent, received := make(map[int32]int), make(map[int32]int)
	for _, op := range p.ops {
		switch {
		case !op.p2p:
			return false
		case int(op.peer) == p.comm.Rank:
		case op.name == "Send":
			sent[op.peer]++
		default:
			received[op.peer]++
		}
	}
	for r, n := range sent {
		if n != 1 || received[r] != 1 {
			return false
		}
	}
	return len(sent) == p.comm.NRanks-1 && len(received) == len(sent)
}

// hostWorks are the works of a plan that the host counted, with their stamps. False if these are not as works' are:
// both messages of a work have the same.
func (p *plan) hostWorks(numbers []int32) ([]gpuclock.Kernel, bool) {
	type place struct {
		channel uint8
		work    int32
	}
	at := make(map[place]int)
	var works []gpuclock.Kernel
	for _, k := range p.stamps.Kernels {
		pl := place{k.Channel, numbers[k.Operation]}
		i, again := at[pl]
		if !again {
			at[pl] = len(works)
			works = append(works, k)
			continue
		}
		w := &works[i]
		if w.Operation == k.Operation || w.Begin != k.Begin || w.End != k.End {
			return nil, false
		}
		w.Began, w.Ended = min(w.Began, k.Began), min(w.Ended, k.Ended)
	}
	// In the order of the plan's works, as the device has them.
	slices.SortStableFunc(works, func(a, b gpuclock.Kernel) int { return int(a.Operation - b.Operation) })
	return works, true
}
