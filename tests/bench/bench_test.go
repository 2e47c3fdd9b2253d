// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/bench/caller"
)

// TestMain lets the test binary run single cases of package otf2, as the program does.
func TestMain(m *testing.M) {
	runChild()
	os.Exit(m.Run())
}

// newBench measures small. Times are not looked at.
func newBench(t *testing.T, match string) *bench {
	t.Helper()
	root := testkit.Value(filepath.Abs("../.."))(t)
	return &bench{root: root, build: filepath.Join(root, "build"), dir: t.TempDir(), rounds: 1, scale: 0.005,
		match: regexp.MustCompile(match)}
}

// newHost is one with the program that calls plugins.
func newHost(t *testing.T, match string) *bench {
	b := newBench(t, match)
	err := b.buildHost()
	if errors.Is(err, caller.ErrUnavailable) {
		need.NoError(t, "plugin and compiler", err)
	}
	testkit.Must(t, err)
	return b
}

// checkCells demands that a table has as many rows, and measured something in each.
func checkCells(t *testing.T, table *Table, rows int) {
	t.Helper()
	testkit.Equal(t, len(table.Rows), rows, "rows of %q", table.Title)
	for _, row := range table.Rows {
		testkit.Equal(t, len(row), len(table.Columns), "cells of %q", row)
		text := strings.Join(row, "|")
		testkit.Check(t, !strings.Contains(text, "NaN") && !strings.Contains(text, "Inf"), "not measured: %s", text)
	}
}

// Both sides do the same work, or it fails.
func TestCompare(t *testing.T) {
	b := newBench(t, `^(write|read|print|1000 .* 256 KiB)`)
	b.scale = 0.001
	t.Chdir(t.TempDir()) // wherever the program is started
	p, err := compareOTF2(b)
	if errors.Is(err, errNoLibotf2) {
		need.NoError(t, "libotf2", err)
	}
	testkit.Must(t, err)
	checkCells(t, p.Tables[0], 3*3+6+4+3)
	for _, row := range p.Tables[0].Rows {
		testkit.Check(t, !slices.Contains(row[2:5], none), "not compared: %q", row)
	}
	for name, other := range map[string]outcome{"an event less": {Events: 1, Sum: 7}, "another value": {Events: 2}} {
		testkit.Check(t, same(&outcome{Events: 2, Sum: 7}, &other) != nil, "%s: the same work", name)
	}
}

func TestRows(t *testing.T) {
	took := func(events uint64, wall, cpu int64) *outcome {
		return &outcome{Events: events, OpenFiles: int(wall), Phases: map[string]span{"all": {wall, cpu}}}
	}
	time := row{title: "time", unit: perEvent, of: phase("all"), aim: 0.5}
	open := row{title: "open", unit: fileCount, count: mostFiles, limit: 256}
	for _, test := range []struct {
		name    string
		row     row
		samples []sample
		want    string // cells from the third on
	}{
		{"met", time, []sample{{took(10, 200, 150), took(10, 400, 400)}, {took(10, 100, 100), took(10, 600, 500)}},
			"10.0 (15.0)|40.0 (50.0)|0.250|0.250|≤ 0.5×|met"},
		{"the processor's time counts too", time, []sample{{took(10, 200, 400), took(10, 500, 500)}},
			"20.0 (20.0)|50.0 (50.0)|0.400|0.800|≤ 0.5×|missed by 60 %"},
		{"libotf2 failed", time, []sample{{took(10, 200, 400), nil}}, "20.0 (20.0)|–|–|–|≤ 0.5×|not measured"},
		{"limit met", open, []sample{{took(1, 256, 0), took(1, 1000, 0)}}, "256|1000|0.256|–|≤ 256 files|met"},
		{"one round above the limit", open, []sample{{took(1, 512, 0), nil}, {took(1, 100, 0), nil}},
			"512|–|–|–|≤ 256 files|missed by 100 %"},
	} {
		testkit.Equal(t, strings.Join(test.row.cells(test.samples)[2:], "|"), test.want, "%s", test.name)
	}
}

// Everything small, with our plugin and the empty one.
func TestCallbacks(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	c := newCallbacks(newHost(t, `thread|^start|^memory`))
	p := testkit.Value(c.measure(t.Context()))(t)
	checkCells(t, c.costs, len(costCases))
	checkCells(t, c.singles, len(c.singles.Rows))
	checkCells(t, c.others, 11)
	for _, row := range c.costs.Rows {
		testkit.Equal(t, row[9] != "", strings.Contains(row[0], "paced") || strings.Contains(row[0], "the first"),
			"%s: verdict %q", row[0], row[9])
	}
	testkit.Check(t, len(p.Tables) == 3 && len(c.singles.Rows) >= 12 && c.clock != "" && c.timer > 0 && c.step > 0,
		"clock %q, timer %v in steps of %v, %d tables", c.clock, c.timer, c.step, len(p.Tables))
	got := testkit.Value(c.try(t.Context(), 100_000, 0.5))(t)
	testkit.Check(t, got.calls != 0 && got.calls%callsPerOperation == 0 && got.events != 0 && got.bytes != 0 &&
		got.lost == 0, "100 000 callbacks a second: %+v", got)
}

