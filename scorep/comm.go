// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"ncclotf2/otf2"
	"ncclotf2/shard"
)

// clockSlack is by how much the clocks of two machines may differ when lifetimes are compared, in ns.
const clockSlack = 1_000_000_000

// instance is one communicator: the ranks that one collective ncclCommInit… made.
//
// NCCL's commId alone does not name it: ids come back (communicators made and destroyed in turn,
// children of splits), so members must also agree in size, hold distinct ranks, and live together.
//
// A GPU holds one rank of a communicator.
type instance struct {
	id      uint64
	nranks  int
	unsized bool      // NCCL never told the size: nranks is what the known ranks give, at least
	members []*member // by rank; nil: no data of this rank was found
	name    string    // unique in the archive, set by nameInstances
	ref     otf2.CommRef
	base    *instance // the communicator whose ranks this one continues, see heirs; nil: its own
	parted  *parting  // nil: its members paused alike, if at all

	together map[string]lifespan // by boot, "" for all: when all members so far were alive
}

// lifespan is a stretch of time.
type lifespan struct{ begin, end uint64 }

// meets tells whether two stretches overlap, or miss each other by no more than slack.
func (a lifespan) meets(b lifespan, slack uint64) bool {
	return !later(a.begin, b.end, slack) && !later(b.begin, a.end, slack)
}

// member is one communicator rank of one process.
type member struct {
	part     *part
	comm     int // index into the process's Comms
	location otf2.LocationRef
}

func (m *member) shard() *shard.Comm { return &m.part.process.Comms[m.comm] }

func (m *member) begin() uint64 { return m.part.at(m.shard().InitTime) }

// end is when the rank was finalized. Without that it lived on after its process's last event,
// nobody knows how long; the members of a communicator begin within less than endSlack.
func (m *member) end() uint64 {
	if t := m.shard().FinalTime; t != 0 {
		return m.part.at(t)
	}
	end := m.part.end()
	return max(end, end+endSlack) // not beyond the largest number
}

const endSlack = 1_000_000_000

// begin is when the first member came to life, for ordering.
func (in *instance) begin() uint64 {
	first := uint64(math.MaxUint64)
	for m := range in.present() {
		first = min(first, m.begin())
	}
	return first
}

// present yields the members with data in rank order.
func (in *instance) present() func(yield func(*member) bool) {
	return func(yield func(*member) bool) {
		for _, m := range in.members {
			if m != nil && !yield(m) {
				return
			}
		}
	}
}

