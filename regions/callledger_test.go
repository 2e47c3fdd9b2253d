// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/loss"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// caller makes calls on several threads, in whatever order, and knows which it has begun.
type caller struct {
	*scene
	rt     *rapid.T
	us     uint64
	number uint64
	begun  []uint64              // calls
	open   [callerRings][]uint64 // of them, by the thread that began them
	groups [callerRings]uint64   // open ones
	closed []uint64              // groups

}

const (
	callerRings = 3
	callerComms = 4 // number 2 is never announced, number 3 is no communicator's
)

func (c *caller) handle(typ shm.EventType) uint64 {
	c.number++
	return uint64(typ)<<shm.TypeShift | c.number
}

func (c *caller) record(ring int, r shm.Record) {
	testkit.Must(c.rt, c.m.Record(ring, micros(c.us), &r))
}

func (c *caller) begin(ring int, parent uint64, comm uint32, typ shm.EventType, flags shm.RecordFlags) {
	h := c.handle(typ)
	function := "AllReduce"
	if typ == shm.EventP2pApi {
		function = "Send"
	}
	c.record(ring, shm.Record{Kind: shm.RecordStart, Type: typ, Handle: h, Arg: parent, Aux: comm, Func: function,
		Count: 1, Datatype: "ncclInt8", Flags: flags})
	c.begun, c.open[ring] = append(c.begun, h), append(c.open[ring], h)
}

func (c *caller) stop(ring int, h uint64) {
	c.record(ring, shm.Record{Kind: shm.RecordStop, Type: shm.EventType(h >> shm.TypeShift & 15), Handle: h})
}

// endCall stops a call of some thread's, on this one.
func (c *caller) endCall(ring, of int) {
	n := len(c.open[of])
	if n == 0 {
		return
	}
	i := rapid.IntRange(0, n-1).Draw(c.rt, "which")
	h := c.open[of][i]
	c.open[of] = append(c.open[of][:i], c.open[of][i+1:]...)
	c.stop(ring, h)
}

// step is one thing that a thread does.
func (c *caller) step() {
	t := c.rt
	ring := rapid.IntRange(0, callerRings-1).Draw(t, "ring")
	comm := rapid.SampledFrom([]uint32{0, 0, 0, 0, 1, 1, 2, shm.None}).Draw(t, "comm")
	typ := rapid.SampledFrom([]shm.EventType{shm.EventCollApi, shm.EventCollApi, shm.EventP2pApi}).Draw(t, "type")
	switch rapid.IntRange(0, 13).Draw(t, "step") {
	case 0, 1: // the group before may be open
		if c.groups[ring] != 0 {
			c.closed = append(c.closed, c.groups[ring])
		}
		c.groups[ring] = c.handle(shm.EventGroupApi)
		c.record(ring, shm.Record{Kind: shm.RecordStart, Type: shm.EventGroupApi, Handle: c.groups[ring], Aux: comm,
			GroupDepth: rapid.Int32Range(1, 2).Draw(t, "depth")})
	case 2, 3:
		if h := c.groups[ring]; h != 0 {
			c.closed, c.groups[ring] = append(c.closed, h), 0
			c.stop(rapid.SampledFrom([]int{ring, ring, 1}).Draw(t, "stopper"), h)
		}
	case 4, 5, 6:
		parents := []uint64{0, 0, c.groups[ring], c.groups[ring], c.groups[0]}
		if len(c.closed) > 0 {
			parents = append(parents, c.closed[len(c.closed)-1])
		}
		flags := rapid.SampledFrom([]shm.RecordFlags{0, 0, 0, shm.FlagGraph}).Draw(t, "flags")
		c.begin(ring, rapid.SampledFrom(parents).Draw(t, "parent"), comm, typ, flags)
	case 7, 8:
		c.endCall(ring, ring)
	case 9:
		c.endCall(ring, rapid.IntRange(0, callerRings-1).Draw(t, "other"))
	case 10: // an operation of a call, which may be open
		if len(c.begun) == 0 {
			return
		}
		g, op := c.handle(shm.EventGroup), c.handle(shm.EventColl)
		parent := c.begun[len(c.begun)-1-rapid.IntRange(0, min(3, len(c.begun)-1)).Draw(t, "call")]
		c.record(ring, shm.Record{Kind: shm.RecordStart, Type: shm.EventGroup, Handle: g, Aux: comm})
		c.record(ring, shm.Record{Kind: shm.RecordStart, Type: shm.EventColl, Handle: op, Aux: comm, Arg: parent,
			ParentGroup: g, Func: "AllReduce", Datatype: "ncclInt8", Count: 1})
		c.stop(ring, op)
		c.stop(ring, g)
	case 11: // another thread has the ring
		c.open[ring], c.groups[ring] = nil, 0
		c.record(ring, shm.Record{Kind: shm.RecordThread, TID: 200 + int32(c.number)})
	case 12:
		if rapid.IntRange(0, 3).Draw(t, "end") == 0 {
			c.record(ring, shm.Record{Kind: shm.RecordFinalize, Aux: comm % callerComms})
		}
	case 13: // enough that they are not awaited any longer
		if rapid.IntRange(0, 3).Draw(t, "many") == 0 {
			for range maxUnseen / 2 {
				c.begin(ring, 0, 0, shm.EventCollApi, 0)
				c.stop(ring, c.open[ring][len(c.open[ring])-1])
				c.open[ring] = c.open[ring][:len(c.open[ring])-1]
			}
		}
	}
}

