// SPDX-License-Identifier: Apache-2.0

package bandwidth

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/facts/timing"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Curve is bandwidth over size, for one operation on one communicator with one algorithm, called or replayed, launched
// alone or in a launch of the same number of operations.
type Curve struct {
	Communicator string       `json:"communicator"`
	Comm         otf2.CommRef `json:"comm"`
	Ranks        int          `json:"ranks"`
	Operation    string       `json:"operation"`
	Algorithm    string       `json:"algorithm"` // "" if unknown
	Replayed     bool         `json:"replayed"`
	Equal        int          `json:"launched_together"` // operations in a launch; 0: alone
	TimingSource string       `json:"timing_source"`
	Points       []Point      `json:"points"` // by size
}

// Point sums up the operations of one size. If a table has several rows for it (in place and out of place, say), their
// bytes are divided by their time, each row counting with its median time.
type Point struct {
	Size       uint64  `json:"size"`       // bytes
	Operations uint64  `json:"operations"` // operations in the bandwidths
	AlgBW      float64 `json:"algbw"`      // GB/s
	BusBW      float64 `json:"busbw"`
	NobodyLate float64 `json:"busbw_nobody_late"` // 0: unknown
}

// Curves returns the curves of rows that stand for one size each, in the order of the rows. It leaves out rows without
// a bandwidth.
func Curves(rows []Row) []Curve {
	type name struct {
		comm                         otf2.CommRef
		operation, algorithm, source string
		replayed                     bool
		equal                        int
	}
	type sums struct {
		size             uint64
		n                uint64
		late, nobodyLate timing.Moved
		factor           float64
	}
	all := []Curve{}
	index := make(map[name]int)
	var points []map[uint64]*sums
	for i := range rows {
		r := &rows[i]
		if r.AlgBW == 0 || r.Class != nil {
			continue
		}
		key := name{r.Comm, r.Operation, strings.Join(append(slices.Clone(r.Algorithms), r.Variants...), ","),
			r.TimingSource, r.Replayed, r.Equal}
		at, has := index[key]
		if !has {
			at = len(all)
			index[key] = at
			all = append(all, Curve{
				Communicator: r.Communicator, Comm: r.Comm, Ranks: r.Ranks, Operation: r.Operation,
				Algorithm: key.algorithm, Replayed: r.Replayed,
				Equal: r.Equal, TimingSource: r.TimingSource,
			})
			points = append(points, make(map[uint64]*sums))
		}
		p := keyed.EntryMade(points[at], r.Size, func() *sums { return &sums{size: r.Size, factor: r.BusBW / r.AlgBW} })
		p.n += r.Timed
		p.late.Add(r.Timed, float64(r.Size), r.Time.P50)
		if r.Transfer != nil {
			p.nobodyLate.Add(r.TransferTimed, float64(r.Size), r.Transfer.P50)
		}
	}
	for i := range all {
		for _, p := range points[i] {
			bw := p.late.Bandwidth()
			all[i].Points = append(all[i].Points, Point{p.size, p.n, bw, bw * p.factor,
				p.nobodyLate.Bandwidth() * p.factor})
		}
		slices.SortFunc(all[i].Points, func(a, b Point) int { return cmp.Compare(a.Size, b.Size) })
	}
	return all
}
