// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/nccl-otf2/nccl-otf2/cupti"
	"github.com/nccl-otf2/nccl-otf2/cupti/cuptitest"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions/cuda"
)

// cuptiShift is how far CUPTI's clock is ahead of the process's line in scenes.
const cuptiShift = 5_000_000

// cuptiVersion is that of CUDA 12.4 in scenes.
const cuptiVersion = 22

// us is a time of CUPTI's.
func us(t float64) uint64 { return base + uint64(t*1000) + cuptiShift }

// gpuKernel is a kernel in a scene; times in µs.
type gpuKernel struct {
	begin, end     float64
	device, stream uint32
	correlation    uint32
	graph          uint32
	node, source   uint64
	blocks         uint32
	name           string
}

const allReduceKernel = "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE"

func (k gpuKernel) record() shm.Record {
	version := uint64(cuptiVersion)
	if k.source != 0 {
		version = cupti.Version134
	}
	start, end := us(k.begin), us(k.end)
	if k.end == 0 {
		start, end = 0, 0
	}
	return shm.Record{Kind: shm.RecordCupti, Arg: version, ActivityName: k.name,
		Activity: cuptitest.Record(cupti.KindConcurrentKernel, 248, map[int]any{
			6: uint16(96), 16: start, 24: end, 40: k.device, 44: k.device + 1, 48: k.stream,
			52: max(k.blocks, 1), 56: uint32(1), 60: uint32(1), 64: uint32(544), 68: uint32(1), 72: uint32(1),
			76: uint32(1024), 80: uint32(84000), 92: k.correlation, 144: k.node, 156: k.graph, 240: k.source,
		})}
}

// activity gives a record of CUPTI's; ring 9 is the plugin's own thread.
func (s *scene) activity(t uint64, r shm.Record) { s.t.Helper(); s.give(9, t, r) }

// reading is a reading of CUPTI's clock, in 0.4 µs.
func (s *scene) reading(t uint64) {
	s.t.Helper()
	s.give(9, t, shm.Record{Kind: shm.RecordCuptiClock, Ticks: 2000*t + 77, Handle: us(float64(t)), Arg: 800,
		Real: us(float64(t)) - 3})
}

func apiRecord(correlation, thread uint32, start, end float64) shm.Record {
	return shm.Record{Kind: shm.RecordCupti, Arg: cuptiVersion,
		Activity: cuptitest.Record(cupti.KindDriver, 40, map[int]any{
			4: uint32(652), 8: us(start), 16: us(end), 24: uint32(1), 28: thread, 32: correlation, 36: uint32(0),
		})}
}

func externalRecord(correlation uint32, id uint64) shm.Record {
	return shm.Record{Kind: shm.RecordCupti, Arg: cuptiVersion,
		Activity: cuptitest.Record(cupti.KindExternal, 24, map[int]any{
			4: uint32(cupti.ExternalCustom2), 8: id, 16: correlation,
		})}
}

func memoryRecord(operation cupti.MemoryOperation, kind cupti.MemoryKind, address, bytes uint64,
	at float64) shm.Record {
	return shm.Record{Kind: shm.RecordCupti, Arg: cuptiVersion,
		Activity: cuptitest.Record(cupti.KindMemory2, 120, map[int]any{
			4: uint32(operation), 8: uint32(kind), 16: address, 24: bytes, 32: us(at), 88: uint64(0),
		})}
}

// launched gives CUPTI's records of the launch of an allReduce that began at a time.
func (s *scene) launched(t uint64, correlation uint32, launchedAt uint64, name string) {
	s.t.Helper()
	s.activity(t, externalRecord(correlation, s.id("launch of "+name)))
	s.activity(t, apiRecord(correlation, 100, float64(launchedAt)+4.2, float64(launchedAt)+5.8))
}

// cupti holds counts of CUPTI's records against those wanted.
func (s *scene) cupti(want map[string]uint64) {
	s.t.Helper()
	if !s.ended {
		s.lines(description.KindThread)
	}
	s.cuptiNow(want)
}

// cuptiNow does so as they are by now.
func (s *scene) cuptiNow(want map[string]uint64) {
	s.t.Helper()
	got := make(map[string]uint64)
	for name := range want {
		got[name] = s.p.Counts.CUPTI[name]
	}
	expectSame(s.t, "counts of CUPTI", want, got)
}

