// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// TestNoKernelIsLinkedWrongly plays a job of launches and replays with kernels of the application between them, whose
// records come in any order, late or not at all. Each kernel on the timeline must bear the plan that it was launched
// for or none, and must bear it if all its records came in time; the counts must be those of the truth.
func TestNoKernelIsLinkedWrongly(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newSceneWith(
			t, 4, 7, &Options{RecordMask: 1<<shm.EventKernelCh | 1<<shm.EventColl | 1<<shm.EventKernelLaunch})
		type record struct {
			at   uint64
			ring int
			r    shm.Record
		}
		type truth struct {
			plan    string // "" if it is not of a plan here
			certain bool   // it must be linked
		}
		var late []record
		kernels := make(map[uint32]truth) // by correlation id; those of replays by node + 1000
		want := make(map[string]uint64)
		gone := func(what string) bool { return rapid.IntRange(0, 7).Draw(rt, what) == 0 }
		give := func(now uint64, r shm.Record) {
			late = append(late, record{now + 100 + uint64(rapid.IntRange(0, 2_500_000).Draw(rt, "lateness")), 9, r})
		}
		s.reading(1)
		s.capture(100, "g")
		s.give(2, 500, shm.Record{Kind: shm.RecordThread, TID: 200})
		now, nextReading := uint64(1000), uint64(500_000)
		flush := func(until uint64) {
			slices.SortStableFunc(late, func(a, b record) int { return int(int64(a.at) - int64(b.at)) })
			for len(late) > 0 && late[0].at <= until || nextReading <= until {
				if len(late) > 0 && late[0].at < nextReading {
					s.give(9, late[0].at, late[0].r)
					late = late[1:]
					continue
				}
				s.reading(nextReading)
				nextReading += 500_000
			}
		}
		stamps := rapid.Bool().Draw(rt, "stamps")
		replayed := "g"
		for i := range rapid.IntRange(1, 12).Draw(rt, "steps") {
			now += uint64(rapid.SampledFrom([]int{300, 1000, 700_000}).Draw(rt, "pause"))
			flush(now)
			n := uint32(i + 1)
			if i == 0 {
				n = 1<<32 - 1 // ids wrap around
			}
			length := uint64(rapid.IntRange(5, 60).Draw(rt, "length"))
			switch rapid.IntRange(0, 3).Draw(rt, "what") {
			case 0: // the application's own
				want["KERNELS"]++
				kernels[n] = truth{}
				give(now, gpuKernel{begin: float64(now) + 5, end: float64(now + length), stream: 7, correlation: n,
					name: "axpy"}.record())
				if rapid.Bool().Draw(rt, "by the driver") { // calls of the runtime are not recorded
					give(now, apiRecord(n, 100, float64(now), float64(now)+2))
				}
				want["KERNELS_OTHER"]++
			case 1: // a launch that failed, and left its id; the application goes on
				name := fmt.Sprint("failed", i)
				s.start(0, now, shm.EventKernelLaunch, name, "", shm.Record{Stream: 7})
				s.give(0, now+1, shm.Record{Kind: shm.RecordMark, Mark: shm.MarkPoint, MarkText: "error"})
				want["KERNELS"]++
				want["KERNELS_IMPLAUSIBLE"]++
				kernels[n] = truth{}
				give(now, externalRecord(n, s.id(name)))
				give(now, apiRecord(n, 100, float64(now)+3, float64(now)+4))
				give(now, gpuKernel{begin: float64(now) + 5, end: float64(now + length + 6), stream: 7, correlation: n,
					name: allReduceKernel}.record())
			case 2:
				name := fmt.Sprint("op", i)
				s.allReduce(now, name)
				if stamps {
					s.kernel(now+15, now+16+length, name)
				}
				hasID, hasCall := !gone("id"), !gone("call")
				if hasID {
					give(now, externalRecord(n, s.id("launch of "+name)))
				}
				if hasCall {
					give(now, apiRecord(n, 100, float64(now)+4.2, float64(now)+5.8))
				}
				if gone("kernel") {
					break
				}
				want["KERNELS"]++
				switch {
				case hasID && hasCall:
					want["KERNELS_LINKED"]++
				case hasCall:
					want["KERNELS_NO_EXTERNAL_ID"]++
				case hasID:
					want["KERNELS_NO_API_CALL"]++
				default:
					want["KERNELS_AGED_OUT"]++
				}
				kernels[n] = truth{"plan of " + name, hasID && hasCall}
				give(now, gpuKernel{begin: float64(now) + 14, end: float64(now+17) + float64(length), stream: 7,
					correlation: n, name: allReduceKernel}.record())
			case 3: // a replay of the graph, and of another one at the same time
				s.plan(2, now, "p"+replayed, "AllReduce", replayed)
				if stamps {
					s.kernel(now+15, now+16+length, replayed)
				}
				lost := gone("kernel")
				if !lost {
					want["KERNELS"]++
					kernels[1000+n] = truth{plan: "p" + replayed}
					give(now, gpuKernel{begin: float64(now) + 14, end: float64(now+17) + float64(length), stream: 7,
						correlation: 1000 + n, graph: 5, node: 3, name: allReduceKernel}.record())
				}
				if rivalAt := rapid.SampledFrom([]uint64{0, 5, 30, 60, 100}).Draw(rt, "rival at"); (rivalAt > 25 && stamps || !lost) && rapid.Bool().Draw(rt, "rival") {
					want["KERNELS"]++
					kernels[2000+n] = truth{}
					give(now, gpuKernel{begin: float64(now + 14 + rivalAt), end: float64(now + 17 + rivalAt + length),
						stream: 8, correlation: 2000 + n, graph: 6, node: 4, name: allReduceKernel}.record())
				}
				replayed += "'"
			}
			now += 100
		}
		flush(now + 3_000_000)
		s.reading(nextReading)
		flush(now + 9_000_000)
		s.end(filepath.Join(s.dir, "traces.otf2"))
		checkWhole(rt, s)
		checkCounts(rt, s.m)
		for name, n := range want {
			testkit.Equal(rt, s.p.Counts.CUPTI[name], n, "%s", name)
		}
		names := make(map[uint64]string)
		for name, id := range s.handle {
			names[id] = name
		}
		a := testkit.Value(otf2.Open(filepath.Join(s.dir, "traces.otf2"), nil))(rt)
		defer a.Close()
		drawn := uint64(0)
		for _, l := range s.p.Locations {
			if l.Kind != description.KindStream {
				continue
			}
			for e, err := range a.EventsOf(otf2.LocationRef(l.Number)) {
				testkit.Must(rt, err)
				if e.Kind != otf2.EventEnter {
					continue
				}
				drawn++
				plan, n := "", uint32(0)
				for _, v := range e.Attributes {
					switch v.ID {
					case AttrPlanID:
						plan = names[v.Bits]
					case attrCorrelationID:
						n = uint32(v.Bits)
					}
				}
				switch w := kernels[n]; {
				case plan != "" && plan != w.plan:
					rt.Errorf("kernel %d is linked to %q, is of %q", n, plan, w.plan)
				case plan == "" && w.certain:
					rt.Errorf("kernel %d of %q is not linked", n, w.plan)
				}
			}
		}
		testkit.Check(rt, drawn == want["KERNELS"], "%d kernels are drawn, of %d", drawn, want["KERNELS"])
	})
}

