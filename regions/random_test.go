// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/cupti"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// parentType is the type of event that NCCL names as an event's parent, and states what it says of it.
var (
	parentType = [shm.TypeCount]shm.EventType{
		shm.EventColl: shm.EventCollApi, shm.EventP2p: shm.EventP2pApi, shm.EventProxyOp: shm.EventColl,
		shm.EventProxyStep: shm.EventProxyOp,
		shm.EventKernelCh:  shm.EventColl, shm.EventNetPlugin: shm.EventProxyStep, shm.EventCollApi: shm.EventGroupApi,
		shm.EventP2pApi:       shm.EventGroupApi,
		shm.EventKernelLaunch: shm.EventGroupApi, shm.EventCeColl: shm.EventCollApi, shm.EventCeSync: shm.EventCeColl,
		shm.EventCeBatch:     shm.EventCeColl,
		shm.EventKernelPhase: shm.EventKernelCh,
	}
	states = [shm.TypeCount][]uint32{
		shm.EventProxyOp: {2, 3, 7, 19}, shm.EventProxyStep: {8, 9, 10, 11, 12, 20},
		shm.EventProxyCtrl: {13, 14, 15, 16, 17, 18},
		shm.EventKernelCh:  {22}, shm.EventNetPlugin: {21}, shm.EventGroupApi: {23, 24}, shm.EventKernelPhase: {31},
	}
)

// stream draws records that mostly make sense and sometimes do not: parents of the wrong type, second starts
// and stops, events of communicators that are gone or were never announced.
type stream struct {
	t      *rapid.T
	us     uint64
	number uint64
	begun  [shm.TypeCount][]uint64
}

func (s *stream) often(name string) bool { return rapid.IntRange(0, 9).Draw(s.t, name) > 0 }

// handle draws an event of a type that has begun, usually a recent one.
func (s *stream) handle(typ shm.EventType, name string) uint64 {
	all := s.begun[typ]
	if len(all) == 0 || !s.often(name+" of its type") {
		typ = shm.EventType(rapid.Uint64Range(0, shm.TypeCount-1).Draw(s.t, name+" type"))
		if all = s.begun[typ]; len(all) == 0 {
			return uint64(typ)<<shm.TypeShift | 12345
		}
	}
	return all[len(all)-1-rapid.IntRange(0, min(3, len(all)-1)).Draw(s.t, name)]
}

func (s *stream) next() shm.Record {
	t := s.t
	small := rapid.Int32Range(-1, 4)
	r := shm.Record{
		Kind: rapid.SampledFrom([]shm.RecordKind{2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 7, 8, 9, 1, 6, 5, 10, 10,
			10, 11}).Draw(t, "kind"),
		Aux:   rapid.SampledFrom([]uint32{0, 0, 0, 0, 0, 0, 1, 2, 70, shm.None}).Draw(t, "aux"),
		Flags: shm.RecordFlags(rapid.Uint8().Draw(t, "flags")),
	}
	if r.Kind == shm.RecordFinalize && s.often("alive") {
		r.Aux = 2
	}
	r.Type = shm.EventType(rapid.Uint8Range(0, shm.TypeCount-1).Draw(t, "type"))
	switch r.Kind {
	case shm.RecordStart:
		s.number++
		r.Handle = uint64(r.Type)<<shm.TypeShift | s.number
		if r.Type == shm.EventCollApi && !s.often("direct") {
			r.Handle |= shm.CapturedBit
		}
		if !s.often("new") {
			r.Handle = s.handle(r.Type, "old")
		}
		r.Arg, r.ParentGroup = s.handle(parentType[r.Type], "parent"), s.handle(shm.EventGroup, "group")
		s.begun[r.Type] = append(s.begun[r.Type], r.Handle)
		r.Func = rapid.SampledFrom([]string{"AllReduce", "Broadcast", "", "New"}).Draw(t, "func")
		if r.Type == shm.EventP2p || r.Type == shm.EventP2pApi {
			r.Func = rapid.SampledFrom([]string{"Send", "Recv"}).Draw(t, "func")
		}
		r.Datatype = "ncclFloat32"
		r.Count, r.Length, r.Bytes = rapid.Uint64Range(0, 9).Draw(t, "count"), 5, 6
		r.Peer, r.Rank, r.Root, r.Step = small.Draw(t, "peer"), small.Draw(t, "rank"), small.Draw(t, "root"),
			small.Draw(t, "step")
		r.NChannels, r.Channel, r.Phase = uint8(small.Draw(t, "channels")+1)/2, uint8(small.Draw(t, "channel")),
			uint8(small.Draw(t, "phase"))
		r.GroupDepth = rapid.Int32Range(1, 2).Draw(t, "depth")
		r.PTimer = gpu(s.us)
		r.PhaseName = "compute"
		r.Context = rapid.SampledFrom([]uint64{0x2222_f800_0000_0001, 0x3333_f800_0000_0001, 0x1111_f800_0000_0001,
			77}).Draw(t, "context")
		r.NetID = rapid.SampledFrom([]int64{0x10001, 0x20001, 0x70001}).Draw(t, "net")
	case shm.RecordStop:
		r.Handle = s.handle(r.Type, "handle")
	case shm.RecordState:
		r.Aux = rapid.Uint32Range(0, stateCount+1).Draw(t, "state")
		if of := states[r.Type]; len(of) > 0 && s.often("state of its type") {
			r.Aux = rapid.SampledFrom(of).Draw(t, "state")
		}
		r.Handle = s.handle(r.Type, "handle")
		r.Arg = rapid.SampledFrom([]uint64{0, 5, gpu(s.us), gpu(s.us), gpu(2000)}).Draw(t, "value")
	case shm.RecordMark:
		r.Mark = shm.Mark(rapid.Uint8Range(0, 3).Draw(t, "mark"))
		r.MarkText = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "text")
	case shm.RecordEdge:
		r.Arg = rapid.Uint64Range(0, 9).Draw(t, "ordinal")
	case shm.RecordCupti:
		s.activity(&r)
	case shm.RecordCuptiClock:
		r.Ticks, r.Handle, r.Arg, r.Real = 2000*s.us, us(float64(s.us)), 100, us(float64(s.us))
		if !s.often("same clock") {
			r.Handle += 1e14
		}
	}
	return r
}

