// SPDX-License-Identifier: Apache-2.0

package transfers

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// machine is a made-up communicator whose ranks exchange slices over the network: GPUs fill and empty buffers, links
// carry them.
type machine struct {
	random *rand.Rand
	ranks  int
	gpu    []float64 // ns for a slice
	link   map[[2]int]float64
	wire   float64 // ns of a link that is not in link
	noise  float64 // of each, a share
	window int     // buffers of a link
}

// work is what a GPU does in one go: from what has come it fills buffers, or takes what has come and is done with it.
type work struct {
	rank  int
	needs []int // works whose data must have come
	to    []int // works that need what this one sends, by their ranks
}

// state is what a machine knows of a rank while it works.
type state struct {
	free   float64   // when the GPU has done its last work
	events []float64 // data that came, and buffers that are free again
	done   []float64
	sent   map[int][]float64 // by receiver
	begun  map[int][]float64
}

// ring is an AllReduce by a ring, of several slices in each of its steps.
func (m *machine) ring(slices int) (all []work) {
	steps := 2 * (m.ranks - 1)
	id := func(step, slice, rank int) int { return (step*slices+slice)*m.ranks + rank }
	for step := range steps + 1 {
		for slice := range slices {
			for r := range m.ranks {
				w := work{rank: r}
				if step > 0 {
					w.needs = []int{id(step-1, slice, (r+m.ranks-1)%m.ranks)}
				}
				if step < steps {
					w.to = []int{(r + 1) % m.ranks}
				}
				all = append(all, w)
			}
		}
	}
	return all
}

// tree is an AllReduce by a binary tree: up to rank 0, and down again.
func (m *machine) tree(slices int) (all []work) {
	up, down := make([]int, m.ranks), make([]int, m.ranks)
	for range slices {
		for r := m.ranks - 1; r >= 0; r-- {
			w := work{rank: r}
			for child := 2*r + 1; child <= 2*r+2 && child < m.ranks; child++ {
				w.needs = append(w.needs, up[child])
			}
			if r > 0 {
				w.to = []int{(r - 1) / 2}
			}
			up[r] = len(all)
			all = append(all, w)
		}
		for r := range m.ranks {
			w := work{rank: r}
			if r > 0 {
				w.needs = []int{down[(r-1)/2]}
			}
			for child := 2*r + 1; child <= 2*r+2 && child < m.ranks; child++ {
				w.to = append(w.to, child)
			}
			down[r] = len(all)
			all = append(all, w)
		}
	}
	return all
}

func (m *machine) noisy(ns float64) float64 { return ns * math.Exp(m.noise*m.random.NormFloat64()) }

// run lets the machine do an operation whose ranks come at these times. Works are done in their order on each rank.
func (m *machine) run(all []work, come []float64) ([]Member, uint64) {
	states := make([]state, m.ranks)
	for r := range states {
		states[r] = state{free: come[r], events: []float64{come[r]}, sent: make(map[int][]float64),
			begun: make(map[int][]float64)}
	}
	came := make([]map[int]float64, len(all)) // by work and receiver
	for i := range all {
		w := &all[i]
		s := &states[w.rank]
		start := s.free
		for _, need := range w.needs {
			start = max(start, came[need][w.rank])
		}
		for _, to := range w.to {
			if n := len(s.sent[to]); n >= m.window {
				start = max(start, s.sent[to][n-m.window])
			}
		}
		done := start + m.noisy(m.gpu[w.rank])
		s.free = done
		s.done = append(s.done, done)
		came[i] = make(map[int]float64)
		for _, to := range w.to {
			begin := done
			if n := len(s.sent[to]); n > 0 {
				begin = max(begin, s.sent[to][n-1])
			}
			takes, known := m.link[[2]int{w.rank, to}]
			if !known {
				takes = m.wire
			}
			end := begin + m.noisy(takes)
			s.begun[to], s.sent[to] = append(s.begun[to], done), append(s.sent[to], end)
			s.events = append(s.events, end)
			states[to].events = append(states[to].events, end)
			came[i][to] = end
		}
	}
	last, end := slices.Max(come), 0.0
	members := make([]Member, m.ranks)
	for r := range states {
		members[r] = states[r].member(r)
		end = max(end, states[r].free)
	}
	return members, uint64(max(end-last, 1))
}

