// SPDX-License-Identifier: Apache-2.0

package clocks

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// testClock is a host's clock as a test makes it: what it shows at a true time.
type testClock struct {
	offset, drift float64
	wander        func(t float64) float64
}

func (c *testClock) shows(t float64) float64 {
	v := t + c.offset + c.drift*t
	if c.wander != nil {
		v += c.wander(t)
	}
	return math.Round(v)
}

// testRun is a run with known clocks.
type testRun struct {
	clocks []testClock
	xs     []exchange
	truth  []exchange   // the same with true times
	wrong  map[int]bool // those that the test made wrong
	random *rand.Rand
}

const testOrigin = otf2.Timestamp(1_700_000_000_000_000_000)

func newTestRun(hosts int, seed uint64) *testRun {
	r := &testRun{clocks: make([]testClock, hosts), wrong: make(map[int]bool), random: rand.New(rand.NewPCG(seed, 1))}
	for h := range r.clocks {
		if h > 0 {
			r.clocks[h] = testClock{offset: (2*r.random.Float64() - 1) * 50e6,
				drift: (2*r.random.Float64() - 1) * 50e-6}
		}
	}
	return r
}

// message draws one that takes delay ns.
func (r *testRun) message(from, to int, t, delay float64) {
	r.xs = append(r.xs, exchange{
		begins: []instant{{int32(from), r.clocks[from].shows(t)}},
		ends:   []instant{{int32(to), r.clocks[to].shows(t + delay)}},
	})
	r.truth = append(r.truth, exchange{begins: []instant{{int32(from), t}}, ends: []instant{{int32(to), t + delay}}})
}

// collective draws one in which hosts enter within spread ns of t, and which takes delay ns from the last.
func (r *testRun) collective(hosts []int, t, spread, delay float64) {
	var x, truth exchange
	last := 0.0
	enter := make([]float64, len(hosts))
	for i := range hosts {
		enter[i] = t + r.random.Float64()*spread
		last = max(last, enter[i])
	}
	for i, h := range hosts {
		x.begins = append(x.begins, instant{int32(h), r.clocks[h].shows(enter[i])})
		end := last + delay*(1+r.random.Float64())
		x.ends = append(x.ends, instant{int32(h), r.clocks[h].shows(end)})
		truth.begins = append(truth.begins, instant{int32(h), enter[i]})
		truth.ends = append(truth.ends, instant{int32(h), end})
	}
	r.xs, r.truth = append(r.xs, x), append(r.truth, truth)
}

// bound is how far off the worst host's clock can be, were all drifts known, without any exchange ending before it can:
// difference constraints between hosts, from true times, along chains of hosts.
func (r *testRun) bound(fit *Fitted) float64 {
	n := len(r.clocks)
	room := make([][]float64, n) // room[a][b]: by how much b can be late against a
	for a := range room {
		room[a] = make([]float64, n)
		for b := range room[a] {
			if a != b {
				room[a][b] = math.Inf(1)
			}
		}
	}
	for _, x := range r.truth {
		for _, b := range x.begins {
			for _, e := range x.ends {
				if b.host != e.host {
					room[e.host][b.host] = min(room[e.host][b.host], e.time-b.time)
				}
			}
		}
	}
	for k := range room {
		for a := range room {
			for b := range room {
				room[a][b] = min(room[a][b], room[a][k]+room[k][b])
			}
		}
	}
	worst := 0.0
	for h := range room {
		ref := fit.Hosts[h].Reference
		worst = max(worst, room[ref][h], room[h][ref])
	}
	return worst
}

// goesBackwards is by how much the worst exchange that can be true ends before it began on corrected clocks, and by how
// much more than the uncertainty.
func (r *testRun) goesBackwards(fit *Fitted) (most, beyond float64) {
	at := func(s instant) (float64, float64) {
		o, u := fit.Hosts[s.host].At(testOrigin + otf2.Timestamp(int64(s.time)))
		return s.time + float64(o), u
	}
	for i := range r.xs {
		if wrong := r.wrong[i]; wrong {
			continue
		}
		for _, b := range r.xs[i].begins {
			for _, e := range r.xs[i].ends {
				begin, ub := at(b)
				end, ue := at(e)
				most = max(most, begin-end)
				if u := ub + ue; !math.IsInf(u, 1) {
					beyond = max(beyond, begin-end-u)
				}
			}
		}
	}
	return most, beyond
}

