// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"math"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Lateness of a rank's GPU due to others' turns is separated, and is in no cost of the rank; lateness beyond that, or
// of its host, remains.
func TestTurnsOfOthers(t *testing.T) {
	two, three := [][]int{{0, 1}}, [][]int{{0, 1, 2}}
	for _, c := range []struct {
		name  string
		ranks int
		gpus  [][]int // shared GPUs, by their ranks
		play  string
		rank  int  // the rank that was late
		kind  Kind // of all lateness
	}{
		{"a GPU that is shared, for a turn", 2, two, "ar(0,1) 5*[ 1~2300 ar(0,1) ]", 1, Turns},
		{"no GPU is shared", 2, nil, "ar(0,1) 5*[ 1~2300 ar(0,1) ]", 1, GPU},
		{"no call is known", 2, two, "ar(0,1) 5*[ 1?2300 ar(0,1) ]", 1, Turns},
		{"for longer than a turn", 2, two, "ar(0,1) 5*[ 1~3500 ar(0,1) ]", 1, GPU},
		{"for the turns of two others", 3, three, "ar(0,1,2) 5*[ 2~5900 ar(0,1,2) ]", 2, Turns},
		{"for longer than these", 3, three, "ar(0,1,2) 5*[ 2~6500 ar(0,1,2) ]", 2, GPU},
		{"a host", 2, two, "ar(0,1) 5*[ 1:2300 ar(0,1) ]", 1, Host},
		{"a rank with a GPU of its own", 3, two, "ar(0,1,2) 5*[ 2~2300 ar(0,1,2) ]", 2, GPU},
		{"of four on two GPUs", 4, [][]int{{0, 1}, {2, 3}}, "ar(0,1,2,3) 5*[ 3~2300 ar(0,1,2,3) ]", 3, Turns},
		{"in each operation since both met", 3, [][]int{{1, 2}}, "ar(0,1) ar(1,2) 5*[ 3*[ 1~2300 ar(1,2) ] ar(0,1) ]",
			1, Turns},
		{"a message", 2, two, "m(0,1) 5*[ 1~2300 m(0,1) ]", 1, Turns},
		{"a slow GPU, passed on", 4, two, "ar(0,1) ar(0,2) ar(1,3) 5*[ sg1(0,1) ar(0,2) ar(1,3) ]", 1, Turns},
		{"a slow GPU of its own, passed on", 4, nil, "ar(0,1) ar(0,2) ar(1,3) 5*[ sg1(0,1) ar(0,2) ar(1,3) ]", 1,
			Moving},
		{"a slow link of a GPU that is shared", 4, two, "ar(0,1) ar(0,2) ar(1,3) 5*[ sl1(0,1) ar(0,2) ar(1,3) ]", 1,
			Link},
	} {
		j := newJob(c.ranks)
		j.engine.SetGPUSharing(NewSharing(c.ranks, c.gpus))
		r := j.play(c.play).engine.Result()
		if got := r.Ranks[c.rank].Costs[c.kind]; r.Waited == 0 || math.Abs(got-r.Waited) > 0.03*r.Waited {
			t.Errorf("%s: %.0f of %.0f ns: %+v", c.name, got, r.Waited, r.Ranks)
		}
		testkit.Check(t, r.Transfers() > 0.03*r.Waited == (c.kind == Moving || c.kind == Link),
			"%s: %.0f ns go back to transfers", c.name, r.Transfers())
	}
}

// The turns of others may explain part of a GPU's lateness each time: only the rest is its own work.
func TestWorkBesideTurns(t *testing.T) {
	two, three := [][]int{{0, 1}}, [][]int{{0, 1, 2}}
	for _, c := range []struct {
		name  string
		gpus  [][]int
		late  string
		by    [ownKinds]float64 // µs that rank 2 worked longer than rank 0
		ranks string
	}{
		{"a GPU of its own", nil, "2~2300", [ownKinds]float64{GPU: 5 * 2300}, "0,1,2"},
		{"another GPU is shared", two, "2~2300", [ownKinds]float64{GPU: 5 * 2300}, "0,1,2"},
		{"for the turns of two others", three, "2~5900", [ownKinds]float64{}, "0,1,2"},
		{"for longer than these", three, "2~7000", [ownKinds]float64{GPU: 5 * 1000}, "0,1,2"},
		{"no call is known", three, "2?7000", [ownKinds]float64{Own: 5 * 1000}, "0,1,2"},
		{"a host", three, "2:2300", [ownKinds]float64{Host: 5 * 2300}, "0,1,2"},
	} {
		j := newJob(3)
		j.engine.SetGPUSharing(NewSharing(3, c.gpus))
		r := j.play("ar(" + c.ranks + ") 5*[ " + c.late + " ar(" + c.ranks + ") ]").engine.Result()
		for k, want := range c.by {
			if got := (r.Ranks[2].WorkedBy[k] - r.Ranks[0].WorkedBy[k]) / 1e3; math.Abs(got-want) > 300 {
				t.Errorf("%s: by kind %d %.0f µs longer, want %.0f", c.name, k, got, want)
			}
		}
	}
}

func TestWhatTurnsExplain(t *testing.T) {
	s := NewSharing(4, [][]int{{0, 2, 3}})
	for _, c := range []struct {
		rank  int
		ns    float64
		times uint64
		want  bool
	}{
		{0, 2 * longestTurn, 1, true}, {3, 2*longestTurn + 1, 1, false}, {3, 2*longestTurn + 1, 2, true},
		{1, 1, 1, false}, {-1, 1, 1, false}, {4, 1, 1, false}, {0, 1, 0, false},
	} {
		testkit.Equal(t, s.Explains(c.rank, c.ns, c.times), c.want, "%+v", c)
	}
	testkit.Check(t, !NewSharing(4, nil).Explains(0, 1, 1), "no GPU is shared, and its turns explain something")
}
