// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/scenario"
)

// given is a record as a collector gives it.
type given struct {
	ring int
	t    uint64
	shm.Record
	comm *replay.Context // announced before; nil: none
}

// recordsOf lists the records of a process.
func recordsOf(p *replay.Process) (all []given) {
	calls := slices.Clone(p.Calls)
	slices.SortStableFunc(calls, func(a, b *replay.Call) int {
		return cmp.Or(cmp.Compare(a.Open, b.Open), cmp.Compare(a.T, b.T))
	})
	rings := make(map[*replay.Thread]int)
	for _, c := range calls {
		ring, ok := rings[c.Thread]
		if !ok {
			ring = len(rings)
			rings[c.Thread] = ring
			all = append(all, given{ring: ring, t: c.T,
				Record: shm.Record{Kind: shm.RecordThread, TID: int32(c.Thread.TID)}})
		}
		if r, ok := recordOf(c); ok {
			g := given{ring: ring, t: c.T, Record: r}
			if c.Kind == replay.CallInit {
				g.comm = c.Context
			}
			all = append(all, g)
		}
	}
	return all
}

func (g *given) announce(m *Model) {
	if x := g.comm; x != nil {
		m.Comm(x.Index-1, description.Comm{ID: x.CommID, Name: x.Name(), NRanks: x.NRanks, Rank: x.Rank,
			NNodes: x.NNodes, InitTime: g.t}, description.GPU{Device: x.Rank})
	}
}

// place is where an operation is: its ordinal, and the first operation of the region that it is in.
type place struct {
	ordinal uint64
	with    string
}

// places is a sink that notes where operations are, by their handles, or their calls'.
type places struct {
	t     *testing.T
	at    map[string]place
	first uint64 // time of the first region of the last model
}

// placed is one location of it.
type placed struct {
	*otf2.EventWriter
	to   *places
	with string // the first operation of the region that is open
}

func newPlaces(t *testing.T) *places { return &places{t: t, at: make(map[string]place)} }

func (s *places) Finished(uint32) {}

func (s *places) EventWriter(description.Location) (EventWriter, error) {
	return &placed{EventWriter: otf2.NewMemoryEventWriter(nil), to: s}, nil
}

func (w *placed) note(a *otf2.AttributeList) {
	id, ordinal, operation := "", uint64(0), false
	for _, v := range a.Values() {
		switch v.ID {
		case AttrOrdinal:
			ordinal, operation = v.Bits, true
		case AttrEventID:
			id = fmt.Sprintf("operation %#x", v.Bits)
		case AttrParentID:
			id = cmp.Or(id, fmt.Sprintf("call %#x", v.Bits))
		}
	}
	if !operation {
		return
	}
	w.with = cmp.Or(w.with, id)
	was, twice := w.to.at[id]
	testkit.Check(w.to.t, !twice, "%s is there twice, as %v and as %v", id, was.ordinal, ordinal)
	w.to.at[id] = place{ordinal, w.with}
}

func (w *placed) Enter(t otf2.Timestamp, a *otf2.AttributeList, region otf2.RegionRef) error {
	w.with, w.to.first = "", min(w.to.first, uint64(t))
	w.note(a)
	return w.EventWriter.Enter(t, a, region)
}

func (w *placed) NonBlockingCollectiveRequest(t otf2.Timestamp, a *otf2.AttributeList, request uint64) error {
	w.note(a)
	return w.EventWriter.NonBlockingCollectiveRequest(t, a, request)
}

func (w *placed) MpiIsend(t otf2.Timestamp, a *otf2.AttributeList, receiver uint32, comm otf2.CommRef, tag uint32,
	length, request uint64) error {
	w.note(a)
	return w.EventWriter.MpiIsend(t, a, receiver, comm, tag, length, request)
}

func (w *placed) MpiIrecvRequest(t otf2.Timestamp, a *otf2.AttributeList, request uint64) error {
	w.note(a)
	return w.EventWriter.MpiIrecvRequest(t, a, request)
}

