// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// countingJob makes up a communicator rank of NCCL 2.29 with its GPU: plans on several channels, of which the device
// counts all works and the host all but those of messages to oneself; the rings of stamps; and a thread that looks into
// them when it runs. Times are ns since base.
type countingJob struct {
	rand *rand.Rand
	countingKind

	host    float64 // what the application's thread does next
	gpu     float64 // when the GPU has done all so far
	handles uint64
	counted [8]channelCounts
	plans   []countedPlan
	calls   []timedCall
	looks   []look
	graph   uint64 // captured call
}

// countingKind says what a job is like.
type countingKind struct {
	plans      int
	self, sync float64 // share of plans with messages to oneself; of plans that the host waits for
	wide       bool    // messages, also those to oneself, are on up to 4 channels
	nap        float64 // mean time for which the thread that looks does not run; 0: it always runs
	length     float64 // mean, of kernels
	// share of KernelCh that are lost; of plans that are a graph's; of calls without further reports
	lost, graphs, bare float64
	uncounted          bool    // and the host does not count these
	jitter             float64 // between the channels of a kernel
	counts             bool    // the host counts messages to oneself, unlike any known release
	elsewhere          uint8   // they are on channels from this one on, against what is known
}

// channelCounts are a channel's works.
type channelCounts struct {
	host  int
	works []countedWork // of the device
}

type countedWork struct {
	begin, end  float64
	first, last uint64
}

// countedPlan is what is true of a plan.
type countedPlan struct {
	begin, end float64
	last       [8]int // the number of its last work on each channel; −1: none
}

type timedCall struct {
	at   float64
	ring int
	r    shm.Record
}

// look is a KernelCh: which count of a channel the host waits for, from when on.
type look struct {
	from    float64
	channel uint8
	count   int
	op      uint64
}

func (j *countingJob) handle() uint64 { j.handles++; return j.handles }

func (j *countingJob) call(ring int, at float64, kind shm.RecordKind, typ shm.EventType, handle uint64, r shm.Record) {
	r.Kind, r.Type, r.Handle = kind, typ, handle
	j.calls = append(j.calls, timedCall{at, ring, r})
}

// message is a send, a receive, or both in one round.
type message struct {
	peer     int32
	channels []uint8
	own      bool
}

const countingRanks = 4

// messages are what a plan sends and receives: with its neighbors, all, or itself alone.
func (j *countingJob) messages(own bool) []message {
	wide := 1
	if j.wide {
		wide = 1 << j.rand.IntN(3)
	}
	channels := func(round int) (c []uint8) {
		for part := range wide {
			c = append(c, uint8((4*(round&1)+2*(round>>1&1)+part)%8))
		}
		return c
	}
	var all []message
	if own {
		own := message{1, channels(0), true}
		for i := range own.channels {
			own.channels[i] += j.elsewhere
		}
		all = append(all, own)
	}
	for round := 1; round < countingRanks; round++ {
		if j.rand.IntN(3) > 0 || len(all) == 0 {
			all = append(all, message{int32(1+round) % countingRanks, channels(round), false})
		}
	}
	return all
}

// step makes one plan.
func (j *countingJob) step() {
	j.host += 10e3 + j.rand.ExpFloat64()*30e3
	switch u := j.rand.Float64(); {
	case u < j.graphs:
		j.replay()
		return
	case u < j.graphs+j.bare:
		j.bareCall()
		return
	case j.rand.Float64() < j.self:
		j.plan(j.messages(true), 0)
	case j.rand.IntN(3) == 0:
		j.plan(j.messages(false), 0)
	default:
		j.plan(nil, 1+j.rand.IntN(4))
	}
	if j.rand.Float64() < j.sync {
		j.host = max(j.host, j.gpu) + 20e3 + j.rand.ExpFloat64()*300e3
	}
}

// stamp is what the GPU's clock reads.
func (j *countingJob) stamp(t float64) uint64 { return (base + uint64(t) - gpuShift) / 32 * 32 }

