// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// One thread calls for two ranks of a communicator, on two devices; for a communicator of one rank, which archives do
// not have; and for one that NCCL reported nothing about. Each call states what is known.
func TestCallsSayOnWhichCommunicatorAndRankTheyAre(t *testing.T) {
	s := newScene(t, 4)
	for i, c := range []struct {
		comm description.Comm
		gpu  int
	}{{description.Comm{ID: 0xabcd, Name: "world", NRanks: 4, Rank: 3}, 5}, {description.Comm{ID: 0xbcde, NRanks: 1}, 2},
		{description.Comm{Rank: -1}, -1}} {
		s.m.Comm(i+1, c.comm, description.GPU{Device: c.gpu})
	}
	call := func(us uint64, name string, comm uint32, function string, root int32) {
		s.start(0, us, shm.EventCollApi, name, "g",
			shm.Record{Aux: comm, Func: function, Count: 256, Datatype: "ncclFloat32", Root: root})
		s.stop(0, us+1, shm.EventCollApi, name)
	}
	s.start(0, 100, shm.EventGroupApi, "g", "", shm.Record{GroupDepth: 2})
	call(110, "a", 0, "AllReduce", 0)
	call(120, "b", 1, "AllReduce", 0)
	call(130, "c", 1, "Broadcast", 2)
	call(140, "d", 2, "Reduce", 0)
	call(150, "e", 3, "AllReduce", 0)
	call(160, "f", 4, "AllReduce", 0) // its communicator is announced later
	s.stop(0, 200, shm.EventGroupApi, "g")
	s.golden()
}

// A call that NCCL makes sends and receives of says so itself, too.
func TestCallsOfSendsAndReceivesSayOnWhichCommunicatorTheyAre(t *testing.T) {
	s := newScene(t, 2)
	s.start(0, 100, shm.EventGroupApi, "g", "", shm.Record{GroupDepth: 1})
	for i, function := range []string{"Send", "Recv", "Send", "Recv"} {
		s.api(110+10*uint64(i), string(rune('a'+i)), "g", function, 0)
	}
	s.stop(0, 200, shm.EventGroupApi, "g")
	s.golden()
}

// So many calls wait that half of them are given up, while one is under way: it has its region when it ends.
func TestCallsUnderWayAreNotGivenUp(t *testing.T) {
	s := newScene(t, 4)
	const calls = maxUnseen + 1
	for i := range uint64(calls) {
		r := shm.Record{Kind: shm.RecordStart, Type: shm.EventCollApi, Handle: 2 + i, Func: "AllReduce", Count: 1,
			Datatype: "ncclInt8"}
		testkit.Must(t, s.m.Record(0, micros(100+2*i), &r))
		if i == maxUnseen {
			testkit.Must(t, s.m.Advance(micros(100+2*i)))
		}
		r = shm.Record{Kind: shm.RecordStop, Type: shm.EventCollApi, Handle: 2 + i}
		testkit.Must(t, s.m.Record(0, micros(101+2*i), &r))
	}
	n := len(s.lines(description.KindThread))
	testkit.Check(t, n == 2*calls, "%d events of %d calls, want two of each", n, calls)
	s.oddities(nil)
}