// member is what the plugin would tell of the rank.
func (s *state) member(rank int) Member {
	m := Member{Rank: rank, Peer: Nobody, Node: rank,
		Carried: facts.Carried{Known: true, GPUSteps: uint64(len(s.done)), Link: facts.Link{Peer: -1}}}
	slices.Sort(s.events)
	last := 0.0
	for i, done := range s.done {
		at, _ := slices.BinarySearch(s.events, done)
		since := last
		if at > 0 {
			since = max(since, s.events[at-1])
		}
		if i > 0 || at > 0 {
			m.GPUHeld += uint64(done - since)
		}
		last = done
	}
	for to, ends := range s.sent {
		l := facts.Link{Peer: int32(to), Transfers: uint64(len(ends)), Bytes: uint64(len(ends)) << 16}
		until := 0.0
		for i, end := range ends {
			if begin := max(s.begun[to][i], until); end > begin {
				l.Busy += uint64(end - begin)
			}
			until = max(until, end)
		}
		if l.Busy > m.Link.Busy || l.Busy == m.Link.Busy && to < m.Peer {
			m.Link, m.Peer = l, to
		}
	}
	return m
}

// truth is what was made slow.
type truth struct {
	kind       Kind
	rank, peer int
}

func (t truth) String() string { return fmt.Sprintf("%v %d>%d", t.kind, t.rank, t.peer) }

// made is a made-up job and what was found in it.
type made struct {
	name  string
	truth []truth
	found []truth
	share float64 // of all findings
}

// makeJob makes a job: of what sort goes by its number.
func makeJob(seed uint64) made {
	random := rand.New(rand.NewPCG(seed, 1))
	m := &machine{random: random, ranks: 4 + random.IntN(13), wire: 40e3, noise: 0.1 + 0.4*random.Float64(), window: 8,
		link: make(map[[2]int]float64)}
	slices := 1 + random.IntN(6)
	if seed%21 == 0 {
		m.ranks, slices = 32+random.IntN(33), 1
	}
	m.gpu = make([]float64, m.ranks)
	for r := range m.gpu {
		m.gpu[r] = 20e3
	}
	j := made{name: "nobody"}
	factor := 3 + 20*random.Float64()
	shape := m.ring
	if random.IntN(3) == 0 {
		shape = m.tree
	}
	works := shape(slices)
	slowLink := func() {
		r := random.IntN(m.ranks)
		for _, w := range works {
			if w.rank == r && len(w.to) > 0 {
				m.link[[2]int{r, w.to[0]}] = factor * m.wire
				j.truth = append(j.truth, truth{Link, r, w.to[0]})
				return
			}
		}
	}
	slowGPU := func() {
		r := random.IntN(m.ranks)
		m.gpu[r] *= 2 * factor
		j.truth = append(j.truth, truth{GPU, r, Nobody})
	}
	switch seed % 5 {
	case 0:
		j.name = "link"
		slowLink()
	case 1:
		j.name = "GPU"
		slowGPU()
	case 2:
		j.name = "all alike"
		m.wire *= factor
		for r := range m.gpu {
			m.gpu[r] *= factor
		}
	case 3:
		j.name = "now and then"
		slowLink()
	}
	c := New()
	every := 1
	if j.name == "now and then" {
		every = 3
	}
	slow := m.link
	for n := range 40 {
		m.link = nil
		if n%every == 0 {
			m.link = slow
		}
		come := make([]float64, m.ranks)
		for r := range come {
			come[r] = 1e6 + 5e5*random.Float64()
		}
		members, transfer := m.run(works, come)
		sum := uint64(0)
		for _, charge := range add(c, &Operation{Sort: Sort{Comm: 1, Function: "AllReduce", Size: 1 << 20},
			Members: members, Transfer: transfer, Network: true}) {
			sum += charge.Excess
		}
		if sum > transfer {
			panic(fmt.Sprintf("job %d: charged %d of %d", seed, sum, transfer))
		}
	}
	found, _ := c.Result()
	for _, f := range found {
		j.found = append(j.found, truth{f.Kind, f.Rank, f.Peer})
		j.share += f.Share
	}
	return j
}

