// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/realnccl/suite"
)

// disturbed is a program that is run with a disturbance and without: what stands in braces, and variables. Its first
// sleep:0 marks where the steady part begins.
type disturbed struct {
	name, options, program string
	with                   []string // variables that disturb
	events                 string   // that are recorded, as NCCL_OTF2_EVENTS; "": gpu
	ranks                  string   // that disturb; the ends of a link
	silent                 bool     // nobody waits for them: only the gain is looked at
}

// Stages work on what they have received from the stage before, and send it on.
const (
	alone    = "!0?[ recv:1000:-1 sync ] work:20 %s !3?[ send:1000:+1 sync ]"
	replicas = "4*[ !0,1?[ recv:1000:-2 sync ] work:20 %s !6,7?[ send:1000:+2 sync ] ] comm:1 ar:1000 sync comm:0"
	connect  = "csplit:0:d2 ar:1000 comm:1 ar:1000 comm:0 "
	pieces   = "4*[ !0,1?[ recv:1000:-2 sync ] work:20 %s !2,3?[ send:1000:+2 sync ] ] comm:1 ar:1000 sync comm:0"
	begun    = "ar:1000 sync "
	steady   = begun + "sleep:0 "
	together = steady + "20*[ work:20 %s ar:1000 sync ]"
	shifted  = "pair:20000:0:1 pair:20000:1:2 pair:20000:2:3 pair:20000:3:0 sync "
	sockets  = "-n 4 NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1"
)

var disturbances = []disturbed{
	{name: "a late rank", options: "-n 4", program: late(together, "2?[ {work:50} ]"), ranks: "2"},
	{name: "two ranks, late together", options: "-n 5", program: late(together, "1,3?[ {work:50} ]"), ranks: "1 3"},
	{name: "from one rank to another", options: "-n 4", program: late(together, "1?[ {work:50} ]") +
		late("20*[ work:20 %s ar:1000 sync ]", "3?[ {work:50} ]"), ranks: "1 3"},
	{name: "after all others have worked once", options: "-n 4", program: steady + "!2?[ work:400 ] ar:1000 sync " +
		late("30*[ work:20 %s ar:1000 sync ]", "2?[ {work:40} ]"), ranks: "2"},
	{name: "a stage of four", options: "-n 4", program: stages(alone, 24, "2?[ {work:40} ]"), ranks: "2"},
	{name: "the first stage", options: "-n 4", program: stages(alone, 24, "0?[ {work:40} ]"), ranks: "0"},
	{name: "the last stage, 8 times", options: "-n 4", program: stages(alone, 8, "3?[ {work:80} ]"), ranks: "3",
		silent: true},
	{name: "a stage with two replicas", options: "-n 8", program: connect + stages(replicas, 8, "4,5?[ {work:40} ]"),
		ranks: "4 5"},
	{name: "one replica of a stage", options: "-n 8", program: connect + stages(replicas, 8, "4?[ {work:40} ]"),
		ranks: "4"},
	{name: "one replica of two stages", options: "-n 4", program: connect +
		stages(pieces, 8, "1,3?[ {work:40} ]"), ranks: "1 3"},
	{name: "between sharded parameters", options: "-n 4", program: "ag:20000 rs:20000 sync sleep:0 12*[ 3*[ ag:20000 " +
		"work:10 2?[ {work:30} ] ] sync 3*[ work:10 rs:20000 ] sync ]", ranks: "2"},
	{name: "before a Reduce", options: "-n 4", program: "rd:1000:0 bc:1000:0 sync sleep:0 15*[ work:10 2?[ {work:40} ] " +
		"rd:1000:0 sync work:10 bc:1000:0 sync ]", ranks: "2"},
	{name: "a GPU, every second time", options: "-n 4", program: late(together, ""),
		with: []string{"REALNCCL_SLOW=1:start:80000:2"}, ranks: "1"},
	{name: "a GPU that moves data slowly", options: sockets, events: "net",
		program: steady + "20*[ work:5 ar:20000 sync ]", with: []string{"REALNCCL_SLOW=1:slice:10000:1"}, ranks: "1"},
	{name: "a slow link", options: sockets, events: "net", program: steady + "20*[ work:5 ar:20000 sync ]",
		with: []string{"SHAPE_FROM=1", "SHAPE_KBPS=2000"}, ranks: "1 2"},
	{name: "a slow link, messages", options: sockets, events: "net", program: begun + shifted + "sleep:0 8*[ " + shifted + "]",
		with: []string{"SHAPE_FROM=1", "SHAPE_KBPS=2000"}, ranks: "1 2"},
	{name: "a slow link, shifts", options: sockets, events: "net", program: begun + "sr:20000 sync " +
		"sleep:0 8*[ work:5 sr:20000 sync ]", with: []string{"SHAPE_FROM=1", "SHAPE_KBPS=2000"}, ranks: "1 2"},
	{name: "a slow link, shifts and sums", options: sockets, events: "net", program: begun + "sr:20000 sync " +
		"sleep:0 8*[ work:5 sr:20000 ar:1000 sync ]", with: []string{"SHAPE_FROM=1", "SHAPE_KBPS=2000"}, ranks: "1 2"},
}

func late(program, by string) string { return fmt.Sprintf(program, by) }

// stages goes through a pipeline once to connect it, and then a number of times.
func stages(program string, times int, by string) string {
	return late(program, "") + " sync sleep:0 " + fmt.Sprintf("%d*[ %s ] sync", times, late(program, by))
}

