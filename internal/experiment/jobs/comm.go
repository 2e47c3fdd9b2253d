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
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Communicator is one communicator: the ranks that one collective ncclCommInit… made.
//
// NCCL's commId alone does not identify it: ids recur (communicators made and destroyed in turn, children of splits),
// so members must also agree in size, hold distinct ranks, and live at one time.
//
// A GPU holds one rank of a communicator.
type Communicator struct {
	ID      uint64
	Nranks  int
	Unsized bool    // NCCL never reported the size: Nranks is a lower bound from the known ranks
	Members []*Rank // by rank; nil: no data of this rank was found
	Name    string  // unique in the archive, set by nameInstances
	Ref     otf2.CommRef
	Parted  *parting      // nil: its members paused at the same operations, or never
	Parent  *Communicator // of its split or shrink; nil: none known. Set by FindParents
	Birth   commid.Birth  // if it has a parent
	World   []int         // by rank: the rank in the world, −1 if unknown; nil before Arrange

	together map[string]Lifespan // by boot, "" for all: when all members so far were alive
}

// Lifespan is a stretch of time.
type Lifespan struct{ Begin, End uint64 }

// Overlaps reports whether two stretches overlap, or miss each other by at most slack.
func (a Lifespan) Overlaps(b Lifespan, slack uint64) bool {
	return !isAfter(a.Begin, b.End, slack) && !isAfter(b.Begin, a.End, slack)
}

// Rank is one communicator rank of one process.
type Rank struct {
	Process  *Process
	Index    int // index into the process's Comms
	Location otf2.LocationRef
}

// Comm is the communicator as the rank's process describes it.
func (m *Rank) Comm() *description.Comm { return &m.Process.Shard.Comms[m.Index] }

// world returns a rank's number in the world; if that is unknown, the one in the communicator.
func (in *Communicator) world(rank int) int {
	if rank < len(in.World) && in.World[rank] >= 0 {
		return in.World[rank]
	}
	return rank
}

func (m *Rank) begin() uint64 { return m.Process.roughly(m.Comm().InitTime) }

// endTime returns when the rank was finalized. If that is unknown it lived on after its process's last event; the
// members of a communicator begin within less than endSlack.
func (m *Rank) endTime() uint64 {
	if t := m.Comm().FinalTime; t != 0 {
		return m.Process.roughly(t)
	}
	end := m.Process.End()
	return max(end, end+endSlack) // not beyond the largest number
}

const endSlack = 1_000_000_000

// beginTime returns the earliest begin of a member, for ordering.
func (in *Communicator) beginTime() uint64 {
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

// admits reports whether a communicator rank can belong to the instance: its rank is free and it lived together with
// every member. All members of a communicator are alive at one time, when its initialization ends. Clocks of different
// machines are compared as exactly as their leads are known.
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
	life := Lifespan{m.begin(), m.endTime()}
	if boot := m.Process.Shard.BootID; boot != "" {
		if near, ok := in.together[boot]; ok && !near.Overlaps(life, 0) {
			return false
		}
	}
	return in.together[anyBoot].Overlaps(life, clockSlack)
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
		in.together[boot] = Lifespan{max(t.Begin, m.begin()), min(t.End, m.endTime())}
	}
}

const anyBoot = ""

// isAfter reports t > limit + slack without overflow.
func isAfter(t, limit, slack uint64) bool { return t > limit && t-limit > slack }

// findInstances sorts the communicator ranks of all processes into communicators.
//
// Members are taken in the order of their initialization. One that fits several communicators that live at one time
// (NCCL_COMM_ID gives all one id, and so do two shrinks of one parent) is placed by its turn: programs make
// communicators in the same order on all members, so the process's second one of an id, size and GPU belongs to the
// second instance. Otherwise it joins the latest one begun before it.
//
// The error reports more ranks without data than MaxAbsent.
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
			all = append(all, &Communicator{Unsized: true, Nranks: 1, Members: []*Rank{m}}) // of unknown relation
			continue
		}
		k := key{c.ID, c.NRanks}
		u := user{k, m.Process, c.GPU}
		mine := calls[u]
		calls[u]++
		var home *Communicator
		open[k] = withoutPast(open[k], m.begin())
		for _, in := range slices.Backward(open[k]) {
			if in.admits(m) && (home == nil || cmp.Or(cmp.Compare(turnRank(turn[in], mine), turnRank(turn[home], mine)),
				cmp.Compare(in.started(m), home.started(m))) < 0) {
				home = in
			}
		}
		known := 0
		if home != nil {
			known = home.Nranks
		}
		if err := free.Count(max(c.NRanks, c.Rank+1)-known, m.Process, "communicator", m.Index); err != nil {
			return nil, err
		}
		if home == nil {
			home = &Communicator{ID: c.ID, Nranks: c.NRanks, Unsized: unsized(c), Members: make([]*Rank, c.NRanks),
				together: make(map[string]Lifespan)}
			open[k] = append(open[k], home)
			all = append(all, home)
			turn[home] = mine
		}
		home.add(m)
	}
	return all, nil
}

// turnRank returns 0 for a communicator whose turn it is, else 1.
func turnRank(of, mine int) int {
	if of == mine {
		return 0
	}
	return 1
}

// started returns the difference between the starts of a rank's process and of the communicator's nearest process on
// its machine, in the system's ticks. It decides between jobs with equal times: a program's own clock does not show
// when it ran.
func (in *Communicator) started(m *Rank) uint64 {
	nearest := uint64(math.MaxUint64)
	for o := range in.Present() {
		if p, q := o.Process.Shard, m.Process.Shard; p.BootID == q.BootID && p.BootID != "" {
			nearest = min(nearest, max(p.PIDStart, q.PIDStart)-min(p.PIDStart, q.PIDStart))
		}
	}
	return nearest
}

// ranksByBegin returns the communicator ranks of processes in the order of their initialization.
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

// MaxAbsent bounds the ranks without data in all communicators of a directory: each is an entry in the lists of their
// members. Undamaged descriptions stay far below, as one communicator has at most description.MaxRanks.
var MaxAbsent = 1 << 24

// Absentees is the number of further ranks without data that are allowed.
type Absentees int

// Count counts the ranks without data of one object of a process. The error names the object.
func (n *Absentees) Count(ranks int, p *Process, what string, index int) error {
	if *n -= Absentees(max(ranks, 0)); *n >= 0 {
		return nil
	}
	return fmt.Errorf(
		"%s: %s %d adds %d ranks, and with it more than %d have no data: that is more than an archive can name",
		filepath.Join(p.dir, experiment.ProcessFile), what, index, ranks, MaxAbsent)
}

// withoutPast removes the first communicators of a list that had ended, on every clock, before a time: no later member
// belongs to them.
func withoutPast(open []*Communicator, t uint64) []*Communicator {
	for len(open) > 0 && isAfter(t, open[0].together[anyBoot].End, clockSlack) {
		open = open[1:]
	}
	return open
}

// NameInstances gives every communicator of an archive a unique name: the user's name for it, else its id. Further ones
// with a name are numbered from 2 in the order of their begin.
func NameInstances(instances []*Communicator) {
	count := make(map[string]int)
	for _, in := range instances {
		name := fmt.Sprintf("ncclComm %#x", in.ID)
		if in.Unsized && in.ID == 0 {
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