// activity draws an activity record: whatever bytes, or one that may belong to the events.
func (s *stream) activity(r *shm.Record) {
	t := s.t
	r.Arg, r.ActivityName = cuptiVersion, rapid.SampledFrom([]string{"", "axpy", allReduceKernel}).Draw(t, "kernel")
	number := rapid.Uint32Range(0, 5).Draw(t, "correlation")
	begin := float64(rapid.Uint64Range(0, s.us+5).Draw(t, "begin"))
	end := begin + float64(rapid.Uint64Range(0, 50).Draw(t, "length"))
	switch rapid.IntRange(0, 5).Draw(t, "activity") {
	case 0:
		r.Activity = rapid.SliceOfN(rapid.Byte(), 0, 256).Draw(t, "bytes")
		if len(r.Activity) > 0 {
			r.Activity[0] = rapid.SampledFrom([]byte{1, 2, 3, 4, 5, 10, 22, 38, 39, 49, 50, 51, 77}).Draw(
				t, "kind of activity")
		}
		for i := 1; i < min(4, len(r.Activity)); i++ {
			r.Activity[i] = 0
		}
	case 1:
		r.Activity = apiRecord(number, uint32(rapid.IntRange(99, 101).Draw(t, "thread")), begin, end).Activity
	case 2:
		r.Activity = externalRecord(number, s.handle(shm.EventKernelLaunch, "launch")).Activity
	case 3:
		r.Activity = memoryRecord(cupti.MemoryOperation(rapid.IntRange(0, 3).Draw(t, "operation")), cupti.MemoryDevice,
			rapid.Uint64Range(0, 9).Draw(t, "address"), rapid.Uint64Range(0, 9).Draw(t, "bytes"), begin).Activity
	default:
		k := gpuKernel{begin: begin, end: end, device: uint32(number % 2), stream: number, correlation: number,
			name: r.ActivityName}
		if !s.often("no graph") {
			k.graph, k.node = 5, rapid.Uint64Range(0, 3).Draw(t, "node")
		}
		r.Activity = k.record().Activity
	}
}

// Whatever comes, the regions of every location nest, every transfer that is written is ended, and nothing is
// kept at the end.
func TestAnyStreamGivesAWholeTimeline(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		api := rapid.SampledFrom([]int{0, 3, 4, 7}).Draw(rt, "api")
		s := newSceneWith(t, 4, api, &Options{RecordMask: uint32(rapid.SampledFrom([]int{0, 0xffff}).Draw(rt, "mask")),
			Channels: true, Metrics: true})
		in := stream{t: rt, us: 1}
		for i := range rapid.IntRange(1, 300).Draw(rt, "records") {
			in.us += uint64(rapid.SampledFrom([]int{0, 1, 1, 1, 1, 5, 5, 3_000_000}).Draw(rt, "pause"))
			r, us := in.next(), in.us
			if i == 40 {
				s.m.Comm(2, description.Comm{ID: 7, NRanks: 2, Rank: 1}, description.GPU{Device: -1})
			}
			s.give(rapid.IntRange(0, 2).Draw(rt, "ring"), us, r)
			if i%50 == 49 {
				testkit.Must(rt, s.m.Settle(micros(us)))
				s.m.Snapshot()
			}
		}
		s.end(filepath.Join(s.dir, "traces.otf2"))
		checkWhole(rt, s)
		m := s.m
		n := len(m.net.steps) + len(m.net.proxies)
		testkit.Check(rt, n == 0, "%d network events are kept at the end", n)
		for _, c := range m.ranks.all {
			if c != nil {
				testkit.Check(rt, len(c.queue.plans)+c.calls.count == 0, "%d plans and %d calls are kept at the end",
					len(c.queue.plans), c.calls.count)
			}
		}
		checkCounts(rt, m)
	})
}

