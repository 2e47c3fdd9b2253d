// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/cupti"
	"github.com/nccl-otf2/nccl-otf2/cupti/cuptitest"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

func TestBufferClasses(t *testing.T) {
	type coll struct {
		at         uint64
		function   string
		send, recv uint64
	}
	alloc := func(kind cupti.MemoryKind, address, bytes uint64, at float64) shm.Record {
		return memoryRecord(cupti.MemoryAllocate, kind, address, bytes, at)
	}
	free := func(address uint64, at float64) shm.Record {
		return memoryRecord(cupti.MemoryRelease, cupti.MemoryDevice, address, 0, at)
	}
	pool := func(r shm.Record, address uint64) shm.Record {
		for i := range 8 {
			r.Activity[88+i] = byte(address >> (8 * i))
		}
		return r
	}
	destroy := func(address uint64, at float64) shm.Record {
		return shm.Record{Kind: shm.RecordCupti, Arg: cuptiVersion,
			Activity: cuptitest.Record(cupti.KindMemoryPool, 72, map[int]any{
				4: uint32(cupti.MemoryPoolDestroyed), 32: address, 56: us(at),
			})}
	}
	for _, tc := range []struct {
		name    string
		records []shm.Record
		op      coll
	}{
		{"device and managed", []shm.Record{alloc(cupti.MemoryDevice, 0x10000, 0x1000, 10),
			alloc(cupti.MemoryManaged, 0x20000, 0x1000, 10)},
			coll{100, "AllReduce", 0x10000, 0x20800}},
		{"pinned and pageable", []shm.Record{alloc(cupti.MemoryPinned, 0x10000, 0x1000, 10),
			alloc(cupti.MemoryPageable, 0x20000, 0x1000, 10)},
			coll{100, "AllReduce", 0x10fff, 0x20000}},
		{"static", []shm.Record{alloc(cupti.MemoryDeviceStatic, 0x10000, 0x1000, 10),
			alloc(cupti.MemoryManagedStatic, 0x20000, 0x1000, 10)},
			coll{100, "AllReduce", 0x10000, 0x20000}},
		{"of a kind not known", []shm.Record{alloc(99, 0x10000, 0x1000, 10)}, coll{100, "AllReduce", 0x10000, 0x10000}},
		{"from before", []shm.Record{alloc(cupti.MemoryDevice, 0x10000, 0x1000, 10)},
			coll{100, "AllReduce", 0x9fff, 0x11000}},
		{"released before", []shm.Record{free(0x10000, 50), alloc(cupti.MemoryDevice, 0x10000, 0x1000, 10)},
			coll{100, "AllReduce", 0x10000, 0x10000}},
		{"released after", []shm.Record{free(0x10000, 150), alloc(cupti.MemoryDevice, 0x10000, 0x1000, 10)},
			coll{100, "AllReduce", 0x10000, 0x10000}},
		{"allocated after", []shm.Record{alloc(cupti.MemoryDevice, 0x10000, 0x1000, 150)},
			coll{100, "AllReduce", 0x10000, 0x10000}},
		{"used again as something else", []shm.Record{alloc(cupti.MemoryManaged, 0x10000, 0x2000, 60),
			free(0x10000, 50), alloc(cupti.MemoryDevice, 0x10000, 0x1000, 10), free(0x10000, 160)},
			coll{100, "AllReduce", 0x10000, 0x11800}},
		{"a release that is missing", []shm.Record{alloc(cupti.MemoryManaged, 0x10000, 0x10000, 10),
			alloc(cupti.MemoryDevice, 0x8000, 0x10000, 60)},
			coll{100, "AllReduce", 0x10800, 0x17fff}},
		{"behind small ones", []shm.Record{
			alloc(cupti.MemoryDevice, 0x10000, 0x10000, 20), alloc(cupti.MemoryPinned, 0x12000, 0x100, 5),
			free(0x12000, 6), alloc(cupti.MemoryPinned, 0x13000, 0x100, 5), free(0x13000, 6),
		}, coll{100, "AllReduce", 0x14000, 0x12080}},
		{"of a pool that is gone", []shm.Record{pool(alloc(cupti.MemoryDevice, 0x10000, 0x1000, 10), 0x77),
			pool(alloc(cupti.MemoryDevice, 0x20000, 0x1000, 10), 0x78), destroy(0x77, 50)},
			coll{100, "AllReduce", 0x10000, 0x20000}},
		// 256 elements of 4 bytes, rank 1.
		{"gather in place", []shm.Record{alloc(cupti.MemoryDevice, 0x10000, 0x1000, 10)},
			coll{100, "AllGather", 0x10400, 0x10000}},
		{"gather at another rank's place", []shm.Record{alloc(cupti.MemoryDevice, 0x10000, 0x1000, 10)},
			coll{100, "AllGather", 0x10000, 0x10000}},
		{"scatter in place", []shm.Record{alloc(cupti.MemoryDevice, 0x10000, 0x1000, 10)},
			coll{100, "ReduceScatter", 0x10000, 0x10400}},
		{"no receive buffer", []shm.Record{alloc(cupti.MemoryDevice, 0x10000, 0x1000, 10)},
			coll{100, "Reduce", 0x10000, 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newScene(t, 4)
			s.reading(1)
			s.planOf(0, tc.op.at, "p", shm.EventColl, "c", "", shm.Record{
				Func: tc.op.function, Count: 256, Datatype: "ncclFloat32", SendBuff: tc.op.send, RecvBuff: tc.op.recv,
				NChannels: 1,
			})
			s.kernel(tc.op.at+10, tc.op.at+20, "c")
			for _, r := range tc.records {
				s.activity(300_000, r)
			}
			s.reading(500_000)
			s.golden()
		})
	}
}

// Whether both buffers are one NCCL's addresses tell: no CUPTI is needed for that, and classes stay unsaid.
func TestInPlaceNeedsNoCUPTI(t *testing.T) {
	for _, tc := range []struct {
		function   string
		send, recv uint64
		want       string
	}{
		{"AllReduce", 0x10000, 0x10000, " IN_PLACE=1"},
		{"AllReduce", 0x10000, 0x20000, " IN_PLACE=0"},
		{"AllGather", 0x10400, 0x10000, " IN_PLACE=1"}, // rank 1's 256 elements of 4 bytes
		{"Reduce", 0x10000, 0, ""},
	} {
		s := newScene(t, 4)
		s.planOf(0, 100, "p", shm.EventColl, "c", "", shm.Record{
			Func: tc.function, Count: 256, Datatype: "ncclFloat32", SendBuff: tc.send, RecvBuff: tc.recv, NChannels: 1,
		})
		s.kernel(110, 120, "c")
		got := s.lines(description.KindRank, AttrSendBuffClass, AttrRecvBuffClass, attrInPlace)
		testkit.Check(t, len(got) >= 2 && strings.HasSuffix(got[1], "Enter "+tc.function+tc.want),
			"%q, want %s", got, tc.want)
	}
}

// Without records of memory nothing is said of classes.
func TestNoBufferClasses(t *testing.T) {
	s := newScene(t, 4)
	s.reading(1)
	s.allReduce(100, "a")
	got := strings.Join(s.lines(description.KindRank, AttrSendBuffClass, AttrRecvBuffClass, attrInPlace), "\n")
	testkit.Check(t, !strings.Contains(got, "CLASS") && !strings.Contains(got, "PLACE"), "%v", got)
}
