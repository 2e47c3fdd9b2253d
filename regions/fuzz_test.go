// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"encoding/binary"
	"errors"
	"path/filepath"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// recordedHead is what stands before each record of FuzzRecords' inputs: its ring, what is done after it, and
// the communicator that is announced then.
const recordedHead = 4

// What FuzzRecords does after a record.
const (
	thenNothing = iota
	thenAdvance
	thenSettle
	thenSnapshot
	thenAnnounce
	numThen
)

// fuzzStrings are what the string ids 1, 2, … of FuzzRecords' inputs mean.
var fuzzStrings = []string{"AllReduce", "Broadcast", "Send", "Recv", "ncclFloat32", "ncclInt8", "RING", "LL", "compute",
	allReduceKernel}

// fuzzHeap lays them out as the plugin does, eight bytes apart at least, and gives their ids.
func fuzzHeap() (*shm.Strings, func(string) uint32) {
	var heap []byte
	ids := map[string]uint32{"": 0}
	for _, s := range fuzzStrings {
		ids[s] = uint32(len(heap)/8) + 1
		heap = binary.NativeEndian.AppendUint32(heap, uint32(len(s))+1)
		heap = append(append(heap, s...), make([]byte, 8-(4+len(s))%8)...)
	}
	return shm.NewStrings(heap), func(s string) uint32 { return ids[s] }
}

// recordedBytes writes the first calls of a recorded process as FuzzRecords reads them.
func recordedBytes(p *replay.Process, records int, id func(string) uint32) (b []byte) {
	rings := make(map[*replay.Thread]int)
	for i, c := range p.Calls[:min(records, len(p.Calls))] {
		if _, ok := rings[c.Thread]; !ok {
			rings[c.Thread] = len(rings)
		}
		r, ok := recordOf(c)
		if !ok {
			continue
		}
		r.Ticks = c.T
		then := byte(thenNothing)
		switch {
		case c.Kind == replay.CallInit:
			then = thenAnnounce
		case i%20 == 0:
			then = thenAdvance
		}
		b = append(b, byte(rings[c.Thread]), then, 4, 1)
		b = shm.AppendRecord(b, &r, id)
	}
	return b
}

// FuzzRecords: whatever the records of a process say, the timeline is whole, and nothing is kept at the end.
func FuzzRecords(f *testing.F) {
	_, id := fuzzHeap()
	for _, name := range []string{"02-allcoll-4p-net", "04-threads-4r", "05-p2p-3p"} {
		rec := testkit.Value(replay.Load(filepath.Join("../testdata/nccl-callbacks", name)))(f)
		f.Add(recordedBytes(rec.Processes[0], 60, id), true)
	}
	for typ := range shm.EventType(shm.TypeCount) {
		handle := uint64(1)<<shm.TagShift | uint64(typ)<<shm.TypeShift | 5
		var b []byte
		for _, r := range []shm.Record{
			{Ticks: 10, Kind: shm.RecordInit},
			{Ticks: 20, Kind: shm.RecordStart, Type: typ, Handle: handle, Func: "AllReduce", Datatype: "ncclFloat32",
				Count: 5, NChannels: 1},
			{Ticks: 30, Kind: shm.RecordState, Type: typ, Handle: handle, Aux: 22, Arg: 7, Flags: shm.FlagHasArg},
			{Ticks: 40, Kind: shm.RecordStop, Type: typ, Handle: handle},
			{Ticks: 50, Kind: shm.RecordMark, MarkText: "compute"},
			{Ticks: 60, Kind: shm.RecordEdge, Arg: 3},
			{Ticks: 70, Kind: shm.RecordFinalize},
		} {
			b = append(b, 0, thenAnnounce, 4, 1)
			b = shm.AppendRecord(b, &r, id)
		}
		f.Add(b, false)
	}
	for _, kind := range []shm.RecordKind{shm.RecordStop, shm.RecordState} { // of a type that there is not
		unknown := shm.AppendRecord([]byte{0, thenNothing, 0, 0}, &shm.Record{Ticks: 10, Kind: kind}, id)
		unknown[recordedHead+9] = 200
		f.Add(unknown, false)
	}
	f.Fuzz(func(t *testing.T, b []byte, channels bool) {
		strings, _ := fuzzHeap()
		p := &description.Process{}
		sink := &memorySink{}
		m := New(sink, p, &Options{RecordMask: 0xffff, Channels: channels, Raw: channels, Metrics: !channels,
			Lasting: channels})
		announced := make(map[int]bool)
		now := uint64(0)
		for len(b) > recordedHead {
			head := b[:recordedHead]
			var r shm.Record
			n, err := shm.Decode(b[recordedHead:], strings, &r)
			if errors.Is(err, shm.ErrRecord) {
				break // here the ring ends
			}
			b = b[recordedHead+n:]
			now = max(now, r.Ticks)
			if r.Aux < 8 && head[1]%numThen == thenAnnounce && !announced[int(r.Aux)] {
				announced[int(r.Aux)] = true
				m.Comm(int(r.Aux), description.Comm{ID: 7, NRanks: int(head[2]), Rank: int(int8(head[3])),
					InitTime: r.Ticks}, description.GPU{Device: int(head[3] % 4)})
			}
			if err := m.Record(int(head[0]%4), r.Ticks, &r); err != nil {
				t.Fatalf("%v: %+v", err, r)
			}
			switch head[1] % numThen {
			case thenAdvance:
				err = m.Advance(now)
			case thenSettle:
				err = m.Settle(now)
			case thenSnapshot:
				m.Snapshot()
			}
			testkit.Must(t, err)
		}
		testkit.Must(t, m.Finish())
		m.Snapshot()
		for i, w := range sink.writers {
			err := w.Close()
			testkit.Require(t, err == nil, "location %d: %v", i, err)
		}
		for _, c := range m.ranks.all {
			if c != nil {
				testkit.Check(t, len(c.queue.plans)+c.calls.count == 0, "%d plans and %d calls are kept at the end",
					len(c.queue.plans), c.calls.count)
			}
		}
	})
}
