// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// scene plays made-up callbacks. Times are in µs after base, the GPU's clock is the host's less a day.
type scene struct {
	t      *testing.T
	m      *Model
	p      *description.Process
	dir    string
	handle map[string]uint64
	ended  bool
	nth    int // which location of a kind lines shows

	finished map[uint32]uint64 // events in the files of locations that are over
}

const (
	base     = uint64(1_700_000_000_000_000_000)
	gpuShift = 86_400_000_000_000
)

func micros(us uint64) uint64 { return base + us*1000 }
func gpu(us uint64) uint64    { return micros(us) - gpuShift }

// EventWriter makes the files of an archive.
func (s *scene) EventWriter(l description.Location) (EventWriter, error) {
	return otf2.CreateEventWriter(filepath.Join(s.dir, "traces", fmt.Sprintf("%d.evt", l.Number)),
		&otf2.EventWriterOptions{CheckNesting: true})
}

// Finished remembers how much is in a file to which nothing more is to be written.
func (s *scene) Finished(number uint32) { s.finished[number] = s.m.locations[number].w.Events() }

// checkFinished sees that nothing was.
func (s *scene) checkFinished() {
	s.t.Helper()
	for number, events := range s.finished {
		if l := s.m.locations[number]; l.w.Events() != events {
			s.t.Fatalf("%d events on %q after it was finished", l.w.Events()-events, l.Name)
		}
	}
}

func newScene(t *testing.T, nranks int) *scene {
	return newSceneWith(t, nranks, 0, &Options{RecordMask: 1<<shm.EventKernelCh | 1<<shm.EventProxyOp})
}

func newSceneWith(t *testing.T, nranks, api int, o *Options) *scene {
	s := newSceneOfHeir(t, nranks, api, o)
	s.give(0, 0, shm.Record{Kind: shm.RecordInit})
	return s
}

// newSceneOfHeir is what a collector sees that takes over: the communicator is known, its init is past.
func newSceneOfHeir(t *testing.T, nranks, api int, o *Options) *scene {
	s := &scene{t: t, p: &description.Process{APIVersion: api, Tag: 0x1111}, dir: t.TempDir(),
		handle: make(map[string]uint64), finished: make(map[uint32]uint64)}
	testkit.Must(t, os.Mkdir(filepath.Join(s.dir, "traces"), 0o777))
	s.m = New(s, s.p, o)
	s.m.Comm(0, description.Comm{ID: 0xabcd, Name: "world", NRanks: nranks, Rank: 1}, description.GPU{Device: 0})
	s.give(0, 0, shm.Record{Kind: shm.RecordThread, TID: 100})
	return s
}

func (s *scene) give(ring int, us uint64, r shm.Record) {
	s.t.Helper()
	err := s.m.Record(ring, micros(us), &r)
	testkit.Check(s.t, err == nil, "%v", err)
	err = s.m.Advance(micros(us))
	testkit.Check(s.t, err == nil, "%v", err)
	s.checkFinished()
}

// id names handles: "" is NULL, and a name used for the first time is a new handle.
func (s *scene) id(name string) uint64 {
	if name == "" {
		return 0
	}
	if s.handle[name] == 0 {
		s.handle[name] = uint64(len(s.handle) + 1)
	}
	return s.handle[name]
}

func (s *scene) start(ring int, us uint64, typ shm.EventType, name, parent string, r shm.Record) {
	r.Kind, r.Type, r.Handle, r.Arg = shm.RecordStart, typ, s.id(name), s.id(parent)
	s.give(ring, us, r)
}

func (s *scene) stop(ring int, us uint64, typ shm.EventType, name string) {
	s.give(ring, us, shm.Record{Kind: shm.RecordStop, Type: typ, Handle: s.id(name)})
}

// event is an event that begins and ends.
func (s *scene) event(ring int, from, to uint64, typ shm.EventType, name, parent string, r shm.Record) {
	s.start(ring, from, typ, name, parent, r)
	s.stop(ring, to, typ, name)
}

// api makes a call of one float32 element per byte count/4 within a group that the caller has open.
func (s *scene) api(us uint64, name, group, function string, flags shm.RecordFlags) {
	typ := shm.EventCollApi
	if function == "Send" || function == "Recv" {
		typ = shm.EventP2pApi
	}
	s.start(0, us, typ, name, group, shm.Record{Func: function, Count: 256, Datatype: "ncclFloat32", Stream: 7,
		Flags: flags})
	s.stop(0, us+1, typ, name)
}

