// SPDX-License-Identifier: Apache-2.0

// The critical path and the gains, as internal/analysis/criticalpath computes them.

package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/criticalpath"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// Limits of the lines about the path.
const (
	mostOfPath  = 3    // activities of ranks that are named
	leastOfPath = 0.05 // part of the path of a named activity
	mostFaster  = 3    // ranks and links whose gain is stated
	muchGain    = 0.05 // part of the path that a rank which is not named must gain at least to be stated
	leastGain   = 0.01 // part of the path from which on a gain is stated if nobody is named
)

// pathLines returns one line about the critical path and one about the gains, or one line that states why it is not
// known.
func pathLines(r *criticalpath.Result) []string {
	switch {
	case r == nil:
		return nil
	case r.NotKnown != "":
		return []string{"The critical path is not known: " + r.NotKnown + "."}
	case r.Steady == 0:
		return nil
	}
	return []string{pathLine(r), fasterLine(r)}
}

func pathLine(r *criticalpath.Result) string {
	share := func(ns uint64) string { return fmt.Sprintf("%.0f %%", 100*float64(ns)/float64(r.Steady)) }
	var parts []string
	rest := r.Steady
	for _, x := range r.Ranks[:min(len(r.Ranks), mostOfPath)] {
		if float64(x.Time) >= leastOfPath*float64(r.Steady) {
			part := fmt.Sprintf("%s %s of %s", share(x.Time), x.Activity, x.Name)
			if len(x.Kernels) > 0 {
				part += " (" + x.Kernels[0].Kernel + ")"
			}
			parts = append(parts, part)
			rest -= x.Time
		}
	}
	for i := range r.Operations {
		if x := &r.Operations[i]; i < mostOfPath && float64(x.Time) >= leastOfPath*float64(r.Steady) {
			parts = append(parts, share(x.Time)+" "+operationOnPath(x))
			rest -= x.Time
		}
	}
	if float64(rest) >= 0.005*float64(r.Steady) {
		parts = append(parts, share(rest)+" other")
	}
	without := ""
	if r.StartUp > 0 {
		without = fmt.Sprintf(", without %s of start-up", units.Time(float64(r.StartUp)))
	}
	return fmt.Sprintf("Critical path of %s%s: %s.", units.Time(float64(r.Steady)), without, strings.Join(parts, ", "))
}

func operationOnPath(x *criticalpath.OperationRow) string {
	if x.Communicator == "" {
		return x.Operation
	}
	return x.Operation + " on " + x.Communicator
}

// fasterLine states how much shorter the run would be if the named ranks, together, and links were as fast as others.
func fasterLine(r *criticalpath.Result) string {
	if r.GainsNotKnown != "" {
		return "How much shorter the run could be is not known: " + r.GainsNotKnown + "."
	}
	var parts []string
	for i := range r.WhatIf {
		w := &r.WhatIf[i]
		if !w.IsNamed() || len(parts) == mostFaster || r.Covered(w) {
			continue
		}
		condition := "were as fast as the others"
		if w.Scaled {
			condition = "worked no longer than the others"
		}
		text := fmt.Sprintf("if %s %s, the run would be %s shorter", changedText(w), condition,
			units.Time(float64(w.Gain)))
		if w.Least != nil && float64(*w.Least) < 0.95*float64(w.Gain) {
			text += fmt.Sprintf(" (at least %s)", units.Time(float64(*w.Least)))
		}
		parts = append(parts, text)
	}
	if len(parts) > 0 {
		return capitalize(strings.Join(parts, "; ")) + "."
	}
	return balanceLine(r)
}

