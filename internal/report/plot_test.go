// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"math"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/bandwidth"
	"github.com/nccl-otf2/nccl-otf2/internal/report"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Axes name bandwidths as tables do: thousands have no exponent.
func TestPlotTicks(t *testing.T) {
	point := func(size uint64, bw float64) bandwidth.Point {
		return bandwidth.Point{Size: size, Operations: 1, AlgBW: bw, BusBW: bw}
	}
	for name, c := range map[string]struct {
		points     []bandwidth.Point
		bandwidths []string
		sizes      []string
	}{
		"many decades": {[]bandwidth.Point{point(8, 0.012), point(1<<30, 1300)},
			[]string{"0.01", "0.1", "1", "10", "100", "1000"},
			[]string{"32 B", "1 KiB", "32 KiB", "1 MiB", "32 MiB", "1 GiB"}},
		"few": {[]bandwidth.Point{point(1<<20, 600), point(4<<20, 1900)},
			[]string{"500", "1000", "2000", "5000"}, []string{"512 KiB", "1 MiB", "2 MiB", "4 MiB", "8 MiB"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := report.NewPlot([]bandwidth.Curve{{Points: c.points}}, 6)
			texts := func(ticks []report.Tick) (all []string) {
				for _, tick := range ticks {
					testkit.Check(t, tick.At >= -1e-9 && tick.At <= 1+1e-9, "%s stands at %g", tick.Text, tick.At)
					all = append(all, tick.Text)
				}
				return all
			}
			testkit.Same(t, c.bandwidths, texts(p.Bandwidths))
			testkit.Same(t, c.sizes, texts(p.Sizes))
		})
	}
}

// A line needs two sizes that have a bandwidth.
func TestPlotHasLine(t *testing.T) {
	curve := func(bandwidths ...float64) (c bandwidth.Curve) {
		for i, bw := range bandwidths {
			c.Points = append(c.Points, bandwidth.Point{Size: 8 << i, Operations: 1, AlgBW: bw, BusBW: bw})
		}
		return c
	}
	for name, c := range map[string]struct {
		curves []bandwidth.Curve
		want   bool
	}{
		"none": {nil, false}, "one size": {[]bandwidth.Curve{curve(3)}, false},
		"two curves of one size": {[]bandwidth.Curve{curve(3), curve(0, 4)}, false},
		"infinite":               {[]bandwidth.Curve{curve(3, math.Inf(1))}, false},
		"two sizes":              {[]bandwidth.Curve{curve(3), curve(3, 4)}, true},
	} {
		testkit.Equal(t, report.NewPlot(c.curves, 6).HasLine(), c.want, "%s", name)
	}
}
