// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"math"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// A GPU that computes beside an operation takes the same time from begin to begin; one that needs the received data
// takes the same time from its end.
func TestGPUsThatComputeBesideWaits(t *testing.T) {
	for _, c := range []struct {
		name, play string
		worked     []float64 // µs of GPUs, by rank, each time
	}{
		{
			"a first stage computes the next part while it waits, a second one when it has received",
			"40*[ 0=70 m(0,1) 1~20 m(1,2) 0=70 m(0,1) 1~65 m(1,2) 0=70 m(0,1) 1~55 m(1,2) ]", []float64{3 * 70, 140, 0},
		},
		{
			"also while a message is on its way",
			"40*[ 0=70 m(0,1) 1~30 m(1,2) 0=72 m(0,1) 1~55 m(1,2) 0=68 m(0,1) 1~40 m(1,2) ]", []float64{3 * 70, 125, 0},
		},
		{
			"a first stage that waits for what it has sent",
			"40*[ 0~70 m(0,1) 1~20 m(1,2) 0~70 m(0,1) 1~65 m(1,2) 0~70 m(0,1) 1~55 m(1,2) ]", []float64{3 * 70, 140, 0},
		},
	} {
		r := newJob(len(c.worked)).play(c.play).engine.Result()
		for i, want := range c.worked {
			if got := r.Ranks[i].WorkedBy[GPU] / 1000; math.Abs(got-40*want) > 0.06*40*want+40 {
				t.Errorf("%s: the GPU of rank %d worked %.0f µs, want %.0f", c.name, i, got, 40*want)
			}
		}
	}
}

// If times do not show whether GPUs wait for operations, no wait counts as their work.
func TestOrderOfGPUs(t *testing.T) {
	for _, c := range []struct {
		name           string
		beside, behind float64
		want           bool
	}{

		{"nothing is known", 1, 0, false},
		{"too few times", 8, 0, false},
		{"enough", 9, 0, true},
		{"they do not wait", 20, 1, true},
		{"they wait", 1, 20, false},
		{"times tell neither", 20, 18, false},
		{"many times, and hardly more than the contrary", 600, 400, false},
	} {
		testkit.Equal(t, (&order{c.beside, c.behind}).isBeside(), c.want, "%s", c.name)
	}
}

// If others share a GPU, the times may include their turns, so no wait counts as the rank's work.
func TestSharedGPUsDoNotComputeBesideWaits(t *testing.T) {
	for _, c := range []struct {
		gpus [][]int
		want float64 // µs each time
	}{{nil, 3 * 70}, {[][]int{{1, 2}}, 3 * 70}, {[][]int{{0, 1, 2}}, 0}} {
		j := newJob(3)
		j.engine.SetGPUSharing(NewSharing(3, c.gpus))
		r := j.play("40*[ 0=70 m(0,1) 1~20 m(1,2) 0=70 m(0,1) 1~65 m(1,2) 0=70 m(0,1) 1~55 m(1,2) ]").engine.Result()
		if got := r.Ranks[0].WorkedBy[GPU] / 1000; math.Abs(got-40*c.want) > 0.06*40*c.want+40 {
			t.Errorf("GPUs shared by %v: that of rank 0 worked %.0f µs, want %.0f", c.gpus, got, 40*c.want)
		}
	}
}

// Each time that a GPU has waited for its host, times are compared with those at the same place the time before: of two
// operations in a row, both can have been held up alike.
func TestOrderByPlaces(t *testing.T) {
	for _, c := range []struct {
		name           string
		late           gpuTime // where operations were held up for 15 ms
		beside, behind float64
	}{{"it computes meanwhile", gpuTime{19e6, 4e6}, 2, 0}, {"it waits for them", gpuTime{34e6, 19e6}, 0, 2}} {
		times := gpuTimes{order: new(order)}
		for run, x := range []gpuTime{{19e6, 19e6}, c.late} {
			for nth := range uint32(2) {
				times.add(x, &computing{run: uint32(run), nth: nth})
			}
		}
		testkit.Check(t, *times.order == order{c.beside, c.behind}, "%s: %+v", c.name, *times.order)
	}
}