func TestKernelIsLinkedToItsLaunchAndPlan(t *testing.T) {
	s := newScene(t, 4)
	s.reading(1)
	s.allReduce(100, "a")
	s.kernel(120, 150, "a")
	s.activity(400_000, gpuKernel{begin: 119, end: 151, stream: 7, correlation: 1<<32 - 1, blocks: 24,
		name: allReduceKernel}.record())
	s.launched(400_001, 1<<32-1, 100, "a")
	s.reading(500_000)
	s.give(0, 9_000_000, shm.Record{Kind: shm.RecordFinalize})
	s.golden()
}

// Where NCCL gives no stamps, or none that can be true, the kernel's record gives the times.
func TestCUPTIIsTheSecondSourceOfGPUTimes(t *testing.T) {
	for name, stamps := range map[string]bool{"no stamps": false, "stamps of other kernels": true} {
		s := newScene(t, 4)
		if !stamps {
			s = newSceneWith(t, 4, 5, &Options{RecordMask: 1<<shm.EventColl | 1<<shm.EventKernelLaunch})
		}
		s.reading(1)
		s.allReduce(100_000, "a")
		if stamps {
			s.kernel(20, 50, "a") // before its launch
		}
		s.launched(400_000, 3, 100_000, "a")
		s.activity(400_001, gpuKernel{begin: 100_020, end: 100_090, stream: 7, correlation: 3,
			name: allReduceKernel}.record())
		s.reading(500_000)
		s.give(0, 9_000_000, shm.Record{Kind: shm.RecordFinalize})
		s.expect(s.lines(description.KindRank, AttrTimingSource, attrGPUSource), `
			0 CommCreate
			100020…100090 AllReduce [11 0 4294967295 4096 4096] TIMING_SOURCE=gpu GPU_SOURCE=cupti
			9000000 CommDestroy`)
		want := uint64(0)
		if stamps {
			want = 1
		}
		n := s.p.Counts.Oddities["IMPLAUSIBLE_GPU_TIMES"]
		testkit.Check(t, n == want, "%s: %d implausible", name, n)
		testkit.Check(t, s.p.Counts.Timing["gpu"] == 1, "%s: timing %v", name, s.p.Counts.Timing)
	}
}

// No kernel runs before its launch. By a few µs CUPTI is off; more than that is no time of this kernel's.
func TestKernelsBeforeTheirLaunch(t *testing.T) {
	for name, tc := range map[string]struct {
		begin, end float64
		want       string
		count      uint64
	}{
		"a little":      {99_995, 100_050, "100004 Enter AllReduce TIMING_SOURCE=gpu GPU_SOURCE=cupti", 0},
		"all before it": {99_990, 99_995, "100004 Enter AllReduce TIMING_SOURCE=enqueue", 1},
		"much":          {99_000, 100_050, "100004 Enter AllReduce TIMING_SOURCE=enqueue", 1},
	} {
		s := newSceneWith(t, 4, 5, &Options{RecordMask: 1<<shm.EventColl | 1<<shm.EventKernelLaunch})
		s.reading(1)
		s.allReduce(100_000, "a")
		s.launched(400_000, 3, 100_000, "a")
		s.activity(400_001, gpuKernel{begin: tc.begin, end: tc.end, stream: 7, correlation: 3,
			name: allReduceKernel}.record())
		s.reading(500_000)
		got := s.lines(description.KindRank, AttrTimingSource, attrGPUSource)
		testkit.Equal(t, got[1], tc.want, "%s", name)
		s.cupti(map[string]uint64{"KERNELS": 1, "KERNELS_LINKED": 1, "KERNELS_BEFORE_LAUNCH": tc.count})
	}
}

