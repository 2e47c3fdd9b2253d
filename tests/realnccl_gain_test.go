// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/realnccl/suite"
)

// disturbed is a program that is run with a disturbance and without. What stands in braces is the disturbance, as are
// the variables; sleep:0 marks where the steady part begins.
type disturbed struct {
	name, options, program string
	with                   []string // variables that disturb
	events                 string   // preset; "": gpu
	ranks                  []int    // to be named; of a link, its sender first
}

// In these pipelines each stage works on what it has received from the one before, and sends it on.
const (
	pipeline  = "!0?[ recv:1000:-1 sync ] work:20 %s !3?[ send:1000:+1 sync ]"
	ofTwo     = "!0,1?[ recv:1000:-2 sync ] work:20 %s !6,7?[ send:1000:+2 sync ]"
	warmWorld = "ar:1000 sync sleep:0 "
	byWire    = "NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1"
)

var disturbances = []disturbed{
	{name: "a late rank", options: "-n 4", program: warmWorld + "24*[ work:20 2?[ {work:30} ] ar:1000 sync ]",
		ranks: []int{2}},
	{name: "two ranks late together", options: "-n 5",
		program: warmWorld + "24*[ work:20 1,3?[ {work:30} ] ar:1000 sync ]", ranks: []int{1, 3}},
	{name: "a late stage of four", options: "-n 4", program: stagesOf(pipeline, 24, "2?[ {work:30} ]"),
		ranks: []int{2}},
	{name: "a late first stage", options: "-n 4", program: stagesOf(pipeline, 24, "0?[ {work:30} ]"),
		ranks: []int{0}},
	{name: "a late last stage, 8 times", options: "-n 4", program: stagesOf(pipeline, 8, "3?[ {work:30} ]"),
		ranks: []int{3}},
	{name: "both replicas of a stage", options: "-n 8", program: "csplit:0:d2 ar:1000 comm:1 ar:1000 comm:0 " +
		stagesOf("4*[ "+ofTwo+" ] comm:1 ar:1000 sync comm:0", 8, "4,5?[ {work:30} ]"), ranks: []int{4, 5}},
	{name: "one replica of a stage", options: "-n 8", program: "csplit:0:d2 ar:1000 comm:1 ar:1000 comm:0 " +
		stagesOf("4*[ "+ofTwo+" ] comm:1 ar:1000 sync comm:0", 8, "4?[ {work:30} ]"), ranks: []int{4}},
	{name: "a cause that moves", options: "-n 4", program: warmWorld +
		"15*[ work:10 1?[ {work:30} ] ar:1000 sync ] 15*[ work:10 3?[ {work:30} ] ar:1000 sync ]", ranks: []int{1, 3}},
	{name: "late after all others have worked once", options: "-n 4", program: warmWorld +
		"!2?[ work:300 ] ar:1000 sync 24*[ work:20 2?[ {work:30} ] ar:1000 sync ]", ranks: []int{2}},
	{name: "a GPU that begins late", options: "-n 4", program: warmWorld + "24*[ work:20 ar:1000 sync ]",
		with: []string{"REALNCCL_SLOW=1:start:40000:2"}, ranks: []int{1}},
	{name: "a GPU that works slowly", options: "-n 4 " + byWire, events: "net",
		program: warmWorld + "30*[ work:5 ar:20000 sync ]", with: []string{"REALNCCL_SLOW=1:slice:6000:1"}, ranks: []int{1}},
	{name: "a slow link", options: "-n 4 " + byWire, events: "net",
		program: warmWorld + "20*[ work:5 ar:20000 sync ]", with: []string{"SHAPE_FROM=1", "SHAPE_KBPS=4000"}, ranks: []int{1, 2}},
}

func stagesOf(body string, times int, late string) string {
	return fmt.Sprintf(body, "") + " sync sleep:0 " + fmt.Sprintf("%d*[ %s ] sync", times, fmt.Sprintf(body, late))
}

const gainRounds = 3

// What a report says that the run would gain is what it gains inside the real NCCL.
func TestRealNCCLGains(t *testing.T) {
	if *realBeds == "" {
		t.Skip("NOT CHECKED here: `make real-nccl` runs programs inside the real NCCL")
	}
	dir, _, _ := strings.Cut(*realBeds, ":")
	bed := testkit.Value(suite.Open(dir))(t)
	wanted := testkit.Value(regexp.Compile(*realPrograms))(t)
	table := "| disturbance | named | in truth | from run to run | gain |\n|---|---|--:|--:|--:|\n"
	for i := range disturbances {
		if d := &disturbances[i]; wanted.MatchString("gains/" + d.name) {
			t.Run(d.name, func(t *testing.T) { table += d.row(t, bed) })
		}
	}
	fmt.Print(table)
	if golden.Updating() {
		golden.SectionMadeBy(t, "../docs/answers.md", "gains inside the real NCCL", "make real-nccl", table)
	}
}

