// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"ncclotf2/otf2"
	"ncclotf2/plugin/shm"
	"ncclotf2/shard"
)

// memorySink keeps the event files of a model in memory.
type memorySink struct {
	writers []*otf2.EventWriter
}

func (s *memorySink) EventWriter(shard.Location) (*otf2.EventWriter, error) {
	w := otf2.NewMemoryEventWriter(&otf2.EventWriterOptions{CheckNesting: true})
	s.writers = append(s.writers, w)
	return w, nil
}

// line is a line of a recording of NCCL's callbacks (schema: testdata/nccl-callbacks/README.md).
type line struct {
	F         string
	T         uint64
	TID       int
	CtxID     int    `json:"ctxId"`
	CommID    string `json:"commId"`
	CommName  string `json:"commName"`
	NRanks    int    `json:"nranks"`
	NNodes    int    `json:"nNodes"`
	Rank      int
	Type      uint64
	TypeName  string `json:"typeName"`
	ID        uint64
	ParentID  *uint64 `json:"parentId"`
	State     uint32
	StateName string `json:"stateName"`
	Args      map[string]any
	D         struct {
		GraphCaptured                    int
		GroupDepth                       int32
		Func, Datatype, Algo, Proto      string
		Count, SeqNumber, PTimer         uint64
		Root, Peer                       int32
		Stream, SendBuff, RecvBuff, Buff string
		NChannels, NWarps, ChannelID     uint8
		ParentGroupID                    *uint64
	}
}

func readLines(t *testing.T, file string) []line {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var out []line
	sc := bufio.NewScanner(z)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var l line
		if err := decodeLine(sc.Bytes(), &l); err != nil {
			t.Fatalf("%s: %v: %s", file, err, sc.Text())
		}
		out = append(out, l)
	}
	if sc.Err() != nil {
		t.Fatal(sc.Err())
	}
	return out
}

func hex(s string) uint64 { n, _ := strconv.ParseUint(s, 0, 64); return n }

// byTime brings the calls between two openings of the plugin into the order of their times.
func byTime(lines []line) []line {
	lines = slices.DeleteFunc(lines, func(l line) bool { return l.F == "thread" })
	for from := 0; from < len(lines); {
		to := from + 1
		for to < len(lines) && lines[to].F != "open" {
			to++
		}
		slices.SortStableFunc(lines[from+1:to], func(a, b line) int { return cmp.Compare(a.T, b.T) })
		from = to
	}
	return lines
}

// feed plays the lines of one process into a model, as the collector would after the plugin.
func feed(m *Model, lines []line) (delivered map[string]uint64) {
	delivered = make(map[string]uint64)
	rings := make(map[int]int)
	comms := 0
	epoch := uint64(0)
	base := 0
	for _, l := range byTime(lines) {
		if l.F == "open" {
			epoch++
			base = comms
			continue
		}
		ring, ok := rings[l.TID]
		if !ok {
			ring = len(rings)
			rings[l.TID] = ring
			m.Record(ring, l.T, &shm.Record{Kind: shm.RecordThread, TID: int32(l.TID)})
		}
		typ := shm.EventType(slices.Index(shm.EventNames[:], l.TypeName))
		handle := func(id uint64) uint64 { return epoch<<32 | id }
		ref := func(id *uint64) uint64 {
			if id == nil {
				return 0
			}
			return handle(*id)
		}
		r := shm.Record{Ticks: l.T, Type: typ, Aux: uint32(base + l.CtxID - 1)}
		switch l.F {
		case "init":
			m.Comm(base+l.CtxID-1, shard.Comm{ID: hex(l.CommID), Name: l.CommName, NRanks: l.NRanks, Rank: l.Rank, NNodes: l.NNodes}, shard.GPU{Device: l.Rank})
			comms = max(comms, base+l.CtxID)
			r.Kind = shm.RecordInit
		case "finalize":
			r.Kind = shm.RecordFinalize
		case "start":
			d := &l.D
			r.Kind, r.Handle, r.Arg = shm.RecordStart, handle(l.ID), ref(l.ParentID)
			r.GroupDepth, r.Func, r.Datatype, r.Algo, r.Proto = d.GroupDepth, d.Func, d.Datatype, d.Algo, d.Proto
			r.Count, r.Seq, r.PTimer, r.Root, r.Peer = d.Count, d.SeqNumber, d.PTimer, d.Root, d.Peer
			r.Stream, r.SendBuff, r.RecvBuff = hex(d.Stream), hex(d.SendBuff), hex(d.RecvBuff)
			r.NChannels, r.NWarps, r.Channel, r.ParentGroup = d.NChannels, d.NWarps, d.ChannelID, ref(d.ParentGroupID)
			if d.GraphCaptured != 0 {
				r.Flags |= shm.FlagGraph
			}
		case "stop":
			if l.ID == 0 {
				continue
			}
			r.Kind, r.Handle = shm.RecordStop, handle(l.ID)
		case "state":
			r.Kind, r.Handle, r.Aux = shm.RecordState, handle(l.ID), l.State
			if v, ok := l.Args["pTimer"]; ok {
				n, _ := v.(json.Number)
				u, _ := strconv.ParseUint(string(n), 10, 64)
				r.Arg, r.Flags = u, shm.FlagHasArg
			}
		}
		delivered[l.F+" "+l.TypeName]++
		m.Record(ring, l.T, &r)
		m.Advance(l.T)
	}
	return delivered
}

func TestRecordings(t *testing.T) {
	dirs, _ := filepath.Glob("../testdata/nccl-callbacks/*/run.json")
	if len(dirs) != 10 {
		t.Fatalf("%d recordings found, want 10", len(dirs))
	}
	for _, d := range dirs {
		dir := filepath.Dir(d)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			files, _ := filepath.Glob(filepath.Join(dir, "p*.rec.jsonl.gz"))
			for _, f := range files {
				p := &shard.Process{}
				m := New(&memorySink{}, p, &Options{RecordMask: 0xffff})
				feed(m, readLines(t, f))
				if err := m.Finish(); err != nil {
					t.Error(err)
				}
				m.Snapshot()
				t.Log(p.Counts.Timing, p.Counts.Oddities, p.Markers)
				for _, l := range p.Locations {
					t.Log(l.Number, l.Name, l.Events)
				}
			}
		})
	}
}

// decodeLine keeps numbers as they are written: GPU stamps do not fit a float64.
func decodeLine(b []byte, l *line) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return d.Decode(l)
}
