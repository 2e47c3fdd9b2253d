// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/sequence"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// A collective of the copy engines is an operation; its parts are drawn where they were enqueued.
func TestCopyEngineCollective(t *testing.T) {
	s := newScene(t, 4)
	s.start(0, 100, shm.EventGroupApi, "g", "", shm.Record{GroupDepth: 1})
	s.api(101, "call", "g", "AllGather", 0)
	s.start(0, 105, shm.EventCeColl, "ce", "call", shm.Record{
		Func: "AllGather", Seq: 4, Count: 1024, Datatype: "ncclInt8", Stream: 7, SyncStrategy: "MC", NumBatches: 2,
	})
	s.event(0, 106, 107, shm.EventCeSync, "sync", "ce", shm.Record{NRanks: 4})
	s.start(0, 108, shm.EventCeBatch, "batch", "ce", shm.Record{Bytes: 4096, NumOps: 3})
	s.event(0, 109, 110, shm.EventCeSync, "intra", "ce", shm.Record{NRanks: 4})
	s.stop(0, 111, shm.EventCeBatch, "batch")
	s.stop(0, 112, shm.EventCeColl, "ce")
	s.stop(0, 115, shm.EventGroupApi, "g")
	s.golden()
}

// A thread of NCCL's own enqueues for a non-blocking communicator; NCCL leaves events open when an operation fails.
func TestCopyEngineOnNCCLsThreadAndUnfinished(t *testing.T) {
	s := newScene(t, 4)
	s.give(2, 90, shm.Record{Kind: shm.RecordThread, TID: 200})
	s.start(2, 100, shm.EventCeColl, "ce", "", shm.Record{Func: "AlltoAll", Count: 8, Datatype: "ncclInt8"})
	s.start(2, 101, shm.EventCeBatch, "batch", "ce", shm.Record{Bytes: 4096})
	s.event(2, 110, 111, shm.EventCeColl, "ce2", "", shm.Record{Func: "AlltoAll", Count: 8, Datatype: "ncclInt8"})
	s.stop(2, 112, shm.EventCeColl, "ce2")
	s.stop(2, 112, shm.EventCeBatch, "batch")
	s.start(2, 113, shm.EventCeSync, "of nothing", "ce", shm.Record{})
	s.golden()
}

// What a graph's capture shows and no replay repeats did not run when it was seen.
func TestWorkSeenAtItsCaptureOnlyIsNotDrawn(t *testing.T) {
	s := newScene(t, 4)
	s.start(0, 100, shm.EventGroupApi, "g", "", shm.Record{GroupDepth: 1, Flags: shm.FlagGraph})
	s.api(101, "api of a", "g", "AllReduce", shm.FlagGraph)
	s.event(0, 104, 105, shm.EventKernelLaunch, "l", "g", shm.Record{Stream: 7})
	s.plan(0, 106, "p", "AllReduce", "a")
	s.stop(0, 110, shm.EventGroupApi, "g")
	s.start(0, 120, shm.EventGroupApi, "g2", "", shm.Record{GroupDepth: 1, Flags: shm.FlagGraph})
	s.api(121, "call", "g2", "AllGather", shm.FlagGraph)
	s.start(0, 125, shm.EventCeColl, "ce", "call", shm.Record{Func: "AllGather", Count: 1024, Datatype: "ncclInt8"})
	s.stop(0, 126, shm.EventCeColl, "ce")
	s.stop(0, 130, shm.EventGroupApi, "g2")
	s.golden()
}

// channelKernel reports one channel's share, with phases (name, begin, end in µs).
func (s *scene) channelKernel(begin, end uint64, op string, channel uint8, phases ...uint64) {
	k := fmt.Sprint("kernel of ", op, " on ", channel)
	s.start(1, begin+1, shm.EventKernelCh, k, op, shm.Record{PTimer: gpu(begin), Channel: channel})
	for i := 0; i+1 < len(phases); i += 2 {
		ph := fmt.Sprint("phase ", i/2, " of ", k)
		s.start(1, end+1, shm.EventKernelPhase, ph, k, shm.Record{
			PTimer: gpu(phases[i]), Channel: channel, Phase: uint8(i / 2),
			PhaseName: []string{"initial_sync", "compute", "final_sync"}[i/2],
		})
		s.state(end+1, shm.EventKernelPhase, ph, 31, gpu(phases[i+1]))
		s.stop(1, end+1, shm.EventKernelPhase, ph)
	}
	s.endKernel(end+1, k, gpu(end))
}

