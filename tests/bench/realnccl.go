// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/stats"
	"github.com/nccl-otf2/nccl-otf2/tests/bench/caller"
)

// realNCCL measures what plugins cost a job on the real NCCL library, whose GPUs are emulated, against no plugin and an
// empty one that asks for the same events.
type realNCCL struct {
	*bench
	bed, program  string
	ranks         int
	operations    int
	communicators int
	plugins       plugins
}

func prepareRealNCCL(b *bench, flags *flag.FlagSet) func(context.Context) (*Page, error) {
	b.scale = 1
	r := &realNCCL{bench: b}
	flags.IntVar(&b.rounds, "rounds", 5, "`number` of times that each case runs")
	flags.StringVar(
		&r.bed, "bed", "",
		"`folder` with libnccl.so.2 and the stand-in of the CUDA runtime (default the first in build/realnccl/beds)")
	flags.IntVar(&r.ranks, "ranks", 2, "`number` of ranks, each a process")
	flags.IntVar(&r.operations, "operations", 4000, "`number` of operations in the loop")
	flags.IntVar(&r.communicators, "communicators", 16, "`number` of communicators whose first operations are measured")
	flags.Var(&r.plugins, "plugin", pluginUsage+"; then the default preset alone is run beside")
	return func(ctx context.Context) (*Page, error) {
		if err := r.prepare(); err != nil {
			return nil, err
		}
		return r.measure(ctx)
	}
}

var errNoBed = errors.New("no NCCL to measure with: make real-nccl-bed, or --bed")

// prepare finds NCCL, and builds the job and the plugins.
func (r *realNCCL) prepare() (err error) {
	if r.bed == "" {
		text, err := os.ReadFile(filepath.Join(r.build, "realnccl/beds"))
		if err != nil {
			return fmt.Errorf("%w: %w", errNoBed, err)
		}
		r.bed, _, _ = strings.Cut(string(text), "\n")
	}
	if r.bed, err = filepath.Abs(r.bed); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(r.bed, "libnccl.so.2")); err != nil {
		return fmt.Errorf("%w: %w", errNoBed, err)
	}
	if err := r.buildHost(); err != nil {
		return err
	}
	r.program = filepath.Join(r.dir, "job")
	return caller.Compile("-o", r.program, filepath.Join(r.root, "tests/bench/realnccl/job/main.c"), "-pthread", "-ldl")
}

// defaultPreset is what is recorded where nothing else is asked for (setting EVENTS).
const defaultPreset = "gpu"

// kind is a plugin in the order in which they run, and the one whose runs it is compared with; -1: none.
type kind struct {
	*plugin
	against int
}

// kinds are all that is compared: none, and for each preset the empty plugin before ours. Peers are held against the
// empty one that asks for the events of the first preset.
func (r *realNCCL) kinds(presets ...string) (all []kind, err error) {
	all = []kind{{&plugin{name: "no plugin", file: "none"}, -1}}
	for _, preset := range presets {
		before, err := emptyPlugin(r.host, preset)
		if err != nil {
			return nil, err
		}
		all = append(all, kind{before, -1}, kind{ourPlugin(r.host, preset), len(all)})
	}
	for _, p := range r.plugins {
		all = append(all, kind{p, 1})
	}
	return all, nil
}

func (r *realNCCL) measure(ctx context.Context) (*Page, error) {
	page := &Page{Heading: fmt.Sprintf("%s; NCCL %s; %d ranks, %d operations, %d rounds", machine(),
		filepath.Base(r.bed), r.ranks, r.operations, r.rounds)}
	presets := []string{"light", defaultPreset, "net", "all"}
	if len(r.plugins) > 0 {
		presets = []string{defaultPreset}
	}
	for _, l := range []struct {
		call    string
		presets []string
	}{{"AllReduce", presets}, {"SendRecv", []string{defaultPreset}}} {
		tables, err := r.perOperation(ctx, l.call, l.presets)
		if err != nil {
			return nil, err
		}
		page.Tables = append(page.Tables, tables...)
	}
	if len(r.plugins) > 0 { // it is NCCL's own cost, whatever the plugin
		return page, nil
	}
	firsts, err := r.firstOperation(ctx)
	page.Tables = append(page.Tables, firsts...)
	return page, err
}

// realJob is what one run took: times in microseconds, of rank 0.
type realJob struct {
	PID   int       `json:"pid"`
	Init  []float64 `json:"init_us"`  // of each communicator
	First []float64 `json:"first_us"` // the first operation of each, from the call to its end, or the call alone

	CallMean   float64 `json:"call_mean_us"` // of the calls in the loop
	CallMedian float64 `json:"call_median_us"`
	Loop       float64 `json:"loop_us"` // of the whole loop, per operation

	own, collector float64 // memory without what is shared, MiB
	processor      float64 // the collector's in the loop, microseconds per operation

	callRatio, meanRatio, loopRatio float64 // to the run of the same round that it is compared with; 0: to none
}

