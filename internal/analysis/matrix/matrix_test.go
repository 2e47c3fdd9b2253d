// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/matrix"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/report"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

// Simultaneous transfers of several ranks count once in the time of their hosts.
func TestMatrixOfTransfers(t *testing.T) {
	r := matrix.Read(jobtest.Open(t, jobtest.WithNetwork(t)), nil)
	testkit.Check(t, len(r.Channels) == 1 && r.Channels[0].Channel == -1 && r.Channels[0].Transfers == 13 &&
		r.Channels[0].Busy == 36*us, "channels %+v", r.Channels)
	testkit.Check(t, len(r.Nominal)+len(r.NominalHosts) == 0 && len(r.Remarks) == 1, "%+v", r)
	var text bytes.Buffer
	testkit.Must(t, report.Matrix(r).WriteText(&text))
	golden.Text(t, "testdata/matrix.txt", text.String())
	text.Reset()
	testkit.Must(t, report.Matrix(r).WriteCSV(&text))
	golden.Text(t, "testdata/matrix.csv", text.String())
}

// Without recorded transfers, the matrix shows what the operations carry from each rank to the others.
func TestNominalMatrix(t *testing.T) {
	r := matrix.Read(jobtest.Open(t, jobtest.Typical(t, nil)), nil)
	testkit.Check(t, len(r.Ranks)+len(r.Hosts)+len(r.Channels)+len(r.Networks) == 0, "%+v", r)
	got := make(map[[2]string]matrix.Traffic)
	for _, f := range r.Nominal {
		got[[2]string{f.From, f.To}] = f.Traffic
	}
	// Every rank has two AllReduces of 4000 bytes, 2 × 4000 × 2/3 to all others together, an AllGather and a
	// ReduceScatter. Rank 1 is the root of a Broadcast of 800 bytes. Messages follow.
	const base = 2*(2*4000/3) + 400 + 800
	want := map[[2]string]matrix.Traffic{
		{"Rank 0", "Rank 1"}: {6, base + 4160}, {"Rank 0", "Rank 2"}: {4, base},
		{"Rank 1", "Rank 0"}: {5, base + 800}, {"Rank 1", "Rank 2"}: {6, base + 800 + 100},
		{"Rank 2", "Rank 0"}: {4, base}, {"Rank 2", "Rank 1"}: {4, base},
	}
	testkit.Same(t, want, got)
	sum := uint64(0)
	for _, f := range r.NominalHosts {
		sum += f.Bytes
	}
	for _, f := range r.Nominal {
		sum -= f.Bytes
	}
	testkit.Check(t, sum == 0, "hosts %+v", r.NominalHosts)
}

func TestMatrixSaysWhatIsMissing(t *testing.T) {
	s := jobtest.Load(t, jobtest.WithNetwork(t))
	sends := otf2.LocationRef(2 << 32) // of rank 0
	s.Remove(sends, s.Index(sends, otf2.EventRmaOpCompleteNonBlocking, 1), 1)
	s.Defs.LocationProperties = slices.DeleteFunc(
		s.Defs.LocationProperties, func(p otf2.LocationProperty) bool { return p.Location == sends|1 })
	s.Property("NCCL_OTF2::LOST::RING::ProxyStep", "3")
	r := matrix.Read(jobtest.Open(t, s.Write()), nil)
	want := []string{
		r.Remarks[0],
		"Incomplete: the sender of 4 transfers, 2.94 KiB, is not known.",
		"Incomplete: 1 transfers have no end; no time includes them.",
		"Incomplete: events were lost: 3 ring proxystep.",
	}
	testkit.Same(t, want, r.Remarks)
	f := r.Ranks[0]
	testkit.Check(t, f.From == units.Unknown && f.To == "Rank 0", "%+v", r.Ranks)
}

// Times in the test jobs.
const (
	t0 = jobtest.T0
	us = jobtest.Microsecond
)
