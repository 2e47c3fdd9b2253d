// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/replay"
)

// ran is when the GPU ran something, on CLOCK_MONOTONIC_RAW.
type ran struct {
	begin, end uint64
	channels   map[int]bool
	function   string
	lines      []*replay.Kernel
}

// kernelsRun gives the kernels that the pretended GPU ran for a communicator rank, in order: those of one launch, on
// several channels, run at one time, and kernels of a communicator rank one after the other.
func kernelsRun(p *replay.Process, rank int) []ran {
	var lines []*replay.Kernel
	for i := range p.Kernels {
		if k := &p.Kernels[i]; k.CommRank == rank {
			lines = append(lines, k)
		}
	}
	slices.SortFunc(lines, func(a, b *replay.Kernel) int { return cmp.Compare(a.T0, b.T0) })
	var out []ran
	for _, k := range lines {
		if n := len(out); n > 0 && k.T0 < out[n-1].end {
			out[n-1].end = max(out[n-1].end, k.T1)
			out[n-1].channels[k.Channel] = true
			out[n-1].lines = append(out[n-1].lines, k)
			continue
		}
		out = append(out, ran{k.T0, k.T1, map[int]bool{k.Channel: true}, strings.SplitN(strings.TrimPrefix(k.Func, "ncclDevFunc_"), "_", 2)[0], []*replay.Kernel{k}})
	}
	return out
}

// launches gives what a communicator rank launched, in order: Group events, and calls for which NCCL reports nothing
// more, with the functions of each.
func launches(p *replay.Process, ctx *replay.Context) (events []*replay.Event, functions [][]string) {
	taken := make(map[*replay.Event]bool)
	inside := make(map[*replay.Event][]string)
	for _, ev := range p.Events {
		function := ""
		switch d := ev.Descr.(type) {
		case *replay.Coll:
			function = d.Func
		case *replay.P2p:
			function = "SendRecv"
		default:
			continue
		}
		if ev.Parent != nil {
			taken[ev.Parent] = true
		}
		inside[ev.Group] = append(inside[ev.Group], function)
	}
	for _, ev := range p.Events {
		if ev.Context != ctx {
			continue
		}
		switch d := ev.Descr.(type) {
		case *replay.CollApi:
			if !taken[ev] && !bool(d.GraphCaptured) {
				events, functions = append(events, ev), append(functions, []string{d.Func})
			}
		default:
			if ev.Type == replay.TypeGroup && len(inside[ev]) > 0 {
				events, functions = append(events, ev), append(functions, inside[ev])
			}
		}
	}
	return events, functions
}

// planTruth tells when each plan of a communicator rank really ran, by order alone: what stamps NCCL reported for it
// does not matter. false if order does not tell: several communicators share the rank's number, or the kernels
// of one launch ran one after the other.
func planTruth(t *testing.T, p *replay.Process, ctx *replay.Context) (map[*replay.Event]ran, bool) {
	t.Helper()
	for _, o := range p.Contexts {
		if o != ctx && o.Rank == ctx.Rank && o.NRanks > 1 {
			return nil, false
		}
	}
	run := kernelsRun(p, ctx.Rank)
	events, functions := launches(p, ctx)
	// Channels of one launch that did not run at one time: the closest are one.
	for len(run) > len(events) {
		at, least := -1, uint64(1e6)
		for i := 1; i < len(run); i++ {
			a, b := run[i-1], run[i]
			shared := false
			for c := range b.channels {
				shared = shared || a.channels[c]
			}
			if !shared && a.function == b.function && b.begin-a.end < least {
				at, least = i, b.begin-a.end
			}
		}
		if at < 0 {
			break
		}
		run[at-1].end = max(run[at-1].end, run[at].end)
		maps.Copy(run[at-1].channels, run[at].channels)
		run[at-1].lines = append(run[at-1].lines, run[at].lines...)
		run = slices.Delete(run, at, at+1)
	}
	if len(run) != len(events) {
		return nil, false
	}
	out := make(map[*replay.Event]ran)
	for i, ev := range events {
		if !slices.Contains(functions[i], run[i].function) {
			t.Fatalf("rank %d: launch %d is %s, kernel %s", ctx.Rank, i, functions[i], run[i].function)
		}
		out[ev] = run[i]
	}
	return out, true
}