func TestSymmetricKernelShowsItsPhases(t *testing.T) {
	s := newSceneWith(t, 4, 7, &Options{RecordMask: 1<<shm.EventKernelCh | 1<<shm.EventKernelPhase, Channels: true})
	s.start(0, 100, shm.EventGroupApi, "g", "", shm.Record{GroupDepth: 1})
	s.api(101, "api of a", "g", "AllReduce", 0)
	s.start(0, 106, shm.EventGroup, "p", "", shm.Record{})
	s.start(0, 106, shm.EventColl, "a", "api of a", shm.Record{
		ParentGroup: s.id("p"), Func: "AllReduce", Count: 256, Datatype: "ncclFloat32", Algo: "AGxLL_R",
		KernelVariant: "AllReduce_AGxLL_R",
		NChannels:     2, NWarps: 16, UserTag: 77, Flags: shm.FlagSym,
	})
	s.stop(0, 107, shm.EventColl, "a")
	s.stop(0, 108, shm.EventGroup, "p")
	s.stop(0, 110, shm.EventGroupApi, "g")
	s.channelKernel(120, 150, "a", 0, 120, 125, 125, 145, 145, 150)
	s.channelKernel(122, 151, "a", 1, 122, 126, 126, 144, 146, 151)
	s.golden()
}

// NCCL stamps a batch as a whole: on a channel it is one region.
func TestChannelsOfABatch(t *testing.T) {
	s := newSceneWith(t, 4, 6, &Options{RecordMask: 1 << shm.EventKernelCh, Channels: true})
	s.start(0, 100, shm.EventGroupApi, "g", "", shm.Record{GroupDepth: 2})
	s.api(101, "api of a", "g", "AllReduce", 0)
	s.api(103, "api of b", "g", "AllReduce", 0)
	s.plan(0, 108, "p", "AllReduce", "a", "b")
	s.stop(0, 112, shm.EventGroupApi, "g")
	s.channelKernel(120, 150, "a", 5)
	s.channelKernel(120, 150, "b", 5)
	s.allReduce(200, "late")
	s.channelKernel(10, 20, "late", 5) // stamps of another kernel
	s.golden()
}

// v1 to v3: the communicator is known from its first operation on, its size never.
func TestCommunicatorOfUnknownSize(t *testing.T) {
	s := newSceneWith(t, 4, 3, &Options{RecordMask: 0xff})
	s.start(2, 90, shm.EventGroup, "p", "", shm.Record{Aux: 1})
	s.m.Comm(1, description.Comm{ID: 0x1234567800000000, Rank: 2}, description.GPU{Device: 0})
	s.give(2, 91, shm.Record{Kind: shm.RecordInit, Aux: 1})
	s.start(2, 91, shm.EventColl, "a", "p", shm.Record{
		Aux: 1, ParentGroup: s.id("p"), Func: "AllReduce", Count: 256, Datatype: "ncclFloat32", Algo: "RING",
		Proto: "LL", NChannels: 1,
	})
	s.stop(2, 92, shm.EventColl, "a")
	s.stop(2, 93, shm.EventGroup, "p")
	s.start(1, 100, shm.EventKernelCh, "k", "a", shm.Record{Aux: 1}) // v3 has no stamps
	s.stop(1, 110, shm.EventKernelCh, "k")
	s.start(2, 190, shm.EventGroup, "p2", "", shm.Record{Aux: 1})
	s.start(2, 191, shm.EventP2p, "b", "p2", shm.Record{Aux: 1, ParentGroup: s.id("p2"), Func: "Send", Count: 4,
		Datatype: "ncclInt8", Peer: 1, Flags: shm.FlagUnknownChannels})
	s.stop(2, 192, shm.EventP2p, "b")
	s.stop(2, 193, shm.EventGroup, "p2")
	s.golden()
}

