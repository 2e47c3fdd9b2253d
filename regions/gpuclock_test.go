// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// newFakeGPU is what is usual; tests change what they are about.
func newFakeGPU(seed uint64) *fakeGPU {
	return &fakeGPU{
		rand:   rand.New(rand.NewPCG(seed, 1)),
		offset: -7e9, grain: 32, tick: 1,
		least: 700, late: 3000, rare: 0.02, length: 50e3, jitter: 5e3,
		n: 1500, burst: 10, pause: 50e6,
	}
}

// GPU time of operations, and what is said of its uncertainty, against what made-up GPUs really did.
func TestGPUTimeOfMadeUpKernels(t *testing.T) {
	slew := func(ppm ...float64) (j []jump) {
		before := 0.0
		for i, p := range ppm {
			j = append(j, jump{at: 3e9 * float64(i+1), drift: (p - before) * 1e-6})
			before = p
		}
		return j
	}
	for _, c := range []struct {
		name  string
		set   func(*fakeGPU)
		steps int     // of the clock that are to be found
		lost  float64 // share of operations that may have no GPU time
		seeds int
	}{
		{name: "one kernel after the other", set: func(f *fakeGPU) { f.burst, f.pause = 1, 2e6 }},
		{name: "bursts", set: func(f *fakeGPU) { f.burst, f.pause = 20, 100e6 }},
		{name: "queued launches", set: func(f *fakeGPU) { f.burst, f.queued = 30, true }},
		{name: "offset of +3000 s", set: func(f *fakeGPU) { f.offset = 3e12 }},
		{name: "offset of -40 s", set: func(f *fakeGPU) { f.offset = -40e9 }},
		{name: "drift +200 ppm", set: func(f *fakeGPU) { f.drift = 200e-6 }},
		{name: "drift -200 ppm", set: func(f *fakeGPU) { f.drift = -200e-6 }},
		{name: "granularity 1 µs", set: func(f *fakeGPU) { f.grain = 1000 }},
		{name: "granularity 1.024 µs, drift", set: func(f *fakeGPU) { f.grain, f.drift = 1024, 120e-6 }},
		{name: "granularity 1 ns", set: func(f *fakeGPU) { f.grain = 1 }},
		{name: "one kernel in 3 s", set: func(f *fakeGPU) { f.n, f.burst, f.pause = 300, 1, 3e9 }},
		{name: "one kernel in 3 s, drift", set: func(f *fakeGPU) {
			f.n, f.burst, f.pause, f.drift = 300, 1, 3e9, -150e-6
		}},
		{name: "late reports", set: func(f *fakeGPU) { f.late, f.drift = 20e3, 30e-6 }},
		{name: "one report in five far too late", set: func(f *fakeGPU) { f.rare, f.drift = 0.2, 20e-6 }},
		{name: "all reports late by 2 µs", set: func(f *fakeGPU) { f.least = 2000 }},
		{name: "nonsense stamps", set: func(f *fakeGPU) { f.garbage = 0.002 }, lost: 0.003},
		{name: "steps ahead", set: func(f *fakeGPU) { f.jumps = []jump{{at: 3e9, by: 3e6}, {at: 6e9, by: 2e9}} },
			steps: 2, lost: 0.002},
		{name: "steps back", set: func(f *fakeGPU) { f.jumps = []jump{{at: 3e9, by: -3e8}, {at: 6e9, by: -2e9}} },
			steps: 2, lost: 0.002},
		{name: "adjustments by 50 ppm", set: func(f *fakeGPU) { f.jumps = slew(50, -50, 0) }},
		{name: "adjustments by 5 ppm", set: func(f *fakeGPU) { f.jumps = slew(5, -5) }},
		{name: "slewed by 500 ppm for 2 s", set: func(f *fakeGPU) {
			f.jumps = []jump{{at: 3e9, drift: 500e-6}, {at: 5e9, drift: -500e-6}}
		}, lost: 0.5,
			steps: -1},
		{name: "AMD, 100 MHz", set: func(f *fakeGPU) { f.tick, f.grain = 10, 1 }},
		{name: "AMD, 27 MHz, drift", set: func(f *fakeGPU) { f.tick, f.grain, f.drift = 1000./27, 1, 60e-6 }},
		{name: "3 kernels", set: func(f *fakeGPU) { f.n, f.burst = 3, 1 }, seeds: 30},
		{name: "20 kernels", set: func(f *fakeGPU) { f.n = 20 }, seeds: 15},
		{name: "100 kernels in a minute", set: func(f *fakeGPU) {
			f.n, f.burst, f.pause, f.drift = 100, 1, 600e6, 30e-6
		}, seeds: 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			var a accuracy
			for seed := range max(c.seeds, 1) {
				f := newFakeGPU(uint64(seed))
				c.set(f)
				paradigm := otf2.ParadigmCUDA
				if f.tick != 1 {
					paradigm = otf2.ParadigmHIP
				}
				kernels := f.kernels()
				s, shown := f.play(t, kernels, paradigm)
				testkit.Must(t, a.add(kernels, shown))
				n := s.m.ranks.clocks[0].JumpCount()
				testkit.Check(t, n == c.steps || c.steps < 0, "%d steps of the clock were found, want %d", n, c.steps)
			}
			t.Log(c.name + ": " + a.String())
			bad := a.bad()
			testkit.Check(t, bad == "", "%s: %v", bad, a.String())
			testkit.Check(t, a.gpu >= int((1-c.lost)*float64(a.operations)),
				"%d of %d operations have GPU time", a.gpu, a.operations)
		})
	}
}