// groupOf is a group with one call in it, which begins 1 µs later.
func (s *scene) groupOf(from, to uint64, name string, depth int32, flags shm.RecordFlags, call, function string) {
	s.start(0, from, shm.EventGroupApi, name, "", shm.Record{GroupDepth: depth, Flags: flags})
	s.api(from+1, call, name, function, flags)
	s.stop(0, to, shm.EventGroupApi, name)
}

// passTo lets time pass: a record comes that changes nothing.
func (s *scene) passTo(us uint64) {
	s.t.Helper()
	s.give(0, us, shm.Record{Kind: shm.RecordState, Type: shm.EventGroupApi, Aux: 24})
}

// endKernel ends a kernel, with the time of the GPU's end stamp.
func (s *scene) endKernel(us uint64, name string, end uint64) {
	s.state(us, shm.EventKernelCh, name, 22, end)
	s.stop(1, us, shm.EventKernelCh, name)
}

// plan enqueues operations (handle names; parents are the calls "api of "+name) on a ring.
func (s *scene) plan(ring int, us uint64, name, function string, ops ...string) {
	s.start(ring, us, shm.EventGroup, name, "", shm.Record{})
	typ := shm.EventColl
	if function == "Send" || function == "Recv" {
		typ = shm.EventP2p
	}
	for i, op := range ops {
		parent := strings.TrimRight(op, "'")
		s.start(ring, us+1, typ, op, "api of "+parent, shm.Record{
			ParentGroup: s.id(name), Func: function, Count: 256, Datatype: "ncclFloat32", Seq: uint64(i), Algo: "RING",
			Proto: "LL", NChannels: 1, NWarps: 16,
		})
	}
	for _, op := range ops {
		s.stop(ring, us+2, typ, op)
	}
	s.stop(ring, us+3, shm.EventGroup, name)
}

// planOf enqueues one operation, whose record begins it.
func (s *scene) planOf(ring int, us uint64, name string, typ shm.EventType, op, parent string, r shm.Record) {
	s.start(ring, us, shm.EventGroup, name, "", shm.Record{})
	r.ParentGroup = s.id(name)
	s.event(ring, us+1, us+2, typ, op, parent, r)
	s.stop(ring, us+3, shm.EventGroup, name)
}

// kernel reports that the GPU ran an operation, 1 µs after each of its ends.
func (s *scene) kernel(begin, end uint64, op string) { s.kernelOn(0, begin, end, op) }

// kernelOn is a kernel on one of the channels.
func (s *scene) kernelOn(channel uint8, begin, end uint64, op string) {
	k := "kernel of " + op
	s.start(1, begin+1, shm.EventKernelCh, k, op, shm.Record{PTimer: gpu(begin), Channel: channel})
	s.endKernel(end+1, k, gpu(end))
}

// allReduce is a plain call with everything that follows from it.
func (s *scene) allReduce(us uint64, name string) {
	s.start(0, us, shm.EventGroupApi, "group of "+name, "", shm.Record{GroupDepth: 1})
	s.api(us+1, "api of "+name, "group of "+name, "AllReduce", 0)
	s.start(0, us+4, shm.EventKernelLaunch, "launch of "+name, "group of "+name, shm.Record{Stream: 7})
	s.stop(0, us+6, shm.EventKernelLaunch, "launch of "+name)
	s.plan(0, us+6, "plan of "+name, "AllReduce", name)
	s.stop(0, us+10, shm.EventGroupApi, "group of "+name)
}

// lines ends the scene and gives the events of the first location of a kind, one a line:
// time in µs, event, what it is about, and attributes named in show.
func (s *scene) lines(kind description.LocationKind, show ...otf2.AttributeRef) []string {
	s.t.Helper()
	anchor := filepath.Join(s.dir, "traces.otf2")
	if !s.ended {
		s.end(anchor)
	}
	a := testkit.Value(otf2.Open(anchor, nil))(s.t)
	defer a.Close()
	var out []string
	nth := s.nth
	for _, l := range s.p.Locations {
		if l.Kind != kind {
			continue
		}
		if nth--; nth >= 0 {
			continue
		}
		for e, err := range a.EventsOf(otf2.LocationRef(l.Number)) {
			if err != nil {
				s.t.Fatal(err)
			}
			out = append(out, s.line(e, show))
		}
		return out
	}
	return out
}

