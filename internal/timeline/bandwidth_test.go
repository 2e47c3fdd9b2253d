// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/bandwidth"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selection"
	"github.com/nccl-otf2/nccl-otf2/internal/report"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// sizesJob is a job of four ranks with operations of those sizes by two algorithms, three of each and one of start-up.
func sizesJob(t *testing.T, sizes ...uint64) *otf2.Archive {
	t.Helper()
	return jobtest.Open(t, jobtest.Make(t, 4, 2, func(rank int, p *shardtest.Process) {
		world, at := p.World(), uint64(t0)
		run := func(size uint64, algorithm string, length uint64) {
			at += 1000 * us
			p.Collective(world, shardtest.Op{Function: "AllReduce", Begin: at + uint64(rank)*us, End: at + length,
				Sent: size, Received: size, Count: size / 4, Algo: algorithm})
		}
		run(sizes[0], "RING", 900*us)
		for i, size := range sizes {
			for k := range uint64(3) {
				run(size, "RING", (20+uint64(i)*7+k)*us)
				run(size, "TREE", (15+uint64(i)*9+k)*us)
			}
		}
	}))
}

// shownBandwidth is what the page is told of bandwidths.
func shownBandwidth(t *testing.T, a *otf2.Archive, selected *selection.Selection) *report.Plot {
	t.Helper()
	d := testkit.Value(Read(a, selected))(t)
	defer d.Close()
	p := testkit.Value(d.write(new(collector), nil))(t)
	b := testkit.Value(json.Marshal(d.head(p, new(Options))))(t)
	var h struct{ Bandwidth *report.Plot }
	testkit.Must(t, json.Unmarshal(b, &h))
	return h.Bandwidth
}

// The page has the points of the report's picture, also of a selection.
func TestBandwidthsAreTheReports(t *testing.T) {
	a := sizesJob(t, 4096, 1<<20, 64<<20)
	for _, spec := range []selection.Spec{{}, {Ranks: "1-2"}, {From: "5ms"}} {
		t.Run(spec.String(), func(t *testing.T) {
			selected := testkit.Value(selection.Resolve(a, spec))(t)
			rows, problems := bandwidth.Read(a, false, selected)
			testkit.Require(t, len(problems) == 0, "%v", problems)
			var b bytes.Buffer
			testkit.Must(t, report.WriteCurves(&b, "", bandwidth.Curves(rows)))
			var drawn struct {
				Points []string `xml:"g>title"`
			}
			testkit.Must(t, xml.Unmarshal(b.Bytes(), &drawn))
			plot := shownBandwidth(t, a, selected)
			testkit.Require(t, plot != nil, "the page has no bandwidths")
			var got []string
			for _, l := range plot.Lines {
				for _, p := range l.Points {
					got = append(got, fmt.Sprintf("%s: %s, %s GB/s (algorithm bandwidth %s), %s", l.Name, p.Size,
						p.BusBW, p.AlgBW, units.Count(int(p.Operations), "operation", "operations")))
				}
			}
			testkit.Same(t, drawn.Points, got)
			testkit.Check(t, len(got) == 6 && len(plot.Sizes) <= plotTicks,
				"%d points, %d sizes below the axis", len(got), len(plot.Sizes))
		})
	}
}

// Operations of one size have no bandwidth over size, whatever the number of algorithms.
func TestBandwidthsOfOneSizeAreNotShown(t *testing.T) {
	p := shownBandwidth(t, sizesJob(t, 1<<20), nil)
	testkit.Check(t, p == nil, "shown: %+v", p)
}
