// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
)

// job is a made-up job: what each rank's host and GPU do, what holds them up, and on what machines.
type job struct {
	number      int    // of the seed's jobs
	shape       string // name of how it communicates
	ranks       int
	perHost     int
	steps       bool       // its transfers over the network are worked out …
	transferred bool       // … and recorded (preset net)
	rounds      int        // training steps, or what is like them
	cut         dimensions // of a model

	groups     []group
	operations []operation
	programs   [][]action // by rank
	causes     []cause
}

// group is a communicator; its members are ranks of the job, in the order of their ranks in it.
type group struct {
	name    string
	members []int
}

// cause is something that holds ranks up: in rounds from … to−1 every so many, in one part of the round.
type cause struct {
	kind     verdict.Kind
	rank     int
	peer     int // the other end of a slow link, else −1
	delay    int64
	every    int
	from, to int
	part     int
	in       *rounds // those in which it strikes, of all these; nil: all
	grows    bool    // from nothing to twice the delay
	slices   bool    // gpu_late: it moves what it sends slowly, and begins in time
	noise    bool    // not somebody's fault: processes that begin at other times
}

// rounds are some of a job's.
type rounds [100]bool

// strikes says whether a cause holds a rank up in a part of a round.
func (c *cause) strikes(rank, round, part int) bool {
	return !c.noise && c.rank == rank && (c.part == part || c.part == everyPart) && round >= c.from && round < c.to &&
		(round-c.from)%c.every == 0 &&
		(c.in == nil || c.in[round])
}

// takes is how long it holds a rank up in a round, ns.
func (c *cause) takes(round int) int64 {
	if c.grows {
		return 2 * c.delay * int64(round-c.from) / int64(max(1, c.to-c.from))
	}
	return c.delay
}

// times is in how many rounds a cause strikes so that others can be held against it: what it adds before the first
// operation of a communicator, or in that, is start-up, and so it is with its first collective, if messages came before
// that (facts.IsStartUp).
func (j *job) times(c int) int {
	met := make(map[int]bool) // groups with collectives
	rounds := make(map[int]bool)
	open := make(map[int]bool) // rounds of what it has added since the rank's last operation
	for i := range j.programs[j.causes[c].rank] {
		a := &j.programs[j.causes[c].rank][i]
		for _, e := range a.extra {
			if e.cause == c {
				open[a.round] = true
			}
		}
		if a.does != calls {
			continue
		}
		o := &j.operations[a.op]
		for _, s := range o.slow {
			if s.cause == c {
				open[a.round] = true
			}
		}
		first := o.first
		if isCollective(o.function) {
			first = first || !met[o.group]
			met[o.group] = true
		}
		if !first {
			maps.Copy(rounds, open)
		}
		clear(open)
	}
	return len(rounds)
}

// delays says of a cause that it costs time and does not end the job or spoil its results.
func (c *cause) delays() bool { return !c.noise && delays(c.kind) }

func (c *cause) String() string {
	return fmt.Sprintf("%v, %.3f ms each, rounds %d to %d, every %d, part %d", c.culprit(math.NaN()),
		float64(c.delay)/1e6, c.from, c.to-1, c.every, c.part)
}

// culprit is the cause as a verdict names it.
func (c *cause) culprit(share float64) culprit {
	if !c.delays() {
		share = math.NaN()
	}
	return culprit{rank: c.rank, kind: c.kind, peer: c.peer, share: share}
}

// operation is a collective or message of all its members, which are ranks of the job.
type operation struct {
	group    int
	function string // "AllReduce", …; messageName; shiftName
	count    uint64 // float32 elements per rank as given in the call
	root     int    // rank in the group
	members  []int  // of a message the sender and the receiver
	took     int64  // ns, when nobody is late and nothing slow
	eager    bool   // a message that needs no receiver to be sent
	hops     int    // transfers of each member to the next; 0: not recorded
	first    bool   // the first of its communicator

	other map[int]uint64 // counts that differ, by rank of the job
	slow  []slowness
}

// slowness is what an operation's transfers take longer because of a cause.
type slowness struct {
	cause int
	each  int64 // ns a hop
}