// end finishes the timeline and makes its event files an archive.
func (s *scene) end(anchor string) {
	s.t.Helper()
	testkit.Must(s.t, s.m.Finish())
	s.m.Snapshot()
	for _, l := range s.m.locations {
		testkit.Must(s.t, l.w.(*otf2.EventWriter).Close())
	}
	defs := testkit.Value(otf2.CreateGlobalDefWriter(filepath.Join(s.dir, "traces.def"), 1<<20))(s.t)
	testkit.Must(s.t, defs.ClockProperties(1e9, 0, 1, 0))
	for _, l := range s.m.locations {
		testkit.Must(s.t, defs.Location(otf2.LocationRef(l.Number), otf2.UndefinedString, otf2.LocationTypeCPUThread, 0,
			otf2.UndefinedLocationGroup))
	}
	testkit.Must(s.t, defs.Close())
	testkit.Must(s.t, otf2.WriteAnchor(anchor, &otf2.Anchor{EventChunkSize: 1 << 18, DefChunkSize: 1 << 20,
		Locations: uint64(len(s.m.locations)), GlobalDefs: defs.Count()}))
	s.ended = true
}

func (s *scene) line(e *otf2.Event, show []otf2.AttributeRef) string {
	line := fmt.Sprintf("%d %v", (uint64(e.Time)-base)/1000, e.Kind)
	switch e.Kind {
	case otf2.EventEnter, otf2.EventLeave:
		line += " " + s.p.Regions[e.Args[0]].Name
	case otf2.EventMetric:
		for i, member := range s.p.Metrics[e.Args[0]].Members {
			v := fmt.Sprint(e.Args[3+2*i])
			if member.Type == otf2.TypeDouble {
				v = fmt.Sprintf("%.4g", math.Float64frombits(e.Args[3+2*i]))
			}
			line += fmt.Sprintf(" %s=%s", member.Name, v)
		}
	case otf2.EventCommCreate, otf2.EventCommDestroy, otf2.EventMpiCollectiveBegin:
	default:
		line += fmt.Sprint(" ", e.Args)
	}
	for _, a := range e.Attributes {
		for _, want := range show {
			if a.ID != want {
				continue
			}
			v := fmt.Sprint(a.Bits)
			if Attributes[a.ID].Type == otf2.TypeString {
				v = s.p.Strings[a.Bits]
			}
			line += fmt.Sprintf(" %s=%s", Attributes[a.ID].Name, v)
		}
	}
	return line
}

// golden ends the scene and compares all of it with what is kept under the test's name: the events of every row with all
// their attributes, and what the process is described with.
func (s *scene) golden() {
	s.t.Helper()
	anchor := filepath.Join(s.dir, "traces.otf2")
	s.end(anchor)
	a := testkit.Value(otf2.Open(anchor, nil))(s.t)
	defer a.Close()
	all := make([]otf2.AttributeRef, numAttributes)
	for i := range all {
		all[i] = otf2.AttributeRef(i)
	}

	var out bytes.Buffer
	for _, l := range s.p.Locations {
		fmt.Fprintln(&out, l.Name)
		for e, err := range a.EventsOf(otf2.LocationRef(l.Number)) {
			testkit.Must(s.t, err)
			fmt.Fprintln(&out, " ", s.line(e, all))
		}
	}
	summarize(&out, s.p, s.m.Network())
	golden.Text(s.t, filepath.Join("testdata", "scenes", s.t.Name()+".txt"), out.String())
}

// oddities holds the counts against those wanted, all of them.
func (s *scene) oddities(want map[string]uint64) {
	s.t.Helper()
	if !s.ended {
		s.lines(description.KindThread)
	}
	expectSame(s.t, "oddities", want, s.p.Counts.Oddities, cmpopts.EquateEmpty())
}

// expect compares events with those wanted, one a line. "120…150 X A=1" stands for the begin and the end of region X,
// whose begin has attributes; "120…150 X [11 0] A=1" for a region with a blocking collective in it, whose end has
// arguments.
func (s *scene) expect(got []string, want string) {
	s.t.Helper()
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSpace(want), "\n") {
		lines = append(lines, wholeEvents(strings.TrimSpace(line))...)
	}
	diff := cmp.Diff(lines, got)
	testkit.Check(s.t, diff == "", "want (−), got (+):\n%s", diff)
}

var regionLine = regexp.MustCompile(`^(\d+)…(\d+) (.*?)( \[[^\]]*\])?((?: [A-Z][A-Z_]*=\S+)*)$`)

