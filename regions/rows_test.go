// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// parade is a process whose communicator ranks come and go, several at a time, with operations, transfers and channels.
type parade struct {
	t       *testing.T
	m       *Model
	p       *description.Process
	sink    *memorySink
	now     uint64
	handles uint64
	comms   int
	lives   map[int][2]uint64 // begin and end of communicator ranks
}

func newParade(t *testing.T) *parade {
	d := &parade{t: t, p: &description.Process{APIVersion: 6, Tag: 0x1111}, sink: new(memorySink), now: base,
		lives: make(map[int][2]uint64)}
	d.m = New(d.sink, d.p, &Options{RecordMask: 1<<shm.EventProxyOp | 1<<shm.EventProxyStep, Channels: true,
		Metrics: true})
	d.give(shm.Record{Kind: shm.RecordThread, TID: 100})
	return d
}

func (d *parade) give(r shm.Record) {
	d.t.Helper()
	d.now += 1000
	testkit.Must(d.t, d.m.Record(0, d.now, &r))
}

func (d *parade) start(comm int, typ shm.EventType, r shm.Record) uint64 {
	d.handles++
	r.Kind, r.Type, r.Aux, r.Handle = shm.RecordStart, typ, uint32(comm), d.handles
	d.give(r)
	return d.handles
}

func (d *parade) stop(typ shm.EventType, h uint64) {
	d.give(shm.Record{Kind: shm.RecordStop, Type: typ, Handle: h})
}

func (d *parade) begin() (comm int) {
	comm = d.comms
	d.comms++
	d.m.Comm(comm, description.Comm{ID: uint64(comm + 1), NRanks: 2, Rank: comm % 2, InitTime: d.now},
		description.GPU{Device: 0})
	d.give(shm.Record{Kind: shm.RecordInit, Aux: uint32(comm)})
	d.lives[comm] = [2]uint64{d.now, 0}
	return comm
}

// work is a collective with a transfer.
func (d *parade) work(comm int) {
	plan := d.start(comm, shm.EventGroup, shm.Record{})
	op := d.start(comm, shm.EventColl, shm.Record{ParentGroup: plan, Func: "AllReduce", Count: 4,
		Datatype: "ncclFloat32", NChannels: 1, NWarps: 4})
	d.stop(shm.EventColl, op)
	d.stop(shm.EventGroup, plan)
	proxy := d.start(comm, shm.EventProxyOp, shm.Record{Arg: op, Peer: int32(1 - comm%2), Rank: int32(comm % 2),
		Flags: shm.FlagSend})
	step := d.start(comm, shm.EventProxyStep, shm.Record{Arg: proxy, Step: 0})
	for _, state := range []uint32{sendGPUWait, sendWait} {
		d.give(shm.Record{Kind: shm.RecordState, Type: shm.EventProxyStep, Handle: step, Aux: state, Arg: 16,
			Flags: shm.FlagHasArg})
	}
	d.stop(shm.EventProxyStep, step)
	d.stop(shm.EventProxyOp, proxy)
}

func (d *parade) end(comm int) {
	d.give(shm.Record{Kind: shm.RecordFinalize, Aux: uint32(comm)})
	d.lives[comm] = [2]uint64{d.lives[comm][0], d.now}
}

