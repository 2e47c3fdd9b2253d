// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"maps"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/lateness"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Recorder writes down a run's operations. It follows the engine of package causes.
type Recorder struct {
	log    log
	ranks  []recorded
	series map[series]int32
	groups map[otf2.CommRef][]int32 // members in the world of communicators with collectives
	last   otf2.Timestamp           // time of the last record
	others []causes.Local           // scratch
	depth  uint32                   // how many operations of a rank at most are kept to find one again
}

// recorded is what is known of a rank.
type recorded struct {
	latest  uint32              // the last part
	arrived []uint32            // parts whose arrival is written, by their number modulo causes.KeptEnds
	waited  []uint64            // ns in the operations of these parts
	shape   map[shape]struct{}  // what it calls
	worked  float64             // ns, start-up left out; each time counts once, also before several operations
	counted otf2.Timestamp      // until which worked is counted
	past    map[int32]*pastWork // by series
	eager   map[int32]struct{}  // series in which a send ended before its other end had begun
	// partners are the ranks of the world with which it exchanges messages, at most mostPartners
	partners map[int32]struct{}
}

// series identifies operations of one function in communicators of one size.
type series struct {
	function string
	members  int
}

// shape is a function that a rank calls, with where the other end of a message is: how many ranks on in the
// communicator, at most half of it; 0: no message, or with more than mostPeers.
type shape struct {
	series
	peer int
}

// mostPeers is to how many other ranks a rank may send messages of a series for them to tell its role.
const mostPeers = 8

// addMessage adds a message to the shape of a rank, with the difference between the ranks of its ends. In a ring, and
// where all exchange messages with all, no rank differs from the others, whatever its number.
func (r *recorded) addMessage(of series, on int) {
	switch n := of.members; {
	case n == 2 && of.function == facts.SendAndRecv:
		on = 0
	case n == 2: // the first or the last of two stages
	case 2*on > n:
		on -= n
	case 2*on <= -n:
		on += n
	}
	_, known := r.shape[shape{of, on}]
	if _, many := r.shape[shape{of, 0}]; many || known {
		return
	}
	r.shape[shape{of, on}] = struct{}{}
	peers := 0
	for s := range r.shape {
		peers += map[bool]int{true: 1}[s.series == of]
	}
	if peers > mostPeers {
		maps.DeleteFunc(r.shape, func(s shape, _ struct{}) bool { return s.series == of })
		r.shape[shape{of, 0}] = struct{}{}
	}
}

// NewRecorder returns a recorder for a number of ranks of the world.
func NewRecorder(ranks int) *Recorder {
	return &Recorder{ranks: make([]recorded, ranks), series: make(map[series]int32),
		groups: make(map[otf2.CommRef][]int32)}
}

// Worked returns how long each rank worked, start-up left out, in ns; where that is unknown, as long as causes takes to
// be likely.
func (r *Recorder) Worked() []float64 {
	all := make([]float64, len(r.ranks))
	for i := range all {
		all[i] = r.ranks[i].worked
	}
	return all
}

// Kinds of records.
const (
	arrival int64 = iota
	collective
	launch
)

// What the end of a member of a collective waits for.
const (
	untilItself = iota
	untilAll
	untilRoot
	untilOthers
	isCompared = 4 // flag: others may wait for it
	isRoot     = 8 // flag
	steadyEnd  = 16
)

func (r *Recorder) seriesOf(function string, members int) int32 {
	s := series{function, members}
	id, ok := r.series[s]
	if !ok {
		id = int32(len(r.series))
		r.series[s] = id
	}
	return id
}

// arrive writes how a member comes to an operation, once.
func (r *Recorder) arrive(m *causes.Member, of int32, starting bool) {
	l := &m.Local
	rank := &r.ranks[l.Rank]
	if rank.arrived == nil {
		rank.arrived, rank.waited = make([]uint32, causes.KeptEnds), make([]uint64, causes.KeptEnds)
		rank.shape, rank.eager = make(map[shape]struct{}), make(map[int32]struct{})
		rank.partners, rank.past = make(map[int32]struct{}), make(map[int32]*pastWork)
	}
	if rank.arrived[l.Seq%causes.KeptEnds] == l.Seq {
		return
	}
	own := m.Begin - min(l.Ended, m.Begin)
	before, work := int64(0), int64(-1) // unknown, or in start-up: it does not change
	if l.Before > 0 {
		before = int64(l.Seq) - int64(l.Before)
		if !starting {
			work = rank.workBefore(l, of, uint64(own), m.Work)
			likely := uint64(work)
			if work < 0 {
				likely = m.Work
			}
			rank.addWork(l.Ended, m.Begin, likely)
		}
	}
	rank.arrived[l.Seq%causes.KeptEnds], rank.waited[l.Seq%causes.KeptEnds] = l.Seq, 0
	rank.latest = max(rank.latest, l.Seq)
	if before > 0 {
		r.refer(l.Rank, l.Before)
	}
	host, early := int64(-1), int64(0)
	if l.Called && l.Free > 0 && l.Ready >= l.Free {
		host = int64(l.Ready - l.Free)
		if l.Ready < l.Ended {
			early = 1
		}
	}
	for _, v := range [...]int64{arrival, int64(l.Rank), int64(l.Seq), before, int64(m.Begin - r.last), int64(own),
		work, host, early, int64(l.Own(l.Ended, m.Begin)[causes.GPU]), int64(m.There - min(m.There, m.Begin)),
		int64(m.Uncertainty), int64(of)} {
		r.log.write(v)
	}
	r.last = m.Begin
	r.log.endRecord()
}

