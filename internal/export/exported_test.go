// SPDX-License-Identifier: Apache-2.0

package export

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// What is made of a job: records as the minimal profiler's, metrics with the names and labels of Inspector's README (June 2026) and more, rows of
// tables, the same with each codec, and counts of what was written and what was left out.
func TestAJobIsExported(t *testing.T) {
	a, dir, opts := job(t), t.TempDir(), &Options{Job: "4711", Version: "test"}
	counts := new(strings.Builder)
	add := func(text *strings.Builder, v any) {
		t.Helper()
		text.Write(append(testkit.Value(json.Marshal(v))(t), '\n'))
	}
	records := testkit.Value(JSONL(a, dir, opts))(t)
	for _, path := range records.Files {
		golden.Text(t, filepath.Join("testdata", filepath.Base(path)), string(testkit.Read(t, path)))
	}
	metrics := filepath.Join(dir, "job.prom")
	measured := testkit.Value(Prometheus(a, metrics, nil, opts))(t)
	golden.Text(t, "testdata/job.prom", string(testkit.Read(t, metrics)))
	for _, r := range []*Result{records, measured} {
		add(counts, r.Records)
		add(counts, r.LeftOut)
	}
	golden.Text(t, "testdata/job.counts.jsonl", counts.String())
	for _, codec := range Codecs() {
		tables := filepath.Join(dir, "new", codec)
		testkit.Value(Parquet(a, tables, codec, opts))(t)
		text := new(strings.Builder)
		for _, o := range readTable[Operation](t, filepath.Join(tables, OperationsFile)) {
			add(text, o)
		}
		for _, w := range readTable[WaitRow](t, filepath.Join(tables, WaitsFile)) {
			add(text, w)
		}
		for _, x := range readTable[TransferRow](t, filepath.Join(tables, TransfersFile)) {
			add(text, x)
		}
		golden.Text(t, "testdata/job.tables.jsonl", text.String())
	}
	_, err := Parquet(a, dir, "lzma", nil)
	testkit.Check(t, err != nil, "lzma is accepted")
}

// recordsIn reads a file of JSON lines.
func recordsIn(t *testing.T, path string) (all []map[string]any) {
	t.Helper()
	for line := range strings.Lines(string(testkit.Read(t, path))) {
		var r map[string]any
		testkit.Must(t, json.Unmarshal([]byte(line), &r))
		all = append(all, r)
	}
	return all
}