// Up to API v4 no call shows which threads are the application's: plans stand on one row of their communicator rank,
// however many threads enqueue them. NCCL makes one for each group of a non-blocking communicator.
func TestPlansWithoutCallsShareARow(t *testing.T) {
	s := newSceneWith(t, 4, 4, &Options{})
	for i := range uint64(100) {
		s.give(2, 100+10*i, shm.Record{Kind: shm.RecordThread, TID: int32(i)})
		s.plan(2, 101+10*i, fmt.Sprint("p", i), "AllReduce", fmt.Sprint("a", i))
	}
	s.lines(description.KindEnqueue)
	expectCount(t, "locations", len(s.p.Locations), 3)
}

// NCCL has no event for these functions; their sends and receives are named after them on both sides.
func TestCompositeCallsKeepTheirNames(t *testing.T) {
	for _, c := range []struct {
		name, want     string
		sends, receipt int
	}{
		{"AlltoAll", "AlltoAll", 3, 3},
		{"Gather", "Gather", 1, 3},
		{"Scatter", "Scatter", 3, 1},
		{"neither", "Group", 2, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, 3)
			s.start(0, 100, shm.EventGroupApi, "g", "", shm.Record{GroupDepth: 1})
			var calls []string
			for i := range c.sends + c.receipt {
				f := "Send"
				if i >= c.sends {
					f = "Recv"
				}
				name := fmt.Sprint(f, i)
				calls = append(calls, name)
				s.api(uint64(101+2*i), "api of "+name, "g", f, 0)
			}
			s.start(0, 130, shm.EventGroup, "p", "", shm.Record{})
			for _, name := range calls {
				s.start(0, 131, shm.EventP2p, name, "api of "+name, shm.Record{
					ParentGroup: s.id("p"), Func: name[:4], Count: 1, Datatype: "ncclInt8", Peer: 2, NChannels: 1,
				})
				s.stop(0, 132, shm.EventP2p, name)
			}
			s.stop(0, 133, shm.EventGroup, "p")
			s.stop(0, 140, shm.EventGroupApi, "g")
			got := s.lines(description.KindRank)
			testkit.Check(t, len(got) == 3+2*len(calls) && got[1] == "130 Enter "+c.want,
				"got %q, want region %q with %d messages", got, c.want, len(calls))
		})
	}
}

func (s *scene) mark(us uint64, mark shm.Mark, text string) {
	s.give(0, us, shm.Record{Kind: shm.RecordMark, Mark: mark, MarkText: text})
}

func TestApplicationPhases(t *testing.T) {
	s := newScene(t, 4)
	s.mark(10, shm.MarkPhaseBegin, "epoch 1")
	s.mark(11, shm.MarkPoint, "loaded")
	s.mark(12, shm.MarkPhaseBegin, "step")
	s.start(0, 20, shm.EventGroupApi, "g", "", shm.Record{GroupDepth: 2})
	s.mark(21, shm.MarkPhaseBegin, "bucket")
	s.api(22, "api of a", "g", "AllReduce", 0)
	s.mark(25, shm.MarkPhaseEnd, "")
	s.mark(26, shm.MarkPoint, "launching")
	s.mark(27, shm.MarkPhaseEnd, "")            // step: ends when the group does
	s.mark(28, shm.MarkPhaseBegin, "next step") // likewise begins
	s.stop(0, 30, shm.EventGroupApi, "g")
	s.mark(40, shm.MarkPhaseEnd, "")
	s.mark(41, shm.MarkPhaseBegin, "left open")
	s.passTo(50)
	s.golden()
}

