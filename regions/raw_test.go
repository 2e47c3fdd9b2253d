// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/api"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// Transfers that overlap are on rows of their own, with their states and what their descriptors hold.
func TestRawEvents(t *testing.T) {
	s := newSceneWith(t, 4, 0, &Options{RecordMask: 0xffff, Raw: true})
	state := func(us uint64, typ shm.EventType, name string, number uint32, arg uint64, flags shm.RecordFlags) {
		s.give(1, us, shm.Record{Kind: shm.RecordState, Type: typ, Handle: s.id(name), Aux: number, Arg: arg,
			Flags: flags})
	}
	s.start(1, 10, shm.EventProxyOp, "op", "",
		shm.Record{Channel: 3, Peer: 2, NSteps: 4, ChunkSize: 4096, Flags: shm.FlagSend, PID: 77, Rank: 1})
	s.start(1, 11, shm.EventProxyStep, "a", "op", shm.Record{Step: 0, Rank: 1})
	s.start(1, 12, shm.EventProxyStep, "b", "op", shm.Record{Step: 1, Rank: 1})
	state(13, shm.EventProxyStep, "a", 9, 4096, shm.FlagHasArg)
	s.start(1, 14, shm.EventNetPlugin, "net", "a",
		shm.Record{NetID: 1<<16 | 1, Length: 4096, WrID: 5, DeviceOrFD: 2, Opcode: 1, QP: 9, Flags: shm.FlagKnownNet,
			Rank: 1})
	s.stop(1, 15, shm.EventNetPlugin, "net")
	s.stop(1, 16, shm.EventProxyStep, "a")
	state(17, shm.EventProxyStep, "a", 9, 0, 0)
	s.event(1, 18, 19, shm.EventProxyStep, "c", "op", shm.Record{Step: 2, Rank: 1})
	s.give(1, 20, shm.Record{Kind: shm.RecordState, Type: shm.EventProxyOp, Handle: s.id("op"), Aux: 2, Arg: 8192,
		Steps: 2, Flags: shm.FlagHasArg})
	s.stop(1, 20, shm.EventProxyOp, "op")
	s.golden()
}

// Events that never stop take a number of rows and not more; the others are drawn.
func TestRawEventsThatNeverStop(t *testing.T) {
	sink := &memorySink{}
	p := &description.Process{}
	m := New(sink, p, &Options{RecordMask: 0xffff, Raw: true})
	m.Comm(0, description.Comm{ID: 1, NRanks: 2}, description.GPU{})
	for i := range uint64(2 * maxRawRows) {
		testkit.Must(t, m.Record(0, base+i, &shm.Record{Kind: shm.RecordStart, Type: shm.EventKernelCh, Handle: i + 1,
			Channel: 1}))
	}
	testkit.Must(t, m.Finish())
	sink.flush(t)
	m.Snapshot()
	rows := 0
	for _, l := range p.Locations {
		if l.Kind == description.KindEvent {
			rows++
		}
	}
	testkit.Check(t, rows == maxRawRows && m.oddities[oddNoRow] != 0, "%d rows, %d were too many", rows,
		m.oddities[oddNoRow])
}

// All that records hold of a descriptor is shown.
func TestRawEventsShowEveryMember(t *testing.T) {
	for _, e := range api.Events {
		for _, m := range e.Members {
			for _, name := range []string{m.Go, m.Flag} {
				_, shown := memberAttributes[name]
				testkit.Check(t, name == "" || name == "Data" || shown, "%s.%s has no attribute", e.Name, name)
			}
		}
	}
	for name := range memberAttributes {
		_, flag := shm.FlagsByName[name]
		testkit.Check(t, flag || strings.Contains(fmt.Sprint(api.Events), " "+name+" "), "%q is no member", name)
	}
}

// A member that the process's version of NCCL's API does not have is not shown as 0.
func TestRawEventsShowWhatNCCLReported(t *testing.T) {
	for version, tagged := range map[int]bool{4: false, 5: false, 6: false, 7: true} {
		s := newSceneWith(t, 4, 0, &Options{RecordMask: 0xffff, Raw: true})
		s.p.APIVersion = version
		s.event(1, 10, 11, shm.EventColl, "coll", "", shm.Record{Func: "AllReduce", Count: 8, NChannels: 2})
		lines := strings.Join(s.lines(description.KindEvent, AttrCount, AttrChannels, AttrUserTag), "\n")
		testkit.Check(t, strings.Contains(lines, "USER_TAG=0") == tagged && strings.Contains(lines, "COUNT=8") &&
			strings.Contains(lines, "CHANNELS=2"), "version %d:\n%s", version, lines)
	}
}

// Of each recording all events and all states are drawn that NCCL delivered.
func TestRawEventsOfRecordings(t *testing.T) {
	dirs, _ := filepath.Glob("../testdata/nccl-callbacks/*/run.json")
	testkit.Require(t, len(dirs) == 13, "%d recordings found, want 13", len(dirs))
	total := uint64(0)
	for _, d := range dirs {
		rec := testkit.Value(replay.Load(filepath.Dir(d)))(t)
		for i, p := range rec.Processes {
			text := &description.Process{}
			sink := &countingSink{}
			m := New(sink, text, &Options{RecordMask: 0xffff, Raw: true})
			feed(m, p)
			testkit.Must(t, m.Finish())
			m.Snapshot()
			drawn := make(map[string]uint64)
			for n, l := range text.Locations {
				for region, times := range sink.entered[n] {
					if l.Kind == description.KindEvent {
						drawn[text.Regions[region].Name] += times
					}
				}
			}
			want := make(map[string]uint64)
			for name, n := range text.Counts.Starts {
				want[EventPrefix+name] = n
			}
			for name, n := range text.Counts.States {
				want[StatePrefix+name] = n
				total += n
			}
			maps.DeleteFunc(want, func(_ string, n uint64) bool { return n == 0 })
			testkit.Equal(t, cmp.Diff(want, drawn), "", "%s, process %d", rec.Name, i)
		}
	}
	t.Logf("%d states", total)
}

// countingSink counts the regions that begin in each event file.
type countingSink struct {
	memorySink
	entered []map[otf2.RegionRef]uint64
}

func (s *countingSink) EventWriter(l description.Location) (EventWriter, error) {
	w, err := s.memorySink.EventWriter(l)
	counts := make(map[otf2.RegionRef]uint64)
	s.entered = append(s.entered, counts)
	return countingWriter{w, counts}, err
}

type countingWriter struct {
	EventWriter
	entered map[otf2.RegionRef]uint64
}

func (w countingWriter) Enter(t otf2.Timestamp, a *otf2.AttributeList, region otf2.RegionRef) error {
	w.entered[region]++
	return w.EventWriter.Enter(t, a, region)
}
