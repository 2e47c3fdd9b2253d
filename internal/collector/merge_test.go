// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shmtest"
)

type given struct {
	ring  int
	ticks uint64
	seq   uint64
}

// newMemory is a job's memory of so many chunks (0: as many as usual), mapped until the test ends.
func newMemory(t interface {
	Fatal(...any)
	Cleanup(func())
}, chunks int) (*shmtest.Job, *shm.Memory) {
	job, err := shmtest.New(shmtest.Options{Chunks: chunks})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { job.Close() })
	memory, err := shm.Map(job.FD())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { memory.Close() })
	return job, memory
}

// Whatever the rings hold and however often they are drained in between: each record is given once, a
// ring's records in their order, and all in order of time as long as no horizon was wrong.
func TestMergeOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		job, memory := newMemory(t, 0)
		var got []given
		m := &merge{}
		drain := func(horizon uint64) {
			memory.Refresh()
			m.drain(memory.Rings(), horizon, func(ring int, _ uint64, r *shm.Record, late bool) bool {
				testkit.Require(t, !late, "ring %d: ticks %d are late", ring, r.Ticks)
				testkit.Require(t, r.Ticks <= horizon, "ticks %d beyond the horizon %d", r.Ticks, horizon)
				if r.Kind == shm.RecordStart {
					got = append(got, given{ring, r.Ticks, r.Seq})
				}
				return true
			})
		}
		threads := make([]*shmtest.Thread, rapid.IntRange(1, 5).Draw(t, "threads"))
		for i := range threads {
			threads[i] = job.Thread(0, i, "t")
		}
		var want []given
		now := uint64(0)
		for i := range rapid.IntRange(0, 200).Draw(t, "records") {
			// Time goes on; each thread writes at the present time, so a drain up to before it is right.
			now += uint64(rapid.IntRange(0, 3).Draw(t, "step"))
			k := rapid.IntRange(0, len(threads)-1).Draw(t, "thread")
			threads[k].Write(&shm.Record{Ticks: now, Kind: shm.RecordStart, Type: shm.EventColl, Seq: uint64(i)})
			want = append(want, given{k, now, uint64(i)})
			if now > 0 && rapid.IntRange(0, 9).Draw(t, "drain") == 0 {
				drain(now - 1)
			}
		}
		drain(math.MaxUint64)
		// In the order of ticks, then of rings, then of writing.
		slices.SortStableFunc(want, func(a, b given) int {
			if a.ticks != b.ticks {
				return int(a.ticks) - int(b.ticks)
			}
			return a.ring - b.ring
		})
		testkit.Require(t, slices.Equal(got, want), "got %v\nwant %v", got, want)
	})
}

func TestLateRecordsAreGivenAndReported(t *testing.T) {
	job, memory := newMemory(t, 0)
	a, b := job.Thread(1, 1, "a"), job.Thread(1, 2, "b")
	m := &merge{}
	var ticks []uint64
	lates := 0
	drain := func() {
		memory.Refresh()
		m.drain(memory.Rings(), 100, func(_ int, _ uint64, r *shm.Record, late bool) bool {
			if late {
				lates++
			}
			ticks = append(ticks, r.Ticks)
			return true
		})
	}
	a.Write(&shm.Record{Ticks: 50, Kind: shm.RecordStop})
	drain()
	b.Write(&shm.Record{Ticks: 40, Kind: shm.RecordStop})
	b.Write(&shm.Record{Ticks: 60, Kind: shm.RecordStop})
	b.Write(&shm.Record{Ticks: 55, Kind: shm.RecordStop}) // a ring's order holds, whatever its ticks
	drain()
	testkit.Check(t, slices.Equal(ticks, []uint64{1, 1, 50, 40, 60, 55}) && lates == 2,
		"ticks %v, %d late", ticks, lates)
}