func TestPhasesThatDoNotMatch(t *testing.T) {
	s := newScene(t, 4)
	s.mark(9, shm.MarkPhaseEnd, "")
	for range maxPhases + 2 {
		s.mark(10, shm.MarkPhaseBegin, "")
	}
	for range maxPhases + 2 {
		s.mark(11, shm.MarkPhaseEnd, "")
	}
	for i := range maxNames + 10 {
		s.mark(12, shm.MarkPoint, fmt.Sprint("point ", i))
	}
	if got := s.lines(description.KindThread); len(got) != 2*maxPhases+2*(maxNames+10) || got[0] != "10 Enter "+noName {
		t.Errorf("%d events, the first is %q", len(got), got[0])
	}
	s.oddities(map[string]uint64{"STRAY_PHASE_ENDS": 1, "DEEP_PHASES": 2})
	n := len(s.p.Regions)
	testkit.Check(t, n <= maxNames+1, "%d regions", n)
	expectCount(t, "markers", len(s.p.Markers), maxMarkers)
}

// Where recording goes off and on, readers must know that something is missing.
func TestGaps(t *testing.T) {
	s := newScene(t, 4)
	edge := func(us, ordinal uint64, flags shm.RecordFlags) {
		s.give(0, us, shm.Record{Kind: shm.RecordEdge, Arg: ordinal, Flags: flags})
	}
	edge(50, 3, shm.FlagInside) // paused at the start
	s.allReduce(100, "a")
	edge(200, 4, 0)
	edge(201, 4, 0)                                              // said again
	s.give(2, 250, shm.Record{Kind: shm.RecordThread, TID: 200}) // the callback's thread is late
	s.plan(2, 260, "p", "AllReduce", "b")
	s.kernel(120, 150, "a")
	s.kernel(270, 280, "b")
	edge(300, 10, shm.FlagInside)
	s.allReduce(310, "c")
	s.kernel(330, 340, "c")
	edge(400, 11, 0)
	s.give(0, 500, shm.Record{Kind: shm.RecordFinalize})
	s.golden()
}

// AMD's counters may tick at other rates than one per nanosecond.
func TestHIP(t *testing.T) {
	for _, unit := range []uint64{1, 10, 40} {
		t.Run(fmt.Sprint(unit, " ns"), func(t *testing.T) {
			s := newSceneWith(t, 4, 6, &Options{RecordMask: 1 << shm.EventKernelCh, Paradigm: otf2.ParadigmHIP,
				Channels: true})
			stamp := func(us uint64) uint64 { return (us*1000 + 77_000_000_000) / unit }
			for i := range uint64(4) {
				us, op := 30_000*i+100, fmt.Sprint("a", i)
				s.allReduce(us, op)
				s.start(1, us+21, shm.EventKernelCh, "k"+op, op, shm.Record{PTimer: stamp(us + 20)})
				s.endKernel(us+51, "k"+op, stamp(us+50))
			}
			s.mark(900_000, shm.MarkPoint, "here")
			s.golden()
		})
	}
}

// As long as the unit is not known, no time of the GPU is used.
func TestHIPWithTooFewStamps(t *testing.T) {
	s := newSceneWith(t, 4, 6, &Options{RecordMask: 1 << shm.EventKernelCh, Paradigm: otf2.ParadigmHIP})
	s.allReduce(100, "a")
	s.kernel(120, 150, "a")
	s.golden()
}

// A group closes at an inner end and a second one opens; the launches at the outer end name the first
// (docs/nccl-profiler-api.md §3.5).
func TestNestedGroupDefect(t *testing.T) {
	s := newScene(t, 4)
	s.start(0, 100, shm.EventGroupApi, "g1", "", shm.Record{GroupDepth: 2})
	s.api(101, "api of a", "g1", "AllReduce", 0)
	s.api(103, "api of b", "g1", "AllReduce", 0)
	s.stop(0, 105, shm.EventGroupApi, "g1")
	s.start(0, 106, shm.EventGroupApi, "g2", "", shm.Record{GroupDepth: 2})
	s.api(107, "api of c", "g2", "AllReduce", 0)
	s.event(0, 110, 111, shm.EventKernelLaunch, "l", "g1", shm.Record{Stream: 7})
	s.plan(0, 112, "p", "AllReduce", "a", "b", "c")
	s.stop(0, 116, shm.EventGroupApi, "g2")
	for _, op := range []string{"a", "b", "c"} {
		s.kernel(120, 150, op)
	}
	s.golden()
}

