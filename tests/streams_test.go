// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/cupti"
	"github.com/nccl-otf2/nccl-otf2/cupti/cuptitest"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/report"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shmtest"
)

// streamJob is one process of a job whose kernels CUPTI records, as its spool file has it. Times are µs.
type streamJob struct {
	t           *testing.T
	job         *shmtest.Job
	out         bytes.Buffer // its spool file
	app, cupti  *shmtest.Thread
	correlation uint32
	number      uint64
}

const (
	streamThread = 100
	// CUPTI's clock reads so much more (ns) than the process's.
	streamShift = 4_000_000
	reduceName  = "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE"
	axpyName    = "_ZN5model4axpyIfEEvPT_i"
)

// streamTicks are ns on the process's line, which begins at 1 s.
func streamTicks(us float64) uint64 { return 1_000_000_000 + uint64(us*1000) }

func cuptiTime(us float64) uint64 { return streamTicks(us) + streamShift }

func newStreamJob(t *testing.T, rank int) *streamJob {
	t.Helper()
	begin := shm.ClockTuple{Ticks: streamTicks(0), Raw: streamTicks(0), Mono: streamTicks(0), Real: streamTicks(0)}
	job := testkit.Value(shmtest.New(shmtest.Options{Chunks: 256, Clock: shm.ClockMonotonic, Created: begin,
		PID: 4000 + rank, PIDStart: 1, Tag: 0x1111 * uint16(rank+1), APIVersion: 6}))(t)
	t.Cleanup(func() { job.Close() })
	s := &streamJob{t: t, job: job}
	job.Header().RecordMask =
		1<<shm.EventGroup | 1<<shm.EventColl | 1<<shm.EventGroupApi | 1<<shm.EventCollApi | 1<<shm.EventKernelLaunch
	job.Comm(shm.Comm{APIVersion: 6, ID: 0xc0ffee, NRanks: 2, Rank: rank, NNodes: 1, Name: "world",
		InitTicks: streamTicks(0)}, &[16]byte{15: byte(rank + 1)})
	s.app = job.Thread(streamTicks(0), streamThread, "python")
	s.cupti = job.Thread(streamTicks(0), streamThread+1, "nccl-otf2 cupti")
	s.app.KeepForSpool()
	s.cupti.KeepForSpool()
	// What a thread's first record says is spooled only from here on.
	s.app.Own(streamTicks(0), streamThread, "python")
	s.cupti.Own(streamTicks(0), streamThread+1, "nccl-otf2 cupti")
	s.write(s.app, 0, shm.Record{Kind: shm.RecordInit})
	s.reading(1)
	return s
}

func (s *streamJob) write(th *shmtest.Thread, us float64, r shm.Record) {
	r.Ticks = streamTicks(us)
	th.Write(&r)
}

func (s *streamJob) start(us float64, typ shm.EventType, r shm.Record) uint64 {
	s.number++
	r.Kind, r.Type, r.Handle = shm.RecordStart, typ, s.job.Handle(typ, s.number)
	s.write(s.app, us, r)
	return r.Handle
}

func (s *streamJob) stop(us float64, h uint64) {
	s.write(s.app, us, shm.Record{Kind: shm.RecordStop, Type: shm.TypeOf(h), Handle: h})
}

// reading is one of CUPTI's clock.
func (s *streamJob) reading(us float64) {
	s.write(s.cupti, us, shm.Record{Kind: shm.RecordCuptiClock, Handle: cuptiTime(us), Arg: 60,
		Real: cuptiTime(us) - 40})
}

func (s *streamJob) activity(us float64, name string, kind cupti.Kind, size int, values map[int]any) {
	s.write(s.cupti, us, shm.Record{Kind: shm.RecordCupti, Arg: cupti.Version134, ActivityName: name,
		Activity: cuptitest.Record(kind, size, values)})
}

func (s *streamJob) api(us float64, correlation uint32, begin, end float64) {
	s.activity(us, "", cupti.KindDriver, 40, map[int]any{8: cuptiTime(begin), 16: cuptiTime(end),
		28: uint32(streamThread), 32: correlation})
}

func (s *streamJob) kernel(us float64, name string, device, stream, correlation, graph uint32, begin, end float64) {
	start, stop := cuptiTime(begin), cuptiTime(end)
	if end == 0 { // CUPTI could not time it
		start, stop = 0, 0
	}
	s.activity(us, name, cupti.KindConcurrentKernel, 248, map[int]any{
		6: uint16(96), 16: start, 24: stop, 40: device, 44: device + 1, 48: stream,
		52: uint32(24), 56: uint32(2), 60: uint32(1), 64: uint32(544), 68: uint32(1), 72: uint32(1), 76: uint32(1024),
		80: uint32(84000),
		92: correlation, 144: uint64(graph) << 32, 156: graph, 240: uint64(0),
	})
}

