// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/criticalpath"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/report"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// How the tables of sections are read, as text for people and as CSV, and the few lines in which a report gives its
// answer.

// sheet says which figures stand where in a table: by a row's head of a column, what it is, with the row's name for %s.
type sheet struct {
	table   string // what the title begins with, up to " | "; of CSV the first field
	name    func(row map[string]string) string
	figures map[string]string
}

// cell names rows by a column.
func cell(head string) func(map[string]string) string {
	return func(row map[string]string) string { return row[head] }
}

// twoCells names rows by two columns.
func twoCells(a, between, b string) func(map[string]string) string {
	return func(row map[string]string) string { return row[a] + between + row[b] }
}

// causeMetric names rows of causes by the metric of profiles; "": none.
func causeMetric(head string) func(map[string]string) string {
	return func(row map[string]string) string { return waitMetrics[row[head]] }
}

// regionOf names rows of a tally as the tally's JSON is read.
func regionOf(row map[string]string) string {
	name := row["group"] + "/" + row["name"]
	if row["launched_only"] == "true" {
		name += facts.LaunchedOnly
	}
	return name
}

var (
	tallyText = []sheet{{"", twoCells("", "/", "Name"), map[string]string{
		"Time": "%s time", "Calls": "%s regions", "Launches": "%s regions", "Stretches": "%s regions",
		"Channels": "%s regions",
	}}}
	tallyCSV  = []sheet{{"tally", regionOf, map[string]string{"time_ns": "%s time", "calls": "%s regions"}}}
	waitsText = []sheet{
		{"By cause", causeMetric("cause"), map[string]string{"waited": "%s"}},
		{"By rank", cell("rank"), map[string]string{"waited": "%s: waited", "wait caused": "%s: caused",
			"late arrivals": "%s: late arrivals", "operations": "%s: compared"}},
		{"By communicator", cell("communicator"), map[string]string{"waited": "%s: waited"}},
		{"Efficiencies, after POP and TALP", twoCells("of", ": ", "efficiency"), map[string]string{"value": "%s"}},
	}
	waitsCSV = []sheet{
		{"kinds", causeMetric("name"), map[string]string{"waited_ns": "%s"}},
		{"ranks", cell("name"), map[string]string{"waited_ns": "%s: waited", "caused_ns": "%s: caused",
			"last": "%s: late arrivals", "parts": "%s: compared"}},
		{"communicators", cell("name"), map[string]string{"waited_ns": "%s: waited"}},
		{"efficiencies", twoCells("of", ": ", "name"), map[string]string{"value": "%s"}},
	}
	matrixText = []sheet{{"Transfers from rank to rank", twoCells("from", " to ", "to"),
		map[string]string{"transfers": "%s: transfers", "bytes": "%s: bytes", "busy": "%s: busy",
			"GB/s": "%s: bandwidth"}}}
	matrixCSV = []sheet{{"ranks", twoCells("from", " to ", "to"),
		map[string]string{"transfers": "%s: transfers", "bytes": "%s: bytes", "busy_ns": "%s: busy",
			"bandwidth": "%s: bandwidth"}}}
	diffText = []sheet{
		{"Not changed", diffRow, diffMedians},
		{"Too few to tell: finding a change takes at least 10 pairs", diffRow, diffMedians},
	}
	diffMedians = map[string]string{"median A": "median A of %s", "median B": "median B of %s"}
)

// diffRow names what diff takes together, as far as the text does: "" for launches of several, whose time is the
// launch's.
func diffRow(row map[string]string) string {
	if strings.HasSuffix(row["operation"], "*") {
		return ""
	}
	return fmt.Sprintf("%s of %s, %s", row["operation"], row["size"], row["timing source"])
}

// readTables reads the figures of tables. Two rows of one name are not compared.
func readTables(sheets []sheet) func(figures, string, map[string][]byte) error {
	return func(f figures, product string, outputs map[string][]byte) error {
		rows, exact, err := sheetRows(outputs[""])
		if err != nil {
			return err
		}
		for _, s := range sheets {
			seen := make(map[string]int)
			for _, row := range rows {
				if s.holds(row) {
					seen[s.name(row)]++
				}
			}
			for _, row := range rows {
				if name := s.name(row); !s.holds(row) || name == "" || seen[name] > 1 {
					continue
				} else if err := s.read(f, product, name, row, exact); err != nil {
					return fmt.Errorf("%s: %w", s.table, err)
				}
			}
		}
		return nil
	}
}

func (s *sheet) holds(row map[string]string) bool {
	if s.table == "" { // of a tally each group has a table
		return row["Name"] != "" && row["Name"] != "Total" && !strings.HasPrefix(row["Name"], "Total (")
	}
	return row[""] == s.table
}

func (s *sheet) read(f figures, product, name string, row map[string]string, exact bool) error {
	for head, what := range s.figures {
		text := row[head]
		if text == "" || text == "n/a" || text == "–" {
			continue
		}
		percent := strings.HasSuffix(text, " %")
		v, err := written(strings.TrimSuffix(text, " %"))
		if err != nil {
			return err
		}
		relative := 0.006 // three digits
		switch {
		case exact || regexp.MustCompile(`^\d+$`).MatchString(text):
			relative = 1e-12
		case percent:
			v, relative = v/100, 0.0006/max(v/100, 1e-9) // a tenth of a percent
		}
		f.near(product, fmt.Sprintf(what, name), v, relative)
	}
	return nil
}