// CollApi is stopped twice if the next one's start is masked out (docs/nccl-profiler-api.md §3.4, 3); KernelCh is
// stopped again instead of being started (§3.4, 6), and its operation then has none.
func TestSecondStops(t *testing.T) {
	s := newScene(t, 4)
	s.allReduce(100, "a")
	s.stop(0, 111, shm.EventCollApi, "api of a")
	s.kernel(120, 150, "a")
	s.allReduce(200, "b")
	s.endKernel(250, "kernel of a", gpu(249))
	s.allReduce(300, "c")
	s.kernel(320, 350, "c")
	s.golden()
}

// Captured calls stay as long as replays may come, and no longer than their communicator.
func TestCapturedCallsAreKept(t *testing.T) {
	s := newScene(t, 4)
	for i := range maxCaptured + 5 {
		s.start(0, 100, shm.EventGroupApi, fmt.Sprint("g", i), "", shm.Record{GroupDepth: 1, Flags: shm.FlagGraph})
		s.api(101, fmt.Sprint("api of ", i), fmt.Sprint("g", i), "AllReduce", shm.FlagGraph)
		s.stop(0, 102, shm.EventGroupApi, fmt.Sprint("g", i))
	}
	expectCount(t, "calls are kept", len(s.m.ops.calls), maxCaptured)
	s.give(0, 500, shm.Record{Kind: shm.RecordFinalize})
	expectCount(t, "calls are kept after finalize", len(s.m.ops.calls), 0)
	s.oddities(map[string]uint64{"FORGOTTEN_CALLS": 5})
}

// A split that shares resources goes on with the proxy thread of its parent, which may be gone.
func TestEventsAfterFinalize(t *testing.T) {
	s := newScene(t, 4)
	s.give(0, 100, shm.Record{Kind: shm.RecordFinalize})
	s.ctrl(110, 120, "sleep", ctrlSleepState)
	s.allReduce(200, "a") // of a program that is wrong
	s.kernel(220, 250, "a")
	s.golden()
}

// A collector that takes over has not seen the communicator's init: its rows begin with what it sees first.
func TestCommunicatorOfAnEarlierCollector(t *testing.T) {
	s := newSceneOfHeir(t, 4, 0, &Options{RecordMask: 1<<shm.EventKernelCh | 1<<shm.EventProxyOp})
	s.allReduce(100, "a")
	s.kernel(120, 150, "a")
	s.give(0, 9_000_000, shm.Record{Kind: shm.RecordFinalize})
	s.golden()
}

// A process that goes on for ever uses the rows of threads that have ended again, and keeps one hash of each sequence.
func TestLastingProcessesStaySmall(t *testing.T) {
	for _, lasting := range []bool{false, true} {
		sink := new(memorySink)
		m := New(sink, &description.Process{APIVersion: 6}, &Options{Lasting: lasting})
		const threads = 1000
		at := uint64(1000)
		for i := range threads {
			at += 10
			testkit.Must(t, m.Record(0, at, &shm.Record{Kind: shm.RecordThread, TID: int32(1 + i)}))
			testkit.Must(t, m.Record(0, at, &shm.Record{Kind: shm.RecordMark, Mark: shm.MarkPoint, MarkText: "here"}))
		}
		events := uint64(0)
		for _, w := range sink.writers {
			events += w.Events()
		}
		testkit.Check(t, len(sink.writers) == OwnRows && events == 2*threads,
			"lasting %v: %d rows with %d events, want %d with %d", lasting, len(sink.writers), events, OwnRows,
			2*threads)
		s := (&commRank{ordinals: ordinals{lasting: lasting,
			sequences: make(map[string]*numbering)}}).ordinals.sequenceOf("AllReduce")
		for range 10 * sequence.DigestStep {
			s.addOperation(1)
		}
		testkit.Check(t, s.Count == 10*sequence.DigestStep && s.Last != 0 && (len(s.Digests) == 0) == lasting,
			"lasting %v: %d operations, %d digests", lasting, s.Count, len(s.Digests))
	}
}

