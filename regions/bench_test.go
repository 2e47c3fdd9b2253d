// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// files makes event files that are not read.
type files struct{ dir string }

func (d files) EventWriter(l description.Location) (EventWriter, error) {
	return otf2.CreateEventWriter(filepath.Join(d.dir, fmt.Sprint(l.Number)), nil)
}

func (d files) Finished(uint32) {}

// Five records for each transfer that a proxy thread sends, eight under way at a time.
func BenchmarkTransfers(b *testing.B) {
	b.Run("plain", func(b *testing.B) { benchmarkTransfers(b, false) })
	b.Run("metrics", func(b *testing.B) { benchmarkTransfers(b, true) })
}

func benchmarkTransfers(b *testing.B, metrics bool) {
	m := New(files{b.TempDir()}, &description.Process{}, &Options{RecordMask: 1 << shm.EventProxyStep, Metrics: metrics})
	m.Comm(0, description.Comm{ID: 1, NRanks: 2}, description.GPU{})
	op := shm.Record{Kind: shm.RecordStart, Type: shm.EventProxyOp, Handle: 1, Flags: shm.FlagSend, Peer: 1}
	testkit.Must(b, m.Record(0, base, &op))
	b.ReportAllocs()
	n := uint64(0)
	var records [5]shm.Record
	for b.Loop() {
		h, t := n+2, base+n*300
		records = [5]shm.Record{
			{Kind: shm.RecordStart, Type: shm.EventProxyStep, Handle: h, Arg: 1, Step: int32(n)},
			{Kind: shm.RecordState, Type: shm.EventProxyStep, Handle: h, Aux: 8},
			{Kind: shm.RecordState, Type: shm.EventProxyStep, Handle: h, Aux: 20},
			{Kind: shm.RecordState, Type: shm.EventProxyStep, Handle: h, Aux: 9, Arg: 4096, Flags: shm.FlagHasArg},
			{Kind: shm.RecordStop, Type: shm.EventProxyStep, Handle: h - 7},
		}
		for i := range records {
			testkit.Must(b, m.Record(0, t, &records[i]))
			t += 60
		}
		n++
	}
	b.StopTimer()
	b.ReportMetric(float64(bytesWritten(m))/float64(n), "B/transfer")
}

func bytesWritten(m *Model) (n int64) {
	m.Snapshot()
	for _, l := range m.process.Locations {
		n += l.Bytes
	}
	return n
}

// One AllReduce at a time with stamps of its one channel.
func BenchmarkOperations(b *testing.B) {
	b.Run("plain", func(b *testing.B) { benchmarkOperations(b, false) })
	b.Run("metrics", func(b *testing.B) { benchmarkOperations(b, true) })
}

func benchmarkOperations(b *testing.B, metrics bool) {
	m := New(files{b.TempDir()}, &description.Process{},
		&Options{RecordMask: 1<<shm.EventColl | 1<<shm.EventGroup | 1<<shm.EventKernelCh, Metrics: metrics})
	m.Comm(0, description.Comm{ID: 1, NRanks: 2}, description.GPU{})
	m.Record(0, base, &shm.Record{Kind: shm.RecordInit})
	b.ReportAllocs()
	n := uint64(0)
	for b.Loop() {
		h, t := 10*(n+1), base+1000+n*20_000
		for i, r := range []shm.Record{
			{Kind: shm.RecordStart, Type: shm.EventGroup, Handle: h},
			{Kind: shm.RecordStart, Type: shm.EventColl, Handle: h + 1, ParentGroup: h, Func: "AllReduce",
				Count: 1 << 20, Datatype: "ncclFloat32",
				Algo: "RING", Proto: "SIMPLE", NChannels: 1, NWarps: 16, Seq: n},
			{Kind: shm.RecordStop, Type: shm.EventColl, Handle: h + 1},
			{Kind: shm.RecordStop, Type: shm.EventGroup, Handle: h},
			{Kind: shm.RecordStart, Type: shm.EventKernelCh, Handle: h + 2, Arg: h + 1, PTimer: t + 3000},
			{Kind: shm.RecordState, Type: shm.EventKernelCh, Handle: h + 2, Aux: 22, Arg: t + 15_000,
				Flags: shm.FlagHasArg},
			{Kind: shm.RecordStop, Type: shm.EventKernelCh, Handle: h + 2},
		} {
			at := t + uint64(i)*100
			if i >= 4 {
				at = t + 3000 + uint64(i-4)*6100
			}
			testkit.Must(b, m.Record(0, at, &r))
		}
		if n++; n%64 == 0 {
			m.Advance(t)
		}
	}
	b.StopTimer()
	m.Finish()
	b.ReportMetric(float64(bytesWritten(m))/float64(n), "B/operation")
	for source, k := range m.process.Counts.Timing {
		b.ReportMetric(float64(k)/float64(n), source+"/operation")
	}
}
