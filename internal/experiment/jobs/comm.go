// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/commid"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Communicator is one communicator: the ranks that one collective ncclCommInit… made.
//
// NCCL's commId alone does not name it: ids come back (communicators made and destroyed in turn,
// children of splits), so members must also agree in size, hold distinct ranks, and live together.
//
// A GPU holds one rank of a communicator.
type Communicator struct {
	id      uint64
	Nranks  int
	Unsized bool    // NCCL never reported the size: nranks is what the known ranks give, at least
	Members []*Rank // by rank; nil: no data of this rank was found
	Name    string  // unique in the archive, set by nameInstances
	Ref     otf2.CommRef
	Parted  *parting      // nil: its members paused at the same operations, if at all
	Parent  *Communicator // that it was split from, or is a shrink of; nil: none that is known. Set by FindParents
	Birth   commid.Birth  // if it has a parent
	World   []int         // by rank: the rank in the world, −1 where nobody knows it; nil before Arrange

	together map[string]Lifespan // by boot, "" for all: when all members so far were alive
}

// Lifespan is a stretch of time.
type Lifespan struct{ Begin, End uint64 }

// Meets reports whether two stretches overlap, or miss each other by no more than slack.
func (a Lifespan) Meets(b Lifespan, slack uint64) bool {
	return !later(a.Begin, b.End, slack) && !later(b.Begin, a.End, slack)
}

// Rank is one communicator rank of one process.
type Rank struct {
	Process  *Process
	Index    int // index into the process's Comms
	Location otf2.LocationRef
}

// Comm is the communicator as the rank's process describes it.
func (m *Rank) Comm() *experiment.Comm { return &m.Process.Shard.Comms[m.Index] }

// world is a rank's number in the world; where nobody knows that, the one in the communicator.
func (in *Communicator) world(rank int) int {
	if rank < len(in.World) && in.World[rank] >= 0 {
		return in.World[rank]
	}
	return rank
}

func (m *Rank) begin() uint64 { return m.Process.roughly(m.Comm().InitTime) }

// end is when the rank was finalized. Without that it lived on after its process's last event,
// nobody knows how long; the members of a communicator begin within less than endSlack.
func (m *Rank) end() uint64 {
	if t := m.Comm().FinalTime; t != 0 {
		return m.Process.roughly(t)
	}
	end := m.Process.End()
	return max(end, end+endSlack) // not beyond the largest number
}

const endSlack = 1_000_000_000

// begin is when the first member came to life, for ordering.
func (in *Communicator) begin() uint64 {
	first := uint64(math.MaxUint64)
	for m := range in.Present() {
		first = min(first, m.begin())
	}
	return first
}

// Present yields the members with data in rank order.
func (in *Communicator) Present() func(yield func(*Rank) bool) {
	return func(yield func(*Rank) bool) {
		for _, m := range in.Members {
			if m != nil && !yield(m) {
				return
			}
		}
	}
}