// missing lists the ranks without data.
func (in *instance) missing() []int {
	var ranks []int
	if in.base != nil {
		return nil // those that it does not continue are there in the other
	}
	for r, m := range in.members {
		if m == nil {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// admits tells whether a communicator rank can belong to the instance: its place is free and it
// lived together with every member. All members of a communicator are alive at one time at least,
// when its initialisation ends. Between machines the clocks' difference is allowed for.
func (in *instance) admits(m *member) bool {
	rank := m.shard().Rank
	if rank < len(in.members) && in.members[rank] != nil {
		return false
	}
	if gpu := m.shard().GPU; !in.unsized && gpu >= 0 && gpu < len(m.part.process.GPUs) {
		for o := range in.present() {
			if o.part == m.part && o.shard().GPU == gpu {
				return false
			}
		}
	}
	life := lifespan{m.begin(), m.end()}
	if boot := m.part.process.BootID; boot != "" {
		if near, ok := in.together[boot]; ok && !near.meets(life, 0) {
			return false
		}
	}
	return in.together[anyBoot].meets(life, clockSlack)
}

func (in *instance) add(m *member) {
	rank := m.shard().Rank
	for in.unsized && rank >= len(in.members) {
		in.members = append(in.members, nil)
		in.nranks = len(in.members)
	}
	in.members[rank] = m
	for _, boot := range []string{anyBoot, m.part.process.BootID} {
		t, ok := in.together[boot]
		if !ok {
			t = lifespan{0, math.MaxUint64}
		}
		in.together[boot] = lifespan{max(t.begin, m.begin()), min(t.end, m.end())}
	}
}

const anyBoot = ""

// later reports t > limit + slack without overflow.
func later(t, limit, slack uint64) bool { return t > limit && t-limit > slack }

// findInstances sorts the communicator ranks of all processes into communicators.
//
// Members are taken in the order of their initialisation. One that fits several communicators, because
// they live at one time (NCCL_COMM_ID gives all one id, and so do two shrinks of one parent), goes
// where its turn is: programs make communicators in the same order on all members, so what is the
// process's second one of an id, size and GPU belongs to the second instance. Without such a one it
// takes the one begun nearest before it.
func findInstances(parts []*part) []*instance {
	type key struct {
		id     uint64
		nranks int
	}
	type user struct {
		key  key
		part *part
		gpu  int
	}
	var order, heirs []*member
	for _, p := range parts {
		for i := range p.process.Comms {
			m := &member{part: p, comm: i}
			switch {
			case unannounced(m.shard()):
			case m.earlier() != nil:
				heirs = append(heirs, m)
			default:
				order = append(order, m)
			}
		}
	}
	slices.SortStableFunc(order, func(a, b *member) int { return cmp.Compare(a.begin(), b.begin()) })

	var all []*instance
	open := make(map[key][]*instance)
	turns := make(map[user]int)
	turn := make(map[*instance]int) // of its first member
	for _, m := range order {
		c := m.shard()
		if unsized(c) && (c.ID == 0 || c.Rank < 0) {
			all = append(all, &instance{unsized: true, nranks: 1, members: []*member{m}}) // nobody knows whose
			continue
		}
		k := key{c.ID, c.NRanks}
		u := user{k, m.part, c.GPU}
		mine := turns[u]
		turns[u]++
		var home *instance
		for _, in := range slices.Backward(open[k]) {
			if in.admits(m) && (home == nil || turn[in] == mine && turn[home] != mine) {
				home = in
			}
		}
		if home == nil {
			home = &instance{id: c.ID, nranks: c.NRanks, unsized: unsized(c), members: make([]*member, c.NRanks), together: make(map[string]lifespan)}
			open[k] = append(open[k], home)
			all = append(all, home)
			turn[home] = mine
		}
		home.add(m)
	}
	return append(all, continued(all, heirs)...)
}

// earlier is the same communicator rank in the shard that this one's continues; nil: it was made later. A rank's place in
// the list is the plugin's, which uses none twice in a process's life. Times do not tell: each collector converts the
// process's ticks by its own readings of the clocks.
func (m *member) earlier() *member {
	q := m.part.continues
	if q == nil || m.comm >= len(q.process.Comms) {
		return nil
	}
	c, was := m.shard(), &q.process.Comms[m.comm]
	if unannounced(was) || was.ID != c.ID || was.NRanks != c.NRanks || was.Rank != c.Rank {
		return nil
	}
	return &member{part: q, comm: m.comm}
}

// first is the communicator rank in the shard of the process's life in which it was made.
func (m *member) first() *member {
	for e := m.earlier(); e != nil; e = m.earlier() {
		m = e
	}
	return m
}

// continued makes the communicators of ranks that were already members when another collector took over
// their process. A rank has one location in a communicator, and what the second collector wrote is
// another location. So what it wrote is on a communicator of its own, in which the ranks of all other
// processes are those of the first.
//
// Several ranks share one if what they recorded there begins with the same operations: then these belong together by
// their order, as readers take it. If not they have one each, and their operations have no counterparts.
func continued(all []*instance, heirs []*member) (more []*instance) {
	type place struct {
		part *part
		comm int
	}
	type key struct {
		base       *instance
		generation int
	}
	home := make(map[place]*instance)
	for _, in := range all {
		for m := range in.present() {
			home[place{m.part, m.comm}] = in
		}
	}
	made := make(map[key][]*instance)
	begins := make(map[*member]beginning)
	slices.SortStableFunc(heirs, func(a, b *member) int { return cmp.Compare(a.part.generation, b.part.generation) })
	for _, m := range heirs {
		begins[m] = m.beginning()
		first := m.first()
		base := home[place{first.part, first.comm}]
		k := key{base, m.part.generation - first.part.generation}
		var in *instance
		for _, other := range made[k] {
			fits := true
			for o := range other.present() {
				fits = fits && begins[o].meets(begins[m])
			}
			if fits {
				in = other
				break
			}
		}
		if in == nil {
			in = &instance{id: base.id, nranks: base.nranks, unsized: base.unsized, base: base, members: make([]*member, len(base.members))}
			made[k] = append(made[k], in)
			more = append(more, in)
		}
		for rank, o := range base.members {
			if o != nil && o.part == first.part && o.comm == m.comm {
				in.members[rank] = m
			}
		}
	}
	return more
}

// beginning is with which operations the part of a communicator rank's life begins that a shard has.
type beginning struct {
	rank   int
	before map[string]uint64 // how many earlier collectors had taken, by the keys of its sequences
	known  bool
}

// beginning counts what the shards that this one's continues have of a communicator rank, and what their collectors
// held in memory when they died. Of calls whose operations they had not seen yet nobody knows: those may follow, or not.
func (m *member) beginning() beginning {
	b := beginning{rank: m.shard().Rank, before: make(map[string]uint64), known: true}
	for m = m.earlier(); m != nil; m = m.earlier() {
		for f, s := range m.shard().Sequences {
			b.before[f] += s.Count
		}
		lost, calls := m.part.process.Unwritten(m.comm)
		for f, n := range lost {
			b.before[f] += n
		}
		b.known = b.known && calls == 0
	}
	return b
}

// meets tells that the n-th operation of each function is the same one for two ranks of a communicator, and the n-th
// message between them.
func (b beginning) meets(o beginning) bool {
	return b.known && o.known && b.agrees(o) && o.agrees(b)
}

func (b beginning) agrees(o beginning) bool {
	there, back := pair{b.rank, o.rank}, pair{o.rank, b.rank}
	if b.before[there.sendKey()] != o.before[there.recvKey()] || b.before[back.recvKey()] != o.before[back.sendKey()] {
		return false
	}
	for f, n := range b.before {
		if !strings.ContainsAny(f, "<>") && o.before[f] != n {
			return false
		}
	}
	return true
}

// nameInstances gives every communicator of an archive its own name: as the user named it, else by
// its id. Further ones of a name are numbered from 2 in the order of their begin.
func nameInstances(instances []*instance) {
	count := make(map[string]int)
	for _, in := range instances {
		name := fmt.Sprintf("ncclComm %#x", in.id)
		if in.unsized && in.id == 0 {
			name = "unknown communicator"
		}
		for m := range in.present() {
			if n := m.shard().Name; n != "" {
				name = n
				break
			}
		}
		count[name]++
		if n := count[name]; n > 1 {
			name = fmt.Sprintf("%s #%d", name, n)
		}
		in.name = name
	}
}