// errorAt is how far a host's corrected clock is from its reference's at a true time, and what the fit says of it.
func (r *testRun) errorAt(fit *Fitted, h int, t float64) (off, uncertainty float64) {
	corrected := func(h int) (float64, float64) {
		local := int64(r.clocks[h].shows(t))
		o, u := fit.Hosts[h].At(testOrigin + otf2.Timestamp(local))
		return float64(local + o), u
	}
	ref, _ := corrected(fit.Hosts[h].Reference)
	own, u := corrected(h)
	return own - ref, u
}

// judge measures all hosts' errors all over [from, to].
func (r *testRun) judge(t *testing.T, fit *Fitted, from, to float64) (worst, covered float64) {
	t.Helper()
	within, n, most := 0, 0, 0.0
	for h := range r.clocks {
		if fit.Hosts[h].Reference == h {
			continue
		}
		for i := range 201 {
			off, u := r.errorAt(fit, h, from+(to-from)*float64(i)/200)
			worst, most = max(worst, math.Abs(off)), max(most, u)
			n++
			if math.Abs(off) <= u+1 {
				within++
			}
		}
	}
	covered = float64(within) / float64(max(n, 1))
	back, _ := r.goesBackwards(fit)
	t.Logf("%d hosts, %d exchanges: worst error %.2f µs, exchanges allow %.2f µs, greatest uncertainty %.2f µs, "+
		"covered %.1f %%, %d not kept, by %.3f µs at most",
		len(r.clocks), len(r.xs), worst/1e3, r.bound(fit)/1e3, most/1e3, 100*covered, fit.Broken, back/1e3)
	return worst, covered
}