// The greatest rate that holds is found, and none where none does.
func TestSearch(t *testing.T) {
	for _, most := range []float64{0, 3e4, 7.7e5, 1e6, 2.9e6, 5e7} {
		best, err := search(1e6, func(rate float64) (bool, error) { return rate <= most, nil })
		testkit.Check(t, err == nil && best <= most && best >= most*0.9, "%v holds: found %v, %v", most, best, err)
	}
}

func TestAims(t *testing.T) {
	run := func(mean, median, p99 float64) []*caller.Cost {
		return []*caller.Cost{{Seconds: 1, Starts: 1, Sequences: caller.Distribution{Mean: mean, P50: median},
			Single: caller.Distribution{P99: p99}}}
	}
	for i, test := range []struct {
		piece *piece
		paced bool
		ours  []*caller.Cost
		want  string
	}{
		{&pieces[0], true, run(1000, 22, 150), "median +20, p99 150|met, met"},
		{&pieces[1], true, run(42, 12, 300), "mean +20, p99 150|missed by 100 %, missed by 100 %"},
		{&pieces[1], false, run(42, 12, 300), "–|"},
	} {
		c := &costCase{piece: test.piece, threads: 1, paced: test.paced}
		testkit.Equal(t, strings.Join(c.cells(&both[caller.Cost]{empty: run(2, 2, 8), ours: test.ours})[8:], "|"),
			test.want, "case %d", i)
	}
	c := &callbacks{others: new(Table)}
	for _, o := range []other{{ours: 5, empty: 2, most: 4}, {ours: 5, empty: math.NaN(), most: 4},
		{ours: 3, least: 4}, {ours: 4, least: 4}, {ours: 5}} {
		c.add(o)
	}
	var got []string
	for _, row := range c.others.Rows {
		got = append(got, row[6])
	}
	testkit.Equal(t, strings.Join(got, "|"), "met|missed by 25 %|missed by 25 %|met|", "verdicts")
}

// A small storm through the empty plugin, ours and one of the command line.
func TestPeers(t *testing.T) {
	p := &peers{bench: newHost(t, ""), ranks: numbers{2, 1}, operations: 100, seconds: 0.1, events: "gpu"}
	testkit.Must(t, p.plugins.Set("another="+p.host.Empty+",ANY={dir},kept=x"))
	page := testkit.Value(p.measure(t.Context()))(t)
	testkit.Equal(t, len(page.Tables), 4, "storms")
	for _, table := range page.Tables {
		checkCells(t, table, 3)
		for i, want := range [][]string{{"empty", "–"}, {"ours, gpu", "100.0 %"}, {"another", "0.0 %"}} {
			row := table.Rows[i]
			ours := i == 1
			testkit.Check(t, row[0] == want[0] && row[11] == want[1] && (row[10] != "0") == ours &&
				(row[4] != none) == ours, "%s, row %d: %q", table.Title, i, row)
		}
		testkit.Equal(t, table.Rows[0][2], "1.000", "the empty plugin's ratio to itself")
	}
}

// A process and its collector are seen with their memory, and the collector is waited for.
func TestCollectorIsWatched(t *testing.T) {
	host := newHost(t, "").host
	testkit.Must(t, adopt())
	r, release, err := host.Idle(t.Context(), host.Plugin,
		[]string{"NCCL_OTF2_DIR=" + t.TempDir(), "NCCL_OTF2_UNIFY=off"})
	testkit.Must(t, err)
	var seen stormRun
	testkit.Check(t, seen.look(r.PID()) && seen.job > 0 && seen.collector > 0, "%+v", seen)
	testkit.Must(t, release())
	spent, err := reap()
	testkit.Check(t, err == nil && spent > 0, "%v %v", spent, err)
}

func TestPage(t *testing.T) {
	for v, want := range map[float64]string{0: "0.00", 9.994: "9.99", 12.34: "12.3", -45.67: "-45.7", 1e6: "1000000"} {
		testkit.Equal(t, digits(v), want, "%v", v)
	}
	p := Page{Heading: "a machine", Notes: []string{"slow"}, Tables: []*Table{
		{Columns: []string{"case", "ns"}, Rows: [][]string{{"write", "9.5"}}, Figures: true},
		{Columns: []string{"case", "aim"}, Rows: [][]string{{"start", "–"}}, Title: "Start"}}}
	testkit.Equal(t, p.Text(),
		"a machine\n\ncase   ns\nwrite  9.5\n\nStart\ncase   aim\nstart  –\n\nnote: slow\n", "text")
	markdown := "a machine\n\n| case | ns |\n|---|--:|\n| write | 9.5 |\n\n**Start**\n\n| case | aim " +
		"|\n|---|---|\n| start | – |\n\nslow.\n"
	testkit.Equal(t, p.Markdown(), markdown, "Markdown")
	page := filepath.Join(t.TempDir(), "page.md")
	const others = "a\n<!-- other:begin -->\nstays\n<!-- other:end -->\n" +
		"<!-- table:begin -->\n%s\n<!-- table:end -->\nb\n"
	testkit.Write(t, page, []byte(strings.Replace(others, "%s", "old", 1)))
	testkit.Equal(t, testkit.Value(splice(page, "table", "new\n"))(t), strings.Replace(others, "%s", "new", 1), "page")
	testkit.Write(t, page, []byte("a\n<!-- table:end -->\n<!-- table:begin -->\n"))
	_, err := splice(page, "table", "new")
	testkit.Check(t, err != nil, "a page with markers in the wrong order was accepted")
}