// The interval says how far off it may be, and is there only if everything is known.
func TestKernelInterval(t *testing.T) {
	s := newScene(t, 4)
	s.reading(1)
	s.allReduce(100, "a")
	p := s.m.ranks.all[0].queue.plans[0]
	_, ok := p.gpu.links.KernelInterval()
	testkit.Check(t, !ok, "an interval before anything is known")
	s.launched(300, 3, 100, "a")
	s.activity(300, gpuKernel{begin: 120, end: 190, stream: 7, correlation: 3, name: allReduceKernel}.record())
	_, ok = p.gpu.links.KernelInterval()
	testkit.Check(t, !ok, "an interval before the clock covers it")
	s.reading(500_000)
	k, ok := p.gpu.links.KernelInterval()
	off := func(a, b uint64) uint64 { return max(a, b) - min(a, b) }
	if u := k.Uncertainty; !ok || off(k.Begin, micros(120)) > u || off(k.End, micros(190)) > u || u > 1000 {
		t.Errorf("%+v, %v; want %d … %d", k, ok, micros(120), micros(190))
	}
}

// A plan waits for CUPTI's records, but not for ever, and not again and again.
func TestPlansWaitForTheirKernels(t *testing.T) {
	s := newSceneWith(t, 4, 5, &Options{RecordMask: 1<<shm.EventColl | 1<<shm.EventKernelLaunch, cuptiHold: 2e9,
		operationLimit: 4e9})
	s.reading(1)
	s.reading(500)
	waiting := func() int { return len(s.m.ranks.all[0].queue.plans) }
	s.allReduce(1000, "a")
	s.reading(3_000_000)
	testkit.Check(t, waiting() == 1, "the plan was written before its kernel can be known")
	s.reading(4_100_000)
	testkit.Check(t, waiting() == 0, "the plan waits for ever")
	for i, name := range []string{"b", "c", "d"} {
		s.allReduce(5_000_000+uint64(i)*5_000_000, name)
		s.reading(5_000_000 + uint64(i)*5_000_000 + 20)
		if i < 2 && waiting() != 1 || i == 2 && waiting() != 0 {
			t.Errorf("%s: %d are waiting", name, waiting())
		}
		s.reading(5_000_000 + uint64(i)*5_000_000 + 4_100_000)
	}
	// A link shows that waiting is worth it.
	s.launched(20_000_000, 9, 15_000_000, "d")
	s.activity(20_000_000, gpuKernel{begin: 15_000_010, end: 15_000_020, stream: 7, correlation: 9,
		name: allReduceKernel}.record())
	s.allReduce(21_000_000, "e")
	s.reading(21_000_100)
	testkit.Check(t, waiting() == 1, "the plan does not wait any more")
	s.cupti(map[string]uint64{"KERNELS_LINKED": 1, "LINKED_WITHOUT_PLAN": 1})
}

// NCCL's stamps and CUPTI say when a kernel ran. Where they do not agree this is counted, and marked once.
func TestSourcesThatDiffer(t *testing.T) {
	s := newScene(t, 4)
	s.reading(1)
	for i, name := range []string{"a", "b", "c"} {
		begin := 1000 + 1000*uint64(i)
		s.allReduce(begin, name)
		s.kernel(begin+20, begin+50, name)
		s.launched(begin+200, uint32(i+1), begin, name)
		shift := 0.0
		if i > 0 {
			shift = 300
		}
		s.activity(begin+200, gpuKernel{begin: float64(begin) + 20, end: float64(begin) + 52 + shift, stream: 7,
			correlation: uint32(i + 1), name: allReduceKernel}.record())
	}
	s.reading(500_000)
	s.give(0, 9_000_000, shm.Record{Kind: shm.RecordFinalize})
	s.golden()
}

// An id that stayed on the thread's stack because NCCL went on after an error links nothing, nor does that of another
// thread.
func TestStaleIdsLinkNothing(t *testing.T) {
	s := newScene(t, 4)
	s.reading(1)
	s.start(0, 100, shm.EventKernelLaunch, "failed", "", shm.Record{Stream: 7})
	s.event(0, 200, 206, shm.EventKernelLaunch, "good", "", shm.Record{Stream: 7})
	for i, tc := range []struct {
		id         string
		thread     uint32
		start, end float64
	}{
		{"failed", 100, 101, 103},  // perhaps within, but its end is unknown
		{"failed", 100, 301, 303},  // of the application
		{"good", 100, 301, 303},    // after it
		{"good", 100, 195, 199},    // before
		{"good", 101, 202, 204},    // of another thread
		{"unknown", 100, 202, 204}, // of no launch
		{"good", 100, 202, 204},
	} {
		n := uint32(i + 1)
		s.activity(1000, externalRecord(n, s.id(tc.id)))
		s.activity(1000, apiRecord(n, tc.thread, tc.start, tc.end))
		s.activity(1000, gpuKernel{begin: 400 + 10*float64(i), end: 405 + 10*float64(i), stream: 7, correlation: n,
			name: allReduceKernel}.record())
	}
	s.reading(500_000)
	s.golden()
}

