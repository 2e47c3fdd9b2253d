// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// fakeGPU makes up a GPU with its clock, the kernels it runs, and NCCL's reports of them. Times are ns since base on
// the host's clock.
type fakeGPU struct {
	rand *rand.Rand

	// The clock.
	offset float64
	drift  float64 // against the host
	grain  uint64
	tick   float64 // ns
	jumps  []jump  // in order

	// The reports.
	least   float64 // what all are late, ns
	late    float64 // mean of the rest
	rare    float64 // share of reports that come a thousand times later
	garbage float64 // share of stamps that are nonsense
	away    float64 // mean time, ns, that the thread which reports is kept from running at a time; 0: never
	runs    float64 // mean time, ns, that it runs between
	turn    turn

	// The kernels.
	n      int
	burst  int     // kernels that follow one another closely
	pause  float64 // between bursts, ns
	even   bool    // all kernels take equally long, and pauses are within jitter of each other
	length float64 // of a kernel, if even; ns
	jitter float64 // ns
	// each is launched when the one before has ended, and waits for the pause on the GPU
	chain  bool
	graph  bool // replayed: callbacks of the stream, no launches
	queued bool // a burst's kernels are all launched before its first begins
	parted int  // from this kernel on, stamps are those of an earlier kernel; 0: never
	shift  int  // by how many; 0: 1
	// from this kernel on, 100 kernels are reported only when the last of them has ended; 0: never
	stall int
}

// jump is a step of the GPU's clock, or a change of its rate, at a time.
type jump struct{ at, by, drift float64 }

// fakeKernel is one kernel.
type fakeKernel struct {
	launch, begin, end float64
	began, ended       float64 // reports
	first, last        uint64  // stamps
}

// stamp is what the GPU's clock reads at a time.
func (f *fakeGPU) stamp(t float64) uint64 {
	g := f.offset + t + f.drift*t
	for _, j := range f.jumps {
		if t >= j.at {
			g += j.by + j.drift*(t-j.at)
		}
	}
	n := uint64(int64(base) + int64(math.Floor(g)))
	n -= n % f.grain
	if f.tick != 1 {
		return uint64(float64(n-base+1e15) / f.tick)
	}
	return n
}

func (f *fakeGPU) delay() float64 {
	d := f.least + f.rand.ExpFloat64()*f.late
	if f.rand.Float64() < f.rare {
		d += f.rand.ExpFloat64() * f.late * 1000
	}
	return d
}

// turn is when the thread that reports runs, and from when on it does not; it is back at the last time.
type turn struct{ stops, back float64 }

// report is when something that happens at a time is reported. Times rise, as far as they are away.
func (f *fakeGPU) report(t float64) float64 {
	if f.away == 0 {
		return t + f.delay()
	}
	for t >= f.turn.back {
		f.turn.stops = f.turn.back + f.rand.ExpFloat64()*f.runs
		f.turn.back = f.turn.stops + f.rand.ExpFloat64()*f.away
	}
	if t >= f.turn.stops {
		t = f.turn.back
	}
	return t + f.delay()
}

