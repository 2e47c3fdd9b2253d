// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/bandwidth"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/report"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// madeTests are tables with everything that rows can have: both kinds of buffers, roots, algorithms, graphs, equal
// operations of a launch, launches of which nothing more is known, messages.
func madeTests() *report.NCCLTests {
	yes, no, root := true, false, 3
	row := func(operation string, size uint64, us float64, change func(*bandwidth.Row)) bandwidth.Row {
		elements, rank0 := size/4, us*1000+500
		r := bandwidth.Row{
			Communicator: "world", Ranks: 8, Operation: operation, Datatype: "ncclFloat32", Size: size,
			Elements: &elements, TimingSource: "gpu",
			Algorithms: []string{"RING"}, Protocols: []string{"SIMPLE"}, MinChannels: 16, MaxChannels: 16, Count: 21,
			StartUp: 1, Timed: 20,
			Time: analysis.Times{P50: us * 1000}, Transfer: &analysis.Times{P50: us * 900}, TransferTimed: 20,
			CallTime: 8700,
			Members:  &bandwidth.MemberTimes{Rank0: &rank0, Min: us * 950, Max: us * 1100},
		}
		r.AlgBW = float64(size) / (us * 1000)
		r.BusBW = r.AlgBW * 1.75
		if change != nil {
			change(&r)
		}
		return r
	}
	rows := []bandwidth.Row{
		row("AllReduce", 1024, 20.5, func(r *bandwidth.Row) {
			r.InPlace, r.Algorithms, r.Protocols, r.MinChannels = &no, []string{"TREE"}, []string{"LL"}, 2
		}),
		row("AllReduce", 1024, 19.25, func(r *bandwidth.Row) {
			r.InPlace, r.Algorithms, r.Protocols = &yes, []string{"TREE"}, []string{"LL"}
		}),
		row("AllReduce", 1<<30, 10123.4, func(r *bandwidth.Row) { r.InPlace, r.Approximate = &no, true }),
		row("AllReduce", 1<<20, 123.45, func(r *bandwidth.Row) { r.InPlace = &yes }),
		row("AllReduce", 1<<20, 80, func(r *bandwidth.Row) { r.InPlace, r.Equal, r.Grouped = &no, 4, true }),
		row("AllReduce", 1<<20, 70, func(r *bandwidth.Row) { r.InPlace, r.Replayed, r.CallTime = &no, true, 0 }),
		row("Broadcast", 4096, 30, func(r *bandwidth.Row) {
			r.Root, r.Datatype, r.Members.Rank0 = &root, "ncclBfloat16", nil
		}),
		row("ReduceScatter", 4096, 0, func(r *bandwidth.Row) {
			r.InPlace, r.TimingSource, r.AlgBW, r.BusBW, r.Transfer, r.Elements = &no, "enqueue", 0, 0, nil, nil
		}),
		row("Send", 1<<16, 12.5, func(r *bandwidth.Row) {
			r.Members, r.BusBW, r.Algorithms = nil, r.AlgBW, []string{}
		}),
	}
	return &report.NCCLTests{
		Archive: "exp1/traces.otf2", Tests: bandwidth.Tests(rows),
		Devices: []placement.Device{
			{Name: "Rank 0", PID: 4711, Host: "n1", GPU: "CUDA Device 0", PCI: "0000:07:00.0", Product: "NVIDIA H200"},
			{Rank: 1, Name: "Rank 1", Host: "a-host-with-a-name"},
		},
	}
}

func testsText(t *testing.T, average string, style report.Style) string {
	t.Helper()
	var b bytes.Buffer
	testkit.Must(t, report.NCCLTestsDocument(madeTests(), average).WriteStyled(&b, style))
	return b.String()
}

func TestTablesInTheFormOfNCCLTests(t *testing.T) {
	golden.Text(t, "testdata/nccltests.txt", testsText(t, "avg", report.Style{}))
	golden.Text(t, "testdata/nccltests-max-80.txt", testsText(t, "max", report.Style{Width: 80, Top: 1}))
	var csv bytes.Buffer
	testkit.Must(t, report.NCCLTestsDocument(madeTests(), "avg").WriteCSV(&csv))
	golden.Text(t, "testdata/nccltests.csv", csv.String())
}

func TestWidthsAreKept(t *testing.T) {
	for width := 80; width < 200; width += 20 {
		for line := range strings.Lines(testsText(t, "avg", report.Style{Width: width})) {
			n := len([]rune(strings.TrimRight(line, "\n")))
			testkit.Check(t, n <= width || strings.HasPrefix(line, "# "), "%d columns of %d: %s", n, width, line)
		}
	}
}