// drawn counts the regions of each call.
func (c *caller) drawn() map[uint64]int {
	anchor := filepath.Join(c.dir, "traces.otf2")
	c.end(anchor)
	a := testkit.Value(otf2.Open(anchor, nil))(c.rt)
	defer a.Close()
	regions := make(map[uint64]int)
	for _, l := range c.p.Locations {
		if l.Kind != description.KindThread {
			continue
		}
		for e, err := range a.EventsOf(otf2.LocationRef(l.Number)) {
			if err != nil {
				c.rt.Fatal(err)
			}
			if e.Kind != otf2.EventEnter || !strings.HasPrefix(c.p.Regions[e.Args[0]].Name, NameCall) {
				continue
			}
			for _, v := range e.Attributes {
				if typ := shm.EventType(v.Bits >> shm.TypeShift & 15); v.ID == AttrEventID &&
					(typ == shm.EventCollApi || typ == shm.EventP2pApi) {
					regions[v.Bits]++
				}
			}
		}
	}
	return regions
}

// Every call that NCCL reported is one region on the rows of threads or one loss, for any fate of its group, its thread
// and its communicator, and any order and times of their events.
func TestEveryCallIsOneRegionOrOneLoss(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newSceneWith(t, 4, 7, &Options{RecordMask: 1<<shm.EventKernelCh | 1<<shm.EventProxyOp})
		if rapid.IntRange(0, 4).Draw(rt, "few rows") == 0 {
			s.m.rows.most = 2
		}
		s.m.Comm(1, description.Comm{ID: 0xabce, NRanks: 2, Rank: 0}, description.GPU{Device: 1})
		c := &caller{scene: s, rt: rt, us: 1}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			c.us += uint64(rapid.SampledFrom([]int{0, 0, 1, 1, 5, 3_000_000}).Draw(rt, "pause"))
			c.step()
			if rapid.Bool().Draw(rt, "advance") {
				testkit.Must(rt, s.m.Advance(micros(c.us)))
			}
		}
		regions := c.drawn()
		missing := uint64(0)
		for _, h := range c.begun {
			switch regions[h] {
			case 0:
				missing++
			case 1:
			default:
				rt.Fatalf("call %#x has %d regions", h, regions[h])
			}
		}
		lost := s.p.Counts.Lost[loss.Undrawn]
		if n := lost[shm.EventCollApi.String()] + lost[shm.EventP2pApi.String()]; n != missing {
			rt.Fatalf("%d of %d calls have no region, and %d are counted as lost", missing, len(c.begun), n)
		}
	})
}