func allHosts(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

const second = 1e9

// Microsecond messages bring clocks that are 50 ms and 50 ppm apart to within 5 µs, and the stated uncertainty covers
// what is left.
func TestClocksFromMessages(t *testing.T) {
	for _, c := range []struct {
		name  string
		hosts int
		worst float64
		// wander is what the changes of a drift on the way make of clocks between knots.
		wander float64
		make   func(r *testRun) (from, to float64)
	}{
		{"two hosts", 2, 5e3, 0, func(r *testRun) (float64, float64) {
			for i := range 2000 {
				r.message(i%2, 1-i%2, float64(i)*1e6, 1000+4000*r.random.ExpFloat64())
			}
			return 0, 2 * second
		}},
		{"collectives of eight", 8, 5e3, 0, func(r *testRun) (float64, float64) {
			for i := range 1000 {
				r.collective(allHosts(8), float64(i)*2e6, 50e3, 2e3)
			}
			return 0, 2 * second
		}},
		{"a line of four", 4, 5e3, 0, func(r *testRun) (float64, float64) {
			for i := range 3000 {
				h := i % 3
				from, to := h, h+1
				if i/3%2 == 1 {
					from, to = to, from
				}
				r.message(from, to, float64(i)*1e6, 1000+1000*r.random.ExpFloat64())
			}
			return 0, 3 * second
		}},
		{"one direction slower", 2, 5e3, 0, func(r *testRun) (float64, float64) {
			for i := range 2000 {
				r.message(i%2, 1-i%2, float64(i)*1e6, 1000+float64(i%2)*6000+1000*r.random.ExpFloat64())
			}
			return 0, 2 * second
		}},
		{"a star of 32", 32, 5e3, 0, func(r *testRun) (float64, float64) {
			for i := range 6400 {
				h := 1 + i/2%31
				if i%2 == 0 {
					r.message(0, h, float64(i)*300e3, 2000+1000*r.random.ExpFloat64())
				} else {
					r.message(h, 0, float64(i)*300e3, 2000+1000*r.random.ExpFloat64())
				}
			}
			return 0, 1.92 * second
		}},
		{"a long run whose drift changes", 3, 5e3, 2e3, func(r *testRun) (float64, float64) {
			for h := 1; h < 3; h++ {
				r.clocks[h].wander = func(t float64) float64 { // ± 1 ppm in ten minutes
					return 1e-6 * 600 * second / (2 * math.Pi) * math.Sin(2*math.Pi*t/(600*second)+float64(h))
				}
			}
			for i := range 20000 {
				r.collective(allHosts(3), float64(i)*0.05*second, 200e3, 2e3)
			}
			return 0, 1000 * second
		}},
		{"outliers", 3, 5e3, 0, func(r *testRun) (float64, float64) {
			for i := range 2000 {
				r.collective(allHosts(3), float64(i)*1e6, 50e3, 2e3)
				x := &r.xs[len(r.xs)-1]
				r.wrong[i] = i%100 == 17 || i%100 == 50 || i%100 == 70
				switch i % 100 {
				case 17:
					x.begins[i/100%3].time += 3e6
				case 50:
					x.ends[i/100%3].time -= 700e3
				case 70:
					x.begins[1].time += 60e6
				}
			}
			return 0, 2 * second
		}},
		{"wrong messages", 2, 5e3, 0, func(r *testRun) (float64, float64) {
			for i := range 2000 {
				r.message(i%2, 1-i%2, float64(i)*1e6, 1000+4000*r.random.ExpFloat64())
				if i%100 == 33 {
					r.wrong[i] = true
					r.xs[i].ends[0].time -= 2e6
				}
			}
			return 0, 2 * second
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(3) {
				r := newTestRun(c.hosts, seed)
				from, to := c.make(r)
				fit := fitExchanges(c.hosts, r.xs, testOrigin, 2)
				worst, covered := r.judge(t, fit, from, to)
				if bound := r.bound(fit) + c.wander; worst > c.worst || worst > bound {
					t.Errorf("seed %d: error of %.2f µs, exchanges allow %.2f µs", seed, worst/1e3, bound/1e3)
				}
				if back, beyond := r.goesBackwards(fit); beyond > 0 || back > c.wander {
					t.Errorf("seed %d: an exchange ends %.3f µs before it begins, %.3f µs more than is uncertain", seed,
						back/1e3, beyond/1e3)
				}
				testkit.Check(t, covered >= 0.95, "seed %d: the uncertainty covers %.1f %%", seed, 100*covered)
			}
		})
	}
}

// Few exchanges bind clocks as well as they can, and the uncertainty says how well that is.
func TestClocksFromFewExchanges(t *testing.T) {
	for seed := range uint64(20) {
		r := newTestRun(3, seed)
		r.message(0, 1, second, 20e3)
		r.message(1, 0, 1.001*second, 60e3)
		r.message(1, 2, 1.002*second, 30e3)
		r.message(2, 1, 1.003*second, 10e3)
		fit := fitExchanges(3, r.xs, testOrigin, 2)
		worst, covered := r.judge(t, fit, second, 1.004*second)
		if bound := r.bound(fit); worst > bound || covered < 1 || fit.Broken > 0 {
			t.Errorf("seed %d: error of %.1f µs, exchanges allow %.1f µs; covered %.1f %%, %d broken", seed, worst/1e3,
				bound/1e3, 100*covered, fit.Broken)
		}
		// 10 s away from all exchanges the drift counts.
		if off, u := r.errorAt(fit, 2, 11*second); math.Abs(off) > u || u < 100e3 {
			t.Errorf("seed %d: 10 s later the error is %.1f µs, the uncertainty %.1f µs", seed, off/1e3, u/1e3)
		}
	}
}

// Short messages both ways at one time leave the drift open. Messages one way at other times determine it if they took
// about equally long; one slow message does not mislead, and two times do not suffice.
func TestClocksWhoseDriftIsOpen(t *testing.T) {
	type far struct {
		n         int
		at, delay float64
	} // messages from host 0
	before, after := far{8, 0.1 * second, 100e3}, far{8, 2.8 * second, 100e3}
	for _, c := range []struct {
		name  string
		drift float64
		far   []far
		worst float64
	}{
		{"before and after", 40e-6, []far{before, after}, 25e3},
		{"the other way", -40e-6, []far{before, after}, 25e3},
		{"no drift", 0, []far{before, after}, 25e3},
		{"two were slow", 40e-6, []far{before, after, {1, 0.2 * second, 300e3}, {1, 2.9 * second, 250e3}}, 25e3},
		{"two times", 0, []far{{8, 2.8 * second, 250e3}}, 25e3},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(5) {
				r := newTestRun(2, seed)
				r.clocks[1].drift = c.drift
				for i := range 16 {
					r.message(i%2, 1-i%2, second+float64(i)*60e3, 100e3+10e3*r.random.Float64())
				}
				for _, f := range c.far {
					for i := range f.n {
						r.message(0, 1, f.at+float64(i)*5e6, f.delay+10e3*r.random.Float64())
					}
				}
				fit := fitExchanges(2, r.xs, testOrigin, 2)
				worst, covered := r.judge(t, fit, 0, 3*second)
				testkit.Check(t, worst <= c.worst && covered >= 1 && fit.Broken == 0,
					"seed %d: error of %.1f µs; covered %.1f %%, %d broken", seed, worst/1e3, 100*covered, fit.Broken)
			}
		})
	}
}

