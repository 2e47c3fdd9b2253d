// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions/gpuclock"
)

// The counts of host and device for each plan, from which package gpuclock returns shifted stamps to their plans.
// docs/nccl-profiler-api.md §7.4 describes how NCCL makes works of operations.

// Releases in which the host does not count messages to oneself, and reports stamps. From the second one on these
// messages use the first channels; before, a message on one channel uses the first one.
const (
	firstParting = 22700
	firstInOrder = 22800
	firstCounted = 23100
)

// followPlans passes the works of complete plans at the head of a queue to the filter, in order and once.
func (ti *timing) followPlans(c *commRank) {
	for ; c.queue.followed < len(c.queue.plans); c.queue.followed++ {
		p := c.queue.plans[c.queue.followed]
		if p.completion.at == 0 {
			return
		}
		switch {
		case p.measurement != 0 || p.uncertainCount():
			c.gpu.stamps.EndRealigning()
		case c.gpu.stamps.FollowsAll() || ti.mayPart(p):
			c.gpu.stamps.FollowPlan(&p.gpu.stamps, ti.planBounds(p), ti.countWorks(p))
		}
	}
}

// releases maps API versions to the first NCCL release with each.
var releases = map[int]int{4: 22700, 5: 22800, 6: 22900, 7: 23100}

// countsAlone takes calls without further reports, with ascending indexes in the queue. Several in one group are
// Broadcasts of several roots, which the device alone counts.
func (ti *timing) countsAlone(c *commRank, places []int) {
	for _, place := range places {
		if place < c.queue.followed {
			c.queue.followed++
			c.gpu.stamps.EndRealigning()
		}
	}
	first := slices.IndexFunc(places, func(place int) bool {
		return place > 0 && c.queue.plans[place-1].callOnly &&
			c.queue.plans[place-1].latestGroup() == c.queue.plans[place].latestGroup()
	})
	if first < 0 || ti.ncclRelease() >= firstCounted {
		return
	}
	next := c.queue.issued + 1
	for _, later := range c.queue.plans[places[first]+1:] {
		if later.gpu.stamps.Number > 0 {
			next = later.gpu.stamps.Number
			break
		}
	}
	c.gpu.stamps.SuspectFrom(next)
}

// ncclRelease returns NCCL's release, or the first one with its API if it is not known.
func (ti *timing) ncclRelease() int {
	return cmp.Or(ti.process.LibraryVersion, releases[ti.process.APIVersion])
}

// uncertainCount reports whether host and device may have counted a plan, or others in its place, in unknown ways.
func (p *plan) uncertainCount() bool { return p.graph || p.captureOnly || p.gone != nil }

// countWorks returns what the host and the device have counted of a plan.
func (ti *timing) countWorks(p *plan) (w gpuclock.Works) {
	v := ti.ncclRelease()
	switch {
	case v < firstParting || v >= firstCounted || ti.opts.Paradigm != otf2.ParadigmCUDA ||
		!ti.recordsType(shm.EventKernelCh) || ti.opts.Resume != nil,
		ti.opts.Source != nil && ti.opts.Source.LostParts():
		w.Uncounted = true
		return w
	case p.callOnly && p.sharesGroup(): // Broadcasts of several roots
		w.Uncounted = true
		return w
	}
	w.Own, w.Uncounted = p.ownMessages(v)
	numbers, ok := p.workNumbers()
	ok = ok && !p.callOnly && !p.completion.forced && p.gpu.stamps.Unstamped == 0 && !p.sharesGroup()
	for _, op := range p.ops {
		// Not counted: symmetric kernels, copies, and operations with an unknown number of kernels.
		ok = ok && op.task && !op.tuning.symmetric && !op.copies.byEngines && !op.tuning.anyChannels &&
			op.kernelsDone == op.kernelsDue()
	}
	if ok {
		w.Host, ok = p.hostWorks(numbers)
	}
	w.Unsure = !ok
	return w
}

// sharesGroup reports whether the plan's group has a call without further reports, whose kernel may be anywhere among
// the group's.
func (p *plan) sharesGroup() bool {
	c, group := p.comm, p.latestGroup()
	if c.calls.collectives[group] > 0 {
		return true
	}
	for _, o := range c.queue.plans[c.queue.followed+1:] {
		if o.latestGroup() != group {
			return false
		}
		if o.callOnly {
			return true
		}
	}
	return false
}

// ownMessages returns, for each message of the plan to oneself, the number of its channels. bad: they do not match the
// known rules.
func (p *plan) ownMessages(version int) (channels []int, bad bool) {
	var sent, received []int
	for _, op := range p.ops {
		switch {
		case !op.p2p || int(op.peer) != p.comm.Rank:
		case op.name == "Send":
			sent = append(sent, int(op.tuning.channels))
		default:
			received = append(received, int(op.tuning.channels))
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

// workNumbers returns the number of the work of each operation of a plan: a message sent and the one received in the
// same round of NCCL's schedule are one work. ok is false if that is not known.
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
// known if there are as many ranks as hosts, or one host.
func (c *commRank) inOneRound(to, from int32) (paired, known bool) {
	n := int32(c.NRanks)
	if n == 0 || c.NNodes != 1 && c.NNodes != c.NRanks {
		return false, false
	}
	rank := int32(c.Rank)
	return (to-rank+n)%n == (rank-from+n)%n, true
}

// exchangesAll reports whether a plan sends a message to each other rank and receives one from each: then every round
// has both.
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

// hostWorks returns the works of a plan that the host counted, with their stamps. ok is false if the two messages of a
// work have different stamps.
func (p *plan) hostWorks(numbers []int32) ([]gpuclock.Kernel, bool) {
	type place struct {
		channel uint8
		work    int32
	}
	at := make(map[place]int)
	var works []gpuclock.Kernel
	for _, k := range p.gpu.stamps.Kernels {
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