// kernel runs a kernel with so many works on each channel, launched at a time, and gives when it began and ended.
func (j *countingJob) kernel(launch float64, works map[uint8]int) (p countedPlan) {
	from := max(launch+4e3+j.rand.ExpFloat64()*4e3, j.gpu)
	length := 2e3 + j.rand.ExpFloat64()*j.length
	p.begin = math.Inf(1)
	for c := range uint8(8) {
		if p.last[c] = -1; works[c] == 0 {
			continue
		}
		b := from + j.rand.Float64()*j.jitter
		e := b + length*(0.9+0.2*j.rand.Float64())
		for range works[c] {
			j.counted[c].works = append(j.counted[c].works, countedWork{b, e, j.stamp(b), j.stamp(e)})
		}
		p.begin, p.end, p.last[c] = min(p.begin, b), max(p.end, e), len(j.counted[c].works)-1
	}
	j.gpu = p.end + 500
	return p
}

// plan makes a plan of messages, or of a collective on so many channels.
func (j *countingJob) plan(messages []message, channels int) {
	group, launch, plan := j.handle(), j.handle(), j.handle()
	t := j.host
	j.call(0, t-4e3, shm.RecordStart, shm.EventGroupApi, group, shm.Record{GroupDepth: 1})
	j.call(0, t, shm.RecordStart, shm.EventKernelLaunch, launch, shm.Record{Arg: group, Stream: 7})
	j.call(0, t+1e3, shm.RecordStop, shm.EventKernelLaunch, launch, shm.Record{})
	j.call(0, t+1.5e3, shm.RecordStart, shm.EventGroup, plan, shm.Record{})
	works := make(map[uint8]int)
	operation := func(kind, apiKind shm.EventType, function string, peer int32, n int) uint64 {
		api, op := j.handle(), j.handle()
		j.call(0, t-3e3, shm.RecordStart, apiKind, api,
			shm.Record{Arg: group, Func: function, Count: 256, Datatype: "ncclFloat32", Stream: 7})
		j.call(0, t-2e3, shm.RecordStop, apiKind, api, shm.Record{})
		j.call(0, t+2e3, shm.RecordStart, kind, op, shm.Record{
			Arg: api, ParentGroup: plan, Func: function, Count: 256, Datatype: "ncclFloat32", Peer: peer,
			Seq: uint64(len(j.plans)), NChannels: uint8(n),
		})
		j.call(0, t+2.5e3, shm.RecordStop, kind, op, shm.Record{})
		return op
	}
	counted := func(c uint8, ops ...uint64) {
		works[c]++
		for _, op := range ops {
			j.looks = append(j.looks, look{t + 3e3, c, j.counted[c].host, op})
		}
		j.counted[c].host++
	}
	if channels > 0 {
		op := operation(shm.EventColl, shm.EventCollApi, "AllReduce", 0, channels)
		for c := range channels {
			counted(uint8(c), op)
		}
	}
	for _, m := range messages {
		from := (countingRanks + 2 - m.peer) % countingRanks
		var ops []uint64
		way := j.rand.IntN(4)
		if way != 0 || m.own {
			ops = append(ops, operation(shm.EventP2p, shm.EventP2pApi, "Send", m.peer, len(m.channels)))
		}
		if way != 1 || m.own {
			ops = append(ops, operation(shm.EventP2p, shm.EventP2pApi, "Recv", from, len(m.channels)))
		}
		for _, c := range m.channels {
			if m.own {
				works[c]++
				if j.counts {
					j.counted[c].host++
				}
				continue
			}
			counted(c, ops...)
		}
	}
	j.call(0, t+3e3, shm.RecordStop, shm.EventGroup, plan, shm.Record{})
	j.call(0, t+3.5e3, shm.RecordStop, shm.EventGroupApi, group, shm.Record{})
	j.plans = append(j.plans, j.kernel(t, works))
	j.host = t + 5e3
}