// Clocks, reports and kernels of many kinds, mixed at random.
func TestGPUTimeOfManyClocks(t *testing.T) {
	covered, ends := 0, 0
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 2))
		f := newFakeGPU(seed)
		f.offset = (r.Float64() - 0.5) * 1e13
		f.drift = (r.Float64() - 0.5) * 400e-6
		if r.IntN(2) == 0 {
			f.drift /= 20
		}
		f.grain = []uint64{1, 32, 64, 512, 1000, 1024}[r.IntN(6)]
		f.least, f.late, f.rare = 200+r.Float64()*2000, 300+r.ExpFloat64()*6000, r.Float64()*0.2
		f.n, f.burst, f.queued = 5+r.IntN(1200), 1+r.IntN(40), r.IntN(2) == 0
		f.pause = 1e5 * float64(uint64(1)<<r.IntN(14))
		kernels := f.kernels()
		s, shown := f.play(t, kernels, otf2.ParadigmCUDA)
		var a accuracy
		testkit.Must(t, a.add(kernels, shown))
		if bad := a.bad(); bad != "" || a.gpu < a.operations || s.m.ranks.clocks[0].JumpCount() > 0 {
			t.Errorf("seed %d: %s: %v; %d steps", seed, bad, a.String(), s.m.ranks.clocks[0].JumpCount())
		}
		covered, ends = covered+a.covered, ends+len(a.errors)
	}
	t.Logf("%d of %d errors are within the uncertainty", covered, ends)
	testkit.Check(t, covered*100 >= ends*95, "that is not 95 in 100")
}