// addWork adds what a rank worked between an operation that ended and one that began, in ns: the part of it that is not
// counted before another operation.
func (r *recorded) addWork(ended, began otf2.Timestamp, work uint64) {
	from := max(ended, r.counted)
	switch {
	case began > from:
		r.worked += float64(work) * float64(began-from) / float64(began-ended)
	case began == ended && ended > r.counted: // all of it was done while the operation before waited
		r.worked += float64(work)
	default:
		return
	}
	r.counted = began
}

// refer records that a part of a rank is needed again.
func (r *Recorder) refer(rank int32, seq uint32) { r.depth = max(r.depth, r.ranks[rank].latest-seq+1) }

// Collective takes a collective; see causes.Follower.
func (r *Recorder) Collective(op *causes.Operation, members []causes.Member, came []lateness.Arrival,
	late *lateness.Result, startUp bool) {
	of := r.seriesOf(op.Function, op.Members)
	if _, known := r.groups[op.Comm]; !known {
		group := make([]int32, 0, len(members))
		for i := range members {
			group = append(group, members[i].Local.Rank)
		}
		r.groups[op.Comm] = group
	}
	known := 0
	for i := range members {
		if m := &members[i]; m.Local.Rank >= 0 {
			known++
			r.arrive(m, of, startUp)
			r.ranks[m.Local.Rank].shape[shape{series{op.Function, op.Members}, 0}] = struct{}{}
		}
	}
	r.log.write(collective)
	r.log.write(int64(known))
	for i := range members {
		m := &members[i]
		if m.Local.Rank < 0 {
			continue
		}
		how := awaited(late, came, i)
		if late != nil && !startUp {
			how |= steadyEnd
		}
		r.leave(m, int64(how), came[i].Wait)
	}
	r.log.endRecord()
}

// awaited returns what the end of a member of a collective waits for.
func awaited(late *lateness.Result, came []lateness.Arrival, i int) (how int) {
	m := &came[i]
	if late == nil || m.Source != late.Source || m.End < m.Begin {
		return untilItself
	}
	last := came[late.Last].Begin
	switch {
	case late.Kind == lateness.WaitCollective: // also a member that ended before the last one began, by their clocks
		how = untilAll
	case m.Wait > 0 && m.Begin+otf2.Timestamp(m.Wait) == last:
		how = untilAll
	case late.Kind == lateness.WaitLateBroadcast:
		how = untilRoot
	case late.Kind == lateness.WaitEarlyReduce && m.Root:
		how = untilOthers
	}
	if m.Root {
		how |= isRoot
	}
	return how | isCompared
}

// leave writes how a member leaves an operation.
func (r *Recorder) leave(m *causes.Member, how int64, waited uint64) {
	r.ranks[m.Local.Rank].waited[m.Local.Seq%causes.KeptEnds] = waited
	r.refer(m.Local.Rank, m.Local.Seq)
	r.log.write(int64(m.Local.Rank))
	r.log.write(int64(m.Local.Seq))
	r.log.write(int64(m.End - min(m.Begin, m.End)))
	r.log.write(how)
}

// Alone takes an operation that is not compared; see causes.Follower.
func (r *Recorder) Alone(m *causes.Member) {
	if m.Local.Rank < 0 {
		return
	}
	r.arrive(m, r.seriesOf("", 0), false)
	r.log.write(collective)
	r.log.write(1)
	r.leave(m, untilItself, 0)
	r.log.endRecord()
}

// sends is the function of launches that only send. Where one has ended before the other end began, sends of the series
// do not wait for that.
const sends = "Send"

// Launch takes a launch of messages; see causes.Follower.
func (r *Recorder) Launch(op *causes.Operation, l *causes.Member, others []causes.Other, room *causes.Room) {
	if l.Local.Rank < 0 {
		return
	}
	of := r.seriesOf(op.Function, op.Members)
	r.arrive(l, of, l.Begins)
	r.others = r.others[:0]
	last := l.Begin
	for _, o := range others {
		if o.Local.Rank < 0 || o.Local.Rank == l.Local.Rank {
			continue
		}
		rank := &r.ranks[l.Local.Rank]
		rank.addMessage(series{op.Function, op.Members}, o.Arrival.Rank-l.Arrival.Rank)
		if len(rank.partners) < mostPartners {
			rank.partners[o.Local.Rank] = struct{}{}
		}
		if o.There > l.End {
			if op.Function == sends {
				r.ranks[l.Local.Rank].eager[of] = struct{}{}
			}
			continue
		}
		last = max(last, o.There)
		r.arrive(o.Member, r.seriesOf(o.Function, op.Members), o.Begins)
		r.others = append(r.others, o.Local)
	}
	if room != nil {
		last = max(last, room.End)
	}
	r.log.write(launch)
	r.leave(l, int64(of), uint64(last-l.Begin))
	r.log.write(int64(len(r.others)))
	for i := range r.others {
		r.log.write(int64(r.others[i].Rank))
		r.log.write(int64(r.others[i].Seq))
		r.refer(r.others[i].Rank, r.others[i].Seq)
	}
	if room == nil {
		room = new(causes.Room)
	} else {
		r.refer(room.Rank, room.Seq)
	}
	r.log.write(int64(room.Rank))
	r.log.write(int64(room.Seq))
	r.log.endRecord()
}
