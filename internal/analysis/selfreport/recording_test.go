// SPDX-License-Identifier: Apache-2.0

package selfreport_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selfreport"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/report"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

func TestArchivesTellOfTheirMaking(t *testing.T) {
	path := jobtest.Typical(t, func(r int, p *shardtest.Process) {
		if r == 2 {
			p.Shard.Clock.Source, p.Shard.LibraryPath = "monotonic", "/opt/a|b: processes 9/libnccl.so"
		}
		c := &p.Shard.Counts
		c.Starts = map[string]uint64{"Coll": 4, "ProxyStep": 100}
		c.Paused = map[string]uint64{"Coll": 3}
		if r > 0 {
			c.Lost = map[string]map[string]uint64{"ring": {"ProxyStep": uint64(r)}}
		}
		p.Shard.Comms[0].Gaps = []description.Gap{{From: 2, To: 4, FromTime: t0 + 200*us, ToTime: t0 + 300*us}}
		p.Shard.Costs = []provenance.Cost{{Callback: "start", Type: "ProxyStep", Samples: 10, MeanNs: 17.5, MostNs: 90}}
	})
	a := jobtest.Open(t, path)
	s := selfreport.Read(a)
	s.Archive = "traces.otf2"
	var text, table, markdown bytes.Buffer
	for _, err := range []error{report.WriteRecordingText(s, &text), report.WriteRecordingCSV(s, &table),
		report.WriteRecordingMarkdown(s, &markdown)} {
		testkit.Must(t, err)
	}
	golden.Text(t, "testdata/self.txt", text.String())
	golden.Text(t, "testdata/self.csv", table.String())
	golden.Text(t, "testdata/self.md", markdown.String())
	rows, err := csv.NewReader(&table).ReadAll()
	testkit.Check(t, err == nil && len(rows) >= 20, "%d rows, %v", len(rows), err)
	var out bytes.Buffer
	testkit.Must(t, report.WriteRecordingJSON(s, &out))
	var back selfreport.Report
	testkit.Must(t, json.Unmarshal(out.Bytes(), &back))
	testkit.Same(t, *s, back)
	// An archive of another tool says nothing about its recording.
	other := selfreport.Read(jobtest.Open(t, filepath.Join("..", "..", "..", "tests", "jobtest", "testdata",
		"scorep-mpi", "traces.otf2")))
	testkit.Check(t, len(other.Recording)+len(other.Costs)+len(other.Counts)+len(other.Remarks) <= 0 && other.Complete,
		"%+v", other)
}

// Times in the test jobs.
const (
	t0 = jobtest.T0
	us = jobtest.Microsecond
)