// mixed is a job of two ranks in which all ways in which NCCL carries out operations of one function follow each other.
func mixed(t *testing.T, release string, seed uint64) *replay.Recording {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 7))
	s := scenario.New("mixed", release)
	ranks := s.Job(2, scenario.Comm{ID: 0xabcd, Name: "world"})
	number := uint64(0)
	op := func() scenario.Op {
		number++
		return scenario.Op{Func: "AllReduce", Count: number, Kernel: float64(20 + random.IntN(100)),
			NoKernel: random.IntN(4) == 0}
	}
	symmetric := func() scenario.Op { o := op(); o.Symmetric = "AllReduce_AGxLL_R"; return o }
	var graphs []*scenario.Graph
	kinds := []func(){
		func() { s.All(ranks, scenario.Same(op())) },
		func() { s.All(ranks, scenario.Same(op(), op(), op())) },
		func() {
			ops := scenario.AllToAll(2, op())
			s.All(ranks, ops)
		},
	}
	if release >= "2.28" {
		kinds = append(kinds,
			func() {
				o := op()
				graphs = nil
				for _, r := range ranks {
					graphs = append(graphs, r.Capture(o))
				}
			},
			func() {
				for _, g := range graphs {
					g.Replay()
				}
				s.Advance(300)
			},
			func() { s.All(ranks, scenario.Same(symmetric())) },
			func() { s.All(ranks, scenario.Same(op(), symmetric())) })
	}
	if release >= "2.29" {
		kinds = append(kinds,
			func() { o := op(); o.CE = true; s.All(ranks, scenario.Same(o)) },
			func() { o := op(); o.Func = "Broadcast"; s.All(ranks, scenario.Same(o)) })
	}
	for range 8 {
		kinds[random.IntN(len(kinds))]()
		if random.IntN(3) > 0 {
			s.Advance(float64(random.IntN(200)))
		}
	}
	scenario.Leave(ranks)
	rec := testkit.Value(s.Load(t.TempDir()))(t)
	return rec
}

// mixedRelease is the release of a seed's job, and its API.
func mixedRelease(seed uint64) (release string, api int) {
	releases := []string{"2.27.7", "2.28.9", "2.29.7", "2.30.7", "2.31.2"}
	return releases[seed%5], []int{4, 5, 6, 6, 7}[seed%5]
}

// heir is a model that notes places, and goes on where another one died if resume is not nil.
func (s *places) heir(api int, resume *description.Process) *Model {
	s.first = math.MaxUint64
	return New(s, &description.Process{APIVersion: api}, &Options{RecordMask: 0xffff, Resume: resume})
}

// take gives records to a model.
func take(m *Model, all []given, behind func(*given)) {
	for i := range all {
		g := &all[i]
		g.announce(m)
		m.Record(g.ring, g.t, &g.Record)
		behind(g)
	}
}

// leave is what a model leaves when its collector dies.
func leave(t *testing.T, m *Model) *description.Process {
	t.Helper()
	m.Snapshot()
	text, err := json.Marshal(m.process)
	last := new(description.Process)
	if err == nil {
		err = json.Unmarshal(text, last)
	}
	testkit.Must(t, err)
	return last
}

// A collector that takes over from a dead one numbers the operations that follow as that one would have, wherever that
// was: what died with it keeps the places that it would have had, and what the sequences say of all can be compared
// with other members'. So it is when the second dies, too.
func TestTakeoverKeepsOrdinals(t *testing.T) {
	lost := 0
	for seed := range uint64(60) {
		release, api := mixedRelease(seed)
		all := recordsOf(mixed(t, release, seed).Processes[0])
		whole := newPlaces(t)
		m := whole.heir(api, nil)
		advance := func(m *Model) func(g *given) { return func(g *given) { m.Advance(g.t) } }
		take(m, all, advance(m))
		m.Finish()
		want := leave(t, m)
		for cut := range all {
			cuts := []int{cut}
			if seed%3 == 0 {
				cuts = append(cuts, min(cut+1+cut%7, len(all)))
			}
			got, from := newPlaces(t), 0
			m := got.heir(api, nil)
			for _, to := range cuts {
				take(m, all[from:to], advance(m))
				if cut%2 == 0 && to > 0 {
					m.Settle(all[to-1].t)
				}
				m = got.heir(api, leave(t, m))
				for i := range all[:to] {
					all[i].announce(m)
				}
				from = to
			}
			take(m, all[from:], advance(m))
			m.Finish()
			end := leave(t, m)
			testkit.Require(t, end.FirstTime <= got.first,
				"seed %d, takeover before records %v: the first event is at %d, said to be at %d", seed, cuts,
				got.first, end.FirstTime)
			for id, is := range got.at {
				if of := whole.at[id].ordinal; is.ordinal != of {
					t.Fatalf("seed %d, takeover before records %v (%v %v): %s is number %d, want %d", seed, cuts,
						all[cut].Kind, all[cut].Type, id, is.ordinal, of)
				}
			}
			for key, of := range want.Comms[0].Sequences {
				is := end.Comms[0].Sequences[key]
				if is.Count != of.Count || is.Last != of.Last || !bytes.Equal(is.Recent, of.Recent) {
					t.Fatalf("seed %d, takeover before records %v (%v %v): sequence %s is %+v, want %+v", seed, cuts,
						all[cut].Kind, all[cut].Type, key, is, of)
				}
			}
			lost += len(whole.at) - len(got.at)
		}
	}
	testkit.Check(t, lost != 0, "nothing was lost")
}