// Runs of 10 s with short messages both ways at one time and few or many one way at any: whatever drift is preferred,
// nothing is broken and the uncertainty covers the error, also where messages take longer and longer, which looks like
// a drift.
func TestClocksOfSparseRuns(t *testing.T) {
	for _, c := range []struct {
		name string
		far  []int // messages one way
		grow float64
		mean [3]float64 // µs at most, by drift
	}{
		{"few", []int{1, 2, 4}, 0, [3]float64{150, 90, 65}},
		{"many", []int{10, 40}, 0, [3]float64{50, 50, 50}},
		{"few, slower and slower", []int{1, 2, 4}, 1, [3]float64{180, 120, 90}},
		{"many, slower and slower", []int{10, 40}, 1, [3]float64{125, 125, 125}},
	} {
		for d, drift := range [3]float64{50e-6, 20e-6, 5e-6} {
			sum, runs := 0.0, 0
			for seed := range uint64(40) {
				for _, far := range c.far {
					for _, slower := range []float64{0, 100e3} { // one direction, always
						r := newTestRun(2, seed)
						r.clocks[1].drift = (2*r.random.Float64() - 1) * drift
						message := func(at float64, from int) {
							r.message(from, 1-from, at, 30e3+float64(from)*slower+50e3*r.random.ExpFloat64()*(1+c.grow*at/second))
						}
						at := 2*second + 6*second*r.random.Float64()
						for i := range 16 {
							message(at+float64(i)*1e5, i%2)
						}
						from := r.random.IntN(2)
						for range far {
							message(10*second*r.random.Float64(), from)
						}
						fit := fitExchanges(2, r.xs, testOrigin, 1)
						worst := 0.0
						for i := range 101 {
							off, u := r.errorAt(fit, 1, 10*second*float64(i)/100)
							worst = max(worst, math.Abs(off))
							if math.Abs(off) > u+1 {
								t.Fatalf("%s, seed %d: off by %.1f µs ± %.1f", c.name, seed, off/1e3, u/1e3)
							}
						}
						testkit.Check(t, fit.Broken == 0,
							"%s, seed %d: %d exchanges are not kept", c.name, seed, fit.Broken)
						sum, runs = sum+worst/1e3, runs+1
					}
				}
			}
			t.Logf("%s, drifts up to %.0f ppm: greatest errors are %.0f µs on average", c.name, drift*1e6,
				sum/float64(runs))
			mean := sum / float64(runs)
			testkit.Check(t, mean <= c.mean[d], "%s, drifts up to %.0f ppm: errors of %.0f µs on average, want %.0f",
				c.name, drift*1e6, mean, c.mean[d])
		}
	}
}

// Hosts that nothing ties to others, or from one side only, are told so.
func TestClocksThatAreNotKnown(t *testing.T) {
	r := newTestRun(6, 1)
	for i := range 100 {
		at := float64(i) * 1e6
		r.message(0, 1, at, 5e3) // one way
		r.message(3+i%2, 4-i%2, at, 5e3)
	}
	r.clocks[1] = testClock{}
	fit := fitExchanges(6, r.xs, testOrigin, 2)
	for h, want := range []Host{
		{Reference: 0, Tied: true}, {Reference: 0, Tied: true, OneSided: true}, {Reference: 2},
		{Reference: 3, Tied: true}, {Reference: 3, Tied: true}, {Reference: 5},
	} {
		got := fit.Hosts[h]
		testkit.Check(t, got.Reference == want.Reference && got.Tied == want.Tied && got.OneSided == want.OneSided,
			"host %d: %+v, want %+v", h, got, want)
	}
	_, u := fit.Hosts[1].At(testOrigin)
	testkit.Check(t, math.IsInf(u, 1), "host 1 is certain to %v ns", u)
	back, _ := r.goesBackwards(fit)
	testkit.Check(t, back <= 0, "a message goes %v ns back", back)
	off, u := r.errorAt(fit, 4, 50e6)
	testkit.Check(t, math.Abs(off) <= min(u, 5e3), "host 4 against 3: %v ± %v", off, u)
}

