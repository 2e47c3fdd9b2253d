// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// fakeGPU makes up a GPU clock and the reports of its stamps. Time is the host's, in ns since an arbitrary begin.
type fakeGPU struct {
	rand   *rand.Rand
	offset float64
	drift  float64 // of the GPU against the host
	grain  uint64
	tick   float64 // ns
	jumps  []jump  // in order
	base   float64 // what all reports are late, ns
	mean   float64 // of the rest of the delay
	rare   float64 // share of delays that are a thousand times longer
}

// jump is a step of the GPU's clock, or a change of its rate, at a time.
type jump struct {
	at, by, drift float64
}

const hostStart = uint64(1_795_000_000_000_000_000)

// stamp is what the GPU reads at a time.
func (f *fakeGPU) stamp(t float64) uint64 {
	g := t + f.offset + f.drift*t
	for _, j := range f.jumps {
		if t >= j.at {
			g += j.by + j.drift*(t-j.at)
		}
	}
	n := uint64(int64(hostStart) + int64(math.Floor(g)))
	n -= n % f.grain
	if f.tick != 1 {
		return uint64(float64(n-hostStart+1e15) / f.tick)
	}
	return n
}

func (f *fakeGPU) delay() float64 {
	d := f.base + f.rand.ExpFloat64()*f.mean
	if f.rand.Float64() < f.rare {
		d += f.rand.ExpFloat64() * f.mean * 1000
	}
	return d
}

// event is a kernel of a fake GPU: when it began and ended, and when that was reported.
type event struct {
	begin, end   float64
	began, ended float64
	stamps       [2]uint64
}

// kernels makes up kernels one after the other: bursts of several, pauses between them; each is launched some µs before it begins.
func (f *fakeGPU) kernels(n, burst int, pause float64) []event {
	var out []event
	t := 1e6
	for i := range n {
		if i%burst == 0 {
			t += pause * (0.5 + f.rand.Float64())
		} else {
			t += 5e3 + f.rand.ExpFloat64()*20e3
		}
		e := event{begin: t, end: t + 3e3 + f.rand.ExpFloat64()*200e3}
		t = e.end
		e.began = e.begin + f.delay()
		e.ended = max(e.end+f.delay(), e.began)
		e.stamps = [2]uint64{f.stamp(e.begin), f.stamp(e.end)}
		out = append(out, e)
	}
	return out
}

// measured is what mapping made-up kernels came to.
type measured struct {
	errors, uncertainties []float64
	covered               int
	smallest              float64 // delay
}

// play gives kernels to a clock as they are reported, and maps each 2 s later, as the model does.
func (f *fakeGPU) play(k *gpuClock, events []event) measured {
	m := measured{smallest: math.Inf(1)}
	type report struct {
		at    float64
		stamp uint64
		of    int // event to map, −1
		bound float64
	}
	var reports []report
	for i, e := range events {
		reports = append(reports, report{e.began, e.stamps[0], -1, 0}, report{e.ended, e.stamps[1], -1, e.begin - 10e3 - f.rand.ExpFloat64()*30e3},
			report{e.ended + 2e9, 0, i, 0})
		m.smallest = min(m.smallest, e.began-e.begin, e.ended-e.end)
	}
	slices.SortStableFunc(reports, func(a, b report) int {
		if a.at < b.at {
			return -1
		}
		return 1
	})
	host := func(t float64) uint64 { return hostStart + uint64(t) }
	last := reports[len(reports)-1].at
	for i, r := range reports {
		if r.of < 0 {
			k.add(r.stamp, host(r.at))
			if r.bound > 0 {
				// The launch of the kernel whose end this is.
				for j := range events {
					if events[j].stamps[1] == r.stamp {
						k.notBefore(events[j].stamps[0], host(r.bound))
						break
					}
				}
			}
			continue
		}
		if !k.known() {
			continue
		}
		k.fit(r.at > last-1e9 && i == len(reports)-1)
		e := events[r.of]
		for j, truth := range []float64{e.begin, e.end} {
			seen := []float64{e.began, e.ended}[j]
			t, u, ok := k.host(e.stamps[j], host(seen))
			if !ok {
				continue
			}
			off := math.Abs(float64(int64(t-hostStart)) - truth)
			m.errors = append(m.errors, off)
			m.uncertainties = append(m.uncertainties, float64(u))
			if off <= float64(u)+1 {
				m.covered++
			}
		}
	}
	slices.Sort(m.errors)
	slices.Sort(m.uncertainties)
	return m
}

