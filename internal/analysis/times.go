// SPDX-License-Identifier: Apache-2.0

package analysis

import "github.com/nccl-otf2/nccl-otf2/internal/stats"

// Times has statistics of intervals in nanoseconds.
type Times struct {
	Total float64 `json:"total_ns"`
	Avg   float64 `json:"avg_ns"`
	Min   float64 `json:"min_ns"`
	P50   float64 `json:"p50_ns"` // nearest rank
	P99   float64 `json:"p99_ns"`
	Max   float64 `json:"max_ns"`
}

// KeptTimes is the number of durations of a row that are kept individually, for exact percentiles.
const KeptTimes = 4096

// Durations has the durations of a row, in ns.
type Durations = stats.Distribution[float64]

// TimesOf returns the statistics of durations, and whether the percentiles are approximate.
func TimesOf(d *Durations) (t Times, approximate bool) {
	if d.Count == 0 {
		return Times{}, false
	}
	return Times{Total: d.Total(), Avg: d.Mean(), Min: d.Min, P50: d.Percentile(50), P99: d.Percentile(99), Max: d.Max},
		d.Approximate()
}

// BoolCount returns 1 for true, 0 for false.
func BoolCount(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