// balanceLine states how much shorter the run would be if ranks worked alike, for a run in which nobody is named: a
// rank that makes it much longer, all ranks, or those of a role that no others have.
func balanceLine(r *criticalpath.Result) string {
	var parts []string
	add := func(condition string, is func(*criticalpath.WhatIf) bool) {
		for i := range r.WhatIf {
			if w := &r.WhatIf[i]; is(w) && float64(w.Gain) >= leastGain*float64(r.Steady) {
				parts = append(parts, fmt.Sprintf("%s, the run would be %s shorter",
					strings.ReplaceAll(condition, "NAME", w.Name), units.Time(float64(w.Gain))))
				return
			}
		}
	}
	add("if NAME were as fast as the others", func(w *criticalpath.WhatIf) bool {
		return w.Change == criticalpath.FasterRank && float64(*w.Least) >= muchGain*float64(r.Steady)
	})
	add("if no rank came later than the median rank", func(w *criticalpath.WhatIf) bool {
		return w.Change == criticalpath.FasterRanks
	})
	add("if NAME, whose work no other ranks do, had no more to do than those", func(w *criticalpath.WhatIf) bool {
		return w.Change == criticalpath.FasterRole && w.Scaled
	})
	if len(parts) == 0 {
		return "No single rank makes it longer by much."
	}
	return capitalize(strings.Join(parts, "; ")) + "."
}