// bareCall is a Broadcast without further reports, which the host counts; or a group of several, which it does not.
func (j *countingJob) bareCall() {
	group, t := j.handle(), j.host
	j.call(0, t-4e3, shm.RecordStart, shm.EventGroupApi, group, shm.Record{GroupDepth: 1})
	calls := 1
	if j.uncounted {
		calls = 3
	}
	for root := range calls {
		api := j.handle()
		j.call(0, t-3e3, shm.RecordStart, shm.EventCollApi, api,
			shm.Record{Arg: group, Func: "Broadcast", Count: 256, Datatype: "ncclFloat32", Stream: 7,
				Root: int32(root)})
		j.call(0, t-2e3, shm.RecordStop, shm.EventCollApi, api, shm.Record{})
	}
	j.call(0, t+3e3, shm.RecordStop, shm.EventGroupApi, group, shm.Record{})
	c := uint8(j.rand.IntN(2))
	p := j.kernel(t, map[uint8]int{c: 1})
	if !j.uncounted {
		j.counted[c].host++
	}
	for range calls {
		j.plans = append(j.plans, p)
	}
	j.host = t + 5e3
}

// replay is one of a graph's: a callback of the stream makes the plan, and the device counts what the host counted when
// it was captured.
func (j *countingJob) replay() {
	t := j.host
	if j.graph == 0 {
		group, launch := j.handle(), j.handle()
		j.graph = j.handle()
		j.call(0, t-4e3, shm.RecordStart, shm.EventGroupApi, group, shm.Record{GroupDepth: 1, Flags: shm.FlagGraph})
		j.call(0, t-3e3, shm.RecordStart, shm.EventCollApi, j.graph,
			shm.Record{Arg: group, Func: "AllReduce", Count: 256, Datatype: "ncclFloat32", Stream: 7,
				Flags: shm.FlagGraph})
		j.call(0, t-2e3, shm.RecordStop, shm.EventCollApi, j.graph, shm.Record{})
		j.call(0, t, shm.RecordStart, shm.EventKernelLaunch, launch, shm.Record{Arg: group, Stream: 7})
		j.call(0, t+1e3, shm.RecordStop, shm.EventKernelLaunch, launch, shm.Record{})
		j.call(0, t+3e3, shm.RecordStop, shm.EventGroupApi, group, shm.Record{})
		t += 20e3
	}
	plan, op := j.handle(), j.handle()
	j.call(2, t, shm.RecordStart, shm.EventGroup, plan, shm.Record{})
	j.call(2, t+500, shm.RecordStart, shm.EventColl, op, shm.Record{
		Arg: j.graph, ParentGroup: plan, Func: "AllReduce", Count: 256, Datatype: "ncclFloat32",
		Seq: uint64(len(j.plans)), NChannels: 1,
	})
	j.call(2, t+1e3, shm.RecordStop, shm.EventColl, op, shm.Record{})
	j.call(2, t+1.5e3, shm.RecordStop, shm.EventGroup, plan, shm.Record{})
	p := j.kernel(t, map[uint8]int{0: 1})
	j.looks = append(j.looks, look{t + 2e3, 0, j.counted[0].host, op})
	j.counted[0].host += j.rand.IntN(2)
	j.plans = append(j.plans, p)
	j.host = t + 5e3
}

// naps are when the thread that looks does not run, in order.
func (j *countingJob) naps(from, until float64) (naps []turn) {
	if j.nap == 0 {
		return nil
	}
	for t := from; t < until; {
		stops := t + 20e3 + j.rand.ExpFloat64()*3*j.nap
		t = stops + j.rand.ExpFloat64()*j.nap
		naps = append(naps, turn{stops, t})
	}
	return naps
}