// The description of a process is written whenever there are definitions that events need, not just after a snapshot:
// it must refer to rows that are in it at any time.
func TestDescriptionsReferToRowsThatAreThere(t *testing.T) {
	s := newSceneOfHeir(t, 2, 0, &Options{})
	complete := func(us uint64) {
		t.Helper()
		for i, c := range s.p.Comms {
			if c.Location >= 0 && !slices.ContainsFunc(
				s.p.Locations, func(l description.Location) bool { return int(l.Number) == c.Location }) {
				t.Fatalf("after %d µs communicator %d refers to location %d, of %d", us, i, c.Location,
					len(s.p.Locations))
			}
		}
	}
	for us := uint64(100); us < 3_000_000; us += 100_000 {
		s.allReduce(us, fmt.Sprint(us))
		complete(us)
	}
	testkit.Require(t, s.p.Comms[0].Location >= 0, "no operation was written")
}

// A record that was published late can be older than the first one that came.
func TestFirstTimeIsTheEarliest(t *testing.T) {
	s := newSceneOfHeir(t, 2, 0, &Options{})
	testkit.Must(t, s.m.Record(1, micros(0)-500, &shm.Record{Kind: shm.RecordThread, TID: 101}))
	s.api(3, "call", "", "AllReduce", 0)
	s.m.Snapshot()
	testkit.Check(t, s.p.FirstTime == micros(0)-500, "first at %d", int64(s.p.FirstTime-base))
}

// losses is a source that has lost collectives, or nothing.
type losses bool

func (l losses) LostCollectives() bool { return bool(l) }
func (l losses) LostParts() bool       { return false }
func (l losses) ThreadName(int) string { return "" }

// From API v7 on NCCL counts collectives: those that are missing have been paused by RAS, unless the plugin has lost
// some.
func TestWhyCollectivesAreMissing(t *testing.T) {
	for _, c := range []struct {
		masked, lost bool
		unreported   uint64
		says         string
	}{
		{false, false, 2, "paused by RAS (or another that wrote NCCL's activation mask): AllReduce 1-2"},
		{true, false, 2, "paused by RAS"},
		{true, true, 2, "paused by RAS"},
		{false, true, 0, "lost: AllReduce 1-2"},
	} {
		s := newSceneWith(t, 4, 7, &Options{RecordMask: 1 << shm.EventColl, Source: losses(c.lost)})
		s.allReduce(100, "a")
		if c.masked {
			s.give(0, 200, shm.Record{Kind: shm.RecordMask, Aux: 0, Arg: 0xf07})
			s.give(0, 300, shm.Record{Kind: shm.RecordMask, Aux: 0xf07, Arg: 0})
		}
		s.start(0, 400, shm.EventGroupApi, "g", "", shm.Record{GroupDepth: 1})
		s.api(401, "api of b", "g", "AllReduce", 0)
		s.planOf(0, 402, "p", shm.EventColl, "b", "api of b", shm.Record{
			Func: "AllReduce", Count: 256, Datatype: "ncclFloat32", Seq: 3, Algo: "RING", Proto: "LL", NChannels: 1,
			NWarps: 16,
		})
		s.stop(0, 406, shm.EventGroupApi, "g")
		s.end(filepath.Join(s.dir, "traces.otf2"))
		n := s.p.Comms[0].Unreported
		testkit.Check(t, n == c.unreported, "%+v: %d are said to be paused by RAS", c, n)
		k := s.p.Markers
		testkit.Check(t, len(k) != 0 && strings.Contains(k[len(k)-1].Text, c.says), "%+v: markers %v", c, k)
	}
}