// wholeEvents returns the events that a line of expect stands for.
func wholeEvents(line string) []string {
	m := regionLine.FindStringSubmatch(line)
	if m == nil {
		return []string{line}
	}
	begin, end, region, collective, attributes := m[1], m[2], m[3], m[4], m[5]
	events := []string{begin + " Enter " + region + attributes}
	if collective != "" {
		events = append(events, begin+" MpiCollectiveBegin", end+" MpiCollectiveEnd"+collective)
	}
	return append(events, end+" Leave "+region)
}

// expectCount compares a number of things with the one wanted.
func expectCount[N int | int64 | uint64](t testing.TB, things string, got, want N) {
	t.Helper()
	testkit.Check(t, got == want, "%d %s, want %d", got, things, want)
}

// expectSame compares values of any type.
func expectSame(t testing.TB, what string, want, got any, options ...cmp.Option) {
	t.Helper()
	testkit.Same(t, want, got, options...)
}

func TestPlainCallIsOneRegionOnBothSides(t *testing.T) {
	s := newScene(t, 4)
	s.allReduce(100, "a")
	s.kernel(120, 150, "a")
	s.give(0, 200, shm.Record{Kind: shm.RecordFinalize})
	s.golden()
}

// A broadcast since 2.29 is a call and nothing more. It must stand where the application issued it,
// because readers match collectives by their order.
func TestCallWithoutOperationKeepsItsPlace(t *testing.T) {
	s := newScene(t, 4)
	s.allReduce(100, "a")
	s.groupOf(200, 210, "g", 1, 0, "bc", "Broadcast")
	s.allReduce(300, "b")
	s.kernel(400, 450, "a")
	s.kernel(500, 550, "b")
	s.golden()
}

// A plan can come long after its call, and must not make a second operation then. Only very many calls
// without any plan are taken for what they are.
func TestCallsWaitForTheirPlansHoweverLong(t *testing.T) {
	s := newScene(t, 4)
	s.groupOf(100, 105, "g", 1, 0, "api of a", "AllReduce")
	s.give(2, 200, shm.Record{Kind: shm.RecordThread, TID: 200})
	s.plan(2, 90_000_000, "p", "AllReduce", "a")
	s.kernel(90_000_010, 90_000_020, "a")
	s.golden()

	s = newScene(t, 4)
	const calls = 3 * maxUnseen
	for i := range uint64(calls) {
		g := fmt.Sprint("group ", i)
		s.start(0, 100+4*i, shm.EventGroupApi, g, "", shm.Record{GroupDepth: 1})
		s.api(101+4*i, fmt.Sprint("call ", i), g, "Broadcast", 0)
		s.stop(0, 103+4*i, shm.EventGroupApi, g)
		n := s.m.ranks.all[0].calls.count
		testkit.Require(t, n <= maxUnseen+1, "%d calls wait", n)
	}
	got := len(s.lines(description.KindRank))
	testkit.Check(t, got == 1+4*calls, "%d events of %d broadcasts, want 4 for each and one more", got, calls)
}

// A plan's stamps are those of the batch: its operations have no times of their own.
func TestPlanOfSeveralOperationsIsOneRegion(t *testing.T) {
	s := newScene(t, 4)
	s.start(0, 100, shm.EventGroupApi, "g", "", shm.Record{GroupDepth: 2})
	s.api(101, "api of a", "g", "AllReduce", 0)
	s.api(103, "api of b", "g", "AllReduce", 0)
	s.event(0, 106, 107, shm.EventKernelLaunch, "l", "g", shm.Record{})
	s.plan(0, 108, "p", "AllReduce", "a", "b")
	s.stop(0, 112, shm.EventGroupApi, "g")
	s.kernel(120, 150, "a")
	s.kernel(120, 150, "b")
	s.golden()
}

// NCCL stops GroupApi at an inner ncclGroupEnd and launches at the outer one, when no call is open.
func TestLaunchAfterItsGroupStandsAlone(t *testing.T) {
	s := newScene(t, 4)
	s.groupOf(100, 105, "g", 3, 0, "api of a", "AllReduce")
	s.event(0, 110, 112, shm.EventKernelLaunch, "l", "g", shm.Record{})
	s.plan(0, 113, "p", "AllReduce", "a")
	s.kernel(130, 140, "a")
	s.golden()
}

// A captured call is no operation; each replay is, with a parent from capture time.
func TestReplaysOfAGraphAreOperationsOfTheirOwn(t *testing.T) {
	s := newScene(t, 4)
	s.groupOf(100, 105, "g", 1, shm.FlagGraph, "api of a", "AllReduce")
	s.give(2, 190, shm.Record{Kind: shm.RecordThread, TID: 200})
	s.plan(2, 200, "p", "AllReduce", "a")
	s.kernel(210, 220, "a")
	s.plan(2, 300, "p'", "AllReduce", "a'")
	s.kernel(310, 320, "a'")
	s.golden()
}