// kernels runs one kernel after the other, each launched some µs before it begins.
func (f *fakeGPU) kernels() []fakeKernel {
	var out []fakeKernel
	t, queue := 1e6, 0.0
	for i := range f.n {
		if i%f.burst == 0 {
			if f.even {
				t += f.pause + f.jitter*f.rand.Float64()
			} else {
				t += f.pause * (0.5 + f.rand.Float64())
			}
			queue = t
			if f.queued {
				t += float64(f.burst) * 20e3
			}
		} else {
			t += 30e3 + f.rand.ExpFloat64()*20e3
		}
		k := fakeKernel{launch: t - 10e3 - f.rand.ExpFloat64()*15e3, begin: t, end: t + 3e3 + f.rand.ExpFloat64()*200e3}
		if f.even {
			k.end = t + f.length
		}
		if n := len(out); n > 0 {
			k.launch = max(k.launch, out[n-1].launch+12e3)
		}
		if n := len(out); f.chain && n > 0 {
			k.launch = out[n-1].end + 12e3
			k.begin, k.end = max(k.begin, k.launch+8e3), max(k.begin, k.launch+8e3)+k.end-k.begin
		}
		if f.queued {
			k.launch, queue = queue, queue+12e3
		}
		t = k.end
		k.began = f.report(k.begin)
		k.ended = max(f.report(k.end), k.began)
		if n := len(out); n > 0 && f.away > 0 { // in order
			k.began = max(k.began, out[n-1].ended+500)
			k.ended = max(k.ended, k.began+500)
		}
		k.first, k.last = f.stamp(k.begin), f.stamp(k.end)
		out = append(out, k)
	}
	if f.stall > 0 {
		// The ring of a channel has 64 places: by then the first kernels' stamps are later ones'.
		late := out[f.stall : f.stall+100]
		seen := late[99].end
		for i := range late {
			seen += 1e3
			late[i].began, late[i].ended = seen, seen
			if i+64 < len(late) {
				late[i].first, late[i].last = late[i+64].first, late[i+64].last
			}
		}
		for i := f.stall + 100; i < f.n && out[i].began < seen; i++ {
			seen += 1e3
			out[i].began, out[i].ended = max(out[i].began, seen), max(out[i].ended, seen)
		}
	}
	if f.parted > 0 {
		for i := f.n - 1; i >= f.parted; i-- {
			// Reported when the host sees the counter that it waits for, which an earlier kernel brought.
			before := out[max(i-max(f.shift, 1), 0)]
			out[i].first, out[i].last = before.first, before.last
			out[i].began = max(before.began, out[i].launch+8e3)
			out[i].ended = max(before.ended, out[i].began+1e3)
		}
	}
	for i := range out {
		if f.rand.Float64() < f.garbage {
			out[i].first += uint64(f.rand.Int64N(1e12))
		}
	}
	return out
}

// shown is an operation in an archive.
type shown struct {
	begin, end  float64 // ns since base
	source      string
	uncertainty float64
	realigned   uint64
}

// play gives kernels' callbacks to a model and returns what it shows, in order.
func (f *fakeGPU) play(t *testing.T, kernels []fakeKernel, paradigm otf2.Paradigm) (*scene, []shown) {
	t.Helper()
	s := newSceneWith(t, 4, 6, &Options{RecordMask: 1<<shm.EventKernelCh | 1<<shm.EventKernelLaunch,
		Paradigm: paradigm})
	type callback struct {
		at   float64
		ring int
		r    shm.Record
	}
	var calls []callback
	for i, k := range kernels {
		group, api, launch, plan, op, channel := uint64(6*i+1), uint64(6*i+2), uint64(6*i+3), uint64(6*i+4),
			uint64(6*i+5), uint64(6*i+6)
		call := func(after float64, kind shm.RecordKind, typ shm.EventType, handle uint64, r shm.Record) {
			r.Kind, r.Type, r.Handle = kind, typ, handle
			calls = append(calls, callback{k.launch + after, 0, r})
		}
		call(-4e3, shm.RecordStart, shm.EventGroupApi, group, shm.Record{GroupDepth: 1})
		call(-3e3, shm.RecordStart, shm.EventCollApi, api,
			shm.Record{Arg: group, Func: "AllReduce", Count: 256, Datatype: "ncclFloat32", Stream: 7})
		call(-2e3, shm.RecordStop, shm.EventCollApi, api, shm.Record{})
		plans := 3e3
		if f.graph {
			plans = 0
		} else {
			call(0, shm.RecordStart, shm.EventKernelLaunch, launch, shm.Record{Arg: group, Stream: 7})
			call(2e3, shm.RecordStop, shm.EventKernelLaunch, launch, shm.Record{})
		}
		call(plans, shm.RecordStart, shm.EventGroup, plan, shm.Record{})
		call(4e3, shm.RecordStart, shm.EventColl, op,
			shm.Record{Arg: api, ParentGroup: plan, Func: "AllReduce", Count: 256, Datatype: "ncclFloat32",
				Seq: uint64(i), NChannels: 1})
		call(4e3, shm.RecordStop, shm.EventColl, op, shm.Record{})
		call(5e3, shm.RecordStop, shm.EventGroup, plan, shm.Record{})
		call(6e3, shm.RecordStop, shm.EventGroupApi, group, shm.Record{})
		calls = append(calls,
			callback{k.began, 1, shm.Record{Kind: shm.RecordStart, Type: shm.EventKernelCh, Handle: channel, Arg: op,
				PTimer: k.first}},
			callback{k.ended, 1, shm.Record{Kind: shm.RecordState, Type: shm.EventKernelCh, Handle: channel, Aux: 22,
				Flags: shm.FlagHasArg, Arg: k.last}},
			callback{k.ended, 1, shm.Record{Kind: shm.RecordStop, Type: shm.EventKernelCh, Handle: channel}})
	}
	slices.SortStableFunc(calls, func(a, b callback) int { return cmp.Compare(a.at, b.at) })
	for i := range calls {
		now := base + uint64(calls[i].at)
		testkit.Must(t, s.m.Record(calls[i].ring, now, &calls[i].r))
		if i%16 == 0 {
			testkit.Must(t, s.m.Advance(now))
		}
	}
	return s, s.shown()
}