// allReduce is a call whose kernel runs 20 µs later, as CUPTI tells it afterwards; recorded false: the record of the
// API call is lost.
func (s *streamJob) allReduce(us float64, seq uint64, recorded bool) {
	s.correlation++
	group := s.start(us, shm.EventGroupApi, shm.Record{GroupDepth: 1})
	call := s.start(us+1, shm.EventCollApi, shm.Record{Arg: group, Count: 1024, Func: "AllReduce",
		Datatype: "ncclFloat32", Stream: 7})
	s.stop(us+2, call)
	launch := s.start(us+3, shm.EventKernelLaunch, shm.Record{Arg: group, Stream: 7})
	s.stop(us+6, launch)
	plan := s.start(us+7, shm.EventGroup, shm.Record{})
	s.stop(us+8, s.start(us+7, shm.EventColl, shm.Record{
		Arg: call, ParentGroup: plan, Seq: seq, Count: 1024, Func: "AllReduce", Datatype: "ncclFloat32", Algo: "RING",
		Proto: "LL", NChannels: 1, NWarps: 16,
		SendBuff: 0x10000, RecvBuff: 0x20000,
	}))
	s.stop(us+9, plan)
	s.stop(us+10, group)
	s.kernel(us+200, reduceName, 0, 7, s.correlation, 0, us+20, us+50)
	s.activity(us+201, "", cupti.KindExternal, 24,
		map[int]any{4: uint32(cupti.ExternalCustom2), 8: launch, 16: s.correlation})
	if recorded {
		s.api(us+202, s.correlation, us+4, us+5)
	}
}

// play writes the process's life; what rank 1 lacks of CUPTI's records is lost.
func (s *streamJob) play(rank int, ops uint64) {
	for i, kind := range []cupti.MemoryKind{cupti.MemoryDevice, cupti.MemoryManaged} {
		s.activity(50, "", cupti.KindMemory2, 128, map[int]any{
			4: uint32(cupti.MemoryAllocate), 8: uint32(kind), 16: uint64(0x10000 * (i + 1)), 24: uint64(0x10000),
			32: cuptiTime(20), 88: uint64(0),
		})
	}
	us := float64(0)
	for i := range ops {
		us += 1000
		s.allReduce(us, i, rank == 0 || i != 3)
		// The application's own, on two streams and two devices; the second one of a stream overlaps the first.
		for n, begin := range []float64{us + 60, us + 70, us + 60} {
			s.correlation++
			s.api(us+300, s.correlation, us+30, us+31)
			s.kernel(us+301, axpyName, uint32(n/2), 9, s.correlation, 0, begin, begin+30)
		}
		// A replayed graph, with a kernel of NCCL's that nothing tells the plan of.
		s.correlation++
		s.kernel(us+310, reduceName, 0, 11, s.correlation, 5, us+400, us+420)
		stream := map[int]any{32: uint32(0), 36: uint32(1), 40: uint32(9), 44: s.correlation, 8: uint64(4096),
			64: uint64(0), 72: uint32(0)}
		stream[4], stream[16], stream[24] = uint8(1), cuptiTime(us+110), cuptiTime(us+120)
		s.activity(us+311, "", cupti.KindMemcpy, 112, stream)
		stream[4], stream[16], stream[24] = uint8(0), cuptiTime(us+130), cuptiTime(us+140)
		s.activity(us+312, "", cupti.KindMemset, 104, stream)
		s.activity(us+313, "", cupti.KindSynchronization, 56, map[int]any{
			4: uint32(3), 8: cuptiTime(us + 100), 16: cuptiTime(us + 150), 24: s.correlation, 28: uint32(1),
			32: uint32(9), 36: uint32(cupti.None),
		})
		s.reading(us + 500)
		s.flush(us + 510)
	}
	s.activity(us+600, "late", 99, 64, nil)
	s.kernel(us+601, "untimed", 0, 9, 0, 0, 0, 0)
	for range 20 { // until what waits for something has been written
		us += 500_000
		s.reading(us)
		s.flush(us)
	}
	s.write(s.app, us, shm.Record{Kind: shm.RecordFinalize})
	s.job.FinishComm(0, streamTicks(us))
	s.flush(us + 100)
}

// flush spools what there is.
func (s *streamJob) flush(us float64) {
	s.t.Helper()
	at := streamTicks(us)
	testkit.Must(s.t, s.job.Spool(&s.out, shm.ClockTuple{Ticks: at, Raw: at, Mono: at, Real: at}))
}

