// SPDX-License-Identifier: Apache-2.0

package cuda

import "github.com/nccl-otf2/nccl-otf2/cupti"

// Counters of CUPTI's records: each kernel is counted once by its fate.

// count is a counter of CUPTI's records.
type count int

// outcomes says which count an outcome of the correlator's is.
var outcomes = [cupti.NumOutcomes]count{
	cupti.Linked: countLinked, cupti.NoExternal: countNoExternal, cupti.NoCall: countNoCall, cupti.Aged: countAged,
	cupti.Implausible: countImplausible, cupti.Ambiguous: countAmbiguous,
}

// withoutID are the outcomes of activities that no external id came for. Those of kernels that are not NCCL's are what
// is to be expected: most are launched by calls of the CUDA runtime, which CUPTI does not report to who asks for calls
// of the driver.
var withoutID = [cupti.NumOutcomes]bool{cupti.NoExternal: true, cupti.Aged: true}

// Counts gives the counts of what CUPTI told, by name, without those that are 0; nil if it told nothing.
func (g *Recorder) Counts() map[string]uint64 {
	if !g.active {
		return nil
	}
	g.counts[countUndecided] = g.counts[countKernels] - g.countDecided()
	g.counts[countUndrawn] = uint64(g.streams.held + len(g.times.waiting))
	out := make(map[string]uint64)
	for i, n := range g.counts {
		if n > 0 {
			out[CountNames[i]] = n
		}
	}
	return out
}

// countDecided is the number of kernels that it is known of what became of them.
func (g *Recorder) countDecided() uint64 {
	n := g.counts[countGraphLinked] + g.counts[countGraphUnlinked] + g.counts[countGraphOther] + g.counts[countOther]
	for _, c := range outcomes {
		n += g.counts[c]
	}
	return n
}
