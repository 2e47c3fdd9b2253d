// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/cupti"
	"github.com/nccl-otf2/nccl-otf2/cupti/cuptitest"
	"github.com/nccl-otf2/nccl-otf2/experiment"
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
		return shm.Record{Kind: shm.RecordCupti, Arg: cuptiVersion, Activity: cuptitest.Record(cupti.KindMemoryPool, 72, map[int]any{
			4: uint32(cupti.MemoryPoolDestroyed), 32: address, 56: us(at),
		})}
	}
	for _, tc := range []struct {
		name    string
		records []shm.Record
		op      coll
		want    string
	}{
		{"device and managed", []shm.Record{alloc(cupti.MemoryDevice, 0x10000, 0x1000, 10), alloc(cupti.MemoryManaged, 0x20000, 0x1000, 10)},
			coll{100, "AllReduce", 0x10000, 0x20800}, "SENDBUFF_CLASS=device RECVBUFF_CLASS=managed IN_PLACE=0"},
		{"pinned and pageable", []shm.Record{alloc(cupti.MemoryPinned, 0x10000, 0x1000, 10), alloc(cupti.MemoryPageable, 0x20000, 0x1000, 10)},
			coll{100, "AllReduce", 0x10fff, 0x20000}, "SENDBUFF_CLASS=pinned RECVBUFF_CLASS=host IN_PLACE=0"},
		{"static", []shm.Record{alloc(cupti.MemoryDeviceStatic, 0x10000, 0x1000, 10), alloc(cupti.MemoryManagedStatic, 0x20000, 0x1000, 10)},
			coll{100, "AllReduce", 0x10000, 0x20000}, "SENDBUFF_CLASS=device RECVBUFF_CLASS=managed IN_PLACE=0"},
		{"of a kind not known", []shm.Record{alloc(99, 0x10000, 0x1000, 10)},
			coll{100, "AllReduce", 0x10000, 0x10000}, "SENDBUFF_CLASS=unknown RECVBUFF_CLASS=unknown IN_PLACE=1"},
		{"from before", []shm.Record{alloc(cupti.MemoryDevice, 0x10000, 0x1000, 10)},
			coll{100, "AllReduce", 0x9fff, 0x11000}, "SENDBUFF_CLASS=unknown RECVBUFF_CLASS=unknown IN_PLACE=0"},
		{"released before", []shm.Record{free(0x10000, 50), alloc(cupti.MemoryDevice, 0x10000, 0x1000, 10)},
			coll{100, "AllReduce", 0x10000, 0x10000}, "SENDBUFF_CLASS=unknown RECVBUFF_CLASS=unknown IN_PLACE=1"},
		{"released after", []shm.Record{free(0x10000, 150), alloc(cupti.MemoryDevice, 0x10000, 0x1000, 10)},
			coll{100, "AllReduce", 0x10000, 0x10000}, "SENDBUFF_CLASS=device RECVBUFF_CLASS=device IN_PLACE=1"},
		{"allocated after", []shm.Record{alloc(cupti.MemoryDevice, 0x10000, 0x1000, 150)},
			coll{100, "AllReduce", 0x10000, 0x10000}, "SENDBUFF_CLASS=unknown RECVBUFF_CLASS=unknown IN_PLACE=1"},
		{"used again as something else", []shm.Record{alloc(cupti.MemoryManaged, 0x10000, 0x2000, 60), free(0x10000, 50), alloc(cupti.MemoryDevice, 0x10000, 0x1000, 10), free(0x10000, 160)},
			coll{100, "AllReduce", 0x10000, 0x11800}, "SENDBUFF_CLASS=managed RECVBUFF_CLASS=managed IN_PLACE=0"},
		{"a release that is missing", []shm.Record{alloc(cupti.MemoryManaged, 0x10000, 0x10000, 10), alloc(cupti.MemoryDevice, 0x8000, 0x10000, 60)},
			coll{100, "AllReduce", 0x10800, 0x17fff}, "SENDBUFF_CLASS=device RECVBUFF_CLASS=device IN_PLACE=0"},
		{"behind small ones", []shm.Record{
			alloc(cupti.MemoryDevice, 0x10000, 0x10000, 20), alloc(cupti.MemoryPinned, 0x12000, 0x100, 5), free(0x12000, 6), alloc(cupti.MemoryPinned, 0x13000, 0x100, 5), free(0x13000, 6),
		}, coll{100, "AllReduce", 0x14000, 0x12080}, "SENDBUFF_CLASS=device RECVBUFF_CLASS=device IN_PLACE=0"},
		{"of a pool that is gone", []shm.Record{pool(alloc(cupti.MemoryDevice, 0x10000, 0x1000, 10), 0x77), pool(alloc(cupti.MemoryDevice, 0x20000, 0x1000, 10), 0x78), destroy(0x77, 50)},
			coll{100, "AllReduce", 0x10000, 0x20000}, "SENDBUFF_CLASS=unknown RECVBUFF_CLASS=device IN_PLACE=0"},
		// 256 elements of 4 bytes, rank 1.
		{"gather in place", []shm.Record{alloc(cupti.MemoryDevice, 0x10000, 0x1000, 10)},
			coll{100, "AllGather", 0x10400, 0x10000}, "SENDBUFF_CLASS=device RECVBUFF_CLASS=device IN_PLACE=1"},
		{"gather at another rank's place", []shm.Record{alloc(cupti.MemoryDevice, 0x10000, 0x1000, 10)},
			coll{100, "AllGather", 0x10000, 0x10000}, "SENDBUFF_CLASS=device RECVBUFF_CLASS=device IN_PLACE=0"},
		{"scatter in place", []shm.Record{alloc(cupti.MemoryDevice, 0x10000, 0x1000, 10)},
			coll{100, "ReduceScatter", 0x10000, 0x10400}, "SENDBUFF_CLASS=device RECVBUFF_CLASS=device IN_PLACE=1"},
		{"no receive buffer", []shm.Record{alloc(cupti.MemoryDevice, 0x10000, 0x1000, 10)},
			coll{100, "Reduce", 0x10000, 0}, "SENDBUFF_CLASS=device"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newScene(t, 4)
			s.reading(1)
			s.start(0, tc.op.at, shm.EventGroup, "p", "", shm.Record{})
			s.start(0, tc.op.at+1, shm.EventColl, "c", "", shm.Record{
				ParentGroup: s.id("p"), Func: tc.op.function, Count: 256, Datatype: "ncclFloat32", SendBuff: tc.op.send, RecvBuff: tc.op.recv, NChannels: 1,
			})
			s.stop(0, tc.op.at+2, shm.EventColl, "c")
			s.stop(0, tc.op.at+3, shm.EventGroup, "p")
			s.kernel(tc.op.at+10, tc.op.at+20, "c")
			for _, r := range tc.records {
				s.activity(300_000, r)
			}
			s.reading(500_000)
			got := s.lines(experiment.KindRank, AttrSendBuffClass, AttrRecvBuffClass, AttrInPlace)
			if len(got) < 2 || !strings.HasSuffix(got[1], "Enter "+tc.op.function+" "+tc.want) {
				t.Errorf("%q, want %s", got, tc.want)
			}
		})
	}
}