// On a starved host the thread that reports is kept from running for milliseconds at a time, and then reports all that
// has happened in one go. All stamps lie on one line: none is thrown away, no jump is seen, and what is said of the
// times is true.
func TestGPUTimeOnStarvedHosts(t *testing.T) {
	covered, ends := 0, 0
	var uncertainties []float64
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		f := newFakeGPU(seed)
		f.drift = (r.Float64() - 0.5) * 40e-6
		f.away, f.runs = 1e6*math.Exp2(5*r.Float64()), 2e3*math.Exp2(8*r.Float64())
		f.late, f.rare = 500+r.ExpFloat64()*2000, 0
		f.n, f.burst, f.queued = 20+r.IntN(400), 1+r.IntN(40), r.IntN(2) == 0
		f.pause = 1e6 * math.Exp2(7*r.Float64())
		kernels := f.kernels()
		s, shown := f.play(t, kernels, otf2.ParadigmCUDA)
		var a accuracy
		testkit.Must(t, a.add(kernels, shown))
		if a.gpu < a.operations || s.m.ranks.clocks[0].JumpCount() > 0 || len(s.p.Markers) > 0 {
			t.Errorf("seed %d (away for %.1f ms, runs for %.0f µs): %v; %d steps, %d markers", seed, f.away/1e6,
				f.runs/1e3, a.String(), s.m.ranks.clocks[0].JumpCount(), len(s.p.Markers))
		}
		covered, ends = covered+a.covered, ends+len(a.errors)
		uncertainties = append(uncertainties, percentile(a.uncertainties, .5))
		if testing.Verbose() {
			t.Logf("seed %d (away for %.1f ms, runs for %.0f µs): %v", seed, f.away/1e6, f.runs/1e3, a.String())
		}
	}
	t.Logf("%d of %d errors are within the uncertainty, of which the median of medians is %.2f µs", covered, ends,
		percentile(uncertainties, .5)/1000)
	testkit.Check(t, covered*100 >= ends*95, "that is not 95 in 100")
}

// However a GPU's clock drifts, however coarse its stamps and late their reports: 95 of 100 errors are within the
// uncertainty, which is small where many reports show the drift.
func TestGPUTimeOfDriftingClocks(t *testing.T) {
	for _, c := range []struct {
		n       int
		starved bool
		most    float64 // median uncertainty, ns
	}{{100, false, 5e3}, {1000, false, 5e3}, {100, true, 40e3}, {1000, true, 15e3}} {
		for _, grain := range []uint64{32, 1100} {
			for _, ppm := range []float64{-300, -150, -100, -20, 0, 20, 100, 150, 300} {
				var a accuracy
				for seed := range 1 + 1500/c.n {
					f := newFakeGPU(uint64(seed))
					f.n, f.grain, f.drift = c.n, grain, ppm*1e-6
					f.burst, f.pause = 1+f.rand.IntN(20), 1e6*math.Exp2(7*f.rand.Float64())
					if c.starved {
						f.away, f.runs = 1e6*math.Exp2(5*f.rand.Float64()), 2e3*math.Exp2(8*f.rand.Float64())
						f.late, f.rare = 500+f.rand.ExpFloat64()*2000, 0
					}
					kernels := f.kernels()
					_, shown := f.play(t, kernels, otf2.ParadigmCUDA)
					testkit.Must(t, a.add(kernels, shown))
				}
				covered, usual := float64(a.covered)/float64(len(a.errors)), percentile(a.uncertainties, .5)
				t.Logf("%d kernels, starved %v, steps of %d ns, %+g ppm: %.1f %% covered, median ± %.1f µs", c.n,
					c.starved, grain, ppm, 100*covered, usual/1e3)
				testkit.Check(t, covered >= 0.95 && usual <= c.most && a.gpu >= a.operations,
					"want 95 %% and %.0f µs, and %d of %d operations have GPU time", c.most/1e3, a.gpu, a.operations)
			}
		}
	}
}

// strictSlackNs is by how much an interval may be off beyond its uncertainty where stamps are not its own.
const strictSlackNs = 20_000

