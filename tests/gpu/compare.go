// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
)

// pair is a call's operation and what the archive shows of it.
type pair struct {
	want *expectation
	got  *operation
	who  string
}

// compare holds every operation of the archive against the ranks' logs: function, count, datatype, root or peer,
// and the order, on communicators of the ranks that they have.
//
// unordered leaves the order between operations of different functions alone, and compares each function's
// operations without it: where graphs are replayed, NCCL reports what it launched itself and what the stream
// launched by different threads.
func (v *verdict) compare(logs []*jobLog, a *archive, unordered bool) (pairs []pair) {
	names, first := loggedCommunicators(logs)
	byRanks := func(ranks []int) string { return fmt.Sprint(ranks) }
	left := make(map[string][]*communicator)
	for _, c := range a.comms {
		if c.begin() != math.MaxInt64 {
			left[byRanks(c.ranks)] = append(left[byRanks(c.ranks)], c)
		}
	}
	for _, name := range names {
		ranks := first[name].ranks
		key := byRanks(ranks)
		if len(left[key]) == 0 {
			v.fail("communicator %q of ranks %v is not in the archive", name, ranks)
			continue
		}
		c := left[key][0]
		left[key] = left[key][1:]
		for i, rank := range ranks {
			want := logs[rank].expected(name)
			row := c.rows[i]
			if until := logs[rank].others[name]; until > 0 {
				row = slices.DeleteFunc(slices.Clone(row), func(o *operation) bool { return o.begin < until })
				v.note("%q rank %d: %d operations of the framework's own were not compared", name, i,
					len(c.rows[i])-len(row))
			}
			pairs = append(pairs, v.compareRow(fmt.Sprintf("%q rank %d", name, i), want, row, unordered)...)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(left)) {
		for _, c := range left[key] {
			v.fail("the archive has a communicator %q of ranks %v that no rank called", c.name, c.ranks)
		}
	}
	v.compared += len(pairs)
	if len(pairs) == 0 {
		v.fail("no operation was compared")
	}
	return pairs
}

type loggedCommunicator struct {
	ranks []int
	t0    int64
}

// loggedCommunicators lists those that were called, in the order of their first calls: NCCL makes them then.
func loggedCommunicators(logs []*jobLog) ([]string, map[string]loggedCommunicator) {
	all := make(map[string]loggedCommunicator)
	for _, l := range logs {
		for _, name := range l.comms {
			if want := l.expected(name); len(want) > 0 {
				t0 := want[0].call.T0
				if c, ok := all[name]; ok {
					t0 = min(t0, c.t0)
				}
				all[name] = loggedCommunicator{l.ranks[name], t0}
			}
		}
	}
	names := slices.SortedFunc(maps.Keys(all), func(x, y string) int { return cmp.Compare(all[x].t0, all[y].t0) })
	return names, all
}

func (v *verdict) compareRow(who string, want []expectation, row []*operation, unordered bool) (pairs []pair) {
	got := make(map[string][]*operation)
	for _, o := range row {
		got[sequenceKey(o.function, o.root)] = append(got[sequenceKey(o.function, o.root)], o)
	}
	expected := make(map[string][]*expectation)
	var order []string
	for i := range want {
		k := want[i].key()
		if expected[k] == nil {
			order = append(order, k)
		}
		expected[k] = append(expected[k], &want[i])
	}
	paired := make(map[*expectation]*operation)
	for _, k := range order {
		w, g := there(expected[k], got[k]), got[k]
		delete(got, k)
		if len(w) != len(g) {
			v.fail("%s: %d × %s in the archive, %d were called", who, len(g), k, len(w))
			continue
		}
		if unordered {
			g = nearest(w, g)
		}
		for i, e := range w {
			o := g[i]
			if !e.is(o) {
				v.fail("%s: %s number %d is count %d, %s, root or peer %d; called was count %d, %s, root or peer %d",
					who, k, i, o.count, o.dtype, o.root, e.count, e.dtype, e.root)
				break // what follows is shifted
			}
			paired[e] = o
		}
	}
	for _, k := range slices.Sorted(maps.Keys(got)) {
		v.fail("%s: %d × %s in the archive that were not called", who, len(got[k]), k)
	}
	last := 0
	for i := range want {
		e := &want[i]
		o := paired[e]
		if o == nil {
			continue
		}
		pairs = append(pairs, pair{e, o, who})
		if !unordered && o.plan < last {
			v.fail("%s: %s of count %d is shown before what was called before it", who, e.key(), e.count)
		}
		last = max(last, o.plan)
	}
	return pairs
}

// there leaves those expectations out that may be missing, as few and as late ones as can be, so that one is left for
// each operation in the same order. If that is not possible all are left.
func there(want []*expectation, got []*operation) []*expectation {
	fits := make([][]bool, len(want)+1) // [i][j]: those from i on can be the operations from j on
	for i := len(want); i >= 0; i-- {
		fits[i] = make([]bool, len(got)+1)
		for j := len(got); j >= 0; j-- {
			switch {
			case i == len(want):
				fits[i][j] = j == len(got)
			case j < len(got) && want[i].is(got[j]) && fits[i+1][j+1]:
				fits[i][j] = true
			default:
				fits[i][j] = want[i].optional && fits[i+1][j]
			}
		}
	}
	if !fits[0][0] {
		return want
	}
	var left []*expectation
	for i, e := range want {
		if j := len(left); j < len(got) && e.is(got[j]) && fits[i+1][j+1] {
			left = append(left, e)
		}
	}
	return left
}

// nearest orders operations so that each has the place of the call like it, if there is one: the first
// of equals for the first.
func nearest(want []*expectation, got []*operation) []*operation {
	rest := slices.Clone(got)
	var out []*operation
	for _, e := range want {
		i := slices.IndexFunc(rest, func(o *operation) bool { return e.is(o) && o.graph == (e.call.Graph != nil) })
		if i < 0 {
			i = max(slices.IndexFunc(rest, e.is), 0)
		}
		out = append(out, rest[i])
		rest = slices.Delete(rest, i, i+1)
	}
	return out
}

// Tolerances of times. docs/gpu-runs.md says what was measured.
const (
	earlySlack = 20 * time.Microsecond  // before the host's call
	doneSlack  = 20 * time.Microsecond  // behind the moment when all was known to have ended
	lateSlack  = 100 * time.Microsecond // of members' overlaps
	eventSlack = 10 * time.Microsecond  // longer than between the CUDA events around it
	launchTime = 50 * time.Microsecond  // shorter than that, of half of the operations
	// Between a kernel's times by CUPTI and its plan's by NCCL.
	kernelSlack = 30 * time.Microsecond
)

// intervals holds GPU times against what the host knows: no operation runs before it is called nor after all is
// known to have ended, nor for longer than between the CUDA events around it.
func (v *verdict) intervals(pairs []pair) {
	var margins []time.Duration
	long, timed := 0, 0
	for _, p := range pairs {
		if p.got.source != "gpu" {
			continue
		}
		c := p.want.call
		if early := time.Duration(c.T0 - p.got.begin); early > earlySlack {
			v.fail("%s: GPU time of %s (count %d) begins %v before its call", p.who, p.want.key(), p.want.count, early)
		}
		if late := time.Duration(p.got.end - c.Done); c.Done > 0 && late > doneSlack {
			v.fail("%s: GPU time of %s (count %d) ends %v after all had ended", p.who, p.want.key(), p.want.count, late)
		}
		if c.EventNs == 0 {
			continue
		}
		took, event := time.Duration(p.got.end-p.got.begin), time.Duration(c.EventNs)
		if took > event+eventSlack {
			v.fail("%s: %s (count %d) takes %v of GPU time, %v passed between the events around it", p.who,
				p.want.key(), p.want.count, took, event)
		}
		if p.got.early { // it ended then or later
			continue
		}
		timed++
		margins = append(margins, event-took)
		if took >= event-launchTime {
			long++
		}
	}
	if timed == 0 {
		return
	}
	slices.Sort(margins)
	v.note("GPU time against CUDA events, %d operations: shorter by %v (median), %v (least), %v (most)", timed,
		margins[timed/2], margins[0], margins[timed-1])
	if 2*long < timed {
		v.fail("of %d operations between CUDA events only %d have that time as GPU time, but for %v", timed, long,
			launchTime)
	}
}

// overlaps holds the members' intervals of one operation against each other: where each needs data of all, none ends
// before all have begun.
func (v *verdict) overlaps(a *archive) {
	checked := 0
	for _, c := range a.comms {
		for _, function := range []string{"AllReduce", "AllGather", "ReduceScatter"} {
			var members [][]*operation
			most := 0
			for _, row := range c.rows {
				only := slices.DeleteFunc(slices.Clone(row), func(o *operation) bool { return o.function != function })
				members = append(members, only)
				most = max(most, len(only))
			}
			for i := range most {
				begin, end, all := int64(math.MinInt64), int64(math.MaxInt64), true
				for _, m := range members {
					if all = all && i < len(m) && m[i].source == "gpu"; all {
						begin, end = max(begin, m[i].begin), min(end, m[i].end)
					}
				}
				if !all {
					continue
				}
				checked++
				if late := time.Duration(begin - end); late > lateSlack {
					v.fail("%q: %s number %d ended on one rank %v before it began on another", c.name, function, i,
						late)
				}
			}
		}
	}
	v.note("members' intervals overlap: %d operations looked at", checked)
}

// timing holds what intervals come from against what was recorded: with GPU events all operations have GPU times,
// unless NCCL is known to report those of other kernels on that communicator, or the archive says that it reported
// nothing of a few of them.
func (v *verdict) timing(a *archive, gpu bool, nccl string) {
	v.sources = make(map[string]int)
	unreported := a.unreported()
	for _, c := range a.comms {
		n, without := 0, 0
		for _, row := range c.rows {
			for _, o := range row {
				v.sources[o.source]++
				n++
				if o.source != "gpu" {
					without++
				}
			}
		}
		why := unsound(c, nccl)
		switch {
		case n == 0:
		case !gpu && without < n:
			v.fail("%q: %d operations have GPU times that were not recorded", c.name, n-without)
		case gpu && why != "":
			v.note("%q: %d of %d operations have no GPU time; not demanded: %s", c.name, without, n, why)
		case gpu && without*100 > n && without <= unreported:
			unreported -= without
			v.note("%q: %d of %d operations have no GPU time; the archive says that NCCL has not reported all of them",
				c.name, without, n)
		case gpu && without*100 > n:
			v.fail("%q: %d of %d operations have no GPU time", c.name, without, n)
		}
	}
	if v.sources[""] > 0 {
		v.fail("%d operations do not say where their time comes from", v.sources[""])
	}
}

// unreported is of how many operations the archive says that NCCL did not report all, as long as they are few: 2 of
// 100.
func (a *archive) unreported() int {
	all := 0
	for _, c := range a.comms {
		for _, row := range c.rows {
			all += len(row)
		}
	}
	n, _ := a.properties.Number(property.Oddities.Below("INCOMPLETE_OPERATIONS"))
	return min(int(n), all/50)
}

// unsound says why NCCL's GPU stamps cannot be relied on for a communicator, "" if they can.
func unsound(c *communicator, nccl string) string {
	direct, replayed := false, false
	for me, row := range c.rows {
		for _, o := range row {
			direct, replayed = direct || !o.graph, replayed || o.graph
			switch {
			case o.function == "Broadcast" && !before(nccl, 2, 29):
				return "broadcasts make NCCL's counters part from 2.29 on"
			case (o.function == "Send" || o.function == "Recv") && o.root == me:
				return "messages to oneself make NCCL's counters part"
			}
		}
	}
	if direct && replayed {
		return "calls between replays of graphs make NCCL's counters part"
	}
	return ""
}

// before compares a release "2.28.9"; one that is not known is not before any.
func before(release string, major, minor int) bool {
	parts := strings.Split(release, ".")
	if len(parts) < 2 {
		return false
	}
	x, err := strconv.Atoi(parts[0])
	y, err2 := strconv.Atoi(parts[1])
	return err == nil && err2 == nil && (x < major || x == major && y < minor)
}

// complete demands that nothing is missing, by what the archive says of itself.
func (v *verdict) complete(a *archive, ranks int) {
	for name, want := range map[property.Name]int{property.Processes: ranks, property.ProcessesFinished: ranks,
		property.ProcessesMissing: 0, property.RanksMissing: 0, property.Lost: 0, property.Differ: 0} {
		if got := a.properties.Text(name); got != strconv.Itoa(want) {
			v.fail("%s is %q, want %d", name.Key(), got, want)
		}
	}
	if a.shards != ranks {
		v.fail("%d processes left data, want %d", a.shards, ranks)
	}
	for _, name := range slices.Sorted(maps.Keys(a.properties)) {
		short, ours := strings.CutPrefix(name, property.Prefix)
		kind, _, of := strings.Cut(short, "::")
		switch p := property.Name(kind); {
		case ours && (of && (p == property.Differ || p == property.Lost) || p == property.Gaps ||
			p == property.GapsDiffer):
			v.fail("%s: %s", name, a.properties[name])
		case ours && (of && (p == property.Oddities || p == property.Cost || p == property.CUPTI ||
			p == property.Ends) || p == property.LibraryVersion || p == property.APIVersion):
			v.note("%s: %s", short, a.properties[name])
		case name == property.Complete && a.properties[name] == "false":
			v.fail("the archive says that communication is missing in it")
		}
	}
}

// phases holds the application's marks against the log.
func (v *verdict) phases(logs []*jobLog, a *archive) {
	for rank, l := range logs {
		for _, name := range slices.Sorted(maps.Keys(l.phases)) {
			if rank >= len(a.phases) || a.phases[rank][name] != l.phases[name] {
				v.fail("rank %d: phase %q is not %d times in the archive", rank, name, l.phases[name])
			}
		}
	}
}

// rankKernels are the kernels of NCCL's of a rank, and its plans.
type rankKernels struct {
	seen      int
	planless  int // kernels that name no plan
	unmatched int // kernels that name one, until it is found
	byID      map[uint64]*kernel
	plans     int
	without   int  // plans that no kernel names
	graphs    bool // graphs were replayed
}

// kernelsLinked holds the kernels that CUPTI saw against the operations: each of NCCL's names a plan of its process or
// the only operation of one, each plan has one, and both agree when it ran unless the archive says that they do not.
// Only where graphs are replayed it may be unknown whose a kernel is; the archive says of how many.
func (v *verdict) kernelsLinked(a *archive) {
	ranks := make([]rankKernels, a.shards)
	unlinked := 0
	for i := range a.kernels {
		k := &a.kernels[i]
		if !strings.Contains(strings.ToLower(k.name), "nccl") {
			continue
		}
		r := &ranks[k.rank]
		r.seen++
		if len(k.ids) == 0 && !k.launched {
			unlinked++
		}
		if len(k.ids) == 0 {
			r.planless++
			continue
		}
		r.unmatched++
		if r.byID == nil {
			r.byID = make(map[uint64]*kernel)
		}
		for _, id := range k.ids {
			r.byID[id] = k
		}
	}
	differ := a.properties.Has(property.Oddities.Below("GPU_TIMES_DIFFER"))
	var most time.Duration
	for _, c := range a.comms {
		for i, row := range c.rows {
			r, last := &ranks[c.ranks[i]], 0
			for _, o := range row {
				r.graphs = r.graphs || o.graph
				if o.plan == last {
					continue
				}
				last = o.plan
				r.plans++
				var k *kernel
				for _, id := range o.ids {
					k = cmp.Or(k, r.byID[id])
				}
				if k == nil {
					r.without++
					continue
				}
				r.unmatched--
				if o.source != "gpu" {
					continue
				}
				difference := max(time.Duration(o.begin-k.begin).Abs(), time.Duration(o.end-k.end).Abs())
				if most = max(most, difference); difference > kernelSlack && !differ {
					v.fail("%q rank %d: %s of count %d and its kernel are %v apart, and the archive does not say so",
						c.name, i, o.function, o.count, difference)
				}
			}
		}
	}
	for rank, r := range ranks {
		v.note("rank %d: %d kernels of NCCL's for %d plans", rank, r.seen, r.plans)
		if r.unmatched != 0 {
			v.fail("rank %d: %d kernels of NCCL's name plans that are not on the rank's rows", rank, r.unmatched)
		}
		if r.planless != r.without || r.without > 0 && !r.graphs {
			v.fail("rank %d: %d kernels of NCCL's name no plan, %d plans have no kernel", rank, r.planless, r.without)
		}
	}
	property := property.CUPTI.Below("NCCL_KERNELS_UNLINKED")
	if stated := cmp.Or(a.properties.Text(property), "0"); stated != strconv.Itoa(unlinked) {
		v.fail("%s is %s; %d kernels of NCCL's name neither plan nor launch", property.Key(), stated, unlinked)
	}
	v.note("kernels and NCCL's stamps of them are %v apart at most", most)
}