// shown ends the scene and gives the operations on the rank's row.
func (s *scene) shown() []shown {
	s.t.Helper()
	anchor := filepath.Join(s.dir, "traces.otf2")
	s.end(anchor)
	a := testkit.Value(otf2.Open(anchor, nil))(s.t)
	defer a.Close()
	var out []shown
	for _, l := range s.p.Locations {
		if l.Kind != description.KindRank {
			continue
		}
		for e, err := range a.EventsOf(otf2.LocationRef(l.Number)) {
			if err != nil {
				s.t.Fatal(err)
			}
			t := float64(int64(uint64(e.Time) - base))
			switch e.Kind {
			case otf2.EventEnter:
				o := shown{begin: t, uncertainty: -1}
				for _, a := range e.Attributes {
					switch a.ID {
					case AttrTimingSource:
						o.source = s.p.Strings[a.Bits]
					case AttrUncertainty:
						o.uncertainty = float64(a.Bits)
					case attrRealigned:
						o.realigned = a.Bits
					}
				}
				out = append(out, o)
			case otf2.EventLeave:
				out[len(out)-1].end = t
			}
		}
	}
	return out
}

// accuracy is how good intervals of GPU time are. Errors and uncertainties are in ns.
type accuracy struct {
	operations, gpu       int
	errors, uncertainties []float64 // sorted by String and check
	covered               int
	delays                []float64 // smallest of each run
}

// add holds what is shown against the kernels.
func (a *accuracy) add(kernels []fakeKernel, shown []shown) error {
	if len(shown) != len(kernels) {
		return fmt.Errorf("%d operations of %d are shown", len(shown), len(kernels))
	}
	least := math.Inf(1)
	for i, k := range kernels {
		least = min(least, k.began-k.begin, k.ended-k.end)
		o := &shown[i]
		a.operations++
		if (o.source == TimingGPU) != (o.uncertainty >= 0) {
			return fmt.Errorf("operation %d: source %s, uncertainty %g", i, o.source, o.uncertainty)
		}
		if o.source != TimingGPU {
			continue
		}
		a.gpu++
		a.uncertainties = append(a.uncertainties, o.uncertainty)
		for _, e := range []float64{math.Abs(o.begin - k.begin), math.Abs(o.end - k.end)} {
			a.errors = append(a.errors, e)
			if e <= o.uncertainty+1 { // times are whole ns
				a.covered++
			}
		}
	}
	a.delays = append(a.delays, least)
	return nil
}

func percentile(d []float64, q float64) float64 {
	if len(d) == 0 {
		return math.NaN()
	}
	slices.Sort(d)
	return d[min(len(d)-1, int(q*float64(len(d))))]
}

func (a *accuracy) String() string {
	us := func(d []float64, q float64) float64 { return percentile(d, q) / 1000 }
	return fmt.Sprintf(
		"%d of %d operations with GPU time: error median %.2f µs, p99 %.2f, max %.2f; uncertainty median %.2f µs, "+
			"max %.2f; it covers %.1f %%; smallest delay %.2f µs",
		a.gpu, a.operations, us(a.errors, .5), us(a.errors, .99), us(a.errors, 1), us(a.uncertainties, .5),
		us(a.uncertainties, 1),
		100*float64(a.covered)/float64(len(a.errors)), us(a.delays, .5))
}

// bad returns what is not as promised: the median error at most 2 µs or 1.5 times the smallest delay, below which
// nothing can be seen; uncertainties true in 95 of 100 cases, within two standard deviations for so few, and their
// median at most 10 µs.
func (a *accuracy) bad() string {
	switch {
	case a.gpu == 0:
		return "nothing has GPU time"
	case percentile(a.errors, .5) > max(2000, 1.5*percentile(a.delays, .5)):
		return "median error"
	case float64(a.covered) < 0.95*float64(len(a.errors))-2*math.Sqrt(0.95*0.05*float64(len(a.errors))):
		return "the uncertainty does not cover the errors"
	case percentile(a.uncertainties, .5) > 10_000:
		return "median uncertainty"
	}
	return ""
}