// Whatever hosts send each other: as long as their clocks are straight, what went forwards does not go backwards by
// more than its uncertainty, and the uncertainty covers the error.
func TestNoExchangeGoesBackwards(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		hosts := rapid.IntRange(2, 8).Draw(rt, "hosts")
		r := newTestRun(hosts, rapid.Uint64().Draw(rt, "seed"))
		delay := rapid.SampledFrom([]float64{1e3, 20e3, 1e6}).Draw(rt, "delay")
		step := rapid.SampledFrom([]float64{1e4, 1e6, 1e8}).Draw(rt, "step")
		n := rapid.IntRange(1, 300).Draw(rt, "exchanges")
		collectives := rapid.IntRange(0, 10).Draw(rt, "of ten collectives")
		for i := range n {
			at := float64(i) * step
			if r.random.IntN(10) < collectives {
				r.collective(r.random.Perm(hosts)[:1+r.random.IntN(hosts)], at, 10*delay*r.random.Float64(), delay)
			} else {
				from := r.random.IntN(hosts)
				r.message(from, (from+1+r.random.IntN(hosts-1))%hosts, at, delay*(1+r.random.ExpFloat64()))
			}
		}
		fit := fitExchanges(hosts, r.xs, testOrigin, 2)
		if back, beyond := r.goesBackwards(fit); beyond > 1 {
			rt.Errorf("an exchange ends %.0f ns before it begins, %.0f ns more than is uncertain (%d of %d not kept)",
				back, beyond, fit.Broken, n)
		}
		for h := range hosts {
			for i := range 11 {
				off, u := r.errorAt(fit, h, float64(n)*step*float64(i)/10)
				testkit.Check(rt, !fit.Hosts[h].Tied || math.Abs(off) <= 1.001*u+1,
					"host %d is off by %.0f ns ± %.0f at %d/10", h, off, u, i)
			}
		}
	})
}

// Where the same host always comes last, the bounds leave its clock open by the whole time that others wait for it.
// That collectives end at about the same time everywhere closes the gap.
func TestClocksOfAHostThatIsAlwaysLate(t *testing.T) {
	for _, c := range []struct {
		name             string
		hosts            int
		lateness, jitter float64
		seconds          int
	}{
		{"two hosts, two seconds", 2, 10e6, 1e6, 2},
		{"two hosts, a minute, lateness varies", 2, 10e6, 9e6, 60},
		{"five hosts", 5, 3e6, 1e6, 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newTestRun(c.hosts, 1)
			for i := range 20 * c.seconds {
				r.lateCollective(float64(i)*second/20, c.lateness+c.jitter*(2*r.random.Float64()-1), 50e3)
				// Now and then the others are disturbed between a collective's end and its recording.
				if i%7 == 3 {
					r.xs[i].ends[0].time += 2e6
				}
			}
			fit := fitExchanges(c.hosts, r.xs, testOrigin, 1)
			if worst, covered := r.judge(t, fit, 0, float64(c.seconds)*second); worst > 250e3 || covered < 1 {
				t.Errorf("the worst error is %.0f µs, where a host is %.0f µs late; covered %.3f", worst/1e3,
					c.lateness/1e3, covered)
			}
		})
	}
}

// lateCollective draws a collective of all hosts to which the last one comes later than the others, and which takes
// delay ns from then on.
func (r *testRun) lateCollective(t, late, delay float64) {
	hosts := len(r.clocks)
	r.collective(allHosts(hosts), t, 1e6, delay)
	x, truth := &r.xs[len(r.xs)-1], &r.truth[len(r.truth)-1]
	truth.begins[hosts-1].time = t + 1e6 + late
	for i := range truth.ends {
		truth.ends[i].time = t + 1e6 + late + delay*(1+r.random.Float64()/2)
	}
	for i := range hosts {
		x.begins[i].time = r.clocks[i].shows(truth.begins[i].time)
		x.ends[i].time = r.clocks[i].shows(truth.ends[i].time)
	}
}

// What is proven decides against what is likely: where one host records all ends late, messages show its clock.
func TestClocksOfAHostWhoseEndsAreLate(t *testing.T) {
	r := newTestRun(2, 1)
	for i := range 200 {
		at := float64(i) * second / 20
		r.lateCollective(at, 10e6, 50e3)
		r.xs[len(r.xs)-1].ends[1].time += 5e6
		r.message(0, 1, at+20e6, 1e3)
		r.message(1, 0, at+21e6, 1e3)
	}
	if worst, covered := r.judge(t, fitExchanges(2, r.xs, testOrigin, 1), 0, 10*second); worst > 5e3 || covered < 1 {
		t.Errorf("the worst error is %.1f µs, covered %.3f", worst/1e3, covered)
	}
}