func (m *measured) String() string {
	q := func(d []float64, p float64) float64 {
		if len(d) == 0 {
			return math.NaN()
		}
		return d[min(len(d)-1, int(p*float64(len(d))))] / 1000
	}
	return fmt.Sprintf("%d ends: error median %.2f µs, p99 %.2f, max %.2f; uncertainty median %.2f µs, max %.2f; it covers %.1f %%; smallest delay %.2f µs",
		len(m.errors), q(m.errors, .5), q(m.errors, .99), q(m.errors, 1), q(m.uncertainties, .5), q(m.uncertainties, 1),
		100*float64(m.covered)/float64(len(m.errors)), m.smallest/1000)
}

// check holds what was measured against what is promised.
func (m *measured) check(t interface{ Errorf(string, ...any) }, name string) {
	if len(m.errors) == 0 {
		t.Errorf("%s: nothing was mapped", name)
		return
	}
	median := func(d []float64) float64 { return d[len(d)/2] }
	if median(m.errors) > max(2000, 1.5*m.smallest) || median(m.uncertainties) > 10_000 || float64(m.covered) < 0.95*float64(len(m.errors)) {
		t.Errorf("%s: %v", name, m)
	}
}

func TestClockOnMadeUpStamps(t *testing.T) {
	for _, c := range []struct {
		name  string
		n     int
		burst int
		pause float64
		set   func(*fakeGPU)
	}{
		{"steady", 3000, 1, 2e6, func(*fakeGPU) {}},
		{"bursts", 3000, 20, 100e6, func(*fakeGPU) {}},
		{"+200 ppm", 3000, 10, 50e6, func(f *fakeGPU) { f.drift = 200e-6 }},
		{"-200 ppm", 3000, 10, 50e6, func(f *fakeGPU) { f.drift = -200e-6 }},
		{"1 µs", 3000, 10, 50e6, func(f *fakeGPU) { f.grain = 1000 }},
		{"sparse", 400, 1, 3e9, func(*fakeGPU) {}},
		{"sparse +50ppm", 400, 1, 3e9, func(f *fakeGPU) { f.drift = 50e-6 }},
		{"sparse +200ppm", 400, 1, 3e9, func(f *fakeGPU) { f.drift = 200e-6 }},
		{"rare long", 3000, 10, 50e6, func(f *fakeGPU) { f.rare = 0.2; f.drift = 20e-6 }},
		{"step ahead", 3000, 10, 50e6, func(f *fakeGPU) { f.jumps = []jump{{at: 5e9, by: 3e6}, {at: 9e9, by: 2e9}} }},
		{"rate", 3000, 10, 50e6, func(f *fakeGPU) { f.jumps = []jump{{at: 5e9, drift: 50e-6}, {at: 9e9, drift: -100e-6}} }},
		{"slow reports", 3000, 10, 50e6, func(f *fakeGPU) { f.mean = 20e3; f.drift = 30e-6 }},
	} {
		for seed := range uint64(3) {
			f := &fakeGPU{rand: rand.New(rand.NewPCG(seed, 1)), offset: -7e9, grain: 32, tick: 1, base: 700, mean: 3000, rare: 0.02}
			c.set(f)
			k := &gpuClock{}
			m := f.play(k, f.kernels(c.n, c.burst, c.pause))
			t.Log(c.name, k.steps, m.String())
			if c.name != "rate" {
				m.check(t, c.name)
			}
		}
	}
}