// Stamps of other kernels: none is shown as GPU time, and it is said that they are not.
func TestStampsOfOtherKernelsAreWithheld(t *testing.T) {
	for _, c := range []struct {
		name  string
		set   func(*fakeGPU)
		least float64 // share of all operations that must have GPU time
	}{
		{"counters part", func(f *fakeGPU) { f.parted = 700 }, 0.45},
		// Plans wait for 2 s until they are written; what waits is lost, as no plan is alone.
		{"counters part while kernels queue up",
			func(f *fakeGPU) { f.parted, f.burst, f.queued, f.pause = 700, 30, true, 300e6 }, 0.25},
		{"counters part at an even beat", func(f *fakeGPU) { f.parted, f.burst, f.pause, f.even = 700, 1, 1e6, true },
			0},
		{"counters part at once", func(f *fakeGPU) { f.parted = 1 }, 0},
		{"counters part at a beat of very short kernels",
			func(f *fakeGPU) { f.parted, f.burst, f.pause, f.even, f.length = 300, 1, 1e6, true, 4e3 }, 0},
		{"a slow one, without jitter", func(f *fakeGPU) {
			f.parted, f.burst, f.pause, f.even, f.length, f.jitter = 300, 1, 40e6, true, 2e3, 0
		}, 0},
		{"a quick one", func(f *fakeGPU) { f.parted, f.burst, f.pause, f.even, f.length = 300, 1, 40e3, true, 4e3 }, 0},
		{"a jittered one", func(f *fakeGPU) {
			f.parted, f.burst, f.pause, f.even, f.length, f.jitter = 300, 1, 300e3, true, 4e3, 100e3
		}, 0},
		{"counters part by 2 at a beat", func(f *fakeGPU) {
			f.parted, f.shift, f.burst, f.pause, f.even, f.length = 300, 2, 1, 1e6, true, 4e3
		}, 0},
		{"counters part by 10 at a beat", func(f *fakeGPU) {
			f.parted, f.shift, f.burst, f.pause, f.even, f.length = 300, 10, 1, 1e6, true, 4e3
		}, 0},
		{"counters of replayed graphs part at a beat", func(f *fakeGPU) {
			f.parted, f.burst, f.pause, f.even, f.length, f.graph = 300, 1, 1e6, true, 4e3, true
		}, 0},
		{"counters part, each launched when the one before has ended", func(f *fakeGPU) {
			f.parted, f.burst, f.pause, f.chain, f.even, f.length, f.jitter = 300, 1, 1e6, true, true, 4e3, 2e6
		}, 0},
		{"a small step back in a pause", func(f *fakeGPU) {
			f.burst, f.pause, f.jumps = 1, 10e6, []jump{{at: 3e9, by: -1e6}}
		}, 0},
		{"counters part at once at a beat", func(f *fakeGPU) {
			f.parted, f.burst, f.pause, f.even, f.length, f.jitter = 1, 1, 1e6, true, 4e3, 60e3
		}, 0},
		{"a ring is overrun while kernels queue up",
			func(f *fakeGPU) { f.stall, f.burst, f.queued, f.pause = 700, 150, true, 1e9 }, 0.25},
		{"a ring is overrun, then kernels one by one", func(f *fakeGPU) { f.stall, f.burst, f.pause = 700, 1, 1e6 },
			0.8},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(3) {
				f := newFakeGPU(seed)
				c.set(f)
				kernels := f.kernels()
				s, shown := f.play(t, kernels, otf2.ParadigmCUDA)
				var a accuracy
				testkit.Must(t, a.add(kernels, shown))
				t.Log(c.name + ": " + a.String())
				wrong := 0
				for i, o := range shown {
					if o.source != TimingGPU {
						continue
					}
					off := max(math.Abs(o.begin-kernels[i].begin), math.Abs(o.end-kernels[i].end))
					if off > o.uncertainty+strictSlackNs {
						wrong++
						t.Logf("operation %d is shown %.0f ns off, uncertainty %.0f ns", i, off, o.uncertainty)
					}
				}
				testkit.Check(t, wrong <= 0, "%d operations are shown with times that are not theirs", wrong)
				testkit.Check(t, a.gpu >= int(c.least*float64(a.operations)), "%v: want %g of them", a.String(),
					c.least)
				marked := 0
				for _, m := range s.p.Markers {
					if m.Category == "Implausible GPU times" {
						marked++
					}
				}
				expectCount(t, "markers say that GPU times are not used", marked, 1)
			}
		})
	}
}
