// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"fmt"
	"regexp"
	"slices"
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