// leave writes the spool file.
func (s *streamJob) leave(dir string) {
	s.t.Helper()
	testkit.Must(s.t, shmtest.SpoolEnd(&s.out))
	path := filepath.Join(dir, "shards", s.job.PathName())
	testkit.Must(s.t, os.MkdirAll(filepath.Dir(path), 0o700))
	testkit.Must(s.t, os.WriteFile(path, s.out.Bytes(), 0o600))
}

// Kernels, copies and waits go all the way into an archive that readers of all kinds accept: linked with launches and
// operations, on rows of their own that belong to their GPUs; and the archive says what is not linked.
func TestStreamsReachTheArchive(t *testing.T) {
	const ops = 20
	dir := filepath.Join(t.TempDir(), "experiment")
	for rank := range 2 {
		s := newStreamJob(t, rank)
		s.play(rank, ops)
		s.leave(dir)
	}
	res := testkit.Value(unifyAll(dir))(t)
	if len(res.Runs) != 1 || len(res.Problems) > 0 {
		t.Fatalf("%+v", res)
	}
	anchor := res.Runs[0].Archive
	checkSound(t, anchor)
	checkStreams(t, readArchive(t, anchor), ops)

	a := openArchive(t, anchor)
	got := make(map[string]string)
	for _, p := range a.Anchor.Properties {
		if name, ok := strings.CutPrefix(p.Name, "NCCL_OTF2::CUPTI::"); ok {
			got[name] = p.Value
		}
	}
	want := make(map[string]string)
	for name, n := range map[string]int{
		"RECORDS": 2*(2+ops*(3+6+4)+2) - 1, "KERNELS": 2 * (5*ops + 1), "KERNELS_LINKED": 2*ops - 1,
		"KERNELS_OTHER":       2*3*ops + 2,
		"KERNELS_NO_API_CALL": 1, "KERNELS_GRAPH_UNLINKED": 2 * ops, "NCCL_KERNELS_UNLINKED": 2*ops + 1,
		"COPIES": 2 * ops, "MEMSETS": 2 * ops,
		"SYNCHRONIZATIONS": 2 * ops, "UNKNOWN_RECORDS": 2, "WITHOUT_TIMES": 2, "MEMORY_OPERATIONS": 4,
		"OVERLAPS": 2 * ops,
	} {
		want[name] = fmt.Sprint(n)
	}
	testkit.Same(t, want, got)
	checkDevices(t, a)

	found := testkit.Value(operations.Observe(a, new(operations.Observer)))(t)
	var text bytes.Buffer
	testkit.Must(t, report.WriteStyled(found, &text, report.Style{}))
	testkit.Contains(t, text.String(), fmt.Sprintf(
		"  kernels        %d recorded, %d of them linked with their launches; %d of NCCL's not linked; 2 records "+
			"not drawn\n", 2*(5*ops+1), 2*ops-1, 2*ops+1),
		" *AllReduce ", "* before the name: a buffer is in GPU memory, or memory that it shares (managed)\n")
}

