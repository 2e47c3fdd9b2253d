// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/export/tracetest"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// lightRun makes a run of two ranks as preset light records it: of its operations only the enqueueing is known, and
// took so many nanoseconds.
func lightRun(t *testing.T, took uint64) string {
	t.Helper()
	const ms = 1_000_000
	return filepath.Dir(jobtest.Make(t, 2, 2, func(r int, p *shardtest.Process) {
		begin, world := uint64(shardtest.Epoch+1*ms), p.World()
		event, called := uint64(1000*(r+1)), uint64(0)
		op := func(function string, at uint64) shardtest.Op {
			event++
			called = max(called+20_000, at-300_000)
			p.CallFor("nccl"+function, event, called, called+10_000)
			return shardtest.Op{Function: function, Begin: at, End: at + took, Count: 100, Source: "enqueue",
				Parent: event}
		}
		for i := range uint64(30) {
			at := begin + i*10*ms + uint64(r)*ms
			p.Collective(world, op("AllReduce", at))
			p.Plan(world, []shardtest.Op{op("AllGather", at+3*ms), op("ReduceScatter", at+3*ms)})
			p.Plan(world, []shardtest.Op{op("AllGather", at+6*ms), op("AllGather", at+6*ms)})
		}
		last := op("AllReduce", begin+350*ms)
		last.End = last.Begin + 50_000 // so that both end together
		p.Collective(world, last)
		p.Destroy(world, begin+400*ms)
	}))
}

// product is what the tool makes of an archive: what it prints, or the file that it writes.
type product struct {
	args []string
	file string // "": standard output
	read func(t *testing.T, text string) []any
}

// products are those that have times of operations. OUT is a folder for files. What the page has is looked at in
// package timeline, and Parquet's tables, which have a column timing_source, in package export.
func products() (all []product) {
	forms := map[string]func(*testing.T, string) []any{"table": lines, "markdown": lines, "csv": tables,
		"json": documents}
	for form, read := range forms {
		all = append(all, product{[]string{"report", "DIR", "--format", form}, "", read})
		for _, section := range []string{"--waits", "--path", "--tally", "--matrix", "--nccl-tests", "--overlap"} {
			all = append(all, product{[]string{"report", "DIR", section, "--format", form}, "", read})
		}
		all = append(all, product{[]string{"diff", "DIR", "DIR", "--format", form}, "", read})
	}
	return append(all,
		product{[]string{"report", "DIR", "--svg", "-"}, "", lines},
		product{[]string{"profile", "DIR", "-o", "OUT/p.cubex"}, "", lines},
		product{[]string{"profile", "DIR", "-o", "OUT/q.cubex", "--summary", "OUT/summary.json"}, "OUT/summary.json",
			documents},
		product{[]string{"print", "--cube", "OUT/p.cubex"}, "", lines},
		product{[]string{"export", "--perfetto", "DIR", "-o", "OUT/run.pftrace"}, "OUT/run.pftrace", slicesOf},
		product{[]string{"export", "--jsonl", "DIR", "-o", "OUT/jsonl"}, "OUT/jsonl/*", documents},
		product{[]string{"export", "--prometheus", "DIR", "-o", "-"}, "", lines},
		product{[]string{"top", "--once", "DIR"}, "", lines},
		product{[]string{"top", "--once", "DIR", "--format", "json"}, "", documents},
	)
}

// make runs the tool.
func (p *product) make(t *testing.T, dir string) []any {
	t.Helper()
	place := strings.NewReplacer("DIR", dir, "OUT", filepath.Dir(dir))
	var args []string
	for _, a := range p.args {
		args = append(args, place.Replace(a))
	}
	text := tool(t, args...)
	if p.file != "" {
		text = ""
		files, err := filepath.Glob(place.Replace(p.file))
		testkit.Require(t, err == nil && len(files) != 0, "%v %v", p.args, err)
		for _, file := range files {
			b := testkit.Value(os.ReadFile(file))(t)
			text += string(b)
		}
	}
	testkit.Require(t, text != "", "%v gives nothing", p.args)
	return p.read(t, strings.ReplaceAll(text, dir, "DIR"))
}

// lines are those of text for people. What stands in a part below a heading has that in front of it.
func lines(_ *testing.T, text string) (all []any) {
	heading := ""
	for line := range strings.Lines(text) {
		if strings.Contains(line, `"OPERATIONS`) || strings.Contains(line, `"NCCL`) {
			heading, _, _ = strings.Cut(line, ":")
		}
		if strings.HasPrefix(line, "     ") && strings.Contains(line, `": `) { // below it in a tree of CUBE
			line = heading + line
		}
		all = append(all, line)
	}
	return all
}

