// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang/waitfor"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// hangRow is the row of a member of an incomplete operation.
type hangRow struct {
	job  int
	comm *hang.Stuck
	*hang.Member
}

func hangColumns(jobs bool) []column[hangRow] {
	columns := []column[hangRow]{
		{"job", "", nil, func(r *hangRow) any { return r.job }},
		label("communicator", "communicator", func(r *hangRow) string { return r.comm.Communicator }),
		label("operation", "operation", func(r *hangRow) string { return r.comm.Operation }),
		number("ordinal", "number", func(r *hangRow) uint64 { return r.comm.Ordinal }),
		label("verdict", "", func(r *hangRow) string { return string(r.comm.Verdict) }),
		number("age_ns", "", func(r *hangRow) uint64 { return r.comm.Age }),
		{"at_least", "", nil, func(r *hangRow) any { return r.comm.AtLeast }},
		{"comm_rank", "comm rank", nil, func(r *hangRow) any { return r.Rank }},
		label("rank", "rank", func(r *hangRow) string { return r.Name }),
		{"process", "", nil, func(r *hangRow) any { return r.Process }},
		shown("host", "<host", units.OrDash, func(r *hangRow) string { return r.Host }),
		{"pid", "pid", nil, func(r *hangRow) any { return knownOrNil(r.PID) }},
		shown("process_state", "<is", units.OrDash, func(r *hangRow) string { return r.ProcessState }),
		{"state", "<state", func(r *hangRow) string {
			if r.State == "missing" {
				return "MISSING"
			}
			return r.State
		}, func(r *hangRow) any { return r.State }},
		number("reached", "reached", func(r *hangRow) uint64 { return r.Reached }),
		shown("last_net", "<last network phase", units.OrDash, func(r *hangRow) string { return r.LastNet }),
		shown("instead", "<is in", units.OrDash, func(r *hangRow) string { return r.Instead }),
		{"last_event_ago_ns", "last event", func(r *hangRow) string {
			if r.ProcessState == "" {
				return "–"
			}
			return units.Time(float64(r.LastAgo)) + " ago"
		}, func(r *hangRow) any { return r.LastAgo }},
	}
	if jobs {
		columns[0].head = "job"
	}
	return columns
}

// stopSureness states the confidence that an operation is stuck, if culprits are named.
func stopSureness(j *hang.Job, s *waitfor.Stop) string {
	who := s.Culprits
	if len(who) == 0 {
		who = s.Among
	}
	sure := 0.0
	for i := range j.Culprits {
		if c := &j.Culprits[i]; c.Kind == s.Kind && slices.Contains(who, c.Rank) {
			sure = max(sure, c.Confidence, s.Confidence(j.Running > 0))
		}
	}
	if sure == 0 {
		return ""
	}
	return " " + cmp.Or(s.Margin(), verdict.Sureness(sure))
}

// slowNotHung is the age below which an operation may just be slow: flushes come 2 s apart.
const slowNotHung = 5_000_000_000

// maxHangRanks is the number of members of an operation that the text lists. Of larger communicators it lists the
// missing members first, then as many of the others as fit.
const maxHangRanks = 64

