// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// longerBy makes evidence of rank 2 of some ranks: it worked longer than the others on the host and on the GPU, and
// caused waiting; all in ms.
func longerBy(ranks int, host, gpu, hostCost, gpuCost float64) *Evidence {
	ev := evidence(ranks, 20, 2)
	r := &ev.Causes.Ranks[2]
	r.Worked = (host + gpu) * 1e6
	r.WorkedBy = [workKinds]float64{causes.Host: host * 1e6, causes.GPU: gpu * 1e6}
	r.Costs = [causes.NumKinds]float64{causes.Host: hostCost * 1e6, causes.GPU: gpuCost * 1e6}
	return ev
}

// othersWorked sets the working times of the others, in ms on the host and on the GPU.
func othersWorked(ev *Evidence, ms [][2]float64) *Evidence {
	for i, did := range ms {
		r := &ev.Causes.Ranks[[]int{0, 1, 3, 4, 5}[i]]
		r.Worked = (did[0] + did[1]) * 1e6
		r.WorkedBy = [workKinds]float64{causes.Host: did[0] * 1e6, causes.GPU: did[1] * 1e6}
	}
	return ev
}

// Whether a rank's host or GPU was late, and its share, depend on what it worked longer.
func TestWork(t *testing.T) {
	for _, c := range []struct {
		name  string
		ev    *Evidence
		kind  Kind
		share float64
	}{
		{"its host worked longer", longerBy(4, 200, 0, 600, 0), HostLate, 1},
		{"its GPU worked longer", longerBy(4, 0, 200, 0, 600), GPULate, 1},
		{"its GPU worked longer, its host goes before", longerBy(4, 0, 200, 400, 200), GPULate, 1},
		{"its host, and its GPU for that", longerBy(4, 100, 200, 200, 400), HostLate, 1},
		{"for half of it it did not work longer", longerBy(4, 100, 0, 600, 0), HostLate, 0.5},
		{"the others' hosts worked beside half of it", func() *Evidence {
			ev := longerBy(4, 100, 0, 600, 0)
			ev.Causes.Ranks[2].Beside[causes.Host] = 300e6
			return ev
		}(), HostLate, 1},
		{"its GPU, beside others with other work",
			othersWorked(longerBy(6, 100, 400, 300, 300),
				[][2]float64{{0, 100}, {0, 100}, {0, 100}, {100, 200}, {100, 200}}), GPULate, 0.6},
		{"its host, where others' hosts wait for GPUs alone",
			othersWorked(longerBy(4, 250, 300, 594, 6), [][2]float64{{300, 50}, {300, 50}, {300, 50}}), HostLate, 1},
	} {
		v := Judge(c.ev)
		testkit.Check(t, len(v.Culprits) == 1 && v.Culprits[0].Kind == c.kind && v.Culprits[0].Share == c.share,
			"%s: %+v, want %s and %g", c.name, v.Culprits, c.kind, c.share)
		said := fmt.Sprintf("summed over %d ranks; it caused 100 %%, and its longer work explains %.0f %%. It",
			len(c.ev.Ranks), 100*c.share)
		caused := c.ev.Causes.Ranks[2].Cost() / c.ev.Causes.Waited
		testkit.Check(t, v.Culprits[0].Caused == caused && strings.Contains(v.Text, said) == (c.share < caused),
			"%s: %g was caused by it, want %g: %s", c.name, v.Culprits[0].Caused, caused, v.Text)
	}
}

// A stage in the middle of a pipeline does a little more than the others: that is no reason to name it.
func TestWorkedALittleLonger(t *testing.T) {
	for by, want := range map[float64]int{1.9e6: 0, 2.1e6: 1} { // 0.5 % of the run is 2 ms
		ev := evidence(4, 20, 2)
		r := &ev.Causes.Ranks[2]
		r.Costs[causes.Host], r.Delays[causes.Host], r.Heaviest, r.Worked, ev.Causes.Waited = 12e6, 10e6, 0.6e6, 20e6,
			12e6
		ev.Causes.Ranks[1].Worked = r.Worked - by
		v := Judge(ev)
		testkit.Check(t, len(v.Culprits) == want, "longer by %.1f ms than the next: %+v", by/1e6, v.Culprits)
	}
}

// Of many ranks that are late alike, those that were even later stand out.
func TestSomeOfMany(t *testing.T) {
	ev := evidence(16, 100, 1, 1, 1, 2, 3, 4, 5)
	v := Judge(ev)
	testkit.Check(t, len(v.Culprits) == 1 && v.Culprits[0].Rank == 1, "%+v", v.Culprits)
}

// pairs makes communicators of two: ranks 2·k and 2·k+1. The first rank of the first one was late on some occasions,
// and each of the other ranks named on one.
func pairs(n, times int, others ...int) *Evidence {
	ev := evidence(2*n, 0, -1)
	ev.Duration = uint64(times) * 100e6
	ev.Causes.Comms = nil
	late := make(map[int]int)
	for _, o := range others {
		late[o]++
	}
	late[0] = times
	for k := range n {
		c := causes.Comm{Ranks: []int32{int32(2 * k), int32(2*k + 1)}, Calls: map[string]uint64{"AllReduce": 100}}
		c.Led, c.Struck = make([][causes.Levels]uint32, 2), make([][causes.Levels]float32, 2)
		for m := range 2 {
			r := &ev.Causes.Ranks[2*k+m]
			cost := 10e6 * float64(late[2*k+m])
			c.Struck[m][causes.Level(10e6)] = float32(late[2*k+m])
			r.Costs[causes.Host], r.Delays[causes.Host], r.Worked, r.All = cost, cost, cost, true
			for i := range late[2*k+m] {
				r.Occurrences = append(r.Occurrences,
					causes.Occurrence{Function: "AllReduce", Nth: uint64(i + 1), Late: 10e6, Called: 10e6, Cost: 10e6})
			}
			ev.Causes.Waited += cost
		}
		ev.Causes.Comms = append(ev.Causes.Comms, c)
	}
	return ev
}

// Of two members, one may be late on six occasions by chance. That all six are on one rank of twenty is not chance.
func TestSmallCommunicators(t *testing.T) {
	for _, c := range []struct {
		name  string
		ev    *Evidence
		named int
	}{
		{"six of six, two ranks", pairs(1, 6), 0},
		{"six of six, twenty ranks", pairs(10, 6), 1},
		{"six of twelve, twenty ranks: none in its own", pairs(10, 6, 2, 5, 6, 9, 10, 13), 1},
		{"six of twelve, half of them the other one's", pairs(10, 6, 1, 1, 1, 1, 1, 1), 0},
	} {
		v := Judge(c.ev)
		testkit.Check(t, len(v.Culprits) == c.named, "%s: %+v", c.name, v.Culprits)
	}
}

// The median of two is their mean: of three ranks, either of the others may work differently.
func TestMiddle(t *testing.T) {
	ranks := []causes.Rank{{Worked: 1}, {Worked: 100}, {Worked: 3}, {Worked: 8}}
	for suspect, want := range map[int]float64{2: 4.5, 0: 5.5} {
		testkit.Equal(t, medianOfOthers(ranks, workOf, 1, map[int]bool{suspect: true}), want, "without %d and 1", suspect)
	}
	testkit.Equal(t, medianOfOthers(ranks, workOf, 1, nil), 3, "without 1")
}