// checkCounts sees that nothing of CUPTI's is kept at the end, and that every kernel is counted once.
func checkCounts(t *rapid.T, m *Model) {
	counts := m.cuda.Counts()
	testkit.Check(t, counts["UNDRAWN"] == 0 && counts["KERNELS_UNDECIDED"] == 0,
		"activities are kept at the end: %v", counts)
	sum := uint64(0)
	for _, name := range []string{
		"KERNELS_LINKED", "KERNELS_OTHER", "KERNELS_NO_EXTERNAL_ID", "KERNELS_NO_API_CALL", "KERNELS_AGED_OUT",
		"KERNELS_IMPLAUSIBLE", "KERNELS_AMBIGUOUS",
		"KERNELS_GRAPH_LINKED", "KERNELS_GRAPH_UNLINKED", "KERNELS_GRAPH_OTHER",
	} {
		sum += counts[name]
	}
	testkit.Check(t, sum == counts["KERNELS"],
		"%d kernels, of %d is counted what became of them: %v", counts["KERNELS"], sum, counts)
}

// checkWhole reads a scene's archive: definitions that events refer to, and pairs that belong together.
func checkWhole(t *rapid.T, s *scene) {
	a := testkit.Value(otf2.Open(filepath.Join(s.dir, "traces.otf2"), nil))(t)
	defer a.Close()
	type transfer struct{ win, id uint64 }
	for _, l := range s.p.Locations {
		open := make(map[transfer]bool)
		requests := make(map[uint64]bool)
		last := make(map[uint64]uint64) // value of each metric
		for e, err := range a.EventsOf(otf2.LocationRef(l.Number)) {
			testkit.Require(t, err == nil, "%s: %v", l.Name, err)
			switch e.Kind {
			case otf2.EventEnter, otf2.EventLeave:
				testkit.Require(t, e.Args[0] < uint64(len(s.p.Regions)),
					"%s: region %d is not defined", l.Name, e.Args[0])
			case otf2.EventMetric:
				testkit.Require(t, e.Args[0] < uint64(len(s.p.Metrics)),
					"%s: metric %d is not defined", l.Name, e.Args[0])
				m := s.p.Metrics[e.Args[0]]
				testkit.Require(t, slices.Contains(m.Locations, l.Number) && int(e.Args[1]) == len(m.Members),
					"%s: %v of %+v", l.Name, e.Args, m)
				if v := e.Args[3]; m.Members[0].Type == otf2.TypeUint64 && v > 1<<62 {
					t.Fatalf("%s: %s is %d", l.Name, m.Members[0].Name, int64(v))
				}
				last[e.Args[0]] = e.Args[3]
			case otf2.EventRmaPut:
				testkit.Require(t, e.Args[0] < uint64(len(s.p.Wins)) && e.Args[2] != 0, "%s: put %v", l.Name, e.Args)
				open[transfer{e.Args[0], e.Args[3]}] = true
			case otf2.EventRmaOpCompleteNonBlocking:
				k := transfer{e.Args[0], e.Args[1]}
				testkit.Require(t, open[k], "%s: end of a transfer that is not under way: %v", l.Name, e.Args)
				delete(open, k)
			case otf2.EventMpiIsend:
				requests[e.Args[4]] = true
			case otf2.EventMpiIrecvRequest, otf2.EventNonBlockingCollectiveRequest:
				requests[e.Args[0]] = true
			case otf2.EventMpiIsendComplete:
				delete(requests, e.Args[0])
			case otf2.EventMpiIrecv:
				delete(requests, e.Args[4])
			case otf2.EventNonBlockingCollectiveComplete:
				delete(requests, e.Args[5])
			}
			for _, v := range e.Attributes {
				if int(v.ID) >= len(Attributes) || v.Type != Attributes[v.ID].Type || v.Type == otf2.TypeString &&
					v.Bits >= uint64(len(s.p.Strings)) {
					t.Fatalf("%s: attribute %+v", l.Name, v)
				}
			}
		}
		testkit.Require(t, len(open)+len(requests) == 0,
			"%s: %d transfers and %d requests are not ended", l.Name, len(open), len(requests))
		for id, v := range last {
			testkit.Require(t, v == 0, "%s: %s is %d at the end", l.Name, s.p.Metrics[id].Members[0].Name, v)
		}
	}
}
