// SPDX-License-Identifier: Apache-2.0

// Command node measures what a node's collectors take, one beside each of its processes as jobs have them, against one
// program that does the work of all of them, each in a goroutine.
//
//	go run ./tests/bench/node                                  tables
//	go run ./tests/bench/node --update docs/performance.md     puts them into that page
//
// It needs what `make build` makes, and a C compiler. Of itself it starts a program for the node, and a small one
// beside each process, which hands the process's memory to it and is not counted.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nccl-otf2/nccl-otf2/tests/bench/caller"
	"github.com/nccl-otf2/nccl-otf2/tests/bench/measure"
)

func main() {
	if beside() {
		return
	}
	b := new(bench)
	flag.IntVar(&b.processes, "processes", 8, "`number` of processes of the node")
	flag.IntVar(&b.operations, "operations", 200, "`number` of operations of each in a second; 190 callbacks each")
	flag.Float64Var(&b.seconds, "seconds", 6, "how long each runs")
	flag.IntVar(&b.rounds, "rounds", 3, "`number` of times that both run, one after the other")
	root, build := flag.String("root", ".", "`folder` of the repository"),
		flag.String("build", "build", "`folder` with what make build makes")
	measure.NewCommand("node", "what is recorded, about 1 GB").Run(
		func() bool { return b.processes > 0 && b.rounds > 0 },
		func(ctx context.Context, dir string) (measure.Findings, error) {
			var err error
			if b.host, err = caller.Build(*root, *build, dir); err != nil {
				return nil, err
			}
			b.dir = dir
			return b.run(ctx)
		})
}

// beside does what this program is started for by itself, or by the plugin, if it is.
func beside() bool {
	socket := os.Getenv(socketVariable)
	switch {
	case socket != "" && len(os.Args) == 4 && os.Args[1] == "collect":
		measure.ExitOn(handOver(socket, os.Args[3]))
	case len(os.Args) == 3 && os.Args[1] == "serve":
		measure.ExitOn(serve(os.Args[2]))
	default:
		return false
	}
	return true
}

// cost is what all collectors of a run took together.
type cost struct {
	Processor float64 `json:"processor_s"`    // from their start to their end
	Memory    float64 `json:"memory_mib"`     // proportional, without rings, the most
	Rings     float64 `json:"rings_mib"`      // resident in all collectors together, the most
	Threads   float64 `json:"threads"`        // the most
	Init      float64 `json:"init_ms"`        // of the processes' first communicators, the mean
	Finalize  float64 `json:"finalize_ms"`    // of the last one, the mean
	Lost      float64 `json:"lost_callbacks"` // of all
}

// figures are the rows of the table.
var figures = []struct {
	name string
	of   func(c *cost) float64
}{
	{"processor of all collectors, s", func(c *cost) float64 { return c.Processor }},
	{"their memory without rings (proportional), the most, MiB", func(c *cost) float64 { return c.Memory }},
	{"rings that they have mapped and touched, the most, MiB", func(c *cost) float64 { return c.Rings }},
	{"threads, the most", func(c *cost) float64 { return c.Threads }},
	{"a process's first communicator, ms", func(c *cost) float64 { return c.Init }},
	{"its last finalize, ms", func(c *cost) float64 { return c.Finalize }},
	{"callbacks lost", func(c *cost) float64 { return c.Lost }},
}

// result is of all rounds.
type result struct {
	Machine   string `json:"machine"`
	Processes int    `json:"processes"`
	Rate      int    `json:"operations_per_second"`
	Rounds    int    `json:"rounds"`
	Each      []cost `json:"one_each"`
	Node      []cost `json:"one_for_the_node"`
}

func median(all []cost, of func(c *cost) float64) float64 {
	var v []float64
	for i := range all {
		v = append(v, of(&all[i]))
	}
	slices.Sort(v)
	return v[len(v)/2]
}

// Page is the table.
func (r *result) Page() *measure.Page {
	t := measure.Table{Columns: []string{"of the node", "one for each process", "one for the node", "ratio"},
		Figures: true}
	for _, f := range figures {
		each, node := median(r.Each, f.of), median(r.Node, f.of)
		ratio := "–"
		if each > 0 {
			ratio = measure.Digits(node / each)
		}
		t.Rows = append(t.Rows, []string{f.name, measure.Digits(each), measure.Digits(node), ratio})
	}
	return &measure.Page{Heading: fmt.Sprintf(
		"%s; %d processes, each with %d operations a second; medians of %d alternating rounds", r.Machine, r.Processes,
		r.Rate, r.Rounds), Tables: []measure.Table{t}}
}

type bench struct {
	host       *caller.Host
	dir        string
	processes  int
	operations int
	seconds    float64
	rounds     int
}

func (b *bench) run(ctx context.Context) (*result, error) {
	r := &result{Machine: measure.Machine(), Processes: b.processes, Rate: b.operations, Rounds: b.rounds}
	for range b.rounds {
		each, err := b.each(ctx)
		if err != nil {
			return nil, fmt.Errorf("one for each process: %w", err)
		}
		node, err := b.node(ctx)
		if err != nil {
			return nil, fmt.Errorf("one for the node: %w", err)
		}
		r.Each, r.Node = append(r.Each, *each), append(r.Node, *node)
		fmt.Fprintf(os.Stderr, "%+v\n%+v\n", *each, *node)
	}
	return r, nil
}

// job runs the node's processes, and looks at their collectors meanwhile, which find gives.
func (b *bench) job(ctx context.Context, settings []string, w *watch) (*cost, error) {
	dir, err := os.MkdirTemp(b.dir, "run-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	settings = append(settings, "NCCL_OTF2_DIR="+dir, "NCCL_OTF2_EVENTS=net", "NCCL_OTF2_UNIFY=off",
		"NCCL_OTF2_START_LIMIT=60")
	w.begin()
	runs := make([]*caller.Run, b.processes)
	for i := range runs {
		runs[i], err = b.host.Start(ctx, b.host.Plugin, settings, "job", 1, 0, 1, b.operations, b.seconds, 0)
		if err != nil {
			return nil, err
		}
		w.job(runs[i].PID())
	}
	c := new(cost)
	var calls uint64
	for _, run := range runs {
		var j caller.Job
		if log, err := run.Wait(&j); err != nil || log != "" {
			return nil, fmt.Errorf("%s: %w", strings.TrimSpace(log), err)
		}
		calls += j.Calls()
		c.Init += j.Init / 1e6 / float64(b.processes)
		c.Finalize += j.Finalize / 1e6 / float64(b.processes)
	}
	recorded, err := caller.Await(ctx, dir, b.processes)
	if err != nil {
		return nil, err
	}
	if recorded.Calls+recorded.Lost != calls {
		return nil, fmt.Errorf("%d callbacks were recorded and %d lost, of %d", recorded.Calls, recorded.Lost, calls)
	}
	c.Lost = float64(recorded.Lost)
	time.Sleep(100 * time.Millisecond) // a shard is done a little before its collector
	return c, w.end(c)
}

// each is a run with a collector for each process.
func (b *bench) each(ctx context.Context) (*cost, error) {
	return b.job(ctx, nil, &watch{each: true})
}
