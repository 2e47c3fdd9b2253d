// SPDX-License-Identifier: Apache-2.0

package clocks

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// length is how long the made-up runs are, ns.
const length = 100 * second

// What is kept is bounded, whatever there is: of each direction the exchanges that tell most stay, the last one of a
// direction always.
func TestExchangesAreThinned(t *testing.T) {
	message := func(from, to int32, at, delay float64) exchange {
		return exchange{begins: []instant{{from, at}}, ends: []instant{{to, at + delay}}}
	}
	xs := newExchanges(100)
	for i := range 10_000 {
		delay := 1e6
		if i == 4321 {
			delay = 1e3
		}
		xs.add(message(0, 1, float64(i)*1e3, delay))
	}
	kept := xs.list()
	testkit.Check(t, len(kept) != 0 && len(kept) <= 50 && xs.total == 10_000, "%d of %d are kept", len(kept), xs.total)
	testkit.Check(t, slices.ContainsFunc(kept, func(x exchange) bool { return x.tightness() == 1e3 }),
		"the tightest exchange is gone")
	xs = newExchanges(100)
	for from := range int32(200) {
		for to := range int32(200) {
			xs.add(message(from, to, 0, 1e3))
		}
	}
	n := len(xs.list())
	testkit.Check(t, n == 200*199, "%d directions are left of %d", n, 200*199)
}

// However many exchanges a run has, and in whatever order communicators are read: what ties hosts together is known as
// well as if nothing had been left out. The first communicator spans all hosts, those that follow have ten million
// exchanges between two of them each, which take longer.
func TestClocksOfTenMillionExchanges(t *testing.T) {
	const (
		hosts    = 8
		ties     = 4000
		exchange = 10_000_000
	)
	r := newTestRun(hosts, 5)
	xs := newExchanges(maxInstants)
	alone := newExchanges(math.MaxInt)
	for i := range ties {
		r.collective(allHosts(hosts), float64(i)*length/ties, 200e3, 20e3)
		xs.add(r.xs[i])
		alone.add(r.xs[i])
	}
	for pair := range hosts / 2 {
		const n = exchange / (hosts / 2)
		for i := range n {
			first, last := int32(2*pair+i%2), int32(2*pair+1-i%2)
			at := float64(i) * length / n
			enter := at + 100e3*r.random.Float64()
			done := at + 130e3 + 50e3*r.random.Float64()
			times := []instant{
				{first, r.clocks[first].shows(at)}, {last, r.clocks[last].shows(enter)},
				{first, r.clocks[first].shows(done)}, {last, r.clocks[last].shows(done)},
			}
			if first > last {
				times[0], times[1], times[2], times[3] = times[1], times[0], times[3], times[2]
			}
			xs.add(makeExchange(times[:2:2], times[2:]))
		}
	}
	testkit.Check(t, xs.total == exchange+ties && xs.size <= maxInstants,
		"%d exchanges found, %d instants kept", xs.total, xs.size)
	fit := fitExchanges(hosts, xs.list(), testOrigin, 2)
	worst, covered := r.judge(t, fit, 0, length)
	few, _ := r.judge(t, fitExchanges(hosts, alone.list(), testOrigin, 2), 0, length)
	testkit.Check(t, worst <= few+1e3 && covered >= 1,
		"clocks are off by %.1f µs, %.1f µs with the first communicator alone; %.1f %% covered", worst/1e3, few/1e3,
		100*covered)
}

func makeExchange(begins, ends []instant) exchange { return exchange{begins: begins, ends: ends} }

// Each direction has its share: those with few exchanges keep them all, the others keep equally many, over the whole
// run.
func TestEachDirectionHasItsShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(64, 4096).Draw(t, "limit")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		counts := rapid.SliceOfN(rapid.IntRange(1, 3000), 1, 8).Draw(t, "exchanges by direction")
		xs := newExchanges(limit)
		for d, n := range counts {
			for i := range n {
				at := float64(i) * length / float64(n)
				xs.add(makeExchange([]instant{{int32(d), at}}, []instant{{int32(d + 1), at + 1e3*random.ExpFloat64()}}))
			}
		}
		testkit.Require(t, xs.size <= limit, "%d instants, at most %d are to be kept", xs.size, limit)
		fair := limit / 2 / 2 / len(counts) // of two instants each
		for d, n := range counts {
			kept := xs.order[d].kept
			testkit.Check(t, len(kept) >= min(n, fair/(2*binExchanges)),
				"direction %d keeps %d of %d; each could have %d", d, len(kept), n, fair)
			bins := max(fair/binExchanges/4, 1)
			for bin := range bins {
				from, to := float64(bin)*length/float64(bins), float64(bin+1)*length/float64(bins)
				if n >= 4*bins && !slices.ContainsFunc(
					kept, func(x exchange) bool { return x.begins[0].time >= from && x.begins[0].time < to }) {
					t.Errorf("direction %d: nothing is kept of [%g, %g) s", d, from/second, to/second)
				}
			}
		}
	})
}
