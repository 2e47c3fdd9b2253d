// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	diagnosis "github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
)

// answer is whom report must name, and in what way that rank held up the others.
type answer struct {
	rank  int // nobody: nobody
	kind  diagnosis.Kind
	first bool // others may be named behind it: ranks that share a GPU make each other late at times
}

// report runs the tool's report with flags, and reads what it prints as JSON. What it prints is also kept in file, if
// that is named.
func (h *harness) report(ctx context.Context, into any, file, experiment string, flags ...string) error {
	cmd := exec.CommandContext(ctx, h.tool, append([]string{"report", experiment, "--format", "json"}, flags...)...)
	out, err := cmd.Output()
	if err != nil {
		why := ""
		if fault, ok := err.(*exec.ExitError); ok {
			why = strings.TrimSpace(string(fault.Stderr))
		}
		return fmt.Errorf("nccl-otf2 report %s: %w: %s", strings.Join(flags, " "), err, why)
	}
	if file != "" {
		if err := os.WriteFile(file, out, 0o666); err != nil {
			return err
		}
	}
	return json.Unmarshal(out, into)
}

// answered holds what report answers against what was done to the job. Where nothing was, it is noted: a host may be
// late by chance, but no rank may be named for a GPU that all of them share.
func (v *verdict) answered(ctx context.Context, h *harness, want *answer, experiment string) {
	var r struct{ Verdict diagnosis.Verdict }
	if err := h.report(ctx, &r, "", experiment); err != nil {
		v.fail("%v", err)
		return
	}
	v.note("report: %s", r.Verdict.Text)
	if want != nil {
		v.names(want, r.Verdict.Culprits, "report")
		return
	}
	v.names(&answer{rank: nobody}, ofGPUs(r.Verdict.Culprits), "report")
}

// ofGPUs are the culprits that are named for what their GPUs did, or may have done.
func ofGPUs(culprits []diagnosis.Culprit) []diagnosis.Culprit {
	return slices.DeleteFunc(slices.Clone(culprits), func(c diagnosis.Culprit) bool {
		return c.Kind != diagnosis.GPULate && c.Kind != diagnosis.Late && c.Kind != diagnosis.SlowTransfer
	})
}

// names holds culprits against whom must be named: that rank alone, or nobody.
func (v *verdict) names(want *answer, culprits []diagnosis.Culprit, who string) {
	var named []string
	for _, c := range culprits {
		named = append(named, fmt.Sprintf("rank %d (%s)", c.Rank, c.Kind))
	}
	said := strings.Join(named, ", ")
	switch {
	case want.rank == nobody && len(culprits) > 0:
		v.fail("%s names %s, and nobody held up the others", who, said)
	case want.rank == nobody:
	case len(culprits) == 0 || culprits[0].Rank != want.rank || culprits[0].Kind != want.kind:
		v.fail("%s names %q, it was rank %d (%s)", who, said, want.rank, want.kind)
	case len(culprits) > 1 && !want.first:
		v.fail("%s names %q, it was rank %d (%s) alone", who, said, want.rank, want.kind)
	}
}

// hangReport is what `report --hang` says.
type hangReport struct {
	Hang struct {
		Jobs []struct {
			Culprits      []diagnosis.Culprit
			RAS           []string
			Communicators []struct {
				Operation string
				Members   []struct {
					Rank  int
					State string
				}
			}
		}
	}
}

// whileItHangs asks who is missing while the job is there, with what the collectors have, and with NCCL's RAS.
func (h *harness) whileItHangs(ctx context.Context, v *verdict, want *answer, experiment, dir string) {
	for _, with := range []struct {
		name  string
		flags []string
		check func(v *verdict, want *answer, r *hangReport, who string)
	}{
		{"hang-live", []string{"--hang"}, (*verdict).missing},
		{"hang-ras", []string{"--hang", "--ras", rasAddress}, (*verdict).missingByRAS},
	} {
		var r hangReport
		if err := h.report(ctx, &r, filepath.Join(dir, with.name+".json"), experiment, with.flags...); err != nil {
			v.fail("while it hangs: %v", err)
			continue
		}
		with.check(v, want, &r, "while it hangs, report "+strings.Join(with.flags, " "))
	}
}