// stampTruth tells when the kernels ran whose stamps NCCL reported for a plan: the truth if they are the plan's own.
func stampTruth(p *replay.Process, group *replay.Event) (ran, bool) {
	var r ran
	for _, ev := range p.Events {
		if ev.Type != replay.TypeKernelCh || ev.Parent == nil || ev.Parent.Group != group {
			continue
		}
		begin, end, ok := kernelOf(p, ev)
		if !ok {
			return r, false
		}
		if r.begin == 0 || begin < r.begin {
			r.begin = begin
		}
		r.end = max(r.end, end)
	}
	return r, r.begin != 0
}

// pretendedClock is what the pretended GPU's clock is behind CLOCK_REALTIME (testdata/nccl-callbacks/README.md).
const pretendedClock = 73_500_000_000_123

// kernelOf tells when the kernel ran whose stamps an event has. Of runs without a reference the stamps tell: all are the
// kernel's own, by a clock that neither drifts nor jumps.
func kernelOf(p *replay.Process, ev *replay.Event) (begin, end uint64, ok bool) {
	start, stop := stampsOf(ev)
	if len(p.Kernels) == 0 {
		o := p.Opens[0]
		return start + pretendedClock - o.Real + o.T, stop + pretendedClock - o.Real + o.T, true
	}
	if k := kernelWith(p, ev.Context.Rank, start, stop); k != nil {
		return k.T0, k.T1, true
	}
	return 0, 0, false
}

func stampsOf(ev *replay.Event) (start, stop uint64) {
	for _, s := range ev.States {
		if s.Args != nil && s.Args.PTimer != nil {
			stop = *s.Args.PTimer
		}
	}
	return ev.Descr.(*replay.KernelCh).PTimer, stop
}

func kernelWith(p *replay.Process, rank int, start, stop uint64) *replay.Kernel {
	for i := range p.Kernels {
		k := &p.Kernels[i]
		for _, t := range k.PTimers {
			if k.CommRank == rank && t != nil && t[0] == start && t[1] == stop {
				return k
			}
		}
	}
	return nil
}

// handedOut tells whether NCCL reported all stamps of a plan's kernels, for whatever operations of its communicator rank.
func handedOut(p *replay.Process, ctx *replay.Context, r ran) bool {
	type stamps struct {
		channel     int
		begin, stop uint64
	}
	told := make(map[stamps]bool)
	for _, ev := range p.Events {
		if ev.Type == replay.TypeKernelCh && ev.Context == ctx {
			begin, stop := stampsOf(ev)
			told[stamps{ev.Descr.(*replay.KernelCh).ChannelID, begin, stop}] = true
		}
	}
	for _, k := range r.lines {
		for _, t := range k.PTimers {
			if t == nil || !told[stamps{k.Channel, t[0], t[1]}] {
				return false
			}
		}
	}
	return len(r.lines) > 0
}

// smallestDelay is the least time between a stamp and its report on a rank's GPU.
func smallestDelay(p *replay.Process, rank int) time.Duration {
	least := time.Hour
	for _, c := range p.Calls {
		if c.Event == nil || c.Event.Type != replay.TypeKernelCh || c.Event.Context.Rank != rank {
			continue
		}
		begin, end, ok := kernelOf(p, c.Event)
		switch {
		case !ok:
		case c.Kind == replay.CallStart:
			least = min(least, time.Duration(c.T-begin))
		case c.Kind == replay.CallState:
			least = min(least, time.Duration(c.T-end))
		}
	}
	return least
}

// parting are the runs in which NCCL's host and device counters part: by messages to oneself, in the last by direct
// calls between replays of graphs.
var parting = []string{"02-allcoll-4p-net", "05-p2p-3p", "08-v5-nccl228-3p", "10-graph-3p", "c13-selfsend-4p"}

// graphs is the one of them where host and device differ by what nobody can count.
const graphs = "10-graph-3p"

// What the mapping has to achieve on real runs; DESIGN of the timeline: median error at most 2 µs or 1.5 times the
// smallest delay of the GPU's reports, below which nothing can be seen; uncertainties true in 95 of 100 cases.
const (
	medianError       = 2 * time.Microsecond
	medianUncertainty = 10 * time.Microsecond
	// Where counters part, no interval at all may be off by more than its uncertainty and this.
	strictSlack = 20 * time.Microsecond
)