// Functions that are no collectives.
const (
	messageName  = "message"
	shiftName    = "shift"    // each sends to the next and receives from the one before, in one group
	exchangeName = "exchange" // each sends to and receives from all others, in one group
)

// action is what a rank does next.
type action struct {
	does   doing
	took   int64
	extra  []extra
	op     int // operation
	stream int
	round  int
}

// extra is what an action takes longer because of a cause.
type extra struct {
	cause int
	took  int64
}

type doing uint8

const (
	hostWorks doing = iota // the application, without NCCL
	gpuWorks               // a kernel on the stream of computations
	calls                  // an operation, launched on a stream behind what has been computed by then
	awaits                 // what is computed next waits for a stream
	syncs                  // the host waits for its GPU
)

// Times of launches, ns.
const (
	launchTook = 6_000  // of a kernel, on the host
	launchLate = 5_000  // from there to its begin on an idle GPU
	callTook   = 30_000 // of NCCL
)

// gpuCopies is how long a GPU takes, at most, from when data has come until it has handed it on, ns. It is never
// nothing: a GPU cannot fill a buffer with what the proxy has not told it of.
const gpuCopies = 3_000

// played is when everything of a job happened.
type played struct {
	timing timing
	ranks  []rankTimes
	ends   []moment // of the ranks' hosts
	// ns by all ranks in operations, beyond what these take when nobody is late and nothing slow; the first of each
	// communicator left out
	waited int64
	length int64 // ns, to the last moment
	hangs  bool
	hops   [][]hop // by operation: of those with hops, by member and number
}

// rankTimes are the calls of a rank, in order.
type rankTimes struct {
	first moment // begin of the process's part in the job
	calls []callTimes
}

// callTimes is a member's part in an operation.
type callTimes struct {
	op         int
	stream     int
	began      moment // the call
	returned   moment
	start, end moment // of the kernel
}

// hop is a transfer of a member to the next: when what is sent was there, when it went and had gone.
type hop struct{ ready, sent, done int64 }

// play works out when everything happens, without the causes named.
func (j *job) play(without func(cause int) bool) *played {
	p := &played{ranks: make([]rankTimes, j.ranks), hops: make([][]hop, len(j.operations))}
	t := &p.timing
	members := make([][]callTimes, len(j.operations)) // by operation and member
	for i := range members {
		members[i] = make([]callTimes, len(j.operations[i].members))
		for k := range members[i] {
			members[i][k].start = -1
		}
	}
	for r := range j.ranks {
		host := t.moment(0)
		p.ranks[r].first = host
		streams := map[int]moment{0: host}
		for i := range j.programs[r] {
			a := &j.programs[r][i]
			took := a.took
			for _, e := range a.extra {
				if !without(e.cause) {
					took += e.took
				}
			}
			switch a.does {
			case hostWorks:
				host = t.moment(took, host)
			case gpuWorks:
				host = t.moment(launchTook, host)
				start := t.moment(0, streams[0])
				t.follow(start, host, launchLate)
				streams[0] = t.moment(took, start)
			case calls:
				c := callTimes{op: a.op, stream: a.stream, began: host, returned: t.moment(took, host),
					start: t.moment(0, streams[0]), end: t.held()}
				host = c.returned
				t.follow(c.start, host, launchLate)
				if before, ok := streams[a.stream]; ok && a.stream != 0 {
					t.follow(c.start, before, 0)
				}
				streams[a.stream] = c.end
				p.ranks[r].calls = append(p.ranks[r].calls, c)
				for k, m := range j.operations[a.op].members {
					if m == r {
						members[a.op][k] = c
					}
				}
			case awaits:
				streams[0] = t.moment(0, streams[0], streams[a.stream])
			case syncs:
				host = t.moment(launchLate, host)
				for _, s := range streams {
					t.follow(host, s, launchLate)
				}
			}
		}
		p.ends = append(p.ends, host)
	}
	for i := range j.operations {
		p.join(j, i, members[i], without)
	}
	t.run()
	p.sum(j)
	return p
}

