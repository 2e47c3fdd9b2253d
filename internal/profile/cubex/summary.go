// SPDX-License-Identifier: Apache-2.0

package cubex

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/facts/lateness"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/timing"
	"github.com/nccl-otf2/nccl-otf2/internal/profile"
	"github.com/nccl-otf2/nccl-otf2/internal/stats"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// summarySchema is the version of Summary's schema.
const summarySchema = 2

// Summary is the figures of a profile by operation. Times are nanoseconds, sizes bytes.
type Summary struct {
	Schema    int    `json:"schema"`
	Creator   string `json:"creator"`
	Processes int    `json:"processes"`
	Begin     uint64 `json:"begin"` // time of the first event, ns since 1970; 0: no event
	Duration  uint64 `json:"duration_ns"`
	// Complete reports whether no loss is known; Lost is the number of events that were not recorded.
	Complete bool   `json:"complete"`
	Lost     uint64 `json:"lost"`
	// PercentileError is the greatest relative error of percentiles.
	PercentileError float64            `json:"percentile_error"`
	Operations      []OperationSummary `json:"operations"`
	// Waits is the waiting of all ranks by cause; absent if it was not looked for.
	Waits    map[string]uint64 `json:"waits_ns,omitempty"`
	Estimate *Estimate         `json:"waits_estimated,omitempty"`
	Folded   uint64            `json:"folded_names,omitempty"`
}

// OperationSummary is the operations of one function on one communicator, counted per member: a collective of 8 ranks
// is 8 calls. Averages equal those of package analysis, which averages an operation over its members first, if all
// members ended all operations; percentiles and extremes differ, because here they are those of single members.
type OperationSummary struct {
	Communicator string `json:"communicator"`
	Operation    string `json:"operation"`
	// launched together with others: Time is that of launches, Size that of operations
	Grouped bool         `json:"grouped"`
	Source  string       `json:"timing_source"`
	Calls   uint64       `json:"calls"` // of all ranks
	Time    Distribution `json:"member_time_ns"`
	Size    Distribution `json:"size"`
	// Bandwidths are defined as in the report, with one difference: the report takes the median over operations of the
	// mean over members, which needs all members at once; this is the mean over members of the median over operations.
	AlgBW float64 `json:"algbw"` // GB/s; 0: unknown
	BusBW float64 `json:"busbw"`
}

// Distribution describes values by number, sum, extremes, and percentiles estimated from classes.
type Distribution struct {
	Count uint64  `json:"count"`
	Sum   uint64  `json:"sum"`
	Avg   float64 `json:"avg"`
	Min   uint64  `json:"min"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	Max   uint64  `json:"max"`
}

func distributionOf(h *profile.Histogram) Distribution {
	return Distribution{Count: h.Count, Sum: h.Sum, Avg: float64(h.Sum) / float64(max(h.Count, 1)), Min: h.Min,
		Max: h.Max, P50: h.Percentile(50), P99: h.Percentile(99)}
}

// waitNames are the names of the metrics of waits.
var waitNames = [profile.NumWaitKinds]string{
	lateness.WaitCollective: "nccl_wait_nxn", lateness.WaitLateBroadcast: "nccl_late_broadcast",
	lateness.WaitEarlyReduce: "nccl_early_reduce",
	lateness.WaitLateSender:  "nccl_late_sender", lateness.WaitLateReceiver: "nccl_late_receiver",
	profile.WaitStartUp: "nccl_startup_wait",
}

// Summary returns the figures of the profile.
func (p *Profile) Summary() *Summary {
	s := &Summary{
		Schema:  summarySchema,
		Creator: p.Creator, Processes: p.system.processes, Begin: p.first, Duration: p.last - p.first,
		Complete: p.isComplete(), Lost: p.Lost(),
		PercentileError: stats.PercentileError, Operations: []OperationSummary{}, Estimate: p.Estimate,
		Folded: p.Folded,
	}
	type key struct {
		comm, function, source string
		grouped                bool
	}
	sums, alg, bus := make(map[key]*profile.Stats), make(map[key]timing.Moved), make(map[key]timing.Moved)
	comm := func(ref otf2.LocationRef) string {
		return cmp.Or(p.system.comms[ref], "NCCL")
	}
	for _, l := range p.stats {
		k := key{comm(l.location), l.Function, l.Source, l.Grouped}
		sums[k] = cmp.Or(sums[k], &profile.Stats{})
		sums[k].Merge(l.Stats)
		a, b := l.Speeds.Sums() // medians are per member
		alg[k], bus[k] = alg[k].Plus(a), bus[k].Plus(b)
	}
	for k, st := range sums {
		o := OperationSummary{
			Communicator: k.comm, Operation: k.function, Grouped: k.grouped, Source: k.source,
			Calls: max(st.Time.Count, st.Size.Count),
			Time:  distributionOf(&st.Time), Size: distributionOf(&st.Size),
		}
		o.AlgBW, o.BusBW = alg[k].Bandwidth(), bus[k].Bandwidth()
		s.Operations = append(s.Operations, o)
	}
	slices.SortFunc(s.Operations, func(x, y OperationSummary) int {
		grouped := map[bool]int{true: 1}
		return cmp.Or(compareNames(x.Communicator, y.Communicator), cmp.Compare(x.Operation, y.Operation),
			cmp.Compare(grouped[x.Grouped], grouped[y.Grouped]), cmp.Compare(x.Source, y.Source))
	})
	if p.WaitsKnown || p.Estimate != nil {
		s.Waits = make(map[string]uint64)
		for k, name := range waitNames {
			s.Waits[name] = 0
			for _, n := range p.nodes {
				for _, c := range n.cells {
					s.Waits[name] += c.Waits[k]
				}
			}
		}
	}
	return s
}
