// SPDX-License-Identifier: Apache-2.0

package report

import "github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"

// Names of the lines of Says.
const (
	SaysPath    = "critical path"
	saysWaiting = "waiting"
	SaysMost    = "most"
	SaysIn      = "in"
	SaysStartUp = "start-up"
	saysSlow    = "slow"
)

// Says is what the report says below its verdict before its tables, for where there is a picture of the waiting over
// time: the critical path, and where the waiting went. Lines without a name go on with the one before.
func Says(r *operations.Report) []Line {
	all := []Line{}
	for i, text := range pathLines(r.CriticalPath) {
		name := ""
		if i == 0 {
			name = SaysPath
		}
		all = append(all, Line{Name: name, Text: text})
	}
	s := r.WaitStates
	all = append(all, Line{Name: saysWaiting, Text: whereTotal(s)})
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