// answered is what a report says of a run, as far as it is looked at here.
type answered struct {
	Verdict struct {
		Text     string
		Culprits []struct {
			Rank int
			Peer *int
			Kind string
		}
		Set *struct{ Ranks []int }
	}
	CriticalPath struct {
		WhatIf []struct {
			Change string
			Rank   int
			Ranks  []int
			Peer   *int
			Gain   int64 `json:"gain_ns"`
			Least  int64 `json:"least_ns"`
		} `json:"what_if"`
	} `json:"critical_path"`
}

// named gives the ranks that the verdict names, in order, and the gain without what it names.
func (a *answered) named() (ranks []int, gain int64) {
	if a.Verdict.Set != nil {
		ranks = a.Verdict.Set.Ranks
	} else {
		for _, c := range a.Verdict.Culprits {
			ranks = append(ranks, c.Rank)
			if c.Peer != nil {
				ranks = append(ranks, *c.Peer)
			}
		}
	}
	slices.Sort(ranks)
	for _, w := range a.CriticalPath.WhatIf {
		all := slices.Clone(w.Ranks)
		if len(all) == 0 {
			all = append(all, w.Rank)
			if w.Peer != nil {
				all = append(all, *w.Peer)
			}
		}
		if slices.Sort(all); slices.Equal(all, ranks) {
			gain = max(gain, w.Gain)
		}
	}
	return ranks, gain
}

// row runs the program with the disturbance and without, in turn, and compares the difference with the gains.
func (d *disturbed) row(t *testing.T, bed *suite.Bed) string {
	var with, without, gains []int64
	name := ""
	for round := range gainRounds {
		r := d.run(t, bed, round, true)
		with = append(with, r.span())
		var a answered
		out := testkit.Output(t, exec.Command(builtFile(t, "nccl-otf2"), "report", "--format", "json", r.directory()))
		testkit.Must(t, json.Unmarshal(out, &a))
		ranks, gain := a.named()
		gains, name = append(gains, gain), strings.Trim(fmt.Sprint(ranks), "[]")
		testkit.Check(t, slices.Equal(ranks, d.ranks), "names %v, want %v: %s", ranks, d.ranks, a.Verdict.Text)
		t.Logf("%s", a.Verdict.Text)
		without = append(without, d.run(t, bed, round, false).span())
	}
	t.Log(with, without, gains)
	truth, gain := mean(with)-mean(without), mean(gains)
	spread := slices.Max(with) - slices.Min(with) + slices.Max(without) - slices.Min(without)
	testkit.Check(t, max(gain-truth, truth-gain) <= max(truth/10, spread), "gain %d ns, in truth %d ± %d", gain, truth,
		spread)
	ms := func(ns int64) string { return time.Duration(ns).Round(time.Millisecond).String() }
	return fmt.Sprintf("| %s | %s | %s | %s | %s |\n", d.name, name, ms(truth), ms(spread), ms(gain))
}

func mean(all []int64) (sum int64) {
	for _, v := range all {
		sum += v
	}
	return sum / int64(len(all))
}

func (d *disturbed) run(t *testing.T, bed *suite.Bed, round int, disturb bool) *realRun {
	t.Helper()
	p := &suite.Program{Text: strings.NewReplacer("{", "", "}", "").Replace(d.program), Seconds: 120}
	if !disturb {
		p.Text = regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(d.program, "")
	}
	for word := range strings.FieldsSeq(d.options) {
		if strings.HasPrefix(word, "NCCL_") {
			p.Env = append(p.Env, word)
		} else {
			p.Args = append(p.Args, word)
		}
	}
	if disturb {
		p.Env = append(p.Env, d.with...)
	}
	p.Env = append(p.Env, "NCCL_ALLGATHERV_ENABLE=0", "LD_PRELOAD="+filepath.Join(bed.Dir, "libshape.so"))
	way := d.events
	if way == "" {
		way = "gpu"
	}
	dir := t.TempDir()
	if *realKeep != "" {
		dir = filepath.Join(*realKeep, strings.ReplaceAll(d.name, " ", "-"), fmt.Sprint(round, disturb))
	}
	r := &realRun{t: t, bed: bed, program: p, way: way, dir: dir}
	r.play()
	testkit.Require(t, r.result.Says() == "ok", "%s: %s", r.result.Says(), r.result.Output)
	unified(t, r.directory())
	return r
}

// span is the time from where the steady part begins to the end of the last kernel, ns.
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
