// SPDX-License-Identifier: Apache-2.0

package report

import "github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"

// Names of the lines of LinesBelowVerdict.
const (
	LinePath    = "critical path"
	lineWaiting = "waiting"
	LineMost    = "most"
	LineIn      = "in"
	LineStartUp = "start-up"
	lineSlow    = "slow"
)

// LinesBelowVerdict returns the lines between the report's verdict and its tables, for views that already draw the
// waiting over time: the critical path, and where ranks waited. A line without a name continues the line before.
func LinesBelowVerdict(r *operations.Report) []Line {
	all := []Line{}
	for i, text := range pathLines(r.CriticalPath) {
		name := ""
		if i == 0 {
			name = LinePath
		}
		all = append(all, Line{Name: name, Text: text})
	}
	s := r.WaitStates
	all = append(all, Line{Name: lineWaiting, Text: whereTotal(s)})
	if s.Total.Parts > 0 {
		all = append(all, whereLines(s, Clock{Begin: uint64(r.Summary.Begin)})...)
	}
	for i, text := range startUpRemark(s) {
		name := ""
		if i == 0 {
			name = "note"
		}
		all = append(all, Line{Name: name, Text: text})
	}
	return all
}