// Missing lists the ranks without data.
func (in *Communicator) Missing() []int {
	var ranks []int
	for r, m := range in.Members {
		if m == nil {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// admits reports whether a communicator rank can belong to the instance: its place is free and it lived together with
// every member. All members of a communicator are alive at one time at least, when its initialization ends. Between
// machines clocks are compared as exactly as their leads are known.
func (in *Communicator) admits(m *Rank) bool {
	rank := m.Comm().Rank
	if rank < len(in.Members) && in.Members[rank] != nil {
		return false
	}
	if gpu := m.Comm().GPU; !in.Unsized && gpu >= 0 && gpu < len(m.Process.Shard.GPUs) {
		for o := range in.Present() {
			if o.Process == m.Process && o.Comm().GPU == gpu {
				return false
			}
		}
	}
	life := Lifespan{m.begin(), m.end()}
	if boot := m.Process.Shard.BootID; boot != "" {
		if near, ok := in.together[boot]; ok && !near.Meets(life, 0) {
			return false
		}
	}
	return in.together[anyBoot].Meets(life, clockSlack)
}

func (in *Communicator) add(m *Rank) {
	rank := m.Comm().Rank
	if in.Unsized && rank >= len(in.Members) {
		in.Members = append(in.Members, make([]*Rank, rank+1-len(in.Members))...)
		in.Nranks = len(in.Members)
	}
	in.Members[rank] = m
	for _, boot := range []string{anyBoot, m.Process.Shard.BootID} {
		t, ok := in.together[boot]
		if !ok {
			t = Lifespan{0, math.MaxUint64}
		}
		in.together[boot] = Lifespan{max(t.Begin, m.begin()), min(t.End, m.end())}
	}
}

const anyBoot = ""

// later reports t > limit + slack without overflow.
func later(t, limit, slack uint64) bool { return t > limit && t-limit > slack }

// findInstances sorts the communicator ranks of all processes into communicators.
//
// Members are taken in the order of their initialization. One that fits several communicators, because
// they live at one time (NCCL_COMM_ID gives all one id, and so do two shrinks of one parent), goes
// where its turn is: programs make communicators in the same order on all members, so what is the
// process's second one of an id, size and GPU belongs to the second instance. Without such a one it
// takes the one begun nearest before it.
//
// The error tells of more ranks without data than can be shown.
func findInstances(parts []*Process) ([]*Communicator, error) {
	type user struct {
		key  key
		part *Process
		gpu  int
	}
	order := ranksByBegin(parts)
	var all []*Communicator
	free := Absentees(MaxAbsent + len(order))
	open := make(map[key][]*Communicator)
	calls := make(map[user]int)
	turn := make(map[*Communicator]int) // of its first member
	for _, m := range order {
		c := m.Comm()
		if unsized(c) && (c.ID == 0 || c.Rank < 0) {
			all = append(all, &Communicator{Unsized: true, Nranks: 1, Members: []*Rank{m}}) // nobody knows whose
			continue
		}
		k := key{c.ID, c.NRanks}
		u := user{k, m.Process, c.GPU}
		mine := calls[u]
		calls[u]++
		var home *Communicator
		open[k] = withoutPast(open[k], m.begin())
		for _, in := range slices.Backward(open[k]) {
			if in.admits(m) && (home == nil || cmp.Or(
				cmp.Compare(turns(turn[in], mine), turns(turn[home], mine)),
				cmp.Compare(in.started(m), home.started(m))) < 0) {
				home = in
			}
		}
		known := 0
		if home != nil {
			known = home.Nranks
		}
		if err := free.Take(max(c.NRanks, c.Rank+1)-known, m.Process, "communicator", m.Index); err != nil {
			return nil, err
		}
		if home == nil {
			home = &Communicator{id: c.ID, Nranks: c.NRanks, Unsized: unsized(c), Members: make([]*Rank, c.NRanks),
				together: make(map[string]Lifespan)}
			open[k] = append(open[k], home)
			all = append(all, home)
			turn[home] = mine
		}
		home.add(m)
	}
	return all, nil
}

// turns is 0 for a communicator whose turn it is, else 1.
func turns(of, mine int) int {
	if of == mine {
		return 0
	}
	return 1
}

// started is by how much the starts of a rank's process and of the nearest of a communicator's on its machine differ,
// in the system's ticks. It decides between jobs of equal times: a program's own clock says nothing of when it ran.
func (in *Communicator) started(m *Rank) uint64 {
	nearest := uint64(math.MaxUint64)
	for o := range in.Present() {
		if p, q := o.Process.Shard, m.Process.Shard; p.BootID == q.BootID && p.BootID != "" {
			nearest = min(nearest, max(p.PIDStart, q.PIDStart)-min(p.PIDStart, q.PIDStart))
		}
	}
	return nearest
}

// ranksByBegin are the communicator ranks of processes in the order of their initialization.
func ranksByBegin(parts []*Process) (order []*Rank) {
	for _, p := range parts {
		for i := range p.Shard.Comms {
			if m := (&Rank{Process: p, Index: i}); !unannounced(m.Comm()) {
				order = append(order, m)
			}
		}
	}
	slices.SortStableFunc(order, func(a, b *Rank) int { return cmp.Compare(a.begin(), b.begin()) })
	return order
}

// MaxAbsent bounds how many ranks without data all communicators of a directory have together: each is an entry in the
// lists of their members. A description that is damaged does not get near it, as one communicator has
// experiment.MaxRanks at most.
var MaxAbsent = 1 << 24

// Absentees is how many more ranks without data there may be.
type Absentees int

// Take counts the ranks that something of a process adds. The error names it.
func (n *Absentees) Take(ranks int, p *Process, what string, index int) error {
	if *n -= Absentees(max(ranks, 0)); *n >= 0 {
		return nil
	}
	return fmt.Errorf(
		"%s: %s %d adds %d ranks, and with it more than %d have no data: that is more than an archive can name",
		filepath.Join(p.dir, experiment.ProcessFile), what, index, ranks, MaxAbsent)
}

// withoutPast leaves out the first communicators of a list that were over, on every clock, before a time: none that
// begins then or later is of them.
func withoutPast(open []*Communicator, t uint64) []*Communicator {
	for len(open) > 0 && later(t, open[0].together[anyBoot].End, clockSlack) {
		open = open[1:]
	}
	return open
}

// NameInstances gives every communicator of an archive its own name: as the user named it, else by
// its id. Further ones of a name are numbered from 2 in the order of their begin.
func NameInstances(instances []*Communicator) {
	count := make(map[string]int)
	for _, in := range instances {
		name := fmt.Sprintf("ncclComm %#x", in.id)
		if in.Unsized && in.id == 0 {
			name = "unknown communicator"
		}
		for m := range in.Present() {
			if n := m.Comm().Name; n != "" {
				name = n
				break
			}
		}
		count[name]++
		if n := count[name]; n > 1 {
			name = fmt.Sprintf("%s #%d", name, n)
		}
		in.Name = name
	}
}