// FuzzActivities: whatever bytes come as activity records, the timeline is whole.
func FuzzActivities(f *testing.F) {
	kernel := gpuKernel{begin: 10, end: 20, stream: 7, correlation: 3, name: allReduceKernel}.record()
	f.Add(kernel.Activity, apiRecord(3, 100, 5, 6).Activity, externalRecord(3, 9).Activity, uint32(cuptiVersion))
	f.Add(memoryRecord(1, 3, 4096, 100, 5).Activity, memoryRecord(2, 3, 4096, 100, 5).Activity, []byte{},
		uint32(130400))
	f.Fuzz(func(t *testing.T, a, b, c []byte, version uint32) {
		p := &description.Process{}
		m := New(&memorySink{}, p, nil)
		for i, activity := range [][]byte{a, b, c, a} {
			now := base + uint64(i)*1e9
			for _, r := range []shm.Record{
				{Kind: shm.RecordCuptiClock, Ticks: now, Handle: now, Real: now, Arg: 10},
				{Kind: shm.RecordCupti, Arg: uint64(version), Activity: activity, ActivityName: "axpy"},
			} {
				testkit.Must(t, m.Record(0, now, &r))
			}
			testkit.Must(t, m.Advance(now))
		}
		testkit.Must(t, m.Finish())
		m.Snapshot()
	})
}
