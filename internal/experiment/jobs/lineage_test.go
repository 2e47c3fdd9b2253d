// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/commid"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// truthOf reads what a labeled recording says of its communicators.
func truthOf(t *testing.T, file string) (all []struct {
	CommID       string  `json:"commId"`
	ParentCommID *string `json:"parentCommId"`
	Color        *uint32 `json:"colour"`
	ChildCount   uint32  `json:"childCount"`
}) {
	t.Helper()
	b := testkit.Read(t, file)
	run := struct{ Truth struct{ Communicators any } }{}
	run.Truth.Communicators = &all
	testkit.Must(t, json.Unmarshal(b, &run))
	return all
}

func hex(t *testing.T, s string) uint64 {
	t.Helper()
	n := testkit.Value(strconv.ParseUint(s, 0, 64))(t)
	return n
}

// NCCL makes the ids of children as commid.Child does, in all recordings that say who the parent was.
func TestIDsOfRecordedChildren(t *testing.T) {
	files := testkit.Value(filepath.Glob("../../../testdata/nccl-causes/*/run.json"))(t)
	children := 0
	for _, file := range files {
		for _, c := range truthOf(t, file) {
			if c.ParentCommID == nil {
				continue
			}
			children++
			parent, id := hex(t, *c.ParentCommID), hex(t, c.CommID)
			testkit.Equal(t, commid.Child(parent, commid.Birth{Count: c.ChildCount, Color: *c.Color}), id,
				"%s: child %d of color %d of %#x", file, c.ChildCount, *c.Color, parent)
			b, ok := commid.Find(parent, id, 1, c.ChildCount)
			testkit.Check(t, ok && b == (commid.Birth{Count: c.ChildCount, Color: *c.Color}),
				"%s: %#x was born as %v (%v), want color %d of split %d", file, id, b, ok, *c.Color, c.ChildCount)
		}
	}
	testkit.Check(t, children >= 16, "%d children in %d recordings", children, len(files))
}

// familyTree is a made-up job: communicators in the order in which they are made, with their true parents.
type familyTree struct {
	all    []*Communicator
	parent map[*Communicator]*Communicator
	birth  map[*Communicator]commid.Birth
	count  map[*Communicator]uint32
	procs  []*Process
	now    uint64
}

func newFamilyTree(processes int) *familyTree {
	f := &familyTree{parent: make(map[*Communicator]*Communicator), birth: make(map[*Communicator]commid.Birth),
		count: make(map[*Communicator]uint32)}
	for p := range processes {
		f.procs = append(f.procs, &Process{Name: fmt.Sprint("p", p),
			Shard: &description.Process{GPUs: []description.GPU{{}}}})
	}
	return f
}

func (f *familyTree) make(id uint64, members []*Process) *Communicator {
	f.now += 1000
	in := &Communicator{ID: id, Nranks: len(members)}
	for rank, p := range members {
		p.Shard.Comms = append(p.Shard.Comms, description.Comm{ID: id, NRanks: len(members), Rank: rank,
			InitTime: f.now + uint64(rank)})
		in.Members = append(in.Members, &Rank{Process: p, Index: len(p.Shard.Comms) - 1})
	}
	f.all = append(f.all, in)
	return in
}

// holds reports whether all members' processes are in the communicator.
func (in *Communicator) holds(child *Communicator) bool {
	for m := range child.Present() {
		if !slices.ContainsFunc(in.Members, func(o *Rank) bool { return o.Process == m.Process }) {
			return false
		}
	}
	return true
}

func (f *familyTree) end(in *Communicator) {
	f.now += 1000
	for m := range in.Present() {
		m.Comm().FinalTime = f.now
	}
}

func (f *familyTree) child(of *Communicator, b commid.Birth, ranks []int) *Communicator {
	var members []*Process
	for _, r := range ranks {
		members = append(members, of.Members[r].Process)
	}
	in := f.make(commid.Child(of.ID, b), members)
	f.parent[in], f.birth[in] = of, b
	return in
}

// Every child whose parent can be known has it, with count and color, and no other communicator has any; parents are
// before their children in archives.
func TestParentsAreFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "ids"), 1))
		f := newFamilyTree(rapid.IntRange(2, 12).Draw(t, "processes"))
		var alive []*Communicator
		// child makes one, and takes back what nobody can know: which of several of one id it came from.
		child := func(of *Communicator, b commid.Birth, ranks []int) *Communicator {
			in := f.child(of, b, ranks)
			for _, o := range alive {
				if o != of && o.ID == of.ID && o.holds(in) {
					delete(f.parent, in)
					delete(f.birth, in)
				}
			}
			return in
		}
		alive = []*Communicator{f.make(random.Uint64()|1, f.procs)}
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			of := rapid.SampledFrom(alive).Draw(t, "of")
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0: // another one of a random id, with the same members
				var members []*Process
				for m := range of.Present() {
					members = append(members, m.Process)
				}
				alive = append(alive, f.make(random.Uint64()|1, members))
			case 1: // a shrink; two of one parent have one id
				ranks := random.Perm(of.Nranks)[:max(of.Nranks-1, 1)]
				slices.Sort(ranks)
				alive = append(alive, child(of, commid.Birth{}, ranks))
			case 2: // the end of one
				if len(alive) > 1 {
					f.end(of)
					alive = slices.DeleteFunc(alive, func(c *Communicator) bool { return c == of })
				}
			default: // a split by color, some of it with no color; splits before that nobody took part in
				f.count[of] += uint32(rapid.IntRange(1, 100).Draw(t, "splits"))
				colors := make(map[uint32][]int)
				for r := range of.Nranks {
					if c := rapid.IntRange(-1, 3).Draw(t, "color"); c >= 0 {
						color := uint32(c) * 700_000_000
						colors[color] = append(colors[color], r)
					}
				}
				for color := range uint32(4) {
					if ranks := colors[color*700_000_000]; len(ranks) > 0 {
						alive = append(alive, child(of, commid.Birth{Count: f.count[of], Color: color * 700_000_000},
							ranks))
					}
				}
			}
		}
		FindParents(f.all)
		for i, in := range f.all {
			testkit.Check(t, in.Parent == f.parent[in] && in.Birth == f.birth[in],
				"communicator %d: parent %p as %+v, want %p as %+v", i, in.Parent, in.Birth, f.parent[in], f.birth[in])
		}
		shuffled := slices.Clone(f.all)
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		ordered := ParentsFirst(shuffled)
		testkit.Check(t, len(ordered) == len(f.all), "%d of %d communicators are left", len(ordered), len(f.all))
		for i, in := range ordered {
			testkit.Check(t, in.Parent == nil || slices.Index(ordered, in.Parent) < i,
				"communicator %d is before its parent", i)
		}
	})
}

// Ids that a release makes in another way have no parent, whoever has the same members.
func TestUnknownIDsHaveNoParent(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 1))
	f := newFamilyTree(4)
	for range 200 {
		f.make(random.Uint64()|1, f.procs)
	}
	world := f.all[0]
	// That of one that the members were not in.
	elsewhere := newFamilyTree(4)
	foreign := elsewhere.make(commid.Child(world.ID, commid.Birth{Count: 1, Color: 0}), elsewhere.procs)
	all := append(f.all, foreign)
	// A child that was there before its parent.
	early := f.child(world, commid.Birth{Count: 1, Color: 0}, []int{0, 1})
	for m := range early.Present() {
		m.Comm().InitTime = 1
	}
	FindParents(append(all, early))
	for i, in := range append(all, early) {
		testkit.Check(t, in.Parent == nil, "communicator %d has parent %+v as %+v", i, in.Parent, in.Birth)
	}
}
