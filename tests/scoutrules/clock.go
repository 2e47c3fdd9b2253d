// SPDX-License-Identifier: Apache-2.0

package scoutrules

import (
	"fmt"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// scoutClock finds violations of the clock condition: what is received before it is sent. scout counts them and warns;
// its wait states are then cut to what the waiting rank's own times allow.
//
//	message                 the receive completes before the send is posted
//	collective of all       a member leaves before the last one came
//	from the root           a member leaves before the root came
//	to the root             the root leaves before a sender came
//
// It keeps what is under way only.
type scoutClock struct {
	sends, receives map[replayMessage][]clockTime
	collectives     map[otf2.CommRef]*clockSequence
	messages, colls violations
}

// clockTime is an event of a location.
type clockTime struct {
	at    otf2.Timestamp
	place check.Place
}

// clockSequence are the collectives of a communicator that are not complete: the first of them is number done, and
// counts says how many each member has come to.
type clockSequence struct {
	counts map[otf2.LocationRef]uint64
	done   uint64
	open   [][]clockShare
}

// clockShare is one member's part of a collective.
type clockShare struct {
	begin, end      otf2.Timestamp
	place           check.Place
	root            bool
	sends, receives bool
}

// violations of one kind.
type violations struct {
	n     uint64
	worst otf2.Timestamp
	place check.Place
}

// add takes when something was received, and when what it needs was sent.
func (v *violations) add(sent, received otf2.Timestamp, place check.Place) {
	if received >= sent {
		return
	}
	v.n++
	if by := sent - received; by > v.worst {
		v.worst, v.place = by, place
	}
}

func newScoutClock() *scoutClock {
	return &scoutClock{
		sends: make(map[replayMessage][]clockTime), receives: make(map[replayMessage][]clockTime),
		collectives: make(map[otf2.CommRef]*clockSequence),
	}
}

// send takes the posting of a message, receive its end.
func (c *scoutClock) send(t *scoutTrack, m replayMessage) {
	if r, ok := takeFirst(c.receives, m); ok {
		c.messages.add(t.time, r.at, r.place)
		return
	}
	c.sends[m] = append(c.sends[m], clockTime{t.time, t.here()})
}

func (c *scoutClock) receive(t *scoutTrack, m replayMessage) {
	if s, ok := takeFirst(c.sends, m); ok {
		c.messages.add(s.at, t.time, t.here())
		return
	}
	c.receives[m] = append(c.receives[m], clockTime{t.time, t.here()})
}

func takeFirst(all map[replayMessage][]clockTime, m replayMessage) (first clockTime, ok bool) {
	list := all[m]
	if len(list) == 0 {
		return first, false
	}
	if first = list[0]; len(list) == 1 {
		delete(all, m)
	} else {
		all[m] = list[1:]
	}
	return first, true
}

// collective takes a member's end of a collective that began at the time.
func (c *scoutClock) collective(t *scoutTrack, comm *membership.Communicator, ev *otf2.Event, begin otf2.Timestamp) {
	s := c.collectives[comm.Ref]
	if s == nil {
		s = &clockSequence{counts: make(map[otf2.LocationRef]uint64)}
		c.collectives[comm.Ref] = s
	}
	k := s.counts[t.location] - s.done
	s.counts[t.location]++
	for uint64(len(s.open)) <= k {
		s.open = append(s.open, nil)
	}
	root := uint32(ev.Args[2])
	s.open[k] = append(s.open[k], clockShare{
		begin: begin, end: ev.Time, place: t.here(),
		root:  root != otf2.CollectiveRootNone && int64(comm.RankOf(t.location)) == int64(root),
		sends: ev.Args[3] > 0, receives: ev.Args[4] > 0,
	})
	for len(s.open) > 0 && len(s.open[0]) == comm.Size() {
		c.compare(otf2.CollectiveOp(ev.Args[0]), s.open[0])
		s.open = s.open[1:]
		s.done++
	}
}

// compare counts a collective once, at the member that violates the condition most.
func (c *scoutClock) compare(op otf2.CollectiveOp, members []clockShare) {
	var fromRoot, toRoot bool
	switch op {
	case otf2.CollectiveOpBcast, otf2.CollectiveOpScatter, otf2.CollectiveOpScatterv:
		fromRoot = true
	case otf2.CollectiveOpReduce, otf2.CollectiveOpGather, otf2.CollectiveOpGatherv:
		toRoot = true
	case otf2.CollectiveOpBarrier, otf2.CollectiveOpAllreduce, otf2.CollectiveOpAllgather, otf2.CollectiveOpAllgatherv,
		otf2.CollectiveOpAlltoall,
		otf2.CollectiveOpReduceScatter, otf2.CollectiveOpReduceScatterBlock:
	default: // scout derives nothing from the times of the others
		return
	}
	var came otf2.Timestamp
	for i := range members {
		if m := &members[i]; fromRoot && m.root || !fromRoot && (m.sends || op == otf2.CollectiveOpBarrier) {
			came = max(came, m.begin)
		}
	}
	first := -1
	for i := range members {
		m := &members[i]
		if toRoot && !m.root || !m.receives && op != otf2.CollectiveOpBarrier {
			continue
		}
		if first < 0 || m.end < members[first].end {
			first = i
		}
	}
	if first >= 0 {
		c.colls.add(came, members[first].end, members[first].place)
	}
}

// end reports what was found.
func (c *scoutClock) end(fs *check.Findings, resolution uint64) {
	for _, k := range []struct {
		found *violations
		what  string
	}{{&c.messages, "messages that are received before they are sent"},
		{&c.colls, "collectives that a member leaves before one came that it needs"}} {
		if v := k.found; v.n > 0 {
			by := time.Duration(float64(v.worst) * (1e9 / float64(max(resolution, 1))))
			fs.Add(check.Finding{Severity: check.Note, Rule: RuleScoutClock, Text: fmt.Sprintf(
				"%d %s, the worst by %v (location %d, event %d): scout counts violations of the clock condition and "+
					"warns", v.n, k.what, by, v.place.Location, v.place.Event)})
		}
	}
}