// report looks into the rings: NCCL takes what stands in the place of a count as soon as that is at least the count,
// whatever it is by then. From begun on the thread that looks may not run at times.
func (j *countingJob) report(begun float64) {
	naps := j.naps(begun, j.gpu+1e9)
	awake := func(t float64) float64 {
		i, _ := slices.BinarySearchFunc(naps, t, func(n turn, t float64) int { return cmp.Compare(n.back, t) })
		if i < len(naps) && t >= naps[i].stops {
			t = naps[i].back
		}
		return t + 100 + j.rand.ExpFloat64()*400
	}
	for _, l := range j.looks {
		works := j.counted[l.channel].works
		if l.count >= len(works) || j.rand.Float64() < j.lost {
			continue
		}
		place := func(written func(w *countedWork) float64, t float64) (*countedWork, float64) {
			t = awake(max(t, written(&works[l.count])))
			w := &works[l.count]
			for i := l.count; i < len(works) && written(&works[i]) <= t; i += 64 {
				w = &works[i]
			}
			return w, t + 200
		}
		first, began := place(func(w *countedWork) float64 { return w.begin }, l.from)
		last, ended := place(func(w *countedWork) float64 { return w.end }, began)
		k := j.handle()
		j.call(1, began, shm.RecordStart, shm.EventKernelCh, k,
			shm.Record{Arg: l.op, PTimer: first.first, Channel: l.channel})
		j.call(1, ended, shm.RecordState, shm.EventKernelCh, k,
			shm.Record{Aux: 22, Flags: shm.FlagHasArg, Arg: last.last})
		j.call(1, ended, shm.RecordStop, shm.EventKernelCh, k, shm.Record{})
	}
}

// play gives the job to a model and tells what that shows of its plans.
func (j *countingJob) play(t *testing.T) []shown {
	t.Helper()
	s := newSceneWith(t, countingRanks, 6, &Options{RecordMask: 1<<shm.EventKernelCh | 1<<shm.EventKernelLaunch})
	s.p.LibraryVersion = 22907
	s.m.ranks.rankOf(0).NNodes = 1
	slices.SortStableFunc(j.calls, func(a, b timedCall) int { return cmp.Compare(a.at, b.at) })
	for i := range j.calls {
		c := &j.calls[i]
		now := base + uint64(c.at)
		testkit.Must(t, s.m.Record(c.ring, now, &c.r))
		if i%16 == 0 {
			testkit.Must(t, s.m.Advance(now))
		}
	}
	return s.shown()
}

// handedOut reports whether NCCL has handed out all stamps of a plan, for whatever kernels.
func (j *countingJob) handedOut(p *countedPlan) bool {
	for c, last := range p.last {
		if last >= j.counted[c].host {
			return false
		}
	}
	return true
}

// newCountingJob makes a job of a kind.
func newCountingJob(seed uint64, kind countingKind) *countingJob {
	j := &countingJob{rand: rand.New(rand.NewPCG(seed, 4)), countingKind: kind, host: 1e6}
	for range 5 { // the clock is known before counters part
		j.plan(nil, 4)
		j.host = j.gpu + 50e3
	}
	begun := j.host
	for range kind.plans {
		j.step()
	}
	j.report(begun)
	return j
}