// Where the plugin's thread has waited long for the CPU, calls are judged as they are elsewhere: whatever readings of
// the clock there are when, what lies within its launch is linked.
func TestLinksWithUnevenReadings(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after []uint64 // readings (µs) before CUPTI's records, and when it is asked again
		launch        uint64
	}{
		"the last two in a row":         {[]uint64{1, 600_000, 600_050}, nil, 300_000},
		"the first two in a row":        {[]uint64{1, 60, 700_000}, nil, 300_000},
		"long after the last":           {[]uint64{1, 500}, []uint64{1_200_000}, 1_000_400},
		"longer after the last":         {[]uint64{1, 500}, []uint64{3_200_000}, 3_000_400},
		"long after, then two in a row": {[]uint64{1, 500}, []uint64{1_200_000, 1_200_050}, 1_000_400},
	} {
		s := newScene(t, 4)
		for _, at := range tc.before {
			if at < tc.launch {
				s.reading(at)
			}
		}
		s.allReduce(tc.launch, "a")
		for _, at := range tc.before {
			if at > tc.launch {
				s.reading(at)
			}
		}
		s.launched(tc.launch+310_000, 3, tc.launch, "a")
		s.activity(tc.launch+310_000, gpuKernel{begin: float64(tc.launch) + 20, end: float64(tc.launch) + 50, stream: 7,
			correlation: 3, name: allReduceKernel}.record())
		for _, at := range tc.after {
			s.reading(at)
		}
		s.lines(description.KindStream)
		testkit.Check(t, s.p.Counts.CUPTI["KERNELS_LINKED"] == 1, "%s: %v", name, s.p.Counts.CUPTI)
	}
}

// Everything that CUPTI records of streams has its row.
func TestStreams(t *testing.T) {
	s := newScene(t, 4)
	s.reading(1)
	give := func(kind cupti.Kind, values map[int]any) {
		s.activity(1000, shm.Record{Kind: shm.RecordCupti, Arg: cuptiVersion,
			Activity: cuptitest.Record(kind, 128, values)})
	}
	stream := func(begin, end float64) map[int]any {
		return map[int]any{16: us(begin), 24: us(end), 32: uint32(0), 36: uint32(1), 40: uint32(7), 44: uint32(5),
			8: uint64(4096), 64: uint64(0), 72: uint32(0)}
	}
	toDevice := stream(100, 110)
	toDevice[4] = uint8(1)
	give(cupti.KindMemcpy, toDevice)
	give(cupti.KindMemset, stream(120, 130))
	peer := stream(140, 150)
	peer[4], peer[72], peer[80] = uint8(10), uint64(0), uint32(0)
	give(cupti.KindMemcpy2, peer)
	give(cupti.KindGraphTrace, map[int]any{4: uint32(6), 8: us(160), 16: us(170), 24: uint32(0), 28: uint32(4),
		32: uint32(1), 36: uint32(7)})
	give(cupti.KindSynchronization, map[int]any{4: uint32(3), 8: us(90), 16: us(171), 24: uint32(8), 28: uint32(1),
		32: uint32(7)})
	give(cupti.KindSynchronization, map[int]any{4: uint32(4), 8: us(180), 16: us(181), 24: uint32(9), 28: uint32(1),
		32: uint32(cupti.None)})
	give(cupti.KindSynchronization, map[int]any{4: uint32(4), 8: us(180), 16: us(181), 24: uint32(9), 28: uint32(77),
		32: uint32(cupti.None)})
	give(60, nil)
	s.activity(1000, shm.Record{Kind: shm.RecordCupti, Arg: cuptiVersion, Activity: []byte{3, 0, 0, 0, 1}})
	// Kernels that overlap, as those of parallel branches of a graph do; one without times; the application's own.
	for i, k := range []gpuKernel{{begin: 200, end: 250}, {begin: 210, end: 220}, {begin: 220.05, end: 240},
		{begin: 250, end: 260}, {}} {
		k.stream, k.name, k.device = 7, "_ZN2at6native6kernelIfEEvPfi", 0
		k.correlation = uint32(100 + i)
		s.activity(1000, k.record())
		s.activity(1000, apiRecord(k.correlation, 100, 190, 195))
	}
	s.activity(1000, gpuKernel{begin: 300, end: 310, device: 3, stream: 9, name: "axpy"}.record())
	s.reading(500_000)
	s.golden()
}