// checkStreams follows every link of the archive.
func checkStreams(t *testing.T, a *archive, ops int) {
	t.Helper()
	type span struct{ begin, end uint64 }
	launches := make(map[string]span) // by process and id
	plans := make(map[string]*event)  // operations, by process and plan
	rows := make(map[string]int)      // regions, by process and name
	process := func(loc uint64) uint64 { return loc & 0xffffffff }
	key := func(loc uint64, id int64) string { return fmt.Sprint(process(loc), " ", id) }
	for loc, events := range a.events {
		row := fmt.Sprint(process(loc), " ", a.locations[loc].Name)
		var launch string
		for _, e := range events {
			if e.Event == "Enter" {
				rows[row]++
			}
			switch {
			case e.Event == "Enter" && a.regions[e.Region] == "ncclKernelLaunch":
				launch = key(loc, e.number("EVENT_ID"))
				launches[launch] = span{begin: e.Time}
			case e.Event == "Leave" && a.regions[e.Region] == "ncclKernelLaunch":
				launches[launch] = span{launches[launch].begin, e.Time}
			case e.Event == "Enter" && a.regions[e.Region] == "AllReduce":
				plans[key(loc, e.number("PLAN_ID"))] = e
				if e.text("SENDBUFF_CLASS") != "device" || e.text("RECVBUFF_CLASS") != "managed" ||
					e.number("IN_PLACE") != 0 {
					t.Errorf("buffers: %s, %s", e.text("SENDBUFF_CLASS"), e.text("RECVBUFF_CLASS"))
				}
			}
		}
	}
	want := make(map[string]int)
	for p := range 2 {
		for name, n := range map[string]int{
			"Thread 0": 2 * ops, "world rank " + fmt.Sprint(p): ops, "CUDA[0:7]": ops, "CUDA[0:9]": 3 * ops,
			"CUDA[0:9] +1":   ops,
			"CUDA[0:9] sync": ops, "CUDA[0:11]": ops, "CUDA[1:9]": ops,
		} {
			want[fmt.Sprint(p, " ", name)] = n
		}
	}
	testkit.Same(t, want, rows)
	linked := 0
	for loc, events := range a.events {
		l := a.locations[loc]
		if !strings.HasPrefix(l.Name, "CUDA[") {
			continue
		}
		if l.Type != "LocationType.GPU" || a.groups[l.Group].Type != "LocationGroupType.ACCELERATOR" ||
			a.groups[l.Group].Creator == nil || *a.groups[l.Group].Creator != process(loc) ||
			!strings.HasSuffix(a.groups[l.Group].Name, " GPU "+l.Name[5:6]) {
			t.Errorf("row %+v of %+v", l, a.groups[l.Group])
		}
		for i, e := range events {
			if e.Event != "Enter" {
				continue
			}
			if name := a.regions[e.Region]; name == "model::axpy" || strings.HasPrefix(name, "ncclDevKernel") {
				for attribute, n := range map[string]int64{
					"GRID_X": 24, "GRID_Y": 2, "GRID_Z": -1, "BLOCK_X": 544, "BLOCK_Y": -1, "REGISTERS": 96,
					"STATIC_SHARED_MEMORY": 1024, "DYNAMIC_SHARED_MEMORY": 84000,
				} {
					testkit.Equal(t, e.number(attribute), n, "%s: %s", name, attribute)
				}
			}
			if e.number("CORRELATION_ID") <= 0 {
				t.Errorf("%s has no correlation id", a.regions[e.Region])
			}
			if e.number("EXTERNAL_ID") < 0 {
				if e.number("PLAN_ID") >= 0 || e.number("PARENT_ID") >= 0 {
					t.Errorf("a kernel without launch has a plan")
				}
				continue
			}
			linked++
			launch, plan := launches[key(loc, e.number("EXTERNAL_ID"))], plans[key(loc, e.number("PLAN_ID"))]
			if plan == nil || launch.begin == 0 {
				t.Errorf("kernel of launch %d %v, plan %d %v, which are not there", e.number("EXTERNAL_ID"), launch,
					e.number("PLAN_ID"), plan)
				continue
			}
			if e.number("PARENT_ID") != plan.number("EVENT_ID") || plan.text("GPU_SOURCE") != "cupti" ||
				plan.text("TIMING_SOURCE") != "gpu" || plan.Time != e.Time {
				t.Errorf("kernel at %d, its operation at %d: %v", e.Time, plan.Time, plan.Attributes)
			}
			if e.Time < launch.end || e.Time-launch.end > 14_500 || events[i+1].Time-e.Time-29_900 > 200 {
				t.Errorf("kernel from %d to %d, launched from %d to %d", e.Time, events[i+1].Time, launch.begin,
					launch.end)
			}
		}
	}
	testkit.Equal(t, linked, 2*ops-1, "kernels are linked")
}

// checkDevices sees the devices in the system tree: those of communicators with all that is known of them, and the one
// that only kernels told of. Regions of streams are in groups of their own.
func checkDevices(t *testing.T, a *otf2.Archive) {
	t.Helper()
	uuids := make(map[otf2.SystemTreeNodeRef]string)
	for _, p := range a.Defs.SystemTreeNodeProperties {
		if a.Defs.String(p.Name) == "UUID" {
			uuids[p.Node] = a.Defs.String(otf2.StringRef(p.Value))
		}
	}
	var devices []string
	for _, n := range a.Defs.SystemTreeNodes {
		if a.Defs.String(n.Class) == "CUDA Device" {
			devices = append(devices, fmt.Sprintf(
				"%s %t", a.Defs.String(n.Name)[:len("CUDA Device 0")], uuids[n.Self] != ""))
		}
	}
	slices.Sort(devices)
	if want := []string{"CUDA Device 0 true", "CUDA Device 0 true", "CUDA Device 1 false",
		"CUDA Device 1 false"}; !slices.Equal(devices, want) {
		t.Errorf("devices %q, want %q", devices, want)
	}
	groups := make(map[string][]string)
	for _, g := range a.Defs.Groups {
		if g.Type == otf2.GroupTypeRegions {
			for _, m := range g.Members {
				groups[a.Defs.String(g.Name)] = append(
					groups[a.Defs.String(g.Name)], a.Defs.String(a.Defs.Regions[m].Name))
			}
		}
	}
	for name, want := range map[string]int{regions.GroupCUDAKernels: 2, regions.GroupCUDAMemory: 2,
		regions.GroupCUDAWaits: 1} {
		testkit.Equal(t, len(groups[name]), want, "group %q has the regions %q", name, groups[name])
	}
}