// Intervals of operations against the times at which the kernels really ran.
func TestIntervalsAgainstTruth(t *testing.T) {
	selfSends, err := replay.Load("../testdata/nccl-causes/c13-selfsend-4p")
	if err != nil {
		t.Fatal(err)
	}
	var table realignedTable
	t.Cleanup(func() { table.check(t) })
	for _, rec := range append(recordings(t), selfSends) {
		t.Run(rec.Name, func(t *testing.T) {
			t.Parallel()
			dir, _ := play(t, rec)
			got := readArchive(t, filepath.Join(dir, "traces.otf2"))
			want := expect(rec)
			row := realignedRow{name: rec.Name}
			// The archive's clock is the first process's real time at the opening, continued by the raw clock.
			anchor := rec.Processes[0].Opens[0]
			raw := func(t uint64) int64 { return int64(t - anchor.Real + anchor.T) }

			var errors, uncertainties []time.Duration
			gpu, other, ends, covered := 0, 0, 0, 0
			var lines []string
			comms := communicatorsByKey(t, want, got)
			for _, p := range rec.Processes {
				for _, ctx := range p.Contexts {
					c := comms[commKey(ctx)]
					if c == nil {
						continue
					}
					shown, err := got.operations(c.Members[ctx.Rank])
					if err != nil {
						t.Fatal(err)
					}
					byOrder, ordered := planTruth(t, p, ctx)
					if !ordered && slices.Contains(parting, rec.Name) {
						t.Fatalf("%s rank %d: kernels do not fit launches", c.Name, ctx.Rank)
					}
					var own, ownUncertainty []time.Duration
					done := make(map[*replay.Event]bool)
					for k, list := range want.operations[member{commKey(ctx), ctx.Rank}] {
						for i, w := range list {
							if i >= len(shown[k]) {
								t.Fatalf("%s rank %d: %s %d is missing", c.Name, ctx.Rank, k, i)
							}
							o, group := shown[k][i], w.event.Group
							if row.add(o, handedOut(p, ctx, byOrder[group])); o.source != "gpu" && testing.Verbose() && handedOut(p, ctx, byOrder[group]) {
								t.Logf("%s rank %d: %s %d has no GPU time, and NCCL has told its stamps", c.Name, ctx.Rank, k, i)
							}
							if o.source != "gpu" {
								other++
								if o.uncertainty != -1 {
									t.Errorf("%s rank %d: %s %d has no GPU time, but an uncertainty of it", c.Name, ctx.Rank, k, i)
								}
								continue
							}
							gpu++
							if done[group] {
								continue // of one plan, all alike
							}
							done[group] = true
							truth, known := byOrder[group]
							if !ordered {
								truth, known = stampTruth(p, group)
							}
							if !known || o.uncertainty < 0 {
								t.Errorf("%s rank %d: %s %d: truth known: %v, uncertainty %d", c.Name, ctx.Rank, k, i, known, o.uncertainty)
								continue
							}
							u := time.Duration(o.uncertainty)
							ownUncertainty = append(ownUncertainty, u)
							for _, e := range []time.Duration{time.Duration(raw(o.begin) - int64(truth.begin)).Abs(), time.Duration(raw(o.end) - int64(truth.end)).Abs()} {
								own = append(own, e)
								ends++
								if e <= u {
									covered++
								}
								if e > u && testing.Verbose() {
									t.Logf("%s rank %d: %s %d: %v off, uncertainty %v (%d … %d and not %d … %d)", c.Name, ctx.Rank, k, i, e, u, raw(o.begin), raw(o.end), truth.begin, truth.end)
								}
								if slices.Contains(parting, rec.Name) && e > u+strictSlack {
									t.Errorf("%s rank %d: %s %d is shown as GPU time, %v off and not %v", c.Name, ctx.Rank, k, i, e, u)
								}
							}
						}
					}
					slices.Sort(own)
					slices.Sort(ownUncertainty)
					uncertainties = append(uncertainties, ownUncertainty...)
					errors = append(errors, own...)
					delay := smallestDelay(p, ctx.Rank)
					limit := max(medianError, delay*3/2)
					lines = append(lines, fmt.Sprintf("  %s rank %d: error median %v, max %v; uncertainty median %v; smallest delay %v",
						c.Name, ctx.Rank, quantile(own, .5), quantile(own, 1), quantile(ownUncertainty, .5), delay))
					if m := quantile(own, .5); m > limit && rec.Name != graphs {
						t.Errorf("%s rank %d: median error %v, want at most %v", c.Name, ctx.Rank, m, limit)
					}
				}
			}
			slices.Sort(errors)
			slices.Sort(uncertainties)
			t.Logf("%s: %d operations with GPU time, %d with another; of %d interval ends: error median %v, p90 %v, p99 %v, max %v; uncertainty median %v, max %v; it covers %d\n%s",
				rec.Name, gpu, other, ends, quantile(errors, .5), quantile(errors, .9), quantile(errors, .99), quantile(errors, 1),
				quantile(uncertainties, .5), quantile(uncertainties, 1), covered, strings.Join(lines, "\n"))
			if ends == 0 {
				t.Error("no operation has GPU times")
			}
			if covered*100 < ends*95 {
				t.Errorf("%d of %d errors are within the uncertainty, want 95 %%", covered, ends)
			}
			if m := quantile(uncertainties, .5); m > medianUncertainty && rec.Name != graphs && rec != selfSends { // whose threads nap
				t.Errorf("median uncertainty %v, want at most %v", m, medianUncertainty)
			}
			if slices.Contains(parting, rec.Name) {
				table.add(t, row)
			}
			parted := 0
			for _, p := range shardsOf(t, dir) {
				for _, m := range p.Markers {
					if m.Category == "Implausible GPU times" {
						parted++
						break
					}
				}
			}
			if want := slices.Contains(parting, rec.Name); want && (other == 0 || parted != len(rec.Processes)) || !want && (other > 0 || parted > 0) {
				t.Errorf("%d operations have no GPU time, %d processes say that counters have parted, which they have: %v", other, parted, want)
			}
		})
	}
}

