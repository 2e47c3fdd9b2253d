// SPDX-License-Identifier: Apache-2.0

package rawfile

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/record"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/recording"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// write returns the raw file of a process, read to its end.
func write(t *testing.T, rec *Recording, k int) *shm.Spool {
	t.Helper()
	var out bytes.Buffer
	testkit.Must(t, rec.Write(&out, k))
	s := testkit.Value(shm.OpenSpool(&out, int64(out.Len())))(t)
	for ended := false; !ended; {
		round := testkit.Value(s.Refresh())(t)
		ended = round.Ended
	}
	if !s.Orderly() || s.Cut() != "" {
		t.Fatalf("the raw file ends early: %q", s.Cut())
	}
	return s
}

// each passes the records of all rings to take, one ring after the other.
func each(t *testing.T, s *shm.Spool, take func(ring int, r *shm.Record)) {
	t.Helper()
	for i, ring := range s.Rings() {
		for r := new(shm.Record); ring.Next(r); {
			take(i, r)
		}
		testkit.Must(t, ring.Err())
	}
	n := s.Strings().Missing
	testkit.Check(t, n == 0, "%d strings are missing", n)
}

// Every callback of every recording has a record.
func TestAllCallbacksAreThere(t *testing.T) {
	folders, _ := filepath.Glob("../../../testdata/nccl-callbacks/*/" + recording.RunFile)
	testkit.Require(t, len(folders) == 13, "%d recordings, want 13", len(folders))
	for _, file := range folders {
		loaded := testkit.Value(replay.Load(filepath.Dir(file)))(t)
		rec := testkit.Value(New(loaded))(t)
		if plugins := strings.Contains(rec.Name,
			"-gpu-few-2p"); rec.numbers.own != plugins { // 11-starved-2p has handles of an earlier layout
			t.Errorf("%s: handles are taken for the plugin's: %v, which they are: %v", rec.Name, rec.numbers.own,
				plugins)
		}
		starts, states, stops := map[string]int{}, map[string]int{}, 0
		for k, p := range rec.Processes {
			s := write(t, rec, k)
			if h := s.Header(); int(h.PID) != p.PID || s.Comms() != len(p.Contexts) || h.LibraryVersion < 22800 {
				t.Errorf("%s: process %d: %d communicators of %d, library %d", rec.Name, k, s.Comms(), len(p.Contexts),
					h.LibraryVersion)
			}
			each(t, s, func(_ int, r *shm.Record) {
				switch r.Kind {
				case shm.RecordStart:
					starts[r.Type.String()]++
				case shm.RecordState:
					states[shm.StateName(r.Aux)]++
				case shm.RecordStop:
					stops++
				}
			})
		}
		testkit.Check(t, maps.Equal(starts, loaded.Run.Starts) && maps.Equal(states, loaded.Run.States),
			"%s: starts %v of %v, states %v of %v", rec.Name, starts, loaded.Run.Starts, states, loaded.Run.States)
		if nulls := nullStops(loaded); stops != loaded.Run.Calls["stop"]-nulls {
			t.Errorf("%s: %d stops, want all %d but %d of NULL", rec.Name, stops, loaded.Run.Calls["stop"], nulls)
		}
	}
}

func nullStops(rec *replay.Recording) (n int) {
	for _, p := range rec.Processes {
		for _, c := range p.Calls {
			if c.Kind == replay.CallStop && c.Event == nil {
				n++
			}
		}
	}
	return n
}

// lay makes a recording from lines, one text for each process.
func lay(t *testing.T, run string, processes ...string) *Recording {
	t.Helper()
	dir := t.TempDir()
	testkit.Write(t, filepath.Join(dir, recording.RunFile), []byte(run))
	for k, lines := range processes {
		var out bytes.Buffer
		zip := gzip.NewWriter(&out)
		testkit.Value(zip.Write([]byte(lines)))(t)
		testkit.Must(t, zip.Close())
		testkit.Write(t, filepath.Join(dir, fmt.Sprintf("p%d.rec.jsonl.gz", k)), out.Bytes())
	}
	loaded := testkit.Value(replay.Load(dir))(t)
	rec := testkit.Value(New(loaded))(t)
	return rec
}

// Callbacks that the plugin recorded in record mode, with an event of each type, come back unchanged: as records, and
// as lines.
func TestTranscriptsComeBack(t *testing.T) {
	text := testkit.Read(t, "../../collector/testdata/transcript.jsonl")
	text = bytes.ReplaceAll(text, []byte(`"pid":PID`), []byte(`"pid":4`))
	rec := lay(t, `{"nccl":"2.31.2"}`, string(text))
	testkit.Require(t, rec.numbers.own, "the plugin's handles are not known as such")
	s := write(t, rec, 0)
	h := s.Header()
	testkit.Check(t, h.Host() == "testhost" && h.Boot() != "" && h.Tag == 0x1234,
		"host %q, boot %q, tag %#x", h.Host(), h.Boot(), h.Tag)

	dir := t.TempDir()
	testkit.Must(t, os.Mkdir(filepath.Join(dir, experiment.Folder), 0o700))
	p := &description.Process{UUID: "p", Clock: provenance.Clock{AnchorRaw: h.Created.Raw, AnchorReal: h.Created.Real},
		Settings: map[string]string{}}
	again := testkit.Value(record.Create(dir, p, s, &h))(t)
	each(t, s, func(ring int, r *shm.Record) {
		testkit.Must(t, again.Take(ring, r.Ticks-h.Created.Raw+h.Created.Real, r))
	})
	testkit.Must(t, again.Flush())
	var got []map[string]any
	testkit.Must(t, record.EachLine(again.Path(), func(line []byte) error {
		got = append(got, plain(t, line))
		return nil
	}))
	var want []map[string]any
	for line := range strings.Lines(string(text)) {
		l := plain(t, []byte(line))
		if (l["f"] == "stop" || l["f"] == "state") && l["id"] == nil {
			continue // for NULL, or for an event that never existed
		}
		want = append(want, l)
	}
	testkit.Same(t, want, got)
}

