// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/lateness"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// thing is a row of a made-up table.
type thing struct {
	name   string
	weight uint64
}

func things(n int) *Document {
	var all []thing
	for i := range n {
		all = append(all, thing{fmt.Sprintf("a thing with a long name, number %d", i), uint64(i)})
	}
	s := sheetOf("things", "Things", all, []column[thing]{
		label("name", "name", func(t *thing) string { return t.name }),
		number("weight", "weight", func(t *thing) uint64 { return t.weight }),
		label("twice", "twice its name", func(t *thing) string { return t.name + t.name }),
		label("often", "of less use", func(t *thing) string { return t.name }),
	})
	s.sortBy("the weight", func(i int) float64 { return float64(all[i].weight) })
	s.optional = []string{"of less use"}
	return &Document{title: "Made up", sheets: []sheet{s}}
}

func styled(t *testing.T, d *Document, style Style) []string {
	t.Helper()
	var b strings.Builder
	testkit.Must(t, d.WriteStyled(&b, style))
	return strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
}

// Tables show the rows that weigh the most, the heaviest first, and say what is left of them.
func TestTablesShowWhatWeighsTheMost(t *testing.T) {
	lines := styled(t, things(100), Style{Top: 20})
	if got := len(lines); got != 1+2+1+20+1 {
		t.Fatalf("%d lines:\n%s", got, strings.Join(lines, "\n"))
	}
	testkit.Check(t, strings.HasPrefix(lines[4], "a thing with a long name, number 99 ") &&
		strings.HasPrefix(lines[23], "a thing with a long name, number 80 "), "from %q to %q", lines[4], lines[23])
	if want := "… and 80 more rows with 63.8 % of the weight (--top all)"; lines[24] != want { // 3160 of 4950
		t.Errorf("%q instead of %q", lines[24], want)
	}
	testkit.Equal(t, len(styled(t, things(100), Style{Top: -1})), 1+2+1+100, "lines of all")
	var csv strings.Builder
	testkit.Must(t, things(100).WriteCSV(&csv))
	rows := strings.Split(csv.String(), "\n")
	testkit.Check(t, len(rows) == 102 && strings.HasPrefix(rows[1], `things,"a thing with a long name, number 0"`),
		"CSV has %d lines, the first %q", len(rows), rows[1])
}

// Whatever the width, no row of a table is longer, columns of less use go first, and it is said which.
func TestTablesFitTheTerminal(t *testing.T) {
	for _, width := range []int{200, 120, 80, 60, 32, 24} {
		lines := styled(t, things(3), Style{Width: width})
		for _, line := range lines[3:7] {
			n := utf8.RuneCountInString(line)
			testkit.Check(t, n <= width || width < 32, "%d characters in a terminal of %d: %q", n, width, line)
		}
		last, text := lines[len(lines)-1], strings.Join(lines, "\n")
		switch {
		case width >= 200 && strings.Contains(text, "too narrow"):
			t.Errorf("%d:\n%s", width, text)
		case width == 60 && last != "terminal too narrow for: of less use":
			t.Errorf("%d:\n%s", width, text)
		case width <= 32 && last != "terminal too narrow for: of less use, twice its name":
			t.Errorf("%d:\n%s", width, text)
		}
	}
}

// Points in time count from the begin of the run, or are times of day; clocks that do not count since 1970 stay what
// they are.
func TestPointsInTime(t *testing.T) {
	const begin = 1_760_000_000_000_000_000
	for _, tc := range []struct {
		clock Clock
		t     uint64
		want  string
	}{
		{Clock{Begin: begin}, begin + 1_234_567_890, "1.234568 s"},
		{Clock{Begin: begin}, begin - 1_000_000, "-0.001000 s"},
		{Clock{Begin: begin, Absolute: true}, begin + 1_234_567_890, "2025-10-09 08:53:21.234567"},
		{Clock{Begin: 5, Absolute: true}, 2_000_000_000, "2.000000 s"},
	} {
		got := tc.clock.formatTime(tc.t)
		testkit.Check(t, got == tc.want, "%+v: %q instead of %q", tc, got, tc.want)
	}
}

// equalTimes are the times of operations that took equally long.
func equalTimes(ns float64) analysis.Times {
	return analysis.Times{Total: ns, Avg: ns, Min: ns, P50: ns, P99: ns, Max: ns}
}

// Times of launches are shown as no times of operations, whatever they are.
func TestLaunchesAreNoTimesOfOperations(t *testing.T) {
	r := &operations.Report{Operations: []operations.Row{
		{Operation: "AllReduce", TimingSource: "enqueue", Count: 9, Timed: 9, Time: equalTimes(777_000),
			Approximate: true},
		{Operation: "Reduce", TimingSource: "gpu", Count: 9, Timed: 9, Time: equalTimes(555_000)},
	}}
	s := operationSheet(r)
	row := strings.Join(s.text[0], " ")
	testkit.Check(t, !strings.Contains(row, "777") && !strings.Contains(row, "~"), "%v", row)
	row = strings.Join(s.text[1], " ")
	testkit.Check(t, strings.Count(row, "555 µs") == 5, "%v", row)
	if !slices.ContainsFunc(s.more, func(line string) bool { return strings.HasPrefix(line, "enqueue: ") }) {
		t.Error(s.more)
	}
}

// The last line says what to look at next, of several things the gravest.
func TestWhatToLookAtNext(t *testing.T) {
	late := verdict.Verdict{Culprits: []verdict.Culprit{{Kind: verdict.HostLate,
		Worst: &verdict.Worst{At: 7_333_500_000, Late: 167_600_000}}}}
	inMessages := func(percent uint64) *waits.States {
		s := &waits.States{Kinds: []waits.Group{{Name: lateness.WaitLateSender.String()},
			{Name: lateness.WaitCollective.String()}}}
		s.Kinds[0].Waited, s.Kinds[1].Waited, s.Total.Waited = percent, 100-percent, 100
		return s
	}
	crashed := operations.Summary{Archive: "exp/traces.otf2", Crashed: 1, Timing: map[string]uint64{"ENQUEUE": 4}}
	for want, r := range map[string]*operations.Report{
		"": {Summary: operations.Summary{Archive: "exp/traces.otf2",
			Timing: map[string]uint64{"GPU": 4, "ENQUEUE": 1}}},
		"Next: nccl-otf2 report --hang exp (": {Summary: crashed},
		"Next: nccl-otf2 report --hang exp (which": {Summary: operations.Summary{Archive: "exp/traces.otf2"},
			Verdict: &verdict.Verdict{Culprits: []verdict.Culprit{{Kind: verdict.Missing}}}},
		"Next: record with NCCL_OTF2_EVENTS=gpu; only " +
			"launches": {Summary: operations.Summary{Timing: map[string]uint64{"ENQUEUE": 4}, Untimed: "record with " +
			"NCCL_OTF2_EVENTS=gpu"}},
		"Next: nccl-otf2 report --waits exp " +
			"(": {Summary: operations.Summary{Archive: "exp/traces.otf2"}, Verdict: &late, WaitStates: inMessages(51)},
		"Next: nccl-otf2 timeline exp --from 1.998s --to 2.502s " +
			"(": {Summary: operations.Summary{Archive: "exp/traces.otf2", Begin: 5_000_000_000}, Verdict: &late,
			WaitStates: inMessages(49)},
	} {
		got := nextStep(r)
		testkit.Check(t, strings.HasPrefix(got, want) && (want != "" || got == ""), "%q instead of %q", got, want)
	}
}