// callAim is how much longer than with the empty plugin a call may take, as a ratio of medians.
const callAim = 1.05

// calls is what the job notices, rest is its start, memory and what the collector does.
var calls = []column[realJob]{
	medians("call: median, µs", digits, func(j *realJob) float64 { return j.CallMedian }),
	medians("mean, µs", digits, func(j *realJob) float64 { return j.CallMean }),
	medians("ratio to empty: median", someRatio, func(j *realJob) float64 { return j.callRatio }),
	medians("mean", someRatio, func(j *realJob) float64 { return j.meanRatio }),
	medians("loop, µs/operation", digits, func(j *realJob) float64 { return j.Loop }),
	medians("ratio to empty", someRatio, func(j *realJob) float64 { return j.loopRatio }),
}

var rest = []column[realJob]{
	medians("communicator's initialization, ms", digits, func(j *realJob) float64 { return j.Init[0] / 1e3 }),
	medians("first operation (AllReduce), ms", digits, func(j *realJob) float64 { return j.First[0] / 1e3 }),
	medians("job without rings, MiB", digits, func(j *realJob) float64 { return j.own }),
	medians("collector, MiB", some, func(j *realJob) float64 { return j.collector }),
	medians("collector's processor, µs/operation", some, func(j *realJob) float64 { return j.processor }),
}

// perOperation runs the loop with all plugins in turn.
func (r *realNCCL) perOperation(ctx context.Context, call string, presets []string) ([]*Table, error) {
	all, err := r.kinds(presets...)
	if err != nil {
		return nil, err
	}
	runs := make([][]*realJob, len(all))
	for round := range r.rounds {
		for i, k := range all {
			say("%s, %s", call, k.name)
			j, err := r.job(ctx, request{plugin: k.plugin, communicators: 1, operations: r.operations, call: call})
			if err != nil {
				return nil, err
			}
			if k.against >= 0 {
				j.compare(runs[k.against][round])
			}
			runs[i] = append(runs[i], j)
		}
	}
	of, others := newTable(call+" in a loop", calls), newTable(call+": start, memory, the collector", rest)
	of.Figures, of.Columns = false, append(of.Columns, "aim (median of calls)")
	for i, k := range all {
		add(of, k.name, calls, runs[i])
		last := &of.Rows[len(of.Rows)-1]
		*last = append(*last, k.aim(runs[i]))
		add(others, k.name, rest, runs[i])
	}
	return []*Table{of, others}, nil
}

// compare takes the ratios to a run of the same round, so that a machine that gets slower meanwhile does not make them.
func (j *realJob) compare(to *realJob) {
	j.callRatio, j.meanRatio, j.loopRatio = j.CallMedian/to.CallMedian, j.CallMean/to.CallMean, j.Loop/to.Loop
}

// aim says whether runs are within the aim; the preset of all events has none.
func (k *kind) aim(runs []*realJob) string {
	if !k.ours || k.name == "all" {
		return none
	}
	return fmt.Sprintf("≤ %g, %s", callAim,
		verdict(median(runs, func(j *realJob) float64 { return j.callRatio }), callAim))
}

// firstOperation measures the first operation of a communicator, with many communicators, and with ranks that have the
// processors to themselves.
func (r *realNCCL) firstOperation(ctx context.Context) (tables []*Table, err error) {
	bare, light := &plugin{name: "no plugin", file: "none"}, ourPlugin(r.host, "light")
	byDefault, narrow := ourPlugin(r.host, defaultPreset), ourPlugin(r.host, defaultPreset)
	narrow.name, narrow.settings = "gpu, NCCL_MAX_NCHANNELS=2", append(narrow.settings, "NCCL_MAX_NCHANNELS=2")
	for _, how := range []struct {
		title          string
		spin, oneByOne bool
		communicators  int
	}{
		{"threads that wait nap", false, false, r.communicators},
		{"threads that wait spin", true, false, (r.communicators + 3) / 4}, // each takes seconds
		{"threads that wait spin, one rank calls at a time", true, true, (r.communicators + 1) / 2},
	} {
		t := &Table{Title: fmt.Sprintf("First operations of %d communicators, %s", how.communicators, how.title),
			Figures: true, Columns: []string{"plugin", "median, ms", "shortest, ms", "longest, ms", "all, s",
				"initialization of all, s"}}
		for _, p := range []*plugin{bare, light, byDefault, narrow} {
			var runs []*realJob
			var all []float64
			for range r.rounds {
				say("first, %s, %s", how.title, p.name)
				j, err := r.job(ctx, request{plugin: p, communicators: how.communicators, operations: 1,
					call: "AllReduce", spin: how.spin, oneByOne: how.oneByOne})
				if err != nil {
					return nil, err
				}
				runs, all = append(runs, j), append(all, j.First...)
			}
			t.Rows = append(t.Rows, []string{p.name, digits(stats.Median(all) / 1e3), digits(slices.Min(all) / 1e3),
				digits(slices.Max(all) / 1e3),
				digits(median(runs, func(j *realJob) float64 { return sum(j.First) }) / 1e6),
				digits(median(runs, func(j *realJob) float64 { return sum(j.Init) }) / 1e6)})
		}
		tables = append(tables, t)
	}
	return tables, nil
}

