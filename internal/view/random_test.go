// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/tests/scoutrules"
)

// drawn is a random job: communicators whose operations overlap as they like, with times that contradict each other.
type drawn struct {
	*made
	plans       map[*member][]drawnPlan
	collectives uint64
	messages    uint64
	halves      uint64 // ends of messages that have no other end
}

type drawnPlan struct {
	about  uint64 // ns
	source string
	name   string
	items  []item
}

// drawJob draws a job. Without faults all members have all operations in one order.
func drawJob(t *testing.T, rt *rapid.T, faults bool) *drawn {
	ranks := rapid.IntRange(2, 5).Draw(rt, "ranks")
	d := &drawn{made: makeJob(t, ranks), plans: make(map[*member][]drawnPlan)}
	everybody := make([]int, ranks)
	for i := range everybody {
		everybody[i] = i
	}
	for c := range rapid.IntRange(1, 4).Draw(rt, "communicators") {
		members := everybody
		if c > 0 {
			members = rapid.Permutation(everybody).Draw(rt, "members")[:rapid.IntRange(2, ranks).Draw(rt, "size")]
		}
		d.comm(fmt.Sprint("c", c), members...)
	}
	rare := func(name string) bool { return faults && rapid.IntRange(0, 9).Draw(rt, name) == 0 }
	now := uint64(0)
	for range rapid.IntRange(0, 25).Draw(rt, "operations") {
		now += rapid.Uint64Range(0, 20).Draw(rt, "pause") * us
		c := d.comms[rapid.IntRange(0, len(d.comms)-1).Draw(rt, "communicator")]
		n := len(c)
		add := func(r int, items ...item) {
			if len(items) > 0 {
				d.plans[c[r]] = append(d.plans[c[r]], drawnPlan{now, "gpu", "", items})
			}
		}
		switch rapid.IntRange(0, 3).Draw(rt, "kind") {
		case 0: // collectives of one launch
			fns := rapid.SliceOfN(rapid.IntRange(0, int(fnMessages)-1), 1, 3).Draw(rt, "functions")
			roots := rapid.SliceOfN(rapid.IntRange(0, n-1), len(fns), len(fns)).Draw(rt, "roots")
			source := rapid.SampledFrom([]string{regions.TimingGPU, regions.TimingGPU, "enqueue"}).Draw(rt, "source")
			d.collectives += uint64(len(fns))
			for r, m := range c {
				var items []item
				skip := make(map[string]uint64)
				for i, f := range fns {
					it := item{fn: functions[f].Name, peer: roots[i], sent: uint64(i), received: uint64(r * i)}
					if rare("missing") {
						skip[it.fn]++
						continue
					}
					if rare("other root") {
						it.peer = rapid.IntRange(0, n).Draw(rt, "root")
					}
					it.skip, skip[it.fn] = skip[it.fn], 0
					items = append(items, it)
				}
				if rare("order") {
					slices.Reverse(items)
				}
				add(r, items...)
				if k := len(d.plans[m]); len(items) > 0 {
					d.plans[m][k-1].source = source
				}
			}
		case 1: // one message
			src, dst := rapid.IntRange(0, n-1).Draw(rt, "sender"), rapid.IntRange(0, n-1).Draw(rt, "receiver")
			if src == dst {
				continue
			}
			if rare("no receive") {
				d.halves++
				add(src, item{fn: "Send", peer: dst, sent: 8})
				continue
			}
			d.messages++
			add(src, item{fn: "Send", peer: dst, sent: 8})
			add(dst, item{fn: "Recv", peer: src, sent: 8})
		case 2: // a shift in a group
			by := rapid.IntRange(1, n-1).Draw(rt, "by")
			d.messages += uint64(n)
			for r := range c {
				add(r, item{fn: "Send", peer: (r + by) % n, sent: 8}, item{fn: "Recv", peer: (r + n - by) % n, sent: 8})
			}
		case 3: // all to all, made of messages
			d.messages += uint64(n * n)
			for r, m := range c {
				var items []item
				for k := range c {
					items = append(items, item{fn: "Send", peer: (r + k) % n, sent: 8},
						item{fn: "Recv", peer: (r + n - k) % n, sent: 8})
				}
				add(r, items...)
				d.plans[m][len(d.plans[m])-1].name = "AlltoAll"
			}
		}
	}
	for _, c := range d.comms {
		for _, m := range c {
			end := uint64(0)
			for _, p := range d.plans[m] {
				begin := max(end, p.about+rapid.Uint64Range(0, 100).Draw(rt, "late")*us)
				end = begin + rapid.Uint64Range(0, 60).Draw(rt, "duration")*us
				m.plan(t, begin, end, p.source, p.name, p.items...)
			}
		}
	}
	return d
}

