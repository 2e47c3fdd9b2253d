// SPDX-License-Identifier: Apache-2.0

package cupti

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// bracket is where an external id was pushed and popped.
type bracket struct {
	thread      uint32
	start, stop uint64 // stop 0: never popped
}

// brackets judge calls as a profiler does.
type brackets map[uint64]bracket

func (b brackets) judge(id uint64, c *Call) Verdict {
	at, ok := b[id]
	switch {
	case !ok || c.Thread != at.thread || c.Start < at.start:
		return Unsound
	case at.stop == 0:
		return Wait
	case c.End > at.stop:
		return Unsound
	}
	return Sound
}

type linked struct {
	o  Outcome
	id uint64
}

// join makes a correlator whose activities are names.
func join(opts *CorrelatorOptions, b brackets) (*Correlator[string], map[string]linked) {
	got := make(map[string]linked)
	return NewCorrelator(opts, b.judge, func(name string, o Outcome, id uint64) {
		if _, again := got[name]; again {
			panic(name + " was reported twice")
		}
		got[name] = linked{o, id}
	}), got
}

func TestCorrelator(t *testing.T) {
	ids := brackets{7: {1, 100, 200}, 8: {1, 300, 0}, 9: {2, 100, 200}}
	api := func(number, thread uint32, start, end uint64) func(*Correlator[string], uint64) {
		return func(c *Correlator[string], now uint64) {
			c.API(&API{Kind: KindDriver, Correlation: number, Thread: thread, Start: start, End: end}, now)
		}
	}
	external := func(number uint32, id uint64) func(*Correlator[string], uint64) {
		return func(c *Correlator[string], now uint64) {
			c.External(&External{ExternalKind: ExternalCustom2, ID: id, Correlation: number}, now)
		}
	}
	kernel := func(number uint32, name string) func(*Correlator[string], uint64) {
		return func(c *Correlator[string], now uint64) { c.Activity(number, name, now) }
	}
	var said strings.Builder
	for _, tc := range []struct {
		name  string
		steps []func(*Correlator[string], uint64)
	}{
		{"in order", []func(*Correlator[string], uint64){external(1, 7), api(1, 1, 120, 180), kernel(1, "k")}},
		{"kernel first", []func(*Correlator[string], uint64){kernel(1, "k"), api(1, 1, 120, 180), external(1, 7)}},
		{"runtime and driver", []func(*Correlator[string], uint64){
			external(1, 7), api(1, 1, 130, 170), external(1, 7), api(1, 1, 120, 180), kernel(1, "k"),
		}},
		{"a graph's kernels", []func(*Correlator[string], uint64){kernel(1, "k"), external(1, 7), kernel(1, "l"),
			api(1, 1, 120, 180), kernel(1, "m")}},
		{"no id", []func(*Correlator[string], uint64){api(1, 1, 120, 180), kernel(1, "k")}},
		{"no call", []func(*Correlator[string], uint64){external(1, 7), kernel(1, "k")}},
		{"nothing", []func(*Correlator[string], uint64){kernel(1, "k")}},
		{"no correlation id", []func(*Correlator[string], uint64){kernel(0, "k")}},
		{"an id left over, same thread", []func(
			*Correlator[string], uint64){external(1, 7), api(1, 1, 220, 240), kernel(1, "k")}},
		{"an id never popped", []func(*Correlator[string], uint64){external(1, 8), api(1, 1, 320, 340), kernel(1, "k")}},
		{"the call reaches beyond", []func(*Correlator[string], uint64){external(1, 7), api(1, 1, 190, 240),
			kernel(1, "k")}},
		{"another thread", []func(*Correlator[string], uint64){external(1, 9), api(1, 1, 120, 180), kernel(1, "k")}},
		{"an id nobody knows", []func(*Correlator[string], uint64){external(1, 77), api(1, 1, 120, 180),
			kernel(1, "k")}},
		{"two calls", []func(*Correlator[string], uint64){external(1, 7), api(1, 1, 120, 130), api(1, 1, 140, 150),
			kernel(1, "k")}},
		{"two ids", []func(*Correlator[string], uint64){external(1, 7), external(1, 9), api(1, 1, 120, 130),
			kernel(1, "k")}},
	} {
		c, got := join(nil, ids)
		for i, step := range tc.steps {
			step(c, uint64(i))
		}
		c.End()
		fmt.Fprintf(&said, "%s:\n", tc.name)
		for _, name := range slices.Sorted(maps.Keys(got)) {
			fmt.Fprintf(&said, "  %s: %v, id %d\n", name, got[name].o, got[name].id)
		}
		n := len(c.entries) + len(c.young) + len(c.old) + len(c.unsure)
		testkit.Check(t, n == 0, "%s: %d things are kept", tc.name, n)
	}
	golden.Text(t, "testdata/correlations.txt", said.String())
}

// TestCorrelatorWaits: what is not certain now is reported when it is; calls with ids are kept long, other things are
// not.
func TestCorrelatorWaits(t *testing.T) {
	ids := brackets{7: {1, 100, 0}}
	c, got := join(nil, ids)
	c.External(&External{ID: 7, Correlation: 1}, 0)
	c.API(&API{Thread: 1, Start: 120, End: 180, Correlation: 1}, 0)
	c.Activity(1, "early", 0)
	c.Expire(1e9)
	testkit.Require(t, len(got) == 0, "%v before the id was popped", got)
	ids[7] = bracket{1, 100, 200}
	c.Expire(2e9)
	testkit.Require(t, got["early"] == (linked{Linked, 7}), "%v after the id was popped", got)
	c.API(&API{Thread: 1, Start: 500, End: 510, Correlation: 2}, 2e9)
	c.Expire(500e9)
	c.Activity(1, "late", 500e9) // a kernel that waited for others
	c.Activity(2, "later", 500e9)
	c.Expire(506e9)
	testkit.Check(t, got["late"] == (linked{Linked, 7}) && got["later"] == (linked{Aged, 0}), "%v", got)
	c.Expire(700e9)
	c.Activity(1, "too late", 700e9)
	c.End()
	testkit.Check(t, got["too late"].o == Aged, "%v", got)
}

func TestCorrelatorIsBounded(t *testing.T) {
	c, got := join(&CorrelatorOptions{Most: 10}, brackets{7: {1, 0, 1 << 40}})
	for i := uint32(1); i <= 1000; i++ {
		c.Activity(i, fmt.Sprint(i), 0)
	}
	testkit.Check(t, len(c.entries) <= 10 && len(got) == 990, "%d kept, %d reported", len(c.entries), len(got))
	for i := uint32(2001); i <= 3000; i++ {
		c.External(&External{ID: 7, Correlation: i}, 0)
		c.API(&API{Thread: 1, Start: 5, End: 6, Correlation: i}, 0)
	}
	c.Expire(6e9)
	n := len(c.entries)
	testkit.Check(t, n <= 20, "%d kept", n)
	c.End()
	testkit.Check(t, c.Idle == 1000 && len(got) == 1000 && c.Counts[Aged] == 1000,
		"%d idle, %d reported, %v", c.Idle, len(got), c.Counts)
}
