// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/compare"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

func TestComparisonInAllFormats(t *testing.T) {
	a := jobtest.MakeRun(t, 1, 40, jobtest.Unchanged)
	b := jobtest.MakeRun(t, 2, 40, func(k *jobtest.RunKind, rank int, transfer, call, late *float64) {
		switch {
		case k.Function == "ReduceScatter":
			*transfer *= 1.3
		case k.Function == "AllGather" && k.Pair:
			*call *= 4
		}
	})
	c := compare.Runs(jobtest.Open(t, a), jobtest.Open(t, b), compare.Options{MinChange: 0.01, WarmUp: 3})
	c.A.Archive, c.B.Archive = "before/traces.otf2", "after/traces.otf2"
	var text, values, markdown bytes.Buffer
	d := Comparison(c, 0.05)
	testkit.Must(t, d.WriteText(&text))
	testkit.Must(t, d.WriteCSV(&values))
	testkit.Must(t, d.WriteMarkdown(&markdown))
	golden.Text(t, "testdata/compare.txt", text.String())
	golden.Text(t, "testdata/compare.csv", values.String())
	golden.Text(t, "testdata/compare.md", markdown.String())
	j := testkit.Value(json.MarshalIndent(c, "", "  "))(t)
	golden.Text(t, "testdata/compare.json", string(j)+"\n")
}

// Times of made-up jobs.
const (
	t0 = jobtest.T0
	us = jobtest.Microsecond
)