// Messages to oneself in all manner of jobs: no operation is shown with times that are another's, and if nothing else
// is wrong most plans with reported stamps have GPU time.
func TestStampsAreRealignedInMadeUpJobs(t *testing.T) {
	for _, c := range []struct {
		name  string
		set   func(r *rand.Rand, k *countingKind)
		least float64 // share of the plans with reported stamps that have GPU time
	}{
		{"waits for each", func(_ *rand.Rand, k *countingKind) { k.sync, k.plans = 1, 60 }, 0.65},
		{"waits now and then", func(r *rand.Rand, k *countingKind) { k.sync = 0.05 + r.Float64()*0.3 }, 0.5},
		{"never waits", func(_ *rand.Rand, k *countingKind) { k.sync = 0 }, 0},
		{"one message to oneself in ten", func(r *rand.Rand, k *countingKind) {
			k.self, k.sync = 0.1, 0.02+r.Float64()*0.1
		}, 0.5},
		{"over several channels", func(_ *rand.Rand, k *countingKind) { k.wide, k.sync = true, 0.2 }, 0.3},
		{"very short kernels", func(_ *rand.Rand, k *countingKind) { k.length, k.jitter, k.sync = 1e3, 200, 0.3 }, 0.3},
		{"long kernels, queued up", func(_ *rand.Rand, k *countingKind) { k.length, k.sync, k.plans = 1e6, 0.02, 250 },
			0},
		{"late reports", func(r *rand.Rand, k *countingKind) { k.nap, k.sync = 100e3+r.ExpFloat64()*3e6, 0.2 }, 0},
		{"rings are overrun", func(r *rand.Rand, k *countingKind) {
			k.nap, k.sync, k.plans, k.length = 20e6, 0.02, 400, 10e3
		}, 0},
		{"more messages to oneself than a ring has places",
			func(_ *rand.Rand, k *countingKind) { k.self, k.sync, k.plans = 0.8, 0.3, 300 }, 0},
		{"lost kernels", func(_ *rand.Rand, k *countingKind) { k.lost, k.sync = 0.01, 0.2 }, 0},
		{"Broadcasts that the host counts", func(_ *rand.Rand, k *countingKind) { k.bare, k.sync = 0.05, 0.2 }, 0},
		{"groups of Broadcasts, which it does not",
			func(_ *rand.Rand, k *countingKind) { k.bare, k.uncounted, k.sync = 0.02, true, 0.3 }, 0},
		{"graphs", func(_ *rand.Rand, k *countingKind) { k.graphs, k.sync = 0.05, 0.2 }, 0},
		{"the host counts messages to oneself", func(r *rand.Rand, k *countingKind) {
			k.counts, k.sync = true, r.Float64()*0.3
		}, 0},
		{"they are on another channel", func(r *rand.Rand, k *countingKind) {
			k.elsewhere, k.sync = 1, r.Float64()*0.3
		}, 0},
		{"all of it", func(r *rand.Rand, k *countingKind) {
			k.lost, k.bare, k.graphs, k.wide = 0.002, 0.02, 0.005, true
			k.nap, k.sync, k.length = 10e3+r.ExpFloat64()*1e6, r.Float64()*0.5, math.Exp(8+4*r.Float64())
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			handedOut, gpu, wrong := 0, 0, 0
			for seed := range uint64(testJobs) {
				kind := countingKind{plans: 120, self: 0.3, sync: 0.2, length: 60e3, jitter: 3e3}
				c.set(rand.New(rand.NewPCG(seed, 5)), &kind)
				j := newCountingJob(seed, kind)
				shown := j.play(t)
				testkit.Require(t, len(shown) == len(j.plans),
					"seed %d: %d of %d plans are shown", seed, len(shown), len(j.plans))
				for i, o := range shown {
					p := &j.plans[i]
					if j.handedOut(p) {
						handedOut++
					}
					if o.source != TimingGPU {
						continue
					}
					gpu++
					// That graphs part counters is not always seen (docs/gpu.md); there it is only looked at what is
					// realigned.
					seen := o.realigned > 0 || kind.graphs == 0
					if off := max(math.Abs(o.begin-p.begin),
						math.Abs(o.end-p.end)); off > o.uncertainty+strictSlackNs && seen {
						wrong++
						t.Errorf("seed %d: plan %d is shown %.0f ns off, uncertainty %.0f ns, realigned by %d", seed, i,
							off, o.uncertainty, o.realigned)
					}
				}
			}
			t.Logf("%d of %d plans whose stamps were told have GPU time, %d of them a wrong one", gpu, handedOut, wrong)
			testkit.Check(t, float64(gpu) >= c.least*float64(handedOut),
				"%d of %d plans have GPU time, want %.0f %%", gpu, handedOut, 100*c.least)
		})
	}
}

// testJobs is the number of jobs of each kind.
const testJobs = 8
