// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"runtime"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// discard takes events of blocking collectives and keeps nothing.
type discard struct {
	EventWriter // nil: no other events come
	events      uint64
	last        otf2.Timestamp
}

func (d *discard) takeTime(t otf2.Timestamp) error {
	d.events++
	d.last = t
	return nil
}

func (d *discard) Enter(t otf2.Timestamp, _ *otf2.AttributeList, _ otf2.RegionRef) error {
	return d.takeTime(t)
}
func (d *discard) Leave(t otf2.Timestamp, _ *otf2.AttributeList, _ otf2.RegionRef) error {
	return d.takeTime(t)
}
func (d *discard) CommCreate(t otf2.Timestamp, _ *otf2.AttributeList, _ otf2.CommRef) error {
	return d.takeTime(t)
}
func (d *discard) MpiCollectiveBegin(t otf2.Timestamp, _ *otf2.AttributeList) error {
	return d.takeTime(t)
}
func (d *discard) MpiCollectiveEnd(t otf2.Timestamp, _ *otf2.AttributeList, _ otf2.CollectiveOp, _ otf2.CommRef,
	_ uint32, _, _ uint64) error {
	return d.takeTime(t)
}
func (d *discard) Events() uint64           { return d.events }
func (d *discard) Flushed() uint64          { return d.events }
func (d *discard) Size() int64              { return 0 }
func (d *discard) LastTime() otf2.Timestamp { return d.last }

// discards is a sink of them.
type discards struct{}

func (discards) EventWriter(description.Location) (EventWriter, error) { return &discard{}, nil }
func (discards) Finished(uint32)                                       {}

// burst feeds operations of communicators in turn, all within a second of record time: none of them has waited for the
// GPU's clock as long as it should by then. Every kernel of the last communicator lacks its end if hung is set. It
// returns the most bytes that the queues took, and the largest heap.
func burst(t *testing.T, operations uint64, comms int, hung bool) (m *Model, held int, heap uint64) {
	t.Helper()
	m = New(discards{}, &description.Process{},
		&Options{RecordMask: 1<<shm.EventColl | 1<<shm.EventGroup | 1<<shm.EventKernelCh})
	for c := range comms {
		m.Comm(c, description.Comm{ID: uint64(c + 1), NRanks: 2}, description.GPU{})
		testkit.Must(t, m.Record(0, base, &shm.Record{Kind: shm.RecordInit, Aux: uint32(c)}))
	}
	for n := range operations {
		comm, h := uint32(n%uint64(comms)), 10*(n+1)
		at := base + 1000 + n*1_000_000_000/operations
		records := [...]shm.Record{
			{Kind: shm.RecordStart, Type: shm.EventGroup, Aux: comm, Handle: h},
			{Kind: shm.RecordStart, Type: shm.EventColl, Aux: comm, Handle: h + 1, ParentGroup: h, Func: "AllReduce",
				Count: 1, Datatype: "ncclFloat32",
				Algo: "RING", Proto: "LL", NChannels: 1, NWarps: 16, Seq: n / uint64(comms)},
			{Kind: shm.RecordStop, Type: shm.EventColl, Handle: h + 1},
			{Kind: shm.RecordStop, Type: shm.EventGroup, Handle: h},
			{Kind: shm.RecordStart, Type: shm.EventKernelCh, Aux: comm, Handle: h + 2, Arg: h + 1, PTimer: at},
			{Kind: shm.RecordState, Type: shm.EventKernelCh, Handle: h + 2, Aux: 22, Arg: at + 1,
				Flags: shm.FlagHasArg},
			{Kind: shm.RecordStop, Type: shm.EventKernelCh, Handle: h + 2},
		}
		some := records[:]
		if hung && int(comm) == comms-1 {
			some = some[:4]
		}
		for i := range some {
			testkit.Must(t, m.Record(0, at, &some[i]))
			held = max(held, m.ranks.bytes)
		}
		if n%(operations/8) == operations/8-1 {
			var s runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&s)
			heap = max(heap, s.HeapAlloc)
		}
	}
	testkit.Must(t, m.Finish())
	m.Snapshot()
	return m, held, heap
}

// However many operations come in the time for which they are held, what the model holds of them has a bound; which of
// them waited shorter for it is counted, and all are written.
func TestBurstsAreHeldWithinABound(t *testing.T) {
	was := maxHeld
	maxHeld = 2 << 20 // so that some ten thousand operations are many times what may be held
	t.Cleanup(func() { maxHeld = was })
	for _, c := range []struct {
		operations uint64
		comms      int
		hung       bool
		bound      int
	}{
		{operations: 50_000, comms: 1, bound: maxHeld + mostRelief()},
		{operations: 250_000, comms: 3, bound: maxHeld + mostRelief()},
		{operations: 20_000, comms: 2, hung: true, bound: 2*maxHeld + 2*mostRelief()},
	} {
		m, held, heap := burst(t, c.operations, c.comms, c.hung)
		testkit.Check(t, held <= c.bound+int(planBytes) && heap <= uint64(2*c.bound)+(16<<20),
			"%d operations: %d KiB in queues, a heap of %d MiB", c.operations, held>>10, heap>>20)
		written := uint64(0)
		for _, comm := range m.process.Comms {
			written += comm.Sequences["AllReduce"].Count
		}
		if short := m.process.Counts.Oddities["SHORT_HOLDS"]; written != c.operations || short == 0 {
			t.Errorf("%d operations of %d are written, %d of them sooner", written, c.operations, short)
		}
		testkit.Check(t, m.ranks.bytes == 0, "%d bytes are left in queues", m.ranks.bytes)
		t.Logf("%d operations: %d KiB in queues, a heap of %d MiB", c.operations, held>>10, heap>>20)
	}
}
