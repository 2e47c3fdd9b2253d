// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/tally"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// tallyNotes prevent misunderstandings of the counts.
var tallyNotes = map[string]string{
	regions.GroupCollectives: "Each rank has its own launches: a collective of 4 ranks has 4, and several operations " +
		"that NCCL launched together have one.",
	regions.GroupNetwork: "A stretch is a time in which a row's oldest outstanding transfer was in that phase. " +
		"It is not a transfer; report --matrix has the number of those.",
	tally.GroupChannels: "Channels show the parts of operations that are in the other tables.",
}

// tallyLine is a row of a table with its group; the last row of each group is the total.
type tallyLine struct {
	group *tally.Group
	tally.Row
	total bool
}

func tallyColumns(counts string) []column[tallyLine] {
	known := func(l *tallyLine, ns float64) string {
		if l.Calls == 0 {
			return "–"
		}
		return units.Time(ns)
	}
	single := func(l *tallyLine, ns uint64) string {
		if l.Summed {
			return "–"
		}
		return known(l, float64(ns))
	}
	return []column[tallyLine]{
		label("group", "", func(l *tallyLine) string { return l.group.Group }),
		{"name", "<Name", func(l *tallyLine) string {
			name := l.Name
			if l.Device {
				name += "*"
			}
			switch {
			case l.total && l.Launched && l.group.LaunchedOnly < l.group.Total:
				name += " (partly launch only)"
			case l.Launched:
				name += facts.LaunchedOnly
			}
			return name
		}, func(l *tallyLine) any { return l.Name }},
		{"device", "", nil, func(l *tallyLine) any { return l.Device }},
		{"launched_only", "", nil, func(l *tallyLine) any { return l.Launched }},
		duration("time_ns", "Time", func(l *tallyLine) uint64 { return l.Time }),
		{"share", "Time(%)",
			func(l *tallyLine) string { return units.Percent(float64(l.Time), float64(l.group.Total)) },
			func(l *tallyLine) any { return l.Share }},
		number("calls", counts, func(l *tallyLine) uint64 { return l.Calls }),
		{"average_ns", "Average", func(l *tallyLine) string { return known(l, l.Average) },
			func(l *tallyLine) any { return l.Average }},
		{"min_ns", "Min", func(l *tallyLine) string { return single(l, l.Min) },
			func(l *tallyLine) any { return l.Min }},
		{"max_ns", "Max", func(l *tallyLine) string { return single(l, l.Max) },
			func(l *tallyLine) any { return l.Max }},
		{"summed", "", nil, func(l *tallyLine) any { return l.Summed }},
		number("unfinished", "Unfinished", func(l *tallyLine) uint64 { return l.Unfinished }),
	}
}

// Tally returns the report as tables: one in CSV, one for each group in text.
func Tally(r *tally.Report) *Document {
	d := &Document{title: "Time by name"}
	var all []tallyLine
	marked, launched := false, false
	for i := range r.Groups {
		g := &r.Groups[i]
		sum := tallyLine{group: g, total: true, Row: tally.Row{Name: "Total"}}
		for k := range g.Rows {
			row := &g.Rows[k]
			all = append(all, tallyLine{group: g, Row: *row})
			marked, launched = marked || row.Device, launched || row.Launched
			sum.Add(row)
			sum.Launched = g.LaunchedOnly > 0
		}
		if g.Calls > 0 {
			sum.Average = float64(g.Total) / float64(g.Calls)
		}
		all = append(all, sum)
	}
	columns := append(tallyColumns("Calls"), label("counts", "", func(l *tallyLine) string { return l.group.Counts }))
	d.sheets = []sheet{sheetOf("tally", "", withoutTotals(all), columns)}
	d.sheets[0].text = nil // only in CSV; the next tables show its rows in text
	d.sheets = append(d.sheets, sheetOf("tally_groups", "", r.Groups, []column[tally.Group]{
		label("group", "", func(g *tally.Group) string { return g.Group }),
		{"hosts", "", nil, func(g *tally.Group) any { return g.Hosts }},
		{"processes", "", nil, func(g *tally.Group) any { return g.Processes }},
		{"threads", "", nil, func(g *tally.Group) any { return g.Threads }},
		number("time_ns", "", func(g *tally.Group) uint64 { return g.Total }),
		number("launched_only_ns", "", func(g *tally.Group) uint64 { return g.LaunchedOnly }),
		number("calls", "", func(g *tally.Group) uint64 { return g.Calls }),
		label("counts", "", func(g *tally.Group) string { return g.Counts }),
	}))
	d.sheets[1].text = nil
	for i := range r.Groups {
		g := &r.Groups[i]
		var lines []tallyLine
		for _, l := range all {
			if l.group == g {
				lines = append(lines, l)
			}
		}
		name := cmp.Or(g.Group, "(no group)")
		s := sheetOf("", fmt.Sprintf("%s | %s | %s | %s", name, units.Count(g.Hosts, "host", "hosts"),
			units.Count(g.Processes, "process", "processes"), units.Count(g.Threads, "thread", "threads")), lines,
			tallyColumns(strings.ToUpper(g.Counts[:1])+g.Counts[1:]))
		s.fields, s.values = nil, nil
		d.sheets = append(d.sheets, s)
	}
	if len(r.Groups) == 0 {
		d.addIntro("There are no regions.")
	}
	if marked {
		d.addNote("* a buffer is in GPU memory, or memory that it shares (managed); for a call: a buffer of an " +
			"operation that resulted from it")
	}
	if launched {
		d.addNote(
			"%s: it is known when these were launched, but not how long they ran; the times are those of enqueueing",
			strings.TrimSpace(facts.LaunchedOnly))
	}
	if slices.ContainsFunc(all, func(l tallyLine) bool { return l.Summed }) {
		d.addNote(
			"Network: recorded in sums (NCCL_OTF2_EVENTS=net-sums), so the shortest and the longest stretch are " +
				"not known.")
	}
	for i := range r.Groups {
		if note := tallyNotes[r.Groups[i].Group]; note != "" {
			d.addNote("%s", note)
		}
	}
	d.addNote("Times are from enter to leave, including nested regions. Threads are rows of the timeline, including " +
		"those of GPUs and networks.")
	return d
}

func withoutTotals(all []tallyLine) []tallyLine {
	return slices.DeleteFunc(slices.Clone(all), func(l tallyLine) bool { return l.total })
}
