// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// What each kind of collective makes wait, and when it cannot be told.
func TestArrivals(t *testing.T) {
	at := func(begins ...otf2.Timestamp) (all []Arrival) {
		for i, b := range begins {
			all = append(all, Arrival{Rank: i, Begin: b, End: 100, Source: SourceGPU, Root: i == 1})
		}
		return all
	}
	leaves := func(all []Arrival, ends ...otf2.Timestamp) []Arrival {
		for i, end := range ends {
			all[i].End = end
		}
		return all
	}
	for _, c := range []struct {
		name, function string
		unstated       bool
		members        []Arrival
		kind           WaitKind
		awaited        int
		want           []uint64 // nil: cannot be told
	}{
		{"all wait for the last", "AllReduce", false, at(10, 30, 20), WaitCollective, 1, []uint64{20, 0, 10}},
		{"of two last ones the lowest rank is waited for", "AllReduce", false, at(10, 30, 30), WaitCollective, 1, []uint64{20, 0, 0}},
		{"a late root", "Broadcast", false, leaves(at(10, 30, 50), 40, 45, 100), WaitLateBroadcast, 1, []uint64{20, 0, 0}},
		{"a root, and one that a late member holds up", "Broadcast", false, leaves(at(10, 30, 50), 100, 45, 100), WaitLateBroadcast, 2, []uint64{40, 0, 0}},
		{"a root that a late member holds up", "Broadcast", false, leaves(at(10, 30, 50), 40, 60, 100), WaitLateBroadcast, 2, []uint64{20, 20, 0}},
		{"an early root", "Reduce", false, leaves(at(10, 5, 50), 40, 60, 55), WaitEarlyReduce, 2, []uint64{0, 45, 0}},
		{"a chain that a late member holds up", "Reduce", false, leaves(at(10, 5, 50), 70, 80, 60), WaitEarlyReduce, 2, []uint64{40, 45, 0}},
		{"a function that NCCL does not have", "Frobnicate", false, at(10, 5), WaitCollective, 0, []uint64{0, 5}},
		{"no wait is longer than the operation", "AllReduce", false, []Arrival{{Begin: 0, End: 5, Source: SourceGPU}, {Rank: 1, Begin: 50, End: 60, Source: SourceGPU}}, WaitCollective, 1, []uint64{5, 0}},
		{"times of two kinds", "AllReduce", false, []Arrival{{Begin: 1, End: 9, Source: SourceNetwork}, {Rank: 1, Begin: 2, End: 9, Source: SourceGPU}}, WaitCollective, -1, nil},
		{"the best that two have", "AllReduce", false, append(at(10, 30), Arrival{Rank: 2, Begin: 90, End: 99, Source: SourceNetwork}, Arrival{Rank: 3, Begin: 95, End: 99, Source: SourceNetwork}), WaitCollective, 1, []uint64{20, 0, 0, 0}},
		{"enqueueing says nothing", "AllReduce", false, []Arrival{{Begin: 1, End: 9, Source: SourceEnqueue}, {Rank: 1, Begin: 2, End: 9, Source: SourceEnqueue}}, WaitCollective, -1, nil},
		{"nor do lengths", "AllReduce", false, []Arrival{{Begin: 1, End: 9, Source: SourceDuration}, {Rank: 1, Begin: 2, End: 9, Source: SourceDuration}}, WaitCollective, -1, nil},
		{"an archive that tells no sources", "AllReduce", true, []Arrival{{Begin: 1, End: 9}, {Rank: 1, Begin: 4, End: 9}}, WaitCollective, 1, []uint64{3, 0}},
		{"a root without times", "Broadcast", false, []Arrival{{Begin: 1, End: 9, Source: SourceGPU}, {Rank: 2, Begin: 4, End: 9, Source: SourceGPU}}, WaitLateBroadcast, -1, nil},
	} {
		kind := WaitKindOf(regions.CollectiveNamed(c.function))
		l, ok := Arrive(kind, c.members, c.unstated)
		if ok != (c.want != nil) || kind != c.kind || ok && l.Awaited != c.awaited {
			t.Errorf("%s: %v, %+v", c.name, ok, l)
			continue
		}
		caused := uint64(0)
		for i := range c.want {
			if c.members[i].Wait != c.want[i] {
				t.Errorf("%s: member %d waits %d, want %d", c.name, i, c.members[i].Wait, c.want[i])
			}
			caused += c.want[i]
		}
		if ok && l.Caused != caused {
			t.Errorf("%s: %d ns are caused, want %d", c.name, l.Caused, caused)
		}
	}
}