// plain parses a line and removes what is not part of the callback: line numbers, and garbage in the slot.
func plain(t *testing.T, line []byte) map[string]any {
	t.Helper()
	var l map[string]any
	testkit.Must(t, json.Unmarshal(line, &l))
	delete(l, "seq")
	delete(l, "handleBefore")
	return l
}

// If one process carries out another's transfers, its records name the other's communicator and operation; unknown
// values stay as recorded.
func TestHandlesOfOtherProcesses(t *testing.T) {
	const open = `{"seq":0,"f":"open","pid":%d,"api":6,"mask":65535,"t":1000,"mono":1000,"real":5000}
{"seq":1,"f":"thread","tid":%[1]d,"name":"main"}
`
	rec := lay(t, `{"nccl":"2.29.7"}`,
		fmt.Sprintf(open, 11)+`{"seq":2,"f":"init","t":1010,"tid":11,"ctx":"0x10","ctxId":1,"commId":"0xa","mask":65535,"commName":"w","nNodes":1,"nranks":2,"rank":0,"publish":1}
{"seq":3,"f":"start","t":1020,"tid":11,"ctx":"0x10","ctxId":1,"type":4,"typeName":"P2p","parentObj":null,"parentId":null,"rank":0,"d":{"func":"Send","buff":"0x1","datatype":"ncclInt8","count":1,"peer":1,"nChannels":1,"parentGroup":null,"parentGroupId":null},"h":"0x20","id":1,"publish":2}
`,
		fmt.Sprintf(open, 12)+`{"seq":2,"f":"init","t":1010,"tid":12,"ctx":"0x30","ctxId":1,"commId":"0xa","mask":65535,"commName":"w","nNodes":1,"nranks":2,"rank":1}
{"seq":3,"f":"start","t":1030,"tid":12,"ctx":"0x10","ctxId":null,"ctxFrom":1,"type":8,"typeName":"ProxyOp","parentObj":"0x20","parentId":null,"parentFrom":2,"rank":0,"d":{"pid":11,"channelId":3,"peer":1,"nSteps":2,"chunkSize":4,"isSend":1},"h":"0x40","id":1}
{"seq":4,"f":"start","t":1040,"tid":12,"ctx":"0x77","ctxId":null,"type":8,"typeName":"ProxyOp","parentObj":"0x78","parentId":null,"rank":0,"d":{"pid":13,"channelId":3,"peer":1,"nSteps":2,"chunkSize":4,"isSend":0},"h":"0x50","id":2}
`)
	var sent uint64
	each(t, write(t, rec, 0), func(_ int, r *shm.Record) {
		if r.Kind == shm.RecordStart {
			sent = r.Handle
		}
	})
	var got []shm.Record
	each(t, write(t, rec, 1), func(_ int, r *shm.Record) {
		if r.Kind == shm.RecordStart {
			got = append(got, *r)
		}
	})
	testkit.Require(t, len(got) == 2, "%d starts", len(got))
	r := got[0]
	testkit.Check(t, r.Aux == shm.None && r.Arg == sent && shm.Tag(r.Context) == shm.Tag(sent) &&
		r.Context&shm.ContextBit != 0 && r.PID == 11 && r.Flags&shm.FlagSend != 0 && r.Channel == 3 && r.NSteps == 2 &&
		r.ChunkSize == 4 && shm.Tag(r.Handle) != shm.Tag(sent), "of the process that is known: %+v; it sent %#x", r,
		sent)
	if r := got[1]; r.Aux != shm.None || r.Arg != 0x78 || r.Context != 0x77 || r.Flags&shm.FlagSend != 0 {
		t.Errorf("of one that is not: %+v", r)
	}
}

// A release that is only a guess is not passed on.
func TestGuessedRelease(t *testing.T) {
	line := `{"seq":0,"f":"open","pid":4,"api":6,"mask":65535,"t":1000,"mono":1000,"real":5000}` + "\n"
	for run, want := range map[string]int32{`{"nccl":"2.29.2"}`: 22902, `{"nccl":"2.29.2","ncclGuessed":true}`: 0} {
		h := write(t, lay(t, run, line), 0).Header()
		testkit.Check(t, h.LibraryVersion == want && h.Library == shm.LibraryNCCL && h.Host() == units.UnknownHost,
			"%s: library %v %d of host %q", run, h.Library, h.LibraryVersion, h.Host())
	}
}
