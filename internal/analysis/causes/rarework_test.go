// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// What a rank works a few times only does not make it work longer than others; what it works often does.
func TestRareWork(t *testing.T) {
	for _, c := range []struct {
		name         string
		steps        string
		rarely, more float64 // µs, of rank 1: rare work, and what it works longer than rank 0
	}{
		{"nothing", "20*[ 0:200 1:200 ar(0,1) ]", 0, 0},
		{"once", "20*[ 0:200 1:200 ar(0,1) ] 0:200 1:5200 ar(0,1)", 5000, 0},
		{"four times", "4*[ 0:200 1:5200 ar(0,1) ] 20*[ 0:200 1:200 ar(0,1) ]", 3 * 5000, 0}, // the first is start-up
		{"often", "20*[ 0:200 1:300 ar(0,1) ]", 0, 19 * 100},
		{"often, after the other worked once", "0:200 1:200 ar(0,1) 0:90000 1:200 ar(0,1) 20*[ 0:200 1:300 ar(0,1) ]",
			0, 20 * 100},
	} {
		r := newJob(2).play(c.steps).engine.Result()
		a, b := &r.Ranks[0], &r.Ranks[1]
		testkit.Check(t, near(b.Rarely, 1e3*c.rarely), "%s: %.0f ns of rare work", c.name, b.Rarely)
		testkit.Check(t, near(b.Worked-a.Worked, 1e3*c.more), "%s: it worked %.0f ns longer", c.name, b.Worked-a.Worked)
	}
}

func near(got, want float64) bool { return abs(got-want) <= 10e3 }

// Steps that follow the same operation contain each other.
func TestLongestSteps(t *testing.T) {
	var l longest
	for _, step := range []struct {
		before uint32
		ns     float64
	}{{1, 100}, {1, 90}, {1, 110}, {2, 10}, {3, 50}, {4, 10}, {5, 10}, {6, 5}} {
		l.add(step.before, [ownKinds]float64{GPU: step.ns})
	}
	testkit.Equal(t, l.rare(), [ownKinds]float64{GPU: 100 + 40}, "what is rare")
}
