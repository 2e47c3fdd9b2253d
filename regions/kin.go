// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"container/list"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/commid"
)

// kin has the communicator ranks of the process by what tells which of them are related, so that one more is placed in
// a time that does not grow with their number.
type kin struct {
	instances map[uint64]*instance // by the communicator's id, of those that have ranks which are not finalized
	alive     list.List            // of *instance, in the order of their first ranks
	siblings  map[split][]*commRank
	places    map[commPlace][]occupied // of the ranks that are not closed
	tries     uint64                   // splits that were looked at in searches for parents, so far
}

// instance is a communicator of which this process has ranks.
type instance struct {
	id     uint64
	ranks  []*commRank // not finalized
	listed *list.Element
	looked bool // for its parent
	parent uint64
	birth  commid.Birth
	splits uint32 // of it, as far as its children tell
}

// split is one split of a communicator.
type split struct {
	parent uint64
	count  uint32
}

// commPlace is where a communicator rank is likely to be found: where the same rank of as many was, after all inits or
// after splits of one communicator into the same color.
type commPlace struct {
	rank, nranks int
	parent       uint64
	color        uint32
}

// occupied is a GPU with communicator ranks of a place.
type occupied struct{ gpu, ranks int }

func newKin() kin {
	return kin{instances: make(map[uint64]*instance), siblings: make(map[split][]*commRank),
		places: make(map[commPlace][]occupied)}
}

func (c *commRank) place() commPlace { return commPlace{c.Rank, c.NRanks, c.parent, c.birth.Color} }

// join adds a communicator rank whose id is known.
func (k *kin) join(c *commRank) {
	in := k.instances[c.ID]
	if in == nil {
		in = &instance{id: c.ID}
		in.listed = k.alive.PushBack(in)
		k.instances[c.ID] = in
	}
	in.ranks = append(in.ranks, c)
}

// settle notes where a communicator rank is, and of which split.
func (k *kin) settle(c *commRank) {
	if of := (split{c.parent, c.birth.Count}); c.parent != 0 {
		k.siblings[of] = append(k.siblings[of], c)
	}
	at := k.places[c.place()]
	i := slices.IndexFunc(at, func(o occupied) bool { return o.gpu == c.GPU })
	if i < 0 {
		i, at = len(at), append(at, occupied{gpu: c.GPU})
	}
	at[i].ranks++
	k.places[c.place()] = at
}

// finalize takes out a communicator rank that NCCL has reported all of: no other comes from it.
func (k *kin) finalize(c *commRank) {
	if in := k.instances[c.ID]; in != nil {
		in.ranks = without(in.ranks, c)
		if len(in.ranks) == 0 {
			k.alive.Remove(in.listed)
			delete(k.instances, c.ID)
		}
	}
	if of := (split{c.parent, c.birth.Count}); c.parent != 0 {
		if k.siblings[of] = without(k.siblings[of], c); len(k.siblings[of]) == 0 {
			delete(k.siblings, of)
		}
	}
}

// vacate takes a communicator rank that is closed off its place.
func (k *kin) vacate(c *commRank) {
	if !c.announced {
		return
	}
	at := k.places[c.place()]
	i := slices.IndexFunc(at, func(o occupied) bool { return o.gpu == c.GPU })
	if i < 0 {
		return
	}
	if at[i].ranks--; at[i].ranks == 0 {
		at = slices.Delete(at, i, i+1)
	}
	if k.places[c.place()] = at; len(at) == 0 {
		delete(k.places, c.place())
	}
}

func without(all []*commRank, c *commRank) []*commRank {
	return slices.DeleteFunc(all, func(o *commRank) bool { return o == c })
}

// What a search for a parent takes at most.
const (
	maxParents = 256
	maxSplits  = 1024    // of a parent
	maxSkipped = 8       // splits after the latest one that is known, where it is not searched thoroughly
	maxTries   = 1 << 22 // after which nothing is searched thoroughly: some tens of milliseconds
)

// parentOf returns which communicator a rank's comes from, and how; 0 if that is not found. It is searched for once for
// all ranks of one communicator. A process that makes very many communicators is not searched thoroughly for the later
// ones' parents.
func (k *kin) parentOf(c *commRank) (uint64, commid.Birth) {
	in := k.instances[c.ID]
	if in.looked {
		return in.parent, in.birth
	}
	in.looked = true
	var parents []*instance
	for e, seen := k.alive.Front(), 0; e != nil && seen < 4*maxParents && len(parents) < maxParents; e, seen = e.Next(),
		seen+1 {
		if p := e.Value.(*instance); p != in && p.ranks[0].NRanks >= c.NRanks {
			parents = append(parents, p)
		}
	}
	for _, thorough := range []bool{false, true} {
		for _, p := range parents {
			first, last := max(p.splits, 1), p.splits+maxSkipped
			if thorough {
				first, last = 1, max(last, maxSplits)
			}
			if thorough && k.tries >= maxTries {
				return 0, commid.Birth{}
			}
			k.tries += uint64(last - first + 1)
			if birth, ok := commid.Find(p.id, c.ID, first, last); ok {
				in.parent, in.birth = p.id, birth
				p.splits = max(p.splits, birth.Count)
				return in.parent, in.birth
			}
		}
	}
	return 0, commid.Birth{}
}
