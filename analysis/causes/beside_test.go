// SPDX-License-Identifier: Apache-2.0

package causes

import "testing"

// What a host works while its GPU waits is its time and no wait; a host that calls only when the GPU is done may have waited for it.
func TestBeside(t *testing.T) {
	of := series{1, "Send"}
	for _, c := range []struct {
		name   string
		at     Local
		usual  float64 // that the host takes for such a call, ns; 0: not known
		hidden float64 // of 1000 ns that were waited until 2000
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
		e.ranks[0].hosts = []hostTimes{{series: of, ns: [keptTimes]float64{c.usual, c.usual, c.usual}, n: keptTimes}}
		culprit := e.causes.of(1, GPU)
		s := state{waits: amounts{{culprit, 3000}}, floating: floating{felt: amounts{{culprit, 2000}}, wait: 1000}}
		e.beside(&c.at, &s, of)
		waits := 0.0
		for _, a := range s.waits {
			waits += a.ns
		}
		if s.hidden != c.hidden || s.own[Host] != c.hidden || waits != 3000-c.hidden {
			t.Errorf("%s: %g ns are hidden, %g the host's, waits of %g; want %g", c.name, s.hidden, s.own[Host], waits, c.hidden)
		}
	}
}