func sum(v []float64) (s float64) {
	for _, x := range v {
		s += x
	}
	return s
}

// nccl are NCCL's settings for the emulated machine.
var nccl = []string{"NCCL_CUMEM_ENABLE=0", "NCCL_CUMEM_HOST_ENABLE=0", "NCCL_NVLS_ENABLE=0", "NCCL_SOCKET_IFNAME=lo",
	"NCCL_NET=Socket", "NCCL_IB_DISABLE=1", "NCCL_GRAPH_REGISTER=0", "NCCL_LOCAL_REGISTER=0", "NCCL_RAS_ENABLE=0",
	"NCCL_ALGO=Ring,Tree", "NCCL_PROTO=LL,Simple",
	"NCCL_ALLGATHERV_ENABLE=0"} // without it 2.29 and newer are not asked for GPU times

// request is what to run.
type request struct {
	plugin        *plugin
	communicators int
	operations    int
	call          string // of the operations
	spin          bool   // threads that wait do not nap
	oneByOne      bool   // first calls come one after the other
}

// settle is how long a collector gets to take what was recorded: longer than it ever waits with writing.
const settle = 2500 * time.Millisecond

func (r *realNCCL) job(ctx context.Context, q request) (*realJob, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	how := "together"
	if q.oneByOne {
		how = "apart"
	}
	cmd := exec.CommandContext(ctx, r.program, strconv.Itoa(r.ranks), strconv.Itoa(q.communicators),
		strconv.Itoa(q.operations), how, q.call)
	dir := r.newRun()
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	cmd.Env = slices.Concat(caller.Environment(), nccl, q.plugin.environment(dir),
		[]string{"LD_LIBRARY_PATH=" + r.bed, "NCCL_PROFILER_PLUGIN=" + q.plugin.file})
	if !q.spin {
		cmd.Env = append(cmd.Env, "LD_PRELOAD="+filepath.Join(r.bed, "libyield.so"))
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	j, err := q.follow(bufio.NewReader(out), in)
	err = errors.Join(err, in.Close(), cmd.Wait())
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", q.plugin.name, err, strings.TrimSpace(stderr.String()))
	}
	return j, nil
}

// follow reads what the job says, and looks at its first process and the collector beside it meanwhile.
func (q *request) follow(out *bufio.Reader, in io.Writer) (*realJob, error) {
	j := new(realJob)
	readLine := func() error {
		text, err := out.ReadBytes('\n')
		if err != nil {
			return err
		}
		return json.Unmarshal(text, j)
	}
	goOn := func() error { _, err := in.Write([]byte("\n")); return err }
	if err := readLine(); err != nil {
		return nil, err
	}
	collector, err := q.plugin.collector(j.PID)
	if err != nil {
		return nil, err
	}
	var before float64
	if collector != 0 {
		time.Sleep(settle)
		before = caller.Processor(collector)
	}
	if err := errors.Join(goOn(), readLine()); err != nil {
		return nil, err
	}
	u, err := caller.UsageOf(j.PID)
	if err != nil {
		return nil, err
	}
	j.own = inMiB(u.Own)
	if collector != 0 {
		time.Sleep(settle)
		j.processor = (caller.Processor(collector) - before) * 1e6 / float64(q.operations)
		if u, err = caller.UsageOf(collector); err != nil {
			return nil, err
		}
		j.collector = inMiB(u.Own)
	}
	return j, goOn()
}

// collector finds the process beside a job, 0 if there is none. A plugin of the command line may have none, or be an
// earlier version of ours.
func (p *plugin) collector(job int) (int, error) {
	switch {
	case p.ours:
		return caller.Collector(job, 10*time.Second)
	case !p.peer:
		return 0, nil
	}
	pid, err := caller.Collector(job, time.Second)
	if errors.Is(err, caller.ErrNoCollector) {
		return 0, nil
	}
	return pid, err
}
