// SPDX-License-Identifier: Apache-2.0

package scoutrules

import (
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// scoutReplay carries the recorded communication out as scout does, with messages sent at once, receives that wait
// for them, and collectives that wait for all members. Events come in time order, so what has to be kept of a
// rank is what happened on it while it waits.
type scoutReplay struct {
	*scoutCheck
	sent     map[replayMessage]uint64 // not received yet
	received map[replayMessage]*scoutTrack
	arrived  map[otf2.CommRef]*gathering
	ready    []*scoutTrack
	notices  *scoutNotices
	uses     map[otf2.CommRef]traffic
}

// traffic is what a communicator is used for, as far as that matters.
type traffic struct{ collectives, untagged bool }

type replayMessage struct {
	comm     otf2.CommRef
	src, dst int
	tag      uint64
}

// gathering is a collective that some members have come to.
type gathering struct {
	op      otf2.CollectiveOp
	root    uint32
	members []*scoutTrack
}

// rankReplay is the state of a rank.
type rankReplay struct {
	waits bool // for queue[0]
	queue []replayStep
}

type replayStep struct {
	kind    otf2.EventKind // EventMpiSend, EventMpiRecv, EventMpiCollectiveEnd
	message replayMessage
	op      otf2.CollectiveOp
	root    uint32
	at      check.Place
}

func newScoutReplay(c *scoutCheck) *scoutReplay {
	return &scoutReplay{
		scoutCheck: c, sent: make(map[replayMessage]uint64), received: make(map[replayMessage]*scoutTrack),
		arrived: make(map[otf2.CommRef]*gathering), notices: newScoutNotices(),
		uses: make(map[otf2.CommRef]traffic),
	}
}

// comm gives the communicator of a record and the location's rank in it; nil, with a finding, if scout would not take
// it.
func (r *scoutReplay) comm(t *scoutTrack, ref uint64) (*membership.Communicator, int) {
	d, c := r.defs.Comm(otf2.CommRef(ref)), r.comms[otf2.CommRef(ref)]
	switch {
	case d == nil || c == nil:
		r.At(check.Error, t.here(), ruleScoutCommunicator, "communicator %d is not defined", ref)
		return nil, 0
	case r.paradigmOf(d) != otf2.ParadigmMPI:
		r.At(check.Error, t.here(), ruleScoutCommunicator,
			"communicator %d is of paradigm %v: records of MPI need one of MPI", ref, r.paradigmOf(d))
		return nil, 0
	case c.RankOf(t.location) < 0:
		r.At(check.Error, t.here(), ruleScoutCommunicator, "is not a member of communicator %d", ref)
		return nil, 0
	}
	return c, c.RankOf(t.location)
}

func (r *scoutReplay) collective(t *scoutTrack, ev *otf2.Event) {
	c, _ := r.comm(t, ev.Args[1])
	if root := uint32(ev.Args[2]); c != nil && root != otf2.CollectiveRootNone && int64(root) >= int64(c.Size()) {
		r.At(check.Error, t.here(), ruleScoutReplay, "%v with root %d on communicator %d, which has %d ranks",
			otf2.CollectiveOp(ev.Args[0]), root, c.Ref, c.Size())
		return
	}
	if c != nil && c.Size() > 1 {
		r.step(t, replayStep{
			kind: otf2.EventMpiCollectiveEnd, message: replayMessage{comm: c.Ref}, op: otf2.CollectiveOp(ev.Args[0]),
			root: uint32(ev.Args[2]), at: t.here(),
		})
		r.notices.step(t, otf2.EventMpiCollectiveEnd, int(c.Ref))
		r.clock.collective(t, c, ev, t.began)
		use := r.uses[c.Ref]
		use.collectives = true
		r.uses[c.Ref] = use
	}
}

// peer reports whether the other end of a message is one of the communicator's ranks.
func (r *scoutReplay) peer(t *scoutTrack, c *membership.Communicator, peer uint64) bool {
	if peer < uint64(c.Size()) {
		return true
	}
	r.At(check.Error, t.here(), ruleScoutMessage,
		"the other end of a message is rank %d of communicator %d, which has %d ranks", peer, c.Ref, c.Size())
	return false
}

func (r *scoutReplay) send(t *scoutTrack, ev *otf2.Event) {
	if c, rank := r.comm(t, ev.Args[1]); c != nil && r.peer(t, c, ev.Args[0]) {
		m := replayMessage{c.Ref, rank, int(ev.Args[0]), ev.Args[2]}
		r.step(t, replayStep{kind: otf2.EventMpiSend, message: m, at: t.here()})
		r.notices.send(t, m, ev)
		r.clock.send(t, m)
		use := r.uses[c.Ref]
		use.untagged = use.untagged || m.tag == 0
		r.uses[c.Ref] = use
	}
}

func (r *scoutReplay) receive(t *scoutTrack, ev *otf2.Event) {
	if c, rank := r.comm(t, ev.Args[1]); c != nil && r.peer(t, c, ev.Args[0]) {
		m := replayMessage{c.Ref, int(ev.Args[0]), rank, ev.Args[2]}
		r.step(t, replayStep{kind: otf2.EventMpiRecv, message: m, at: t.here()})
		r.notices.receive(t, m, ev)
		r.clock.receive(t, m)
	}
}

// step takes the next step of a rank, and does what can be done then.
func (r *scoutReplay) step(t *scoutTrack, s replayStep) {
	t.replay.queue = append(t.replay.queue, s)
	if t.replay.waits {
		return
	}
	r.ready = append(r.ready, t)
	for len(r.ready) > 0 {
		next := r.ready[len(r.ready)-1]
		r.ready = r.ready[:len(r.ready)-1]
		r.run(next)
	}
}

// run does a rank's steps until it has to wait.
func (r *scoutReplay) run(t *scoutTrack) {
	q := &t.replay
	done := 0
	for !q.waits && done < len(q.queue) && r.do(t, &q.queue[done]) {
		done++
	}
	q.queue = q.queue[:copy(q.queue, q.queue[done:])]
	q.waits = len(q.queue) > 0
}

// resume lets a rank go on whose first step is done.
func (r *scoutReplay) resume(t *scoutTrack) {
	q := &t.replay
	q.queue = q.queue[:copy(q.queue, q.queue[1:])]
	q.waits = false
	r.ready = append(r.ready, t)
}

// do carries out a step; false means that the rank waits, and will be resumed.
func (r *scoutReplay) do(t *scoutTrack, s *replayStep) bool {
	switch s.kind {
	case otf2.EventMpiSend:
		if to := r.received[s.message]; to != nil {
			delete(r.received, s.message)
			r.resume(to)
		} else {
			r.sent[s.message]++
		}
		return true
	case otf2.EventMpiRecv:
		if r.sent[s.message] == 0 {
			r.received[s.message] = t
			return false
		}
		if r.sent[s.message]--; r.sent[s.message] == 0 {
			delete(r.sent, s.message)
		}
		return true
	}
	comm := s.message.comm
	g := r.arrived[comm]
	if g == nil {
		g = &gathering{op: s.op, root: s.root}
		r.arrived[comm] = g
	}
	if g.op != s.op || g.root != s.root {
		first := g.members[0].replay.queue
		other := check.Place{Location: g.members[0].location}
		if len(first) > 0 {
			other = first[0].at
		}
		r.At(check.Error, s.at, ruleScoutReplay,
			"%v with root %s on communicator %d meets the %v with root %s of location %d, event %d",
			s.op, check.RootName(s.root), comm, g.op, check.RootName(g.root), other.Location, other.Event)
	}
	if len(g.members)+1 < r.comms[comm].Size() {
		g.members = append(g.members, t)
		return false
	}
	delete(r.arrived, comm)
	for _, m := range g.members {
		r.resume(m)
	}
	return true
}

// end reports the ranks that wait for ever, and messages that nobody receives.
func (r *scoutReplay) end() {
	hangs := false
	for _, t := range r.order {
		if !t.replay.waits {
			continue
		}
		hangs = true
		s := &t.replay.queue[0]
		what := fmt.Sprintf("a message from rank %d of communicator %d", s.message.src, s.message.comm)
		if s.kind == otf2.EventMpiCollectiveEnd {
			what = fmt.Sprintf("%v on communicator %d, to which %d of %d members come", s.op, s.message.comm,
				len(r.arrived[s.message.comm].members), r.comms[s.message.comm].Size())
		}
		r.At(check.Error, s.at, ruleScoutReplay, "scout would hang: rank %d waits for ever in %s", t.group, what)
	}
	if !hangs {
		for _, t := range r.notices.replay(r.order, func(c otf2.CommRef) int { return r.comms[c].Size() }) {
			r.At(check.Error, check.Place{Location: t.location}, ruleScoutReplay,
				"scout would hang: a send of rank %d waits, by its times, for a receiver that comes later than what "+
					"the rank does next", t.group)
		}
	}
	for _, d := range r.defs.Comms {
		if use := r.uses[d.Self]; use.collectives && use.untagged {
			r.Add(check.Finding{Severity: check.Note, Rule: ruleScoutTag,
				Text: fmt.Sprintf(
					"communicator %d has collectives and messages with tag 0: scout's search for the causes of "+
						"waiting sends such messages, too, and may take one for the other and abort", d.Self)})
		}
	}
	unreceived := uint64(0)
	for _, n := range r.sent {
		unreceived += n
	}
	if unreceived > 0 {
		r.Add(check.Finding{Severity: check.Note, Rule: ruleScoutMessage,
			Text: fmt.Sprintf("%d messages are sent and not received in the replay; scout warns", unreceived)})
	}
}