// Without records of memory nothing is said of classes.
func TestNoBufferClasses(t *testing.T) {
	s := newScene(t, 4)
	s.reading(1)
	s.allReduce(100, "a")
	if got := strings.Join(s.lines(experiment.KindRank, AttrSendBuffClass, AttrRecvBuffClass, AttrInPlace), "\n"); strings.Contains(got, "CLASS") || strings.Contains(got, "PLACE") {
		t.Error(got)
	}
}

// TestBuffersAgainstAll compares with a list of all allocations that is looked through: random allocations that do not
// overlap at one time, in any order of their records.
func TestBuffersAgainstAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type life struct{ address, bytes, from, to uint64 }
		var lives []life
		var s buffers
		type event struct {
			address uint64
			c       change
		}
		var events []event
		for i := range rapid.IntRange(1, 60).Draw(t, "allocations") {
			l := life{uint64(rapid.IntRange(1, 50).Draw(t, "address")) * 16, uint64(rapid.IntRange(1, 200).Draw(t, "bytes")), uint64(rapid.IntRange(0, 1000).Draw(t, "from")), 0}
			l.to = l.from + uint64(rapid.IntRange(1, 400).Draw(t, "length"))
			free := true
			for _, o := range lives {
				free = free && (l.to < o.from || o.to < l.from || l.address+l.bytes <= o.address || o.address+o.bytes <= l.address)
			}
			if !free {
				continue
			}
			lives = append(lives, l)
			events = append(events, event{l.address, change{time: l.from, bytes: l.bytes, class: fmt.Sprint(len(lives) - 1)}},
				event{l.address, change{time: l.to, class: ClassDevice}})
			_ = i
		}
		for _, e := range rapid.Permutation(events).Draw(t, "order") {
			if s.add(e.address, e.c, 0) != 0 {
				t.Fatal("something was forgotten")
			}
		}
		for range 50 {
			address, at := uint64(rapid.IntRange(0, 1100).Draw(t, "address")), uint64(rapid.IntRange(0, 1500).Draw(t, "at"))
			want := ClassUnknown
			for i, l := range lives {
				if address >= l.address && address < l.address+l.bytes && at >= l.from && at < l.to {
					want = fmt.Sprint(i)
				}
			}
			if got := s.class(address, at); got != want {
				t.Fatalf("%d at %d: %s, want %s of %v", address, at, got, want, lives)
			}
		}
	})
}

func TestBuffersAreBounded(t *testing.T) {
	var s buffers
	forgotten := uint64(0)
	for i := range uint64(3 * maxBlocks) {
		forgotten += s.add(i*4096, change{time: i, bytes: 4096, class: ClassDevice}, i)
		if i%2 == 0 {
			forgotten += s.add(i*4096, change{time: i + 1}, i)
		}
	}
	if len(s.blocks) > maxBlocks || len(s.gone) > maxBlocks || forgotten == 0 {
		t.Errorf("%d blocks, %d releases, %d forgotten", len(s.blocks), len(s.gone), forgotten)
	}
	s = buffers{}
	for i := range uint64(1000) {
		s.add(4096, change{time: 2 * i, bytes: 4096, class: ClassDevice}, i*1e9)
		s.add(4096, change{time: 2*i + 1}, i*1e9)
	}
	if n := len(s.blocks[0].changes); n > 300 {
		t.Errorf("%d changes are remembered of one address", n)
	}
}
