// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// A host's work while its GPU waits is its own time and not waiting; a host that calls only when the GPU is done may
// have waited for it.
func TestBeside(t *testing.T) {
	of := series{1, "Send"}
	for _, c := range []struct {
		name   string
		at     Local
		usual  float64 // ns that the host usually takes for such a call; 0: unknown
		hidden float64 // part of the 1000 ns of waiting until 2000
	}{
		{"called before the wait", Local{Ended: 2000, Ready: 900, Called: true, Free: 100}, 800, 0},
		{"called in the wait", Local{Ended: 2000, Ready: 1400, Called: true, Free: 100}, 0, 400},
		{"called at its end, as late as ever", Local{Ended: 2000, Ready: 2050, Called: true, Free: 1200}, 800, 750},
		{"called at its end; it came back in it", Local{Ended: 2000, Ready: 2050, Called: true, Free: 1500}, 800, 500},
		{"waited for it, and then worked", Local{Ended: 2000, Ready: 2800, Called: true, Free: 1200}, 800, 0},
		{"it is not known how long the host works", Local{Ended: 2000, Ready: 2050, Called: true, Free: 1200}, 0, 0},
		{"it is not known when the host came back", Local{Ended: 2000, Ready: 2050, Called: true}, 800, 0},
	} {
		e := NewEngine(2)
		e.ranks[0].hosts = []hostTimes{{series: of, ns: [keptTimes]float64{c.usual, c.usual, c.usual}, n: keptTimes,
			mid: c.usual}}
		culprit := e.causes.of(1, GPU)
		s := state{waits: amounts{{culprit, 3000}}, floating: floating{felt: amounts{{culprit, 2000}}, wait: 1000}}
		e.countWorkDuringWait(&c.at, &s, e.ranks[0].times(of))
		waits := 0.0
		for _, a := range s.waits {
			waits += a.ns
		}
		testkit.Check(t, s.hidden == c.hidden && s.own[Host] == c.hidden && waits == 3000-c.hidden,
			"%s: %g ns are hidden, %g the host's, waits of %g; want %g", c.name, s.hidden, s.own[Host], waits, c.hidden)
	}
}

// A host whose calls are equally far apart, whenever the operation before ended, does not wait for that. A few times do
// not show it.
func TestSteadyHosts(t *testing.T) {
	for _, c := range []struct {
		name  string
		took  func(i int) (called, ended float64) // ns
		times int
		usual float64
	}{
		{"calls as often, whenever operations end", func(i int) (float64, float64) {
			return 500 + float64(i%2), float64(100 + 200*(i%2))
		}, 12, 501},
		{"calls as long after their ends", func(i int) (float64, float64) {
			return float64(500 + 200*(i%2)), 100 + float64(i%2)
		}, 12, 0},
		{"neither tells", func(int) (float64, float64) { return 500, 100 }, 12, 0},
		{"too few", func(i int) (float64, float64) { return 500 + float64(i%2), float64(100 + 200*(i%2)) }, 6, 0},
	} {
		e := NewEngine(1)
		of := series{1, "AllReduce"}
		for i := range c.times {
			const ready = 1_000_000
			called, ended := c.took(i)
			e.called(&Local{Called: true, Ready: ready, Free: ready - otf2.Timestamp(called),
				Ended: ready - otf2.Timestamp(ended)}, of)
		}
		got := e.ranks[0].times(of).usual()
		testkit.Check(t, got == c.usual, "%s: %g, want %g", c.name, got, c.usual)
	}
}

// A rank that was called late to their last common operation, and was only partly waited for then, is waited for now
// for that reason.
func TestHeadStarts(t *testing.T) {
	for _, c := range []struct {
		name string
		met  otf2.Timestamp // ns by which it was called later then
		host float64        // share of its host
	}{
		{"called late then", 800, 1},
		{"partly", 100, 0.4},
		{"called at the same time", 0, 0},
	} {
		e := NewEngine(2)
		host := e.causes.of(1, Host)
		// Its host called 250 ns after the previous operation had ended. The other host had already called by then,
		// and took as long for its call.
		late := party{
			&Local{Rank: 1, Called: true, Ended: 10_000, Ready: 10_250},
			&meeting{late: amounts{{host, 300}}, called: true, ready: 9_000 + c.met},
			&state{own: [ownKinds]float64{Host: 250}, floating: floating{host: 1_000}},
		}
		early := party{&Local{Rank: 0, Called: true, Ended: 10_000, Ready: 10_250 - c.met},
			&meeting{called: true, ready: 9_000}, &state{floating: floating{host: 1_000}}}
		early.Ended = early.Ready + 1
		late.met.late, early.met.late = amounts{{host, 300}}, nil
		late.now.waits, early.now.waits = nil, amounts{{host, 300}} // it has waited for the host
		e.compare(late, early, 0)
		share := 0.0
		for _, why := range e.found {
			if why.of == host {
				share += why.ns
			}
		}
		testkit.Check(t, share >= c.host-0.001 && share <= c.host+0.001,
			"%s: %.2f goes back to its host, want %.2f: %v", c.name, share, c.host, e.found)
	}
}