// tables are rows of CSV, by the heads of their columns.
func tables(t *testing.T, text string) (all []any) {
	r := csv.NewReader(strings.NewReader(text))
	r.FieldsPerRecord = -1
	rows := testkit.Value(r.ReadAll())(t)
	var heads []string
	for _, row := range rows {
		if row[0] == "table" {
			heads = row
			continue
		}
		one := make(map[string]any)
		for i := range min(len(row), len(heads)) {
			one[heads[i]] = row[i]
		}
		all = append(all, one)
	}
	return all
}

func documents(t *testing.T, text string) (all []any) {
	d := json.NewDecoder(strings.NewReader(text))
	for {
		var one any
		err := d.Decode(&one)
		if errors.Is(err, io.EOF) {
			return all
		}
		testkit.Require(t, err == nil, "%v in %.200s", err, text)
		all = append(all, one)
	}
}

// slicesOf are the slices and the values of counters in a trace in Perfetto's format.
func slicesOf(t *testing.T, text string) (all []any) {
	trace := testkit.Value(tracetest.Read([]byte(text)))(t)
	for _, s := range trace.Slices {
		all = append(all, map[string]any{"track": strings.Join(trace.Path(s.Track), "/"), "name": s.Name,
			"begin": s.Begin, "end": s.End, "args": s.Args})
	}
	for _, v := range trace.Counters {
		all = append(all, map[string]any{"track": strings.Join(trace.Path(v.Track), "/"), "time": v.Time,
			"value": v.Value})
	}
	return all
}

// labeled reports whether an object says that its times are of enqueueing.
func labeled(o map[string]any) bool {
	for _, name := range []string{"timing_source", "timingSource"} {
		if o[name] == "enqueue" {
			return true
		}
	}
	for _, name := range []string{"args", "details"} {
		if inner, ok := o[name].(map[string]any); ok && labeled(inner) {
			return true
		}
	}
	n, isNumber := o["launched_only_ns"].(float64)
	text, isText := o["launched_only_ns"].(string)
	return o["launched_only"] == true || o["launched_only"] == "true" || isNumber && n > 0 || isText && text != "0"
}

// unlabeled finds where two forms of a product differ without saying why.
func unlabeled(at string, a, b any) (all []string) {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			return []string{at}
		}
		if labeled(x) && labeled(y) {
			return nil
		}
		for name, v := range x {
			if name == "time" || name == "age_ns" { // of looking
				continue
			}
			all = append(all, unlabeled(at+"."+name, v, y[name])...)
		}
		return all
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return []string{fmt.Sprintf("%s: %v\n%v", at, a, b)}
		}
		for i := range x {
			all = append(all, unlabeled(fmt.Sprintf("%s[%d]", at, i), x[i], y[i])...)
		}
		return all
	case string:
		y, ok := b.(string)
		said := func(s string) bool {
			return strings.Contains(s, "launch only") || strings.Contains(strings.ToLower(s), "enqueue")
		}
		if ok && (x == y || said(x) && said(y)) {
			return nil
		}
		// Columns are as wide as what stands in them.
		if ok && slices.Equal(strings.Fields(x), strings.Fields(y)) {
			return nil
		}
	case float64:
		if y, ok := b.(float64); ok && math.Abs(x-y) <= 1e-9*math.Abs(x) { // sums in another order
			return nil
		}
	default:
		if a == b {
			return nil
		}
	}
	return []string{fmt.Sprintf("%s:\n%v\n%v", at, a, b)}
}

// Two runs of preset light differ in nothing but how long enqueueing took. Where a product shows that, it says what it
// is.
func TestNoTimeOfEnqueueingIsTakenForTheOperations(t *testing.T) {
	short, long := lightRun(t, 123_000), lightRun(t, 777_000)
	for _, p := range products() {
		a, b := p.make(t, short), p.make(t, long)
		for _, difference := range unlabeled("", a, b) {
			t.Errorf("%v: %s", p.args, difference)
		}
	}
	seen := func(want string, args ...string) { testkit.Contains(t, tool(t, append(args, short)...), want) }
	seen("The critical path is not known: the duration of 182 launches was not recorded", "report", "--path")
	seen("Total (launch only)", "report", "--tally")
	seen("enqueue: it is known when", "diff", long)
}