// What comes when later things have been written is raised, and counted; what no clock reading covers is not drawn.
func TestLateActivities(t *testing.T) {
	s := newScene(t, 4)
	s.reading(1)
	s.activity(500, gpuKernel{begin: 100, end: 150, stream: 7, name: "a"}.record())
	s.reading(1000)
	s.activity(5_000_000, gpuKernel{begin: 120, end: 130, stream: 7, name: "b"}.record())
	s.activity(5_000_000, gpuKernel{begin: 90, end: 95, stream: 7, name: "c"}.record())
	s.activity(5_000_000, gpuKernel{begin: 6_000_000, end: 7_000_000, stream: 7, name: "d"}.record())
	s.reading(5_500_000)
	s.golden()
}

// Strings of archives are UTF-8, whatever the names of kernels are, or where they were cut off.
func TestNamesOfKernels(t *testing.T) {
	s := newScene(t, 4)
	s.reading(1)
	long := "_ZN" + strings.Repeat("4näh", 400) // in the middle of a letter
	for i, name := range []string{"", "axpy", long[:1023], "k\xff\xfe", allReduceKernel} {
		s.activity(500, gpuKernel{begin: 100 + 10*float64(i), end: 105 + 10*float64(i), stream: 7, name: name}.record())
	}
	s.reading(1000)
	got := s.lines(description.KindStream)
	testkit.Require(t, len(got) == 10, "%q", got)
	for i, want := range []string{unnamedKernel, "axpy", "näh::näh", "k?", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"} {
		name := strings.SplitN(got[2*i], " ", 3)[2]
		testkit.Check(t, strings.HasPrefix(name, want) && len(name) <= maxKernelNameLen, "%q, want %s…", got[2*i], want)
	}
	for _, r := range s.p.Regions {
		testkit.Check(t, utf8.ValidString(r.Name) && utf8.ValidString(r.Canonical), "%q, %q", r.Name, r.Canonical)
	}
}

// While a job runs its shard says what CUPTI's records are still to become.
func TestUndecidedKernelsAreCounted(t *testing.T) {
	s := newScene(t, 4)
	s.reading(1)
	s.activity(500, gpuKernel{begin: 100, end: 150, stream: 7, correlation: 3, name: allReduceKernel}.record())
	s.activity(500, gpuKernel{begin: 100, end: 150, stream: 8, correlation: 4, graph: 1, name: "b"}.record())
	s.activity(500, gpuKernel{begin: 100, end: 150, stream: 8, name: "c"}.record())
	s.m.Snapshot()
	got := s.p.Counts.CUPTI
	testkit.Check(t, got["KERNELS"] == 3 && got["KERNELS_UNDECIDED"] == 2 && got["UNDRAWN"] == 3, "%v", got)
	s.reading(1000)
	s.cupti(map[string]uint64{"KERNELS": 3, "KERNELS_UNDECIDED": 0, "UNDRAWN": 0, "KERNELS_OTHER": 1,
		"KERNELS_AGED_OUT": 1, "KERNELS_GRAPH_OTHER": 1, "NCCL_KERNELS_UNLINKED": 1})
}