func capitalize(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// changedText names the rank or link that would be faster.
func changedText(w *criticalpath.WhatIf) string {
	switch w.Change {
	case criticalpath.FasterLink:
		if w.Peer != nil {
			return "the link from " + w.Name + " to " + w.PeerName
		}
		return "the links of " + w.Name
	case criticalpath.FasterGPU:
		return "the GPU of " + w.Name
	case criticalpath.FasterRanks:
		return "every rank"
	case criticalpath.NoWaiting:
		return "all work divided equally"
	}
	return w.Name
}

func pathShare[T any](of func(*T) uint64, steady uint64) column[T] {
	return percent("of the path", func(r *T) (float64, float64) { return float64(of(r)), float64(steady) })
}

// mostOfGPU is the number of kernels that are named for a GPU on the path.
const mostOfGPU = 3

// busyOnPath names the kernels that a rank's GPU ran on the path, each with its share of that time; "" if none are
// known.
func busyOnPath(r *criticalpath.RankRow) string {
	var words []string
	for _, k := range r.Kernels[:min(len(r.Kernels), mostOfGPU)] {
		words = append(words, fmt.Sprintf("%s %.0f %%", k.Kernel, 100*min(1, float64(k.Time)/float64(max(r.Time, 1)))))
	}
	return strings.Join(words, ", ")
}

func pathRankColumns(steady uint64, rows []criticalpath.RankRow) []column[criticalpath.RankRow] {
	type row = criticalpath.RankRow
	busy := label("kernels", "busy with", busyOnPath)
	if !slices.ContainsFunc(rows, func(r row) bool { return len(r.Kernels) > 0 }) {
		busy.head = ""
	}
	return []column[row]{
		label("name", "rank", func(r *row) string { return r.Name }),
		{"rank", "", nil, func(r *row) any { return r.Rank }},
		label("host", "host", func(r *row) string { return r.Host }),
		label("activity", "activity", func(r *row) string { return r.Activity }),
		duration("time_ns", "on the path", func(r *row) uint64 { return r.Time }),
		pathShare(func(r *row) uint64 { return r.Time }, steady),
		busy,
	}
}

func pathOperationColumns(steady uint64) []column[criticalpath.OperationRow] {
	type row = criticalpath.OperationRow
	return []column[row]{
		label("communicator", "communicator", func(r *row) string { return r.Communicator }),
		{"comm", "", nil, func(r *row) any { return uint64(r.Comm) }},
		label("operation", "operation", func(r *row) string { return r.Operation }),
		duration("time_ns", "on the path", func(r *row) uint64 { return r.Time }),
		pathShare(func(r *row) uint64 { return r.Time }, steady),
	}
}

func pathActivityColumns(steady uint64) []column[criticalpath.ActivityRow] {
	type row = criticalpath.ActivityRow
	return []column[row]{
		label("activity", "activity", func(r *row) string { return r.Activity }),
		duration("time_ns", "on the path", func(r *row) uint64 { return r.Time }),
		pathShare(func(r *row) uint64 { return r.Time }, steady),
		duration("mean_ns", "mean of ranks", func(r *row) uint64 { return r.Mean }),
		duration("imbalance_ns", "imbalance", func(r *row) uint64 { return r.Imbalance }),
	}
}

func whatIfColumns(steady uint64) []column[criticalpath.WhatIf] {
	type row = criticalpath.WhatIf
	return []column[row]{
		label("change", "", func(w *row) string { return string(w.Change) }),
		label("", "if as fast as others", changedText),
		{"rank", "", nil, func(w *row) any { return w.Rank }},
		{"ranks", "", nil, func(w *row) any { return units.Ranks(w.Ranks) }},
		label("host", "host", func(w *row) string { return w.Host }),
		{"peer", "", nil, func(w *row) any { return valueOrNil(w.Peer) }},
		duration("gain_ns", "gain", func(w *row) uint64 { return w.Gain }),
		pathShare(func(w *row) uint64 { return w.Gain }, steady),
		optional("least_ns", "at least", units.Unknown, durationText, func(w *row) *uint64 { return w.Least }),
		number("operations", "operations", func(w *row) uint64 { return w.Operations }),
		optional("confidence", "confidence", "–", gainConfidence, func(w *row) *float64 { return w.Confidence }),
	}
}

// gainConfidence formats the confidence of a gain, rounded down; it never states 100 %.
func gainConfidence(part float64) string {
	if part > 0.999 {
		return "> 99.9 %"
	}
	return fmt.Sprintf("%.1f %%", math.Floor(1000*part)/10)
}

// CriticalPath returns the critical path as tables; r may be nil.
func CriticalPath(r *criticalpath.Result) *Document {
	d := &Document{title: "Critical path"}
	if r == nil {
		d.addIntro("There are no operations to follow it through.")
		r = new(criticalpath.Result)
	}
	for _, line := range pathLines(r) {
		d.addIntro("%s", line)
	}
	if r.Steady > 0 {
		d.addIntro(
			"It covers %s of the run's %s: not in it are %s of start-up, %s after the last operation%s. It moves to "+
				"another rank %d times.", units.Time(float64(r.Steady)),
			units.Time(float64(r.Length)), units.Time(float64(r.StartUp)), units.Time(float64(r.After)),
			unknownOnPath(r), r.Changes)
	}
	if r.Doubtful > 0 {
		d.addIntro("%s of the ranks' own time may belong to another rank that arrived at the same time, within the "+
			"uncertainty.", units.Time(float64(r.Doubtful)))
	}
	d.sheets = []sheet{
		sheetOf("what_if", "What would shorten it", r.WhatIf, whatIfColumns(r.Steady)),
		sheetOf("activities", "By activity, compared with the mean of all ranks", r.Activities,
			pathActivityColumns(r.Steady)),
		sheetOf("ranks", "Ranks' own time on the path", r.Ranks, pathRankColumns(r.Steady, r.Ranks)),
		sheetOf("path_operations", "Operations on the path, from the last arrival on", r.Operations,
			pathOperationColumns(r.Steady)),
	}
	d.sheets[0].sortBy("all gains", func(i int) float64 { return float64(r.WhatIf[i].Gain) })
	d.sheets[0].optional = []string{"host", "operations", "of the path"}
	d.sheets[2].sortBy("the path", func(i int) float64 { return float64(r.Ranks[i].Time) })
	d.sheets[2].optional = []string{"host", "busy with"}
	d.sheets[3].sortBy("the path", func(i int) float64 { return float64(r.Operations[i].Time) })
	if r.Unstated > 0 {
		d.addNote("For %s on it, the uncertainty of the times is not stated.",
			units.Count(int(r.Unstated), "operation", "operations"))
	}
	return d
}

func unknownOnPath(r *criticalpath.Result) string {
	if r.Unknown == 0 {
		return ""
	}
	return fmt.Sprintf(", %s of which nothing is known", units.Time(float64(r.Unknown)))
}