// Hang returns the report on a hang as tables.
func Hang(h *hang.Report) *Document {
	d := &Document{title: "Operations that are not complete: " + h.Directory}
	var rows []hangRow
	for i := range h.Jobs {
		j := &h.Jobs[i]
		job := ""
		if len(h.Jobs) > 1 {
			job = fmt.Sprintf("job %d: ", i+1)
		}
		d.addIntro("%s%s (%d running, %d ended, %d crashed), %s examined", job,
			units.Count(j.Processes, "process", "processes"), j.Running, j.Ended, j.Crashed,
			units.Count(j.Looked, "communicator", "communicators"))
		certain, old := false, false
		for i := range j.Stops {
			d.addIntro("%s%s%s", job, j.Stops[i].Sentence(), stopSureness(j, &j.Stops[i]))
			certain = certain || j.Stops[i].Certain && !j.Stops[i].Passed
			old = old || j.Stops[i].Age >= slowNotHung
		}
		for _, text := range j.RAS {
			d.addIntro("%s%s", job, text)
		}
		for _, died := range j.Died {
			d.addIntro("%s%s", job, died)
		}
		for k := range j.Communicators {
			c := &j.Communicators[k]
			d.addIntro("%s", job+sentenceOn(c))
			for m := range c.Members {
				rows = append(rows, hangRow{i + 1, c, &c.Members[m]})
			}
		}
		switch {
		case len(j.Communicators) == 0 && j.Silent == "":
			d.addIntro("%sno operation is under way", job)
		case len(j.Communicators) == 0:
			d.addIntro("%sno operation is under way: %s", job, j.Silent)
		case j.Undated:
			d.addIntro("%show long it took is not known, nor when each dump was written: a rank may have come further "+
				"than an older dump of it shows", job)
		case old || j.Communicators[0].Age >= slowNotHung:
		case j.Running > 0:
			d.addIntro("%sall of this is younger than %s: look again to see whether it is stuck or just running", job,
				units.Time(slowNotHung))
		case j.Communicators[0].AtLeast:
			d.addIntro("%sit is not known when the processes ended: all of this may be older", job)
		case certain: // the operation could not have continued
		default:
			d.addIntro("%sall of this is younger than %s: it may just be where the job was when it ended", job,
				units.Time(slowNotHung))
		}
		if len(j.Inexact) > 0 {
			d.addIntro(
				"%sevents of %s were lost, or may be missing in what was imported, or its collector was replaced: "+
					"its numbers of operations may be off", job, strings.Join(j.Inexact, ", "))
		}
		if len(j.Partial) > 0 {
			d.addIntro("%s%s left out some operations on request; these do not appear here", job,
				strings.Join(j.Partial, ", "))
		}
	}
	d.sheets = []sheet{sheetOf("hang", "Members", rows, hangColumns(len(h.Jobs) > 1))}
	var shown [][]string
	listed := make(map[*hang.Stuck]int)
	for i, r := range rows {
		if r.State != "missing" && len(r.comm.Members) > maxHangRanks {
			if listed[r.comm]++; listed[r.comm] > maxHangRanks {
				continue
			}
		}
		shown = append(shown, d.sheets[0].text[i])
	}
	if left := len(rows) - len(shown); left > 0 {
		d.sheets[0].more = []string{fmt.Sprintf(
			"%d further members that are not missing are left out here; they are in the other formats.", left)}
	}
	d.sheets[0].text = shown
	return d
}

// sentenceOn describes a stuck operation in one line.
func sentenceOn(h *hang.Stuck) string {
	by := make(map[string][]string)
	for i := range h.Members {
		m := &h.Members[i]
		state := m.State
		if m.Inside() {
			state = "inside"
		}
		by[state] = append(by[state], m.Name)
	}
	var parts []string
	if l := by["missing"]; len(l) > 0 {
		parts = append(parts, units.NameList(l)+" missing")
	}
	if l := by["inside"]; len(l) > 0 {
		parts = append(parts, units.NameList(l)+" inside")
	}
	if l := by["done"]; len(l) > 0 {
		parts = append(parts, units.NameList(l)+" done")
	}
	if l := by["no data"]; len(l) > 0 {
		parts = append(parts, "no data of "+units.NameList(l))
	}
	if l := by["not known"]; len(l) > 0 {
		parts = append(parts, "not known of "+units.NameList(l)+", whose record lacks operations")
	}
	text := fmt.Sprintf("%s: %s %d%s is %s: %s", h.Communicator, h.Words[0], h.Ordinal, h.Words[1],
		verdictWords(h.Verdict), strings.Join(parts, ", "))
	switch {
	case h.Age > 0 && h.AtLeast:
		text += "; for at least " + units.Time(float64(h.Age))
	case h.Age > 0:
		text += "; for " + units.Time(float64(h.Age))
	}
	if h.Behind > 0 {
		text += fmt.Sprintf(", %s behind it", units.Count(h.Behind, "further operation", "further operations"))
	}
	return text
}

func verdictWords(v hang.Verdict) string {
	switch v {
	case hang.AllInside:
		return "not complete; all members are inside"
	case hang.NoDataOf:
		return "not complete; all known members are inside"
	case hang.Different:
		return "not reached by all; the missing members are in another operation instead"
	case hang.CalledOnly:
		return "called by all, and NCCL does not report when such operations end"
	case hang.NoPeer:
		return "called; its other end is not known"
	}
	return string(v)
}