// What a run would gain without what made ranks wait, according to its report, is what it gains inside the real NCCL:
// by how much shorter it is without the disturbance, in three runs each. It may be off by a tenth, or by as much as
// these runs differ.
func TestRealNCCLGains(t *testing.T) {
	if *realBeds == "" || *realShort {
		t.Skip("NOT CHECKED here: `make real-nccl` compares gains with runs inside the real NCCL")
	}
	wanted := testkit.Value(regexp.Compile(*realPrograms))(t)
	dir, _, _ := strings.Cut(*realBeds, ":")
	bed := testkit.Value(suite.Open(dir))(t)
	table := "\n| late or slow | named | longer by | from run to run | gain |\n|---|---|--:|--:|--:|\n"
	for i := range disturbances {
		if d := &disturbances[i]; wanted.MatchString("gains/" + d.name) {
			t.Run(d.name, func(t *testing.T) { table += d.row(t, bed) })
		}
	}
	fmt.Print(table)
	if golden.Updating() {
		golden.SectionMadeBy(t, "../docs/answers.md", "gains", "make real-nccl", table+"\n")
	}
}

// row compares the gains that reports state with the truth.
func (d *disturbed) row(t *testing.T, bed *suite.Bed) string {
	var with, without, gains [3]int64
	named := ""
	for i := range gains {
		r := d.run(t, bed, i, true)
		without[i], with[i] = d.run(t, bed, i, false).span(), r.span()
		var a gainAnswer
		out := testkit.Output(t, exec.Command(builtFile(t, "nccl-otf2"), "report", "--format", "json", r.directory()))
		testkit.Must(t, json.Unmarshal(out, &a))
		named = a.named()
		for _, w := range a.Path.WhatIf {
			if all(w) == d.ranks {
				gains[i] = max(gains[i], w.Gain)
			}
		}
		testkit.Check(t, d.silent || named == d.ranks, "names %q, want %q: %s", named, d.ranks, a.Verdict.Text)
	}
	truth, gain := mean(with)-mean(without), mean(gains)
	spread := slices.Max(with[:]) - slices.Min(with[:]) + slices.Max(without[:]) - slices.Min(without[:])
	t.Logf("spans with %v ns, without %v ns; gains %v ns", with, without, gains)
	testkit.Check(t, max(gain-truth, truth-gain) <= max(truth/10, spread), "gain %d ns, in truth %d ns ± %d ns", gain,
		truth, spread)
	ms := func(ns int64) string { return fmt.Sprint((ns+5e5)/1e6, " ms") }
	return fmt.Sprintf("| %s | %s | %s | %s | %s |\n", d.name, cmp.Or(named, "nobody"), ms(truth), ms(spread), ms(gain))
}

func mean(all [3]int64) int64 { return (all[0] + all[1] + all[2]) / 3 }

// run runs the program under the plugin, and makes the archive.
func (d *disturbed) run(t *testing.T, bed *suite.Bed, round int, disturb bool) *realRun {
	t.Helper()
	p := &suite.Program{Text: regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(d.program, ""), Seconds: 300,
		Env: []string{"NCCL_ALLGATHERV_ENABLE=0", "LD_PRELOAD=" + filepath.Join(bed.Dir, "libshape.so")}}
	if disturb {
		p.Text, p.Env = strings.NewReplacer("{", "", "}", "").Replace(d.program), append(p.Env, d.with...)
	}
	for word := range strings.FieldsSeq(d.options) {
		p.Mark(word)
	}
	r := &realRun{t: t, bed: bed, program: p, way: cmp.Or(d.events, "gpu"), dir: t.TempDir()}
	if *realKeep != "" {
		r.dir = filepath.Join(*realKeep, strings.ReplaceAll(d.name, " ", "-"), fmt.Sprint(round, "-", disturb))
	}
	r.play()
	testkit.Require(t, r.result.Says() == "ok", "%s: %s", r.result.Says(), tail(r.result.Output))
	unified(t, r.directory())
	return r
}

// span is the time from the begin of the steady part to the end of the last kernel, ns.
func (r *realRun) span() int64 {
	begin, end := uint64(math.MaxUint64), uint64(0)
	for _, p := range testkit.Value(suite.Logs(r.logs()))(r.t) {
		for _, d := range p.Delays {
			if d.Kind == "host sleep" {
				begin = min(begin, d.T1)
			}
		}
		for _, k := range p.Kernels {
			end = max(end, k.T1)
		}
	}
	return int64(end - begin)
}

// gainAnswer is what is looked at in a report.
type gainAnswer struct {
	Verdict struct {
		Text     string
		Culprits []concerned
		Set      *concerned
	}
	Path struct {
		WhatIf []concerned `json:"what_if"`
	} `json:"critical_path"`
}

// concerned is a rank, a set or a link.
type concerned struct {
	Rank  int
	Ranks []int
	Peer  *int
	Gain  int64 `json:"gain_ns"`
}

// all gives the ranks that some things concern, in order.
func all(of ...concerned) string {
	var ranks []int
	for i := range of {
		c := &of[i]
		if ranks = append(ranks, c.Ranks...); len(c.Ranks) == 0 {
			ranks = append(ranks, c.Rank)
		}
		if c.Peer != nil {
			ranks = append(ranks, *c.Peer)
		}
	}
	slices.Sort(ranks)
	return strings.Trim(fmt.Sprint(ranks), "[]")
}

// named gives the ranks that a verdict names; "" for none.
func (a *gainAnswer) named() string {
	if a.Verdict.Set != nil {
		return all(*a.Verdict.Set)
	}
	return all(a.Verdict.Culprits...)
}