// join lets an operation's members end when all that they need have begun.
func (p *played) join(j *job, op int, members []callTimes, without func(cause int) bool) {
	o := &j.operations[op]
	t := &p.timing
	needs := func(k int, of ...int) { // member k ends when those have begun
		all := t.moment(0, members[k].start)
		for _, m := range of {
			t.follow(all, members[m].start, 0)
		}
		t.meet(all, func() { t.settle(members[k].end, t.at[all]+o.took) })
	}
	n := len(members)
	for k := range members {
		if members[k].start < 0 { // somebody never calls it: it does not end
			return
		}
	}
	switch {
	case o.hops > 0:
		starts := t.moment(0)
		for k := range members {
			t.follow(starts, members[k].start, 0)
		}
		t.meet(starts, func() {
			ends := p.transfer(j, o, op, members, without)
			for k := range members {
				t.settle(members[k].end, ends[k])
			}
		})
	case o.function == messageName:
		if o.eager {
			needs(0)
		} else {
			needs(0, 1)
		}
		needs(1, 0)
	case o.function == shiftName:
		for k := range members {
			needs(k, (k+1)%n, (k+n-1)%n)
		}
	case o.function == "Reduce": // a chain that ends at the root: each has what came before it, and hands it to the next
		for k := range members {
			var of []int
			for at := (o.root + 1) % n; at != k; at = (at + 1) % n {
				of = append(of, at)
			}
			if k != o.root {
				of = append(of, (k+1)%n)
			}
			needs(k, of...)
		}
	default:
		all := make([]int, n)
		for k := range all {
			all[k] = k
		}
		for k := range members {
			needs(k, all...)
		}
	}
}

// transfer lets the members of a ring hand on what they have, hop by hop, and returns when each is done.
func (p *played) transfer(j *job, o *operation, op int, members []callTimes, without func(cause int) bool) []int64 {
	n := len(members)
	copied := min(o.took/int64(o.hops)/3, gpuCopies)
	wire, gpu := make([]int64, n), make([]int64, n) // what a hop from a member takes on the way, and before on its GPU
	for k := range wire {
		wire[k], gpu[k] = (o.took-copied)/int64(o.hops)-copied, copied
	}
	for _, s := range o.slow {
		c := s.cause
		if without(c) {
			continue
		}
		for k, m := range o.members {
			cause := &j.causes[c]
			if m == cause.rank && cause.slices {
				gpu[k] += s.each
			}
			if m == cause.rank && cause.kind == verdict.SlowTransfer && o.members[(k+1)%n] == cause.peer {
				wire[k] += s.each
			}
		}
	}
	hops := make([]hop, n*o.hops)
	at := func(k, h int) *hop { return &hops[k*o.hops+h] }
	for h := range o.hops {
		for k := range n {
			ready := p.timing.at[members[k].start]
			if h > 0 {
				ready = max(ready, at((k+n-1)%n, h-1).done, at(k, h-1).ready)
			}
			x := at(k, h)
			x.ready = ready + gpu[k]
			x.sent = max(x.ready, p.timing.at[members[(k+1)%n].start])
			x.done = x.sent + wire[k]
			if h > 0 { // one after the other on the way
				x.done = max(x.done, at(k, h-1).done+wire[k])
			}
		}
	}
	p.hops[op] = hops
	ends := make([]int64, n)
	for k := range ends {
		ends[k] = max(at(k, o.hops-1).done, at((k+n-1)%n, o.hops-1).done) + gpu[k]
	}
	return ends
}

// sum adds up the waiting.
func (p *played) sum(j *job) {
	t := &p.timing
	for _, at := range t.at {
		p.length = max(p.length, at)
		p.hangs = p.hangs || at == never
	}
	for r := range p.ranks {
		for _, c := range p.ranks[r].calls {
			o := &j.operations[c.op]
			if o.first || t.at[c.start] == never || t.at[c.end] == never {
				continue
			}
			p.waited += max(0, t.at[c.end]-t.at[c.start]-o.took)
		}
	}
}

// noisy is a time that is not always the same: log-normal, with the given deviation.
func noisy(random *rand.Rand, took int64, deviation float64) int64 {
	return int64(float64(took) * math.Exp(deviation*random.NormFloat64()-deviation*deviation/2))
}
