// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"container/list"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/commid"
)

// rankOrigin is where the communicator of a rank comes from.
type rankOrigin struct {
	parent uint64       // id of the parent communicator; 0: none was found
	birth  commid.Birth // how it was made from the parent
}

// family indexes the communicator ranks of the process by their relations, so that the time to place one more does not
// depend on their number.
type family struct {
	instances map[uint64]*instance // by communicator id, as long as a rank is not finalized
	alive     list.List            // of *instance, in the order of their first ranks
	siblings  map[split][]*commRank
	places    map[commPlace][]occupied // of the ranks that are not closed
	tries     uint64                   // splits tried in searches for parents, so far
}

// instance is a communicator with ranks in this process.
type instance struct {
	id     uint64
	ranks  []*commRank // not finalized
	listed *list.Element
	looked bool // the search for its parent is done
	parent uint64
	birth  commid.Birth
	splits uint32 // number of its splits, as far as its children show
}

// split is one split of a communicator.
type split struct {
	parent uint64
	count  uint32
}

// commPlace describes which GPU a communicator rank probably uses: the one of the same rank of an equally large
// communicator, after all inits or after splits of one communicator into the same color.
type commPlace struct {
	rank, nranks int
	parent       uint64
	color        uint32
}

// occupied is a GPU with its number of communicator ranks of one commPlace.
type occupied struct{ gpu, ranks int }

func newFamily() family {
	return family{instances: make(map[uint64]*instance), siblings: make(map[split][]*commRank),
		places: make(map[commPlace][]occupied)}
}

func (c *commRank) commPlace() commPlace {
	return commPlace{c.Rank, c.NRanks, c.origin.parent, c.origin.birth.Color}
}

// addRank adds a communicator rank whose id is known.
func (k *family) addRank(c *commRank) {
	in := k.instances[c.ID]
	if in == nil {
		in = &instance{id: c.ID}
		in.listed = k.alive.PushBack(in)
		k.instances[c.ID] = in
	}
	in.ranks = append(in.ranks, c)
}

// recordPlace records the GPU and the split of a communicator rank.
func (k *family) recordPlace(c *commRank) {
	if of := (split{c.origin.parent, c.origin.birth.Count}); c.origin.parent != 0 {
		k.siblings[of] = append(k.siblings[of], c)
	}
	at := k.places[c.commPlace()]
	i := slices.IndexFunc(at, func(o occupied) bool { return o.gpu == c.GPU })
	if i < 0 {
		i, at = len(at), append(at, occupied{gpu: c.GPU})
	}
	at[i].ranks++
	k.places[c.commPlace()] = at
}

// removeRank removes a communicator rank that NCCL has finished with: it gets no more children.
func (k *family) removeRank(c *commRank) {
	if in := k.instances[c.ID]; in != nil {
		in.ranks = removeRank(in.ranks, c)
		if len(in.ranks) == 0 {
			k.alive.Remove(in.listed)
			delete(k.instances, c.ID)
		}
	}
	if of := (split{c.origin.parent, c.origin.birth.Count}); c.origin.parent != 0 {
		if k.siblings[of] = removeRank(k.siblings[of], c); len(k.siblings[of]) == 0 {
			delete(k.siblings, of)
		}
	}
}

// leavePlace removes a closed communicator rank from its commPlace.
func (k *family) leavePlace(c *commRank) {
	if !c.life.announced {
		return
	}
	at := k.places[c.commPlace()]
	i := slices.IndexFunc(at, func(o occupied) bool { return o.gpu == c.GPU })
	if i < 0 {
		return
	}
	if at[i].ranks--; at[i].ranks == 0 {
		at = slices.Delete(at, i, i+1)
	}
	if k.places[c.commPlace()] = at; len(at) == 0 {
		delete(k.places, c.commPlace())
	}
}

func removeRank(all []*commRank, c *commRank) []*commRank {
	return slices.DeleteFunc(all, func(o *commRank) bool { return o == c })
}

// Bounds of a search for a parent.
const (
	maxParents = 256
	maxSplits  = 1024    // of a parent
	maxSkipped = 8       // splits after the latest known one in a short search
	maxTries   = 1 << 22 // after which all searches are short: some tens of milliseconds
)

// parentOf returns the parent of a rank's communicator, and how it was made; 0 if none is found. One search serves all
// ranks of a communicator. In a process with very many communicators the searches for later ones are short.
func (k *family) parentOf(c *commRank) (uint64, commid.Birth) {
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