func TestOpenCallIsWrittenAsUnfinished(t *testing.T) {
	s := newScene(t, 4)
	s.start(0, 100, shm.EventGroupApi, "g", "", shm.Record{GroupDepth: 1})
	s.api(101, "api of a", "g", "AllReduce", 0)
	s.give(0, 150, shm.Record{Kind: shm.RecordState, Type: shm.EventGroupApi, Handle: s.id("g"), Aux: 24})
	s.golden()
}

// An operation whose kernel has not begun waits, but not for ever: a later one's kernels run after it.
func TestMissingKernelEventsDoNotHoldUpTheRest(t *testing.T) {
	s := newScene(t, 4)
	s.allReduce(100, "a")
	s.allReduce(200, "b")
	s.kernel(220, 250, "b")
	got := len(s.m.ranks.all[0].queue.plans)
	testkit.Require(t, got == 2, "%d plans are waiting, want both", got)
	s.passTo(5_000_000)
	expectCount(t, "plans are still waiting", len(s.m.ranks.all[0].queue.plans), 0)
	s.golden()
}

// A kernel that has begun is waited for, however long the others let it wait.
func TestRunningKernelIsWaitedFor(t *testing.T) {
	s := newScene(t, 4)
	s.allReduce(100, "a")
	s.start(1, 121, shm.EventKernelCh, "k", "a", shm.Record{PTimer: gpu(120)})
	s.passTo(60_000_000)
	testkit.Require(t, len(s.m.ranks.all[0].queue.plans) == 1, "the operation was written before its kernel ended")
	s.m.Snapshot()
	p := s.p.Pending
	testkit.Check(t, len(p) == 1 && p[0].State == "running" && p[0].Function == "AllReduce", "pending: %+v", p)
	s.give(1, 70_000_001, shm.Record{Kind: shm.RecordState, Type: shm.EventKernelCh, Handle: s.id("k"), Aux: 22,
		Flags: shm.FlagHasArg, Arg: gpu(70_000_000)})
	s.stop(1, 70_000_002, shm.EventKernelCh, "k")
	s.golden()
}

// One rank alone communicates with nobody: no communicator is defined, so no event may name one.
func TestOneRankHasNoCommunicator(t *testing.T) {
	s := newScene(t, 1)
	s.groupOf(100, 105, "g", 2, 0, "api of a", "Send")
	s.plan(0, 106, "p", "Send", "a")
	s.golden()
}

func TestStampsThatCannotBeTrueAreNotUsed(t *testing.T) {
	for _, c := range []struct {
		name       string
		begin, end uint64 // stamps
	}{
		{"missing", 0, 0},
		{"end before begin", gpu(150), gpu(120)},
		{"of a kernel before the launch", gpu(10), gpu(40)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, 4)
			s.allReduce(50, "first")
			s.kernel(61, 90, "first")
			s.allReduce(100, "a")
			s.start(1, 151, shm.EventKernelCh, "k", "a", shm.Record{PTimer: c.begin})
			s.endKernel(160, "k", c.end)
			s.golden()
		})
	}
}

func TestStopsThatFitNothingAreCounted(t *testing.T) {
	s := newScene(t, 4)
	s.allReduce(100, "a")
	for _, typ := range []shm.EventType{shm.EventGroupApi, shm.EventCollApi, shm.EventGroup, shm.EventColl,
		shm.EventKernelLaunch, shm.EventKernelCh} {
		s.stop(0, 200, typ, "never begun "+typ.String())
	}
	s.stop(0, 201, shm.EventColl, "a") // a second time
	s.kernel(220, 230, "of nothing")
	s.golden()
}

// NCCL reports one buffer of a message, whichever way it goes.
func TestBufferOfAMessage(t *testing.T) {
	for function, want := range map[string]string{"Send": "SENDBUFF_ADDRESS=4096", "Recv": "RECVBUFF_ADDRESS=4096"} {
		s := newScene(t, 4)
		s.planOf(0, 10, "p", shm.EventP2p, "m", "",
			shm.Record{Func: function, Count: 1, Datatype: "ncclInt8", Peer: 2, SendBuff: 4096})
		got := s.lines(description.KindRank, AttrSendBuff, AttrRecvBuff)
		testkit.Check(t, len(got) >= 2 && strings.HasSuffix(got[1], want), "%s: %q", function, got)
	}
}