// rasAddress is where NCCL's RAS answers unless NCCL_RAS_ADDR says otherwise (NCCL's user guide, "RAS").
const rasAddress = "localhost:28028"

// hung looks at a job that was killed while it hung.
func (v *verdict) hung(ctx context.Context, h *harness, want *answer, experiment string) {
	var r hangReport
	if err := h.report(ctx, &r, "", experiment, "--hang"); err != nil {
		v.fail("after the end: %v", err)
		return
	}
	v.missing(want, &r, "after the end, report --hang")
}

// missing holds a report of a hang against the rank that did not come.
func (v *verdict) missing(want *answer, r *hangReport, who string) {
	if len(r.Hang.Jobs) != 1 || len(r.Hang.Jobs[0].Communicators) != 1 {
		v.fail("%s does not show one communicator of one job", who)
		return
	}
	j := &r.Hang.Jobs[0]
	v.names(want, j.Culprits, who)
	for _, m := range j.Communicators[0].Members {
		if (m.Rank == want.rank) != (m.State == "missing") {
			v.fail("%s: rank %d is %s", who, m.Rank, m.State)
		}
	}
}

// missingByRAS demands besides that NCCL's RAS counts the calls of the rank that did not come apart from the others'.
func (v *verdict) missingByRAS(want *answer, r *hangReport, who string) {
	v.missing(want, r, who)
	counts := regexp.MustCompile(fmt.Sprintf(`^RAS counts AllReduce begun on .*: \d+ by Rank %d; `, want.rank))
	for i := range r.Hang.Jobs {
		if slices.ContainsFunc(r.Hang.Jobs[i].RAS, counts.MatchString) {
			return
		}
	}
	v.fail("%s: RAS does not say how many calls rank %d has begun", who, want.rank)
}

// sensorsRead demands that the GPU's sensors were read, and that they read what a GPU at work can have.
func sensorsRead(v *verdict, _ []*jobLog, a *archive) {
	if len(a.sensors) == 0 {
		v.fail("the archive has no values of sensors")
	}
	for _, name := range slices.Sorted(maps.Keys(a.sensors)) {
		s := a.sensors[name]
		v.note("%s: %d values, %g to %g", name, s.values, s.least, s.most)
	}
	for _, can := range []struct {
		name        string
		least, most float64
	}{
		{"GPU power", 20, 2000}, {"GPU temperature", 5, 110}, {"GPU SM clock", 1e8, 4e9},
		{"GPU memory clock", 1e8, 1e10},
		{"GPU utilization", 0, 100}, {"GPU memory used", 1e8, 1e12},
	} {
		switch s := a.sensors[can.name]; {
		case s == nil || s.values < 10:
			v.fail("%s has fewer than ten values", can.name)
		case s.least < can.least || s.most > can.most:
			v.fail("%s is %g to %g, no GPU has that", can.name, s.least, s.most)
		}
	}
}

// memoryKnown demands that the archive knows where buffers are. PyTorch takes the memory of its first tensors before
// NCCL loads the plugin, so of those it cannot.
func memoryKnown(v *verdict, logs []*jobLog, a *archive) {
	linked(v, logs, a)
	for _, kind := range slices.Sorted(maps.Keys(a.memory)) {
		v.note("%d operations with send buffers in memory of kind %s", a.memory[kind], kind)
		if !slices.Contains([]string{"device", "unknown"}, kind) {
			v.fail("%d operations are said to have buffers in memory of kind %s, PyTorch uses the device's",
				a.memory[kind], kind)
		}
	}
	if a.memory["device"] == 0 {
		v.fail("no operation is said to have its buffer in the device's memory")
	}
}
