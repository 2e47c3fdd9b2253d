// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/export"
	"github.com/nccl-otf2/nccl-otf2/internal/ingest"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// answers are those of the tool to the main questions, without what a trip through records may change.
type answers struct {
	Report, Waits any
	Hang, Check   []string
}

// changed matches what a trip may change: how long a job has hung, because records give a plain call the interval of
// its group call; and why there are no times of GPUs.
var changed = regexp.MustCompile(`\(for [^)"]*s\)|[^."]* (have no times of GPUs|NCCL_OTF2_CUPTI=on)`)

// unchanged is a value without that.
func unchanged(t *testing.T, v any) (out any) {
	t.Helper()
	text := changed.ReplaceAll(testkit.Value(json.Marshal(v))(t), nil)
	testkit.Must(t, json.Unmarshal(text, &out))
	return out
}

func answersOf(t *testing.T, dir string) (all answers) {
	t.Helper()
	anchor := filepath.Join(dir, "traces.otf2")
	r := testkit.Value(operations.Observe(openArchive(t, anchor), new(operations.Observer)))(t)
	s := &r.Summary
	s.Archive, s.Events, s.Locations, s.Hidden = "", 0, 0, nil
	for i := range r.Verdict.Culprits {
		if c := &r.Verdict.Culprits[i]; c.Stopped {
			c.TimeShare = 0 // how long it has hung
		}
	}
	r.WaitStates.Network = nil // phases of transfers, which records do not have
	all.Report, all.Waits = unchanged(t, r), unchanged(t, r.WaitStates)
	for _, j := range testkit.Value(hang.Find(dir, time.Now(), nil))(t).Jobs {
		for i := range j.Stops {
			all.Hang = append(all.Hang, j.Stops[i].Text)
		}
		for i := range j.Communicators {
			c := &j.Communicators[i]
			all.Hang = append(all.Hang, c.Communicator+" "+c.Operation+" "+string(c.Verdict))
			for k := range c.Members {
				m := &c.Members[k]
				all.Hang = append(all.Hang, strings.Join([]string{m.Name, m.State, m.Instead, m.ProcessState}, " "))
			}
		}
		all.Hang = append(all.Hang, append(j.Inexact, j.Silent)...)
	}
	for _, f := range testkit.Value(check.Archive(anchor, nil))(t).Findings {
		all.Check = append(all.Check, f.Text)
	}
	return all
}

// What an archive exports as records and imports again gives the same answers: report, waits, what hangs, check.
func TestRecordsGiveTheSameAnswers(t *testing.T) {
	t.Parallel()
	for _, rec := range append(recordings(t), labeled(t)...) {
		t.Run(rec.Name, func(t *testing.T) {
			t.Parallel()
			dir, _ := play(t, rec, spool)
			records, back := filepath.Join(t.TempDir(), "jsonl"), filepath.Join(t.TempDir(), "back")
			testkit.Value(export.JSONL(openArchive(t, filepath.Join(dir, "traces.otf2")), records, nil))(t)
			testkit.Value(ingest.Import([]string{records}, back, nil))(t)
			testkit.Value(unifyAll(back))(t)
			diff := cmp.Diff(answersOf(t, dir), answersOf(t, back))
			testkit.Check(t, diff == "", "recorded (−), exported and imported (+):\n%s", diff)
		})
	}
}