// realignedRow is what became of the operations of a recording in which counters part.
type realignedRow struct {
	name                       string
	all, told, gpu, ofTold, re int
}

// add counts an operation; told: NCCL has told all its stamps, if for others.
func (r *realignedRow) add(o *operation, told bool) {
	r.all++
	if told {
		r.told++
	}
	if o.source != "gpu" {
		return
	}
	r.gpu++
	if told {
		r.ofTold++
	}
	if o.realigned > 0 {
		r.re++
	}
}

// realignedTable is the page's.
type realignedTable struct {
	mu   sync.Mutex
	rows []realignedRow
}

// add takes a row, of which nearly all operations have GPU time whose stamps NCCL has told, unless nobody can count what parts them.
func (a *realignedTable) add(t *testing.T, r realignedRow) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rows = append(a.rows, r)
	if r.name != graphs && (r.told == 0 || r.ofTold*100 < r.told*95) {
		t.Errorf("%d of the %d operations have GPU time whose stamps NCCL has told, want 95 %%", r.ofTold, r.told)
	}
	if r.name == graphs && r.re > 0 {
		t.Errorf("%d operations are realigned, and graphs part counters by what nobody can count", r.re)
	}
}

// check holds the page against what was found, if all of it was looked for.
func (a *realignedTable) check(t *testing.T) {
	if len(a.rows) < len(parting) {
		return
	}
	slices.SortFunc(a.rows, func(x, y realignedRow) int { return cmp.Compare(x.name, y.name) })
	var b strings.Builder
	b.WriteString("| recording | operations | stamps told | of these with GPU time | with GPU time | of these realigned |\n|---|--:|--:|--:|--:|--:|\n")
	for _, r := range a.rows {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d |\n", r.name, r.all, r.told, r.ofTold, r.gpu, r.re)
	}
	golden.SectionMadeBy(t, "../docs/gpu.md", "realigned", "go test ./tests -run TestIntervalsAgainstTruth -update", b.String())
}

// quantile of sorted durations; 0 if there are none.
func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	return d[min(len(d)-1, int(q*float64(len(d))))]
}