// When rounds come, what they find published, and how far the clock has gone by then makes no difference to which
// region an operation is in, and in which place.
func TestRoundsDoNotDecide(t *testing.T) {
	for seed := range uint64(60) {
		release, api := mixedRelease(seed)
		all := recordsOf(mixed(t, release, seed).Processes[0])
		var want map[string]place
		try := func(what string, behind func(m *Model) func(g *given)) {
			is := newPlaces(t)
			m := is.heir(api, nil)
			take(m, all, behind(m))
			m.Finish()
			if want == nil {
				want = is.at
			} else if diff := gocmp.Diff(want, is.at, gocmp.AllowUnexported(place{})); diff != "" {
				t.Fatalf("seed %d, %s: %s", seed, what, diff)
			}
		}
		try("one round at the end", func(*Model) func(*given) { return func(*given) {} })
		try("a round behind each record", func(m *Model) func(*given) { return func(g *given) { m.Advance(g.t) } })
		try("a flush behind each record", func(m *Model) func(*given) {
			return func(g *given) { m.Settle(g.t); m.Snapshot() }
		})
		for late := range all {
			try(fmt.Sprintf("a round long behind record %d", late), func(m *Model) func(*given) {
				n := 0
				return func(g *given) {
					if n == late {
						m.Advance(g.t + 3*m.opts.operationLimit)
					}
					n++
				}
			})
		}
	}
}

// Threads that are held up publish late: whatever the records of other rings are between which they come, operations
// that the application calls are in the same regions and places.
func TestLateRingsDoNotDecide(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for seed := range uint64(60) {
		s := scenario.New("tasks", "2.28.9")
		ranks := s.Job(2, scenario.Comm{ID: 0xabcd, Name: "world"})
		for n := range 1 + seed%4 {
			s.All(ranks, scenario.Same(scenario.Op{Func: "AllReduce", Count: 1 + n}, scenario.Op{Func: "AllGather"},
				scenario.Op{Func: "ReduceScatter", Steps: 1}))
		}
		scenario.Leave(ranks)
		rec := testkit.Value(s.Load(t.TempDir()))(t)
		all := recordsOf(rec.Processes[0])
		rings := make(map[int][]given)
		for _, g := range all {
			rings[g.ring] = append(rings[g.ring], g)
		}
		for range 50 {
			var order []given
			left := maps.Clone(rings)
			for len(left) > 0 {
				ring := slices.Sorted(maps.Keys(left))[random.IntN(len(left))]
				n := min(1+random.IntN(30), len(left[ring]))
				order = append(order, left[ring][:n]...)
				if left[ring] = left[ring][n:]; len(left[ring]) == 0 {
					delete(left, ring)
				}
			}
			is := newPlaces(t)
			m := is.heir(5, nil)
			last := uint64(0)
			take(m, order, func(g *given) {
				if last = max(last, g.t); random.IntN(3) == 0 {
					m.Advance(last)
				}
			})
			m.Finish()
			plans := make(map[string]int)
			for _, p := range is.at {
				plans[p.with]++
			}
			testkit.Require(t, len(plans) == int(1+seed%4) && len(is.at) == 3*len(plans),
				"seed %d: %d operations in %d regions: %v", seed, len(is.at), len(plans), plans)
		}
	}
}