// sheetRows are the rows of all tables by head; below "" the table's name. exact: they are CSV's, with all digits.
func sheetRows(text []byte) (rows []map[string]string, exact bool, err error) {
	for _, block := range strings.Split(string(text), "\n\n") {
		lines := strings.Split(strings.Trim(block, "\n"), "\n")
		if strings.HasPrefix(lines[0], "table,") {
			all, err := csv.NewReader(bytes.NewReader([]byte(block))).ReadAll()
			if err != nil {
				return nil, true, err
			}
			for _, cells := range all[1:] {
				rows = append(rows, byHead(cells[0], all[0], cells))
			}
			exact = true
			continue
		}
		if len(lines) < 3 {
			continue
		}
		title, _, _ := strings.Cut(lines[0], " | ")
		heads := gaps.Split(strings.TrimSpace(lines[1]), -1)
		for _, line := range lines[2:] {
			if cells := gaps.Split(strings.TrimSpace(line), -1); len(heads) > 1 && len(cells) == len(heads) {
				rows = append(rows, byHead(title, heads, cells))
			}
		}
	}
	return rows, exact, nil
}

func byHead(table string, heads, cells []string) map[string]string {
	row := make(map[string]string)
	for i, head := range heads {
		row[head] = cells[i]
	}
	row[""] = table
	return row
}

var (
	waitingLine = regexp.MustCompile(`(?m)^Where the waiting went: ([\d.]+ [nµm]?s) of `)
	judgedLine  = regexp.MustCompile(
		`(?m)^  (?:start-up|slow) +.*the answer above covers (?:the other )?([\d.]+ [nµm]?s)`)
	pathLine = regexp.MustCompile(`(?m)^Critical path of ([\d.]+ [nµm]?s)`)
)

// answer notes who is named and what was waited. The verdict's waiting is that of the tables unless a line says of
// which it is.
func (f figures) answer(product, text string) error {
	paragraphs := strings.Split(text, "\n\n")
	if len(paragraphs) < 2 {
		return fmt.Errorf("no answer")
	}
	f.same(product, "verdict: text", paragraphs[1])
	for what, line := range map[string]*regexp.Regexp{"waited": waitingLine, "verdict: waited": judgedLine,
		"critical path": pathLine} {
		m, relative := line.FindStringSubmatch(text), 0.006
		if m == nil && line == judgedLine { // less than a hundredth is not worth a line
			m, relative = waitingLine.FindStringSubmatch(text), 0.016
		}
		if m == nil {
			continue
		}
		v, err := written(m[1])
		if err != nil {
			return err
		}
		f.near(product, what, v, relative)
	}
	return nil
}

// curvePoint is what an operation's bandwidth is found by on the page: a curve and, as written there, a size.
func curvePoint(o *operations.Row) string {
	name := o.Operation
	if all := slices.Concat(o.Algorithms, o.Variants); len(all) > 0 {
		name += " " + strings.Join(all, ",")
	}
	if o.TimingSource == "network" {
		name += " (network times)"
	}
	return fmt.Sprintf("curve %s on %s, %s: %s", name, o.Communicator, units.Count(o.Ranks, "rank", "ranks"),
		units.Bytes(o.Size))
}

// curves notes the bandwidths over size that a page shows.
func (f figures) curves(product string, p *report.Plot) error {
	if p == nil {
		return nil
	}
	for _, l := range p.Lines {
		for _, at := range l.Points {
			for what, text := range map[string]string{"busbw": at.BusBW, "algbw": at.AlgBW} {
				v, err := written(text)
				if err != nil {
					return err
				}
				f.near(product, fmt.Sprintf("curve %s: %s: %s", l.Name, at.Size, what), v, 0.006)
			}
		}
	}
	return nil
}

func readPath(f figures, name string, outputs map[string][]byte) error {
	var r struct{ Path *criticalpath.Result }
	if err := decode(outputs, &r); err != nil {
		return err
	}
	if r.Path == nil {
		return fmt.Errorf("no path")
	}
	f.path(name, r.Path)
	return nil
}

// path notes what the run's length was made of; its parts add up to it.
func (f figures) path(product string, p *criticalpath.Result) {
	if p.NotKnown != "" {
		return
	}
	f.add(product, "critical path", float64(p.Steady))
	f.add(product, "duration", float64(p.Length))
	f.add(product+", its parts", "duration", float64(p.StartUp+p.Steady+p.After+p.Unknown))
	for _, a := range p.Activities {
		f.add(product, "critical path: "+a.Activity, float64(a.Time))
		f.add(product+", its activities", "critical path", float64(a.Time))
	}
	for _, w := range p.WhatIf {
		f.add(product, fmt.Sprintf("critical path: %s %s would bring", w.Name, w.Change), float64(w.Gain))
	}
}