// The application's kernels wait for no launch of NCCL's, whether CUPTI records their calls (the driver's) or not (the
// runtime's). Those whose names are not known do, as do all for which an id has come.
func TestOtherKernelsWaitForNothing(t *testing.T) {
	s := newScene(t, 4)
	s.reading(1)
	s.allReduce(100, "a")
	s.activity(400, apiRecord(3, 100, 90, 91))
	s.activity(400, externalRecord(7, s.id("launch of a")))
	for i, k := range []gpuKernel{{correlation: 2, name: "by the runtime"}, {correlation: 3, name: "by the driver"},
		{name: "by nobody"}} {
		k.begin, k.end, k.stream = float64(100+20*i), float64(110+20*i), 8
		s.activity(500, k.record())
	}
	s.m.Snapshot()
	s.cuptiNow(map[string]uint64{"KERNELS": 3, "KERNELS_OTHER": 3, "KERNELS_UNDECIDED": 0})
	for i, k := range []gpuKernel{{correlation: 5}, {correlation: 6, name: allReduceKernel},
		{correlation: 7, name: "ours"}} {
		k.begin, k.end, k.stream = float64(200+20*i), float64(210+20*i), 8
		s.activity(500, k.record())
	}
	s.m.Snapshot()
	s.cuptiNow(map[string]uint64{"KERNELS": 6, "KERNELS_OTHER": 3, "KERNELS_UNDECIDED": 3})
	s.activity(600, apiRecord(7, 100, 104.2, 105.8))
	s.reading(1000)
	s.cupti(map[string]uint64{"KERNELS": 6, "KERNELS_OTHER": 4, "KERNELS_AGED_OUT": 1, "KERNELS_LINKED": 1,
		"NCCL_KERNELS_UNLINKED": 1, "KERNELS_UNDECIDED": 0})
}

// What comes so late that its kernel has been drawn without it links nothing, and is counted as what it looks like.
func TestNothingIsLinkedBehindTheTimeline(t *testing.T) {
	s := newScene(t, 4)
	s.reading(1)
	s.allReduce(100, "a")
	s.kernel(120, 150, "a")
	s.activity(200, externalRecord(3, s.id("launch of a")))
	s.reading(500_000)
	s.activity(3_000_000, gpuKernel{begin: 119, end: 151, stream: 7, correlation: 3, name: allReduceKernel}.record())
	s.reading(8_000_000)
	s.activity(8_000_001, apiRecord(3, 100, 104.2, 105.8))
	s.activity(8_000_001, externalRecord(3, s.id("launch of a")))
	s.golden()
}

// Streams for which there is no row any more leave nothing behind.
func TestRowsAreBounded(t *testing.T) {
	s := newScene(t, 4)
	s.reading(1)
	for i := range uint32(cuda.MaxRows + 100) {
		s.activity(500, gpuKernel{begin: 100, end: 150, stream: i, name: "a"}.record())
	}
	s.reading(1000)
	s.reading(10_000_000)
	rows := 0
	for _, l := range s.m.locations {
		if l.Kind == description.KindStream {
			rows++
		}
	}
	expectCount(t, "rows", rows, cuda.MaxRows)
	s.cupti(map[string]uint64{"WITHOUT_ROW": 100, "KERNELS": cuda.MaxRows + 100})
}

// What is counted is explained.
func TestCountsAreOnThePage(t *testing.T) {
	page := testkit.Value(os.ReadFile(filepath.Join("..", "docs", "gpu.md")))(t)
	names := append([]string{}, cuda.CountNames[:]...)
	for _, a := range Attributes[attrGridX : attrInPlace+1] {
		names = append(names, a.Name)
	}
	for _, name := range names {
		testkit.Check(t, strings.Contains(string(page), "`"+name+"`"), "docs/gpu.md says nothing of %s", name)
	}
}

// TestCUDAGolden compares a small archive with everything of CUPTI's in it, as text.
func TestCUDAGolden(t *testing.T) {
	s := newScene(t, 4)
	s.reading(1)
	s.activity(10, memoryRecord(cupti.MemoryAllocate, cupti.MemoryDevice, 0x7000, 0x10000, 5))
	for i, name := range []string{"a", "b"} {
		begin := 1000 * uint64(i+1)
		s.allReduce(begin, name)
		s.kernel(begin+20, begin+50, name)
		s.launched(begin+200, uint32(i+1), begin, name)
		s.activity(begin+200, gpuKernel{begin: float64(begin) + 19, end: float64(begin) + 52, stream: 7,
			correlation: uint32(i + 1), blocks: 2, name: allReduceKernel}.record())
		s.activity(begin+200, gpuKernel{begin: float64(begin) + 60, end: float64(begin) + 70, stream: 7,
			correlation: uint32(i + 10), name: "axpy"}.record())
		s.activity(begin+200, apiRecord(uint32(i+10), 100, float64(begin)+12, float64(begin)+13))
	}
	s.reading(500_000)
	s.give(0, 9_000_000, shm.Record{Kind: shm.RecordFinalize})
	s.golden()
}