// add counts an operation that all its members leave together.
func add(c *Counter, op *Operation) []Charge {
	charges := c.Add(op)
	for range op.Members {
		c.Took(op.Transfer)
		for i := range charges {
			c.HeldUp(&charges[i], float64(charges[i].Excess))
		}
	}
	return charges
}

// Made-up jobs of 4 to 64 ranks, in rings and trees: whoever was made slow is named, and nobody else.
func TestMadeUpJobs(t *testing.T) {
	const jobs = 100
	type score struct{ jobs, there, named, right int }
	scores := make(map[string]*score)
	var all score
	for seed := range uint64(jobs) {
		j := makeJob(seed)
		s := scores[j.name]
		if s == nil {
			s = new(score)
			scores[j.name] = s
		}
		right := 0
		for _, f := range j.found {
			if slices.Contains(j.truth, f) {
				right++
			}
		}
		if right < len(j.truth) || right < len(j.found) {
			t.Logf("job %d: %v, found %v (%.2f)", seed, j.truth, j.found, j.share)
		}
		for _, s := range [...]*score{s, &all} {
			s.jobs++
			s.there += len(j.truth)
			s.named += len(j.found)
			s.right += right
		}
	}
	ratio := func(n, of int) float64 {
		if of == 0 {
			return 1
		}
		return float64(n) / float64(of)
	}
	for name, s := range scores {
		t.Logf("%-12s %3d jobs: precision %.3f, recall %.3f", name, s.jobs, ratio(s.right, s.named),
			ratio(s.right, s.there))
	}
	p, r := ratio(all.right, all.named), ratio(all.right, all.there)
	testkit.Check(t, p >= 0.97 && r >= 0.97, "precision %.3f, recall %.3f: want 0.97 of both", p, r)
	for _, name := range []string{"nobody", "all alike"} {
		s := scores[name]
		testkit.Check(t, s.named <= s.jobs/100, "%s: %d of %d jobs name somebody", name, s.named, s.jobs)
	}
}

// A GPU that takes slowly what comes leaves little of the link to it that is known, so links beside it are not slow for
// taking longer.
func TestLinksBesideASlowGPU(t *testing.T) {
	c := New()
	for range 20 {
		members := make([]Member, 5)
		for r := range members {
			to := (r + 1) % len(members)
			members[r] = Member{Rank: r, Peer: to, Node: r / 4, Carried: facts.Carried{
				Known: true, GPUHeld: 20e3, GPUSteps: 16, GPUBothWays: true,
				Link: facts.Link{Peer: int32(to), Busy: 2e6, Transfers: 8, Bytes: 8 << 16},
			}}
		}
		members[3].GPUHeld = 6e6
		add(c, &Operation{Sort: Sort{Comm: 1, Function: "AllReduce", Size: 1 << 20}, Members: members, Transfer: 8e6,
			Network: true})
	}
	found, _ := c.Result()
	testkit.Check(t, len(found) == 1 && found[0].Kind == GPU && found[0].Rank == 3,
		"%+v, want the GPU of rank 3 alone", found)
}

// In operations of some microseconds any GPU can take a tenth longer: that is no measure of chance for one that holds
// others up for milliseconds.
func TestTriflesOfOthers(t *testing.T) {
	c := New()
	for i := range uint64(67) {
		op := &Operation{Sort: Sort{Comm: 1, Function: "ReduceScatter", Size: 4096}, Ordinal: i, Transfer: 23_000,
			Network: true}
		for r := range 3 {
			m := Member{Rank: r, Peer: Nobody}
			m.Known, m.GPUSteps, m.GPUHeld = true, 4, 4_200
			if int(i)%3 == r { // each in turn
				m.GPUHeld = 6_700
			}
			op.Members = append(op.Members, m)
		}
		if i >= 20 && i < 27 {
			op.Members[1].GPUHeld, op.Transfer = 14_000_000, 14_100_000
		}
		add(c, op)
	}
	found, _ := c.Result()
	testkit.Check(t, len(found) == 1 && found[0].Kind == GPU && found[0].Rank == 1 && found[0].Slow == 7 &&
		math.Abs(found[0].Took-14e6) <= 1e4, "found %+v, want the GPU of rank 1, slow in 7 operations", found)
}
