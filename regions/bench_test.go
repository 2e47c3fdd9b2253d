// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"fmt"
	"path/filepath"
	"testing"

	"ncclotf2/otf2"
	"ncclotf2/plugin/shm"
	"ncclotf2/shard"
)

// files makes event files that nobody reads.
type files struct{ dir string }

func (d files) EventWriter(l shard.Location) (*otf2.EventWriter, error) {
	return otf2.CreateEventWriter(filepath.Join(d.dir, fmt.Sprint(l.Number)), nil)
}

func (d files) Finished(uint32) {}

// Five records for each transfer that a proxy thread sends, eight under way at a time.
func BenchmarkTransfers(b *testing.B) {
	m := New(files{b.TempDir()}, &shard.Process{}, &Options{RecordMask: 1 << shm.EventProxyStep})
	m.Comm(0, shard.Comm{ID: 1, NRanks: 2}, shard.GPU{})
	op := shm.Record{Kind: shm.RecordStart, Type: shm.EventProxyOp, Handle: 1, Flags: shm.FlagSend, Peer: 1}
	if err := m.Record(0, base, &op); err != nil {
		b.Fatal(err)
	}
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
			if err := m.Record(0, t, &records[i]); err != nil {
				b.Fatal(err)
			}
			t += 60
		}
		n++
	}
}
