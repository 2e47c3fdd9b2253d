// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/bandwidth"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/report"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// madeCurves are bandwidths as links have them: a latency, and a speed that large messages come near to.
func madeCurves() []bandwidth.Curve {
	curve := func(operation, algorithm, comm string, ranks int, replayed bool, latency, peak float64, from,
		to uint) bandwidth.Curve {
		c := bandwidth.Curve{Communicator: comm, Ranks: ranks, Operation: operation, Algorithm: algorithm,
			Replayed: replayed, TimingSource: "gpu"}
		for e := from; e <= to; e += 2 {
			size := uint64(1) << e
			bw := math.Round(float64(size)/(latency+float64(size)/peak)*1000) / 1000
			c.Points = append(c.Points, bandwidth.Point{Size: size, Operations: 20, AlgBW: bw / 1.75, BusBW: bw})
		}
		return c
	}
	return []bandwidth.Curve{
		curve("AllReduce", "TREE", "world", 8, false, 9000, 90, 10, 22),
		curve("AllReduce", "RING", "world", 8, false, 21000, 230, 18, 33),
		curve("AllReduce", "RING", "world", 8, true, 15000, 232, 20, 30),
		curve("AllGather", "RING", "ncclComm 0xa9f8e48f364795bd of <tensor> & parallel ranks", 4, false, 14000, 180, 14,
			30),
		curve("ReduceScatter", "NVLS", "tensor", 4, false, 12000, 260, 14, 30),
		curve("Broadcast", "", "world", 8, false, 20000, 120, 26, 26),
		curve("SendRecv", "", "pipeline", 2, false, 8000, 24, 12, 28),
	}
}

func picture(t *testing.T, curves []bandwidth.Curve) string {
	t.Helper()
	var b bytes.Buffer
	testkit.Must(t, report.WriteCurves(&b, "exp1/traces.otf2: medians, start-up left out", curves))
	return b.String()
}

func TestCurvesAreDrawn(t *testing.T) {
	golden.Text(t, "testdata/curves.svg", picture(t, madeCurves()))
}

// Whatever the curves are the picture is well-formed, has no coordinate that is no number, and says what it leaves out.
func TestPicturesOfOddCurves(t *testing.T) {
	point := func(size uint64, bw float64) []bandwidth.Point {
		return []bandwidth.Point{{Size: size, Operations: 1, AlgBW: bw, BusBW: bw}}
	}
	var many []bandwidth.Curve
	for i := range uint64(30) {
		many = append(many, bandwidth.Curve{Operation: "AllReduce", Points: point(8<<i, 1e-6*float64(i+1))})
	}
	for name, curves := range map[string][]bandwidth.Curve{
		"none": nil, "one": {{Points: point(0, 1)}}, "without bus bandwidth": {{Points: point(8, 0)}}, "many": many,
		"the largest": {{Points: point(math.MaxUint64, 1e9)}},
	} {
		t.Run(name, func(t *testing.T) {
			text := picture(t, curves)
			for d := xml.NewDecoder(strings.NewReader(text)); ; {
				if _, err := d.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
			}
			testkit.Check(t, !strings.Contains(text, "NaN") && !strings.Contains(text, "Inf"),
				"a coordinate is no number:\n %v", text)
			testkit.Check(t, name != "many" || strings.Contains(text, "18 more curves of fewer bytes are not drawn"),
				"nothing is said of what is left out")
		})
	}
}