func (r *Result) shown() uint64 { return r.Collectives + r.Messages }

// Whatever the times, scout can carry the view out, and every operation is in it or counted.
func TestAnyJobHasAViewThatCanBeReplayed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := drawJob(t, rt, false)
		if len(d.plans) == 0 {
			return
		}
		one := rapid.Bool().Draw(rt, "one process per rank")
		res := soundView(rt, d.unify(), &Options{OneProcess: one})
		testkit.Check(rt, one || res.Lost() != 0 || res.Untimed.Receivers != 0 || res.Waits.Shown == res.Waits.Recorded,
			"waits %+v, nothing is left out", res.Waits)
		testkit.Check(rt, one || res.Clipped.Operations <= 0 && res.Untimed.Moved <= 0,
			"%+v, %+v", res.Clipped, res.Untimed)
		if lost := res.Lost(); res.shown()+lost != d.collectives+d.messages || lost != res.Dropped[ReasonCycle] {
			rt.Errorf("%d collectives and %d messages, %v dropped, of %d and %d", res.Collectives, res.Messages,
				res.Dropped, d.collectives, d.messages)
		}
	})
}

// The same where members lack operations, have them in other orders, or name other roots.
func TestAnyFaultyJobHasAViewThatCanBeReplayed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := drawJob(t, rt, true)
		if len(d.plans) == 0 {
			return
		}
		res := soundView(rt, d.unify(), nil)
		testkit.Check(rt, res.shown() <= d.collectives+d.messages,
			"%d collectives and %d messages, of %d and %d", res.Collectives, res.Messages, d.collectives, d.messages)
		testkit.Check(rt, res.Dropped[ReasonUnmatched]+res.Dropped[ReasonUnplaced] >= d.halves,
			"%v dropped, %d messages have one end", res.Dropped, d.halves)
	})
}

// soundView makes the view of an archive, which must be sound, and gives it to those who look, before both go.
func soundView(rt *rapid.T, anchor string, o *Options, look ...func(anchor string)) *Result {
	res := testkit.Value(Scalasca(anchor, filepath.Join(filepath.Dir(anchor), "scalasca"), o))(rt)
	defer os.RemoveAll(filepath.Dir(filepath.Dir(anchor)))
	for _, examine := range []func(string, *check.Options) (*check.Result, error){check.Archive, scoutrules.Check} {
		found := testkit.Value(examine(res.Archive, nil))(rt)
		for _, f := range found.Findings {
			// The drawn times contradict each other, so it may look as if different calls were missing on two ranks.
			contradiction := f.Rule == scoutrules.RuleScoutClock || f.Rule == check.RuleCollectiveMate &&
				strings.Contains(f.Text, "not in the archive of rank")
			testkit.Check(rt, contradiction, "%v", f)
		}
	}
	for _, l := range look {
		l(res.Archive)
	}
	return res
}

// longestRise against all subsequences.
func TestLongestRise(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		of := rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6, 7}).Draw(rt, "numbers")[:rapid.IntRange(0, 8).Draw(rt, "n")]
		longest := 0
		for set := range 1 << len(of) {
			var some []int
			for i, v := range of {
				if set>>i&1 == 1 {
					some = append(some, v)
				}
			}
			if slices.IsSorted(some) {
				longest = max(longest, len(some))
			}
		}
		got := longestRise(of)
		testkit.Check(rt, slices.IsSorted(got) && len(got) == longest,
			"%v of %v, but there is one of %d", got, of, longest)
		at := 0
		for _, v := range got {
			for at < len(of) && of[at] != v {
				at++
			}
			testkit.Require(rt, at != len(of), "%v is no part of %v", got, of)
		}
	})
}
