// SPDX-License-Identifier: Apache-2.0

package scoutrules

import (
	"strings"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// scoutNotices carries the communication out once more, as scout does to find what late receivers were late for: then
// the posting of a receive tells the end of the send that waited for it. This goes against the direction of the
// message, and can hang where the first replay does not: if by its times a sender waited for a receive that can only be
// posted after the sender went on. Source: cb_fw_pre_recvreq and cb_fw_pre_sendcmp in MpiCommunicationHandler.cpp.
//
// It keeps what it needs of all events: 8 bytes for each step, and 32 for each end of a message.
type scoutNotices struct {
	sends    []sendNotice
	receives []receiveNotice
	pending  map[replayMessage]*unmatched
}

// sendNotice is a message's send. Indices are −1 for what is not known.
type sendNotice struct {
	entered, left otf2.Timestamp // the region in which it completed
	receive       int32
	waits         bool // scout looks for late receivers in that region
}

type receiveNotice struct {
	posted  otf2.Timestamp // begin of the region of the posting
	send    int32
	noticed bool // in the replay
}

// unmatched is what one end of a pair, communicator and tag has more of than the other, in order.
type unmatched struct{ sends, receives []int32 }

type noticeStep struct {
	// EventMpiSend, EventMpiIsendComplete, EventMpiIrecvRequest, EventMpiRecv, EventMpiCollectiveEnd
	kind  otf2.EventKind
	index uint32 // into sends, receives; the communicator's id
}

// rankNotices is what is kept of a rank.
type rankNotices struct {
	steps      []noticeStep
	sends      map[uint64]uint32 // by request
	requests   map[uint64]uint32 // index of the step at which it was posted
	posted     map[uint64]otf2.Timestamp
	completing []int32 // sends that complete in the present region
	next       int
}

func newScoutNotices() *scoutNotices {
	return &scoutNotices{pending: make(map[replayMessage]*unmatched)}
}

// step notes a step of a rank.
func (s *scoutNotices) step(t *scoutTrack, kind otf2.EventKind, index int) {
	t.notices.steps = append(t.notices.steps, noticeStep{kind, uint32(index)})
}

func (s *scoutNotices) at(m replayMessage) *unmatched {
	u := s.pending[m]
	if u == nil {
		u = new(unmatched)
		s.pending[m] = u
	}
	return u
}

// send notes a send; a blocking one completes at once.
func (s *scoutNotices) send(t *scoutTrack, m replayMessage, ev *otf2.Event) {
	k := int32(len(s.sends))
	s.sends = append(s.sends, sendNotice{receive: -1})
	if u := s.at(m); len(u.receives) > 0 {
		s.sends[k].receive, s.receives[u.receives[0]].send = u.receives[0], k
		u.receives = u.receives[1:]
	} else {
		u.sends = append(u.sends, k)
	}
	s.step(t, otf2.EventMpiSend, int(k))
	if ev.Kind == otf2.EventMpiSend {
		s.complete(t, k)
		return
	}
	if t.notices.sends == nil {
		t.notices.sends = make(map[uint64]uint32)
	}
	t.notices.sends[ev.Args[4]] = uint32(k)
}

// sent notes that a send completes in the present region.
func (s *scoutNotices) sent(t *scoutTrack, request uint64) {
	if k, ok := t.notices.sends[request]; ok {
		delete(t.notices.sends, request)
		s.complete(t, int32(k))
	}
}

func (s *scoutNotices) complete(t *scoutTrack, k int32) {
	s.step(t, otf2.EventMpiIsendComplete, int(k))
	s.sends[k].entered = t.entered()
	t.notices.completing = append(t.notices.completing, k)
}

// request notes that a receive is posted. Of what is told when it is received.
func (s *scoutNotices) request(t *scoutTrack, request uint64) {
	if t.notices.requests == nil {
		t.notices.requests, t.notices.posted = make(map[uint64]uint32), make(map[uint64]otf2.Timestamp)
	}
	t.notices.requests[request], t.notices.posted[request] = uint32(len(t.notices.steps)), t.entered()
	s.step(t, otf2.EventMpiIrecvRequest, noReceive)
}

// noReceive is the index of receives that were posted and did not come.
const noReceive = 1<<32 - 1

// receive notes a receive; a blocking one was posted just before.
func (s *scoutNotices) receive(t *scoutTrack, m replayMessage, ev *otf2.Event) {
	k := int32(len(s.receives))
	r := receiveNotice{send: -1, posted: t.entered()}
	if ev.Kind == otf2.EventMpiRecv {
		s.step(t, otf2.EventMpiIrecvRequest, int(k))
	} else if at, ok := t.notices.requests[ev.Args[4]]; ok {
		t.notices.steps[at].index = uint32(k)
		r.posted = t.notices.posted[ev.Args[4]]
		delete(t.notices.requests, ev.Args[4])
		delete(t.notices.posted, ev.Args[4])
	}
	if u := s.at(m); len(u.sends) > 0 {
		r.send = u.sends[0]
		s.sends[r.send].receive = k
		u.sends = u.sends[1:]
	} else {
		u.receives = append(u.receives, k)
	}
	s.receives = append(s.receives, r)
	s.step(t, otf2.EventMpiRecv, int(k))
}

// leave ends the region in which sends may have completed.
func (s *scoutNotices) leave(t *scoutTrack, canonical string, at otf2.Timestamp) {
	for _, k := range t.notices.completing {
		s.sends[k].left, s.sends[k].waits = at, waitsForReceivers(canonical)
	}
	t.notices.completing = t.notices.completing[:0]
}

// waitsForReceivers reports whether scout looks for late receivers in a region of MPI. Source: Region.cpp,
// Predicates.h.
func waitsForReceivers(name string) bool {
	switch name {
	case "wait", "waitany", "waitall", "waitsome":
		return true
	}
	return strings.HasSuffix(name, "send") && !strings.HasPrefix(name, "i")
}

// late reports whether scout sees the send wait for its receiver.
func (s *scoutNotices) late(k uint32) bool {
	m := &s.sends[k]
	if !m.waits || m.receive < 0 {
		return false
	}
	posted := s.receives[m.receive].posted
	return m.entered < posted && posted < m.left
}

// replay carries everything out and returns the ranks whose sends wait for ever to be told of their receivers. The
// first replay must have come to its end.
func (s *scoutNotices) replay(tracks []*scoutTrack, size func(otf2.CommRef) int) (stuck []*scoutTrack) {
	found := false
	for k := range s.sends {
		found = found || s.late(uint32(k))
	}
	if !found {
		return nil
	}
	r := noticeReplay{
		scoutNotices: s, tracks: tracks, size: size,
		sent: make([]bool, len(s.sends)), waiting: make(map[noticeStep]int), arrived: make(map[uint32][]int),
		ready: make([]int, len(tracks)),
	}
	for i := range tracks {
		r.ready[i] = i
	}
	r.run()
	for wait, rank := range r.waiting {
		if wait.kind == otf2.EventMpiIrecvRequest {
			stuck = append(stuck, tracks[rank])
		}
	}
	return stuck
}

// noticeReplay is how far the ranks have come.
type noticeReplay struct {
	*scoutNotices
	tracks []*scoutTrack
	size   func(otf2.CommRef) int

	sent    []bool
	waiting map[noticeStep]int // rank that waits for a send to be sent, or a receive to be posted
	arrived map[uint32][]int   // ranks that wait in a communicator's collective
	ready   []int              // ranks that can go on
}

// run lets ranks go on until none can.
func (r *noticeReplay) run() {
	for len(r.ready) > 0 {
		rank := r.ready[len(r.ready)-1]
		r.ready = r.ready[:len(r.ready)-1]
		q := &r.tracks[rank].notices
		for q.next < len(q.steps) {
			wait, waits := r.do(rank, q.steps[q.next])
			if !waits {
				q.next++
				continue
			}
			if wait.kind != otf2.EventMpiCollectiveEnd {
				r.waiting[wait] = rank
			}
			break
		}
	}
}

// do takes a rank's step, and tells what it waits for, if it does.
func (r *noticeReplay) do(rank int, st noticeStep) (wait noticeStep, waits bool) {
	switch st.kind {
	case otf2.EventMpiSend:
		r.sent[st.index] = true
		r.wake(st)
	case otf2.EventMpiIrecvRequest:
		if st.index != noReceive {
			r.receives[st.index].noticed = true
			r.wake(st)
		}
	case otf2.EventMpiRecv:
		if send := r.receives[st.index].send; send >= 0 && !r.sent[send] {
			return noticeStep{otf2.EventMpiSend, uint32(send)}, true
		}
	case otf2.EventMpiIsendComplete:
		if receive := r.sends[st.index].receive; r.late(st.index) && !r.receives[receive].noticed {
			return noticeStep{otf2.EventMpiIrecvRequest, uint32(receive)}, true
		}
	case otf2.EventMpiCollectiveEnd:
		members := append(r.arrived[st.index], rank)
		if len(members) < r.size(otf2.CommRef(st.index)) {
			r.arrived[st.index] = members
			r.tracks[rank].notices.next++ // it goes on behind
			return noticeStep{kind: otf2.EventMpiCollectiveEnd}, true
		}
		r.ready = append(r.ready, members[:len(members)-1]...)
		delete(r.arrived, st.index)
	}
	return noticeStep{}, false
}

// wake lets the rank go on that waits for a step.
func (r *noticeReplay) wake(w noticeStep) {
	if rank, ok := r.waiting[w]; ok {
		delete(r.waiting, w)
		r.ready = append(r.ready, rank)
	}
}
