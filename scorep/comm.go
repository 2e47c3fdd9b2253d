// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/experiment"
	"github.com/nccl-otf2/nccl-otf2/otf2"
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
	parted  *parting // nil: its members paused alike, if at all

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

func (m *member) shard() *experiment.Comm { return &m.part.process.Comms[m.comm] }

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
	if in.unsized && rank >= len(in.members) {
		in.members = append(in.members, make([]*member, rank+1-len(in.members))...)
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
//
// The error tells of more ranks without data than can be shown.
func findInstances(parts []*part) ([]*instance, error) {
	type key struct {
		id     uint64
		nranks int
	}
	type user struct {
		key  key
		part *part
		gpu  int
	}
	var order []*member
	for _, p := range parts {
		for i := range p.process.Comms {
			if m := (&member{part: p, comm: i}); !unannounced(m.shard()) {
				order = append(order, m)
			}
		}
	}
	slices.SortStableFunc(order, func(a, b *member) int { return cmp.Compare(a.begin(), b.begin()) })

	var all []*instance
	free := absentees(maxAbsent + len(order))
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
		open[k] = withoutPast(open[k], m.begin())
		for _, in := range slices.Backward(open[k]) {
			if in.admits(m) && (home == nil || turn[in] == mine && turn[home] != mine) {
				home = in
			}
		}
		known := 0
		if home != nil {
			known = home.nranks
		}
		if err := free.take(max(c.NRanks, c.Rank+1)-known, m.part, "communicator", m.comm); err != nil {
			return nil, err
		}
		if home == nil {
			home = &instance{id: c.ID, nranks: c.NRanks, unsized: unsized(c), members: make([]*member, c.NRanks), together: make(map[string]lifespan)}
			open[k] = append(open[k], home)
			all = append(all, home)
			turn[home] = mine
		}
		home.add(m)
	}
	return all, nil
}

// maxAbsent bounds how many ranks without data all communicators of a directory have together: each is an entry in the
// lists of their members. A description that is damaged does not get near it, as one communicator has shard.MaxRanks at most.
var maxAbsent = 1 << 24

// absentees is how many more ranks without data there may be.
type absentees int

// take counts the ranks that something of a process adds. The error names it.
func (n *absentees) take(ranks int, p *part, what string, index int) error {
	if *n -= absentees(max(ranks, 0)); *n >= 0 {
		return nil
	}
	return fmt.Errorf("%s: %s %d adds %d ranks, and with it more than %d have no data: that is more than an archive can name",
		filepath.Join(p.dir, definitionFile), what, index, ranks, maxAbsent)
}

// withoutPast leaves out the first communicators of a list that were over, on every clock, before a time: none that begins then or
// later is of them.
func withoutPast(open []*instance, t uint64) []*instance {
	for len(open) > 0 && later(t, open[0].together[anyBoot].end, clockSlack) {
		open = open[1:]
	}
	return open
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