// finish ends the timeline and looks at who had which row: nobody shares one with whom it was there together.
func (d *parade) finish() {
	d.t.Helper()
	testkit.Must(d.t, d.m.Finish())
	d.m.Snapshot()
	owners := make(map[uint32][]int)
	for i, c := range d.p.Comms {
		owners[uint32(c.Location)] = append(owners[uint32(c.Location)], i)
		send, recv := -1, -1
		for _, l := range d.p.Locations {
			if l.Comm == i && l.Kind == description.KindNetSend {
				send = int(l.Number)
			}
			if l.Comm == i && l.Kind == description.KindNetRecv {
				recv = int(l.Number)
			}
		}
		if n := c.Network; n != nil {
			send, recv = int(n.Send), int(n.Recv)
		}
		if send < 0 || recv < 0 {
			d.t.Fatalf("communicator %d: rows of its network %d and %d", i, send, recv)
		}
		for _, row := range []struct {
			number int
			kind   description.LocationKind
		}{{c.Location, description.KindRank}, {send, description.KindNetSend}, {recv, description.KindNetRecv}} {
			if kind := d.p.Locations[row.number].Kind; kind != row.kind {
				d.t.Fatalf("communicator %d: a row of kind %s is the one of %s", i, kind, row.kind)
			}
		}
	}
	for row, all := range owners {
		slices.SortFunc(all, func(a, b int) int { return int(d.lives[a][0]) - int(d.lives[b][0]) })
		for k := 1; k < len(all); k++ {
			if d.lives[all[k-1]][1] > d.lives[all[k]][0] {
				d.t.Errorf("row %d: communicator %d began before %d had ended", row, all[k], all[k-1])
			}
		}
		if l := d.p.Locations[row]; l.Kind == description.KindRank && max(1, l.Owners) != len(all) {
			d.t.Errorf("row %d: %d owners, want %d", row, l.Owners, len(all))
		}
	}
	// Each communicator rank's events stand together on its row: from its CommCreate to its CommDestroy.
	for n, w := range d.sink.writers {
		if d.p.Locations[n].Kind != description.KindRank {
			continue
		}
		open := -1
		for _, ev := range written(d.t, w) {
			comm := -1
			switch ev.Kind {
			case otf2.EventCommCreate:
				if open >= 0 {
					d.t.Fatalf("row %d: communicator %d begins inside %d", n, ev.Args[0], open)
				}
				open = int(ev.Args[0])
			case otf2.EventCommDestroy:
				comm = int(ev.Args[0])
			case otf2.EventMpiCollectiveEnd:
				comm = int(ev.Args[1])
			}
			if comm >= 0 && comm != open {
				d.t.Fatalf("row %d: an event of communicator %d inside %d", n, comm, open)
			}
			if ev.Kind == otf2.EventCommDestroy {
				open = -1
			}
		}
	}
}

// written are the events of a writer's file.
func written(t *testing.T, w *otf2.EventWriter) (all []otf2.Event) {
	t.Helper()
	testkit.Must(t, w.Flush())
	file := filepath.Join(t.TempDir(), "0.evt")
	testkit.Must(t, os.WriteFile(file, w.Bytes(), 0o600))
	tail := testkit.Value(otf2.NewEventTail(file, 0, otf2.DefaultEventChunkSize))(t)
	for ev, err := range tail.Events() {
		testkit.Must(t, err)
		all = append(all, ev.Clone())
	}
	return all
}

// Whatever the order in which communicators come and go: rows are bounded by how many there are at one time, and no two
// that are there together share one.
func TestRowsOfCommunicatorsAreUsedAgain(t *testing.T) {
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 3))
		d := newParade(t)
		together := 1 + random.IntN(2*OwnRows)
		var alive []int
		for range 600 {
			if len(alive) < together {
				alive = append(alive, d.begin())
			}
			d.work(alive[random.IntN(len(alive))])
			if random.IntN(2) == 0 {
				k := random.IntN(len(alive))
				d.work(alive[k])
				d.end(alive[k])
				alive = slices.Delete(alive, k, k+1)
			}
			testkit.Must(t, d.m.Advance(d.now))
		}
		for _, c := range alive {
			d.work(c)
		}
		d.finish()
		kinds := make(map[description.LocationKind]int)
		for _, l := range d.p.Locations {
			kinds[l.Kind]++
		}
		for kind, n := range kinds {
			// A row is not free for one that began before its last event.
			if most := OwnRows + 2*together + 1; n > most {
				t.Errorf("seed %d: %d rows of kind %s with %d communicators at one time, want at most %d", seed, n,
					kind, together, most)
			}
		}
		n := d.m.oddities[oddAfterFinalize] + d.m.oddities[oddNoRow]
		testkit.Check(t, n <= 0, "seed %d: %d events were not drawn", seed, n)
	}
}

// What would need more rows than there may be is not drawn: counted, marked once, and everything else goes on.
func TestTooManyRows(t *testing.T) {
	d := newParade(t)
	d.m.rows.most = 20
	for range 30 {
		d.begin()
	}
	for c := range 30 {
		d.work(c)
	}
	for c := range 30 {
		d.end(c)
	}
	testkit.Must(t, d.m.Finish())
	d.m.Snapshot()
	expectCount(t, "rows", len(d.p.Locations), 20)
	n := d.p.Counts.Oddities["NO_ROW"]
	testkit.Check(t, n >= 11, "%d rows were refused, want 11 of communicator ranks, and more", n)
	marks := 0
	for _, m := range d.p.Markers {
		if strings.Contains(m.Text, "the process has 20 rows") {
			marks++
		}
	}
	testkit.Check(t, marks == 1, "%d markers tell of it, want 1: %+v", marks, d.p.Markers)
	expectCount(t, "operations were", d.p.Counts.Starts["Coll"], 30)
}
