// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/criticalpath"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/report"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// How the tables of sections are read, as text for people and as CSV, and the few lines in which a report gives its
// answer.

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
	if err := f.sentence(product, paragraphs[1]); err != nil {
		return err
	}
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

// ofAll is what a part of all waiting is called, wherever it is shown.
const ofAll = "of all waiting"

var (
	madeWait   = regexp.MustCompile(`made the others wait: (\d+) % of ([\d.]+ [nµm]?s) waited`)
	causedSaid = regexp.MustCompile(`; it caused (\d+) %, and its longer work explains (\d+) %`)
	mostCaused = regexp.MustCompile(
		`ranks waited ([\d.]+ [nµm]?s) in all, and the one that caused the most, (Rank \d+), caused (\d+) % of it`)
	boxed = regexp.MustCompile(`<dt>of all waiting</dt><dd>([\d.]+) %</dd>(?:<dt>explained by its longer work</dt><dd>` +
		`([\d.]+) %</dd>)?`)
	pageVerdict = regexp.MustCompile(`id="verdict">([^<]*)<`)
	pageRow     = regexp.MustCompile(`(?s)<tr>(.*?)</tr>`)
	pageCell    = regexp.MustCompile(`(?s)<t[hd][^>]*>(.*?)</t[hd]>`)
)

// part notes a part of a whole that is written in percent with so many digits behind the point.
func (f figures) part(product, what, percent string, digits int) error {
	v, err := strconv.ParseFloat(percent, 64)
	if err == nil && v > 0 {
		f.near(product, what, v/100, 0.501*math.Pow10(-digits)/v)
	}
	return err
}

// sentence notes the figures of a verdict's text.
func (f figures) sentence(product, text string) error {
	var parts [][2]string
	waited := ""
	if m := madeWait.FindStringSubmatch(text); m != nil {
		parts, waited = append(parts, [2]string{"verdict: culprit 0: share", m[1]}), m[2]
		caused := m[1]
		if m := causedSaid.FindStringSubmatch(text); m != nil {
			parts, caused = append(parts, [2]string{"verdict: culprit 0: share", m[2]}), m[1]
		}
		parts = append(parts, [2]string{"verdict: culprit 0: " + ofAll, caused})
	}
	if m := mostCaused.FindStringSubmatch(text); m != nil {
		parts, waited = append(parts, [2]string{m[2] + ": " + ofAll, m[3]}), m[1]
	}
	for _, p := range parts {
		if err := f.part(product+", its sentence", p[0], p[1], 0); err != nil {
			return err
		}
	}
	if waited == "" {
		return nil
	}
	v, err := written(waited)
	f.near(product+", its sentence", "verdict: waited", v, 0.006)
	return err
}

// waitedRows notes the figures of the table of who waited.
func (f figures) waitedRows(product string, rows []map[string]string) error {
	for _, row := range rows {
		percent, _ := strings.CutSuffix(row[ofAll], " %")
		if percent == "–" {
			continue
		}
		if err := f.part(product, row["rank"]+": "+ofAll, percent, 1); err != nil {
			return err
		}
		v, err := written(row["caused by it"])
		if err != nil {
			return err
		}
		if v > 0 {
			f.near(product, row["rank"]+": goes back to it", v, 0.006)
		}
	}
	return nil
}

// The page has the text's sentence and tables, and a box for each culprit.
func readReportHTML(f figures, name string, outputs map[string][]byte) error {
	page := string(outputs["report.html"])
	m := pageVerdict.FindStringSubmatch(page)
	if m == nil {
		return fmt.Errorf("no verdict")
	}
	text := html.UnescapeString(m[1])
	f.same(name, "verdict: text", text)
	if err := f.sentence(name, text); err != nil {
		return err
	}
	for i, m := range boxed.FindAllStringSubmatch(page, -1) {
		if err := f.part(name+", its boxes", fmt.Sprintf("verdict: culprit %d: %s", i, ofAll), m[1], 1); err != nil {
			return err
		}
		if err := f.part(name+", its boxes", fmt.Sprintf("verdict: culprit %d: share", i), cmp.Or(m[2], "0"),
			1); err != nil {
			return err
		}
	}
	var lines []string
	for _, row := range pageRow.FindAllStringSubmatch(page, -1) {
		var cells []string
		for _, cell := range pageCell.FindAllStringSubmatch(row[1], -1) {
			cells = append(cells, html.UnescapeString(cell[1]))
		}
		lines = append(lines, strings.Join(cells, "\t"))
	}
	return f.waitedRows(name, tableRows(strings.Join(lines, "\n"), ofAll,
		func(line string) []string { return strings.Split(line, "\t") }))
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
