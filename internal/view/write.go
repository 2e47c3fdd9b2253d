// SPDX-License-Identifier: Apache-2.0

package view

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// span is the time of the view. All ranks enter and leave MPI_Init and MPI_Finalize at the same times, before the first
// and after the last operation of all, so that no rank waits there. Only the rank that ends the last operation arrives
// one tick later: scout's critical path begins on the rank that arrives last or, if several do, on the first of them,
// even if that one had ended its own operations long before.
type span struct {
	begin, initEnd, last, finalize, end otf2.Timestamp
}

func (j *job) span() span {
	first, last := otf2.Timestamp(math.MaxUint64), otf2.Timestamp(0)
	for _, r := range j.rows {
		for i := range r.parts {
			if p := &r.parts[i]; !p.is(flagDropped) {
				first, last = min(first, p.begin), max(last, p.end)
			}
		}
	}
	if first > last { // no operation is left
		first = otf2.Timestamp(j.archive.Defs.Clock.Offset)
		last = first
	}
	us := otf2.Timestamp(max(j.archive.Defs.Clock.Resolution/1_000_000, 1))
	return span{begin: first - min(first, 2*us), initEnd: first - min(first, us), last: last, finalize: last + us,
		end: last + 2*us}
}

// write writes the archive into a folder that has none.
func (j *job) write(dir string, o *Options) error {
	res := j.count
	w, err := otf2.Create(dir, archiveName, &otf2.ArchiveOptions{
		Creator: o.Creator, MachineName: j.archive.Anchor.MachineName,
		Description: fmt.Sprintf("NCCL operations as MPI, for scout.mpi with %d processes", len(j.locations)),
		Properties:  j.properties(), TraceID: j.archive.Anchor.TraceID,
		EventChunkSize: eventChunk, DefChunkSize: defChunk(len(j.locations)),
	})
	if err != nil {
		return err
	}
	defer w.Abort()
	t := j.span()
	d := &definitions{w: w.Definitions(), strings: make(map[string]otf2.StringRef),
		groups: make(map[string]otf2.GroupRef)}
	native := j.archive.Defs.Clock
	realtime := native.Realtime
	if otf2.Timestamp(realtime) != otf2.UndefinedTimestamp && native.Resolution > 0 {
		realtime += uint64(int64(float64(int64(uint64(t.begin)-native.Offset)) * (1e9 / float64(native.Resolution))))
	}
	_ = d.w.ClockProperties(native.Resolution, uint64(t.begin), uint64(t.end-t.begin), realtime)
	d.text("")
	j.defineSystem(d)
	d.defineRegions()
	j.phases.defineRegions(d, j)
	j.defineComms(d)

	var sum, unknown atomic.Uint64
	var done, next atomic.Int64
	var group sync.WaitGroup
	failures := make([]error, min(o.Workers, len(j.locations)))
	for i := range failures {
		group.Go(func() {
			for failures[i] == nil {
				k := int(next.Add(1)) - 1
				if k >= len(j.locations) {
					return
				}
				l := j.locations[k]
				ew, err := w.Events(otf2.LocationRef(l.id))
				if err != nil {
					failures[i] = err
					return
				}
				lw := locationWriter{w: ew, d: d, phases: &j.phases, last: t.initEnd}
				failures[i] = lw.write(l, t)
				sum.Add(lw.events)
				unknown.Add(lw.unknown)
				o.Progress("writing locations", int(done.Add(1)), len(j.locations))
			}
		})
	}
	group.Wait()
	if err := errors.Join(failures...); err != nil {
		return err
	}
	res.Events, res.UnknownSizes = sum.Load(), unknown.Load()
	return w.Close()
}

// eventChunk is small because most ranks have few events, and readers allocate a chunk for each rank.
const eventChunk = 256 << 10

// defChunk returns a chunk size that fits a list of all ranks, at most 9 bytes each.
func defChunk(ranks int) uint64 {
	size := uint64(256 << 10)
	for size < uint64(9*ranks+1024) && size < 16<<20 {
		size *= 2
	}
	return size
}

// locationWriter writes one rank's events. The event writer keeps its first error until it is closed.
type locationWriter struct {
	w       *otf2.EventWriter
	d       *definitions
	request uint64 // last id given to a request
	events  uint64
	unknown uint64 // parts of unknown size

	first []uint64 // requests of the present unit's messages

	phases *phases
	path   []int32        // open phases, the outermost first
	last   otf2.Timestamp // end of the unit before
}

// enterPhase leaves and enters phases so that the unit that begins at begin lies in the phase in which it was called.
// The events lie between the last unit and begin: where the host left and entered phases in that time, at those times.
func (lw *locationWriter) enterPhase(phase int32, begin otf2.Timestamp) {
	next := lw.phases.callPath(phase)
	same := 0
	for same < len(next) && same < len(lw.path) && next[same] == lw.path[same] {
		same++
	}
	between := func(t otf2.Timestamp) otf2.Timestamp { return max(lw.last, min(t, begin)) }
	limit := begin
	if same < len(next) {
		limit = between(lw.phases.all[next[same]].begin)
	}
	for len(lw.path) > same {
		p := &lw.phases.all[lw.path[len(lw.path)-1]]
		lw.last = min(between(p.end), limit)
		_ = lw.w.Leave(lw.last, nil, p.shown)
		lw.path = lw.path[:len(lw.path)-1]
	}
	for _, k := range next[same:] {
		p := &lw.phases.all[k]
		lw.last = between(p.begin)
		_ = lw.w.Enter(lw.last, nil, p.shown)
		lw.path = append(lw.path, k)
	}
}

func (lw *locationWriter) write(l *location, t span) error {
	w, d := lw.w, lw.d
	_ = w.Enter(t.begin, nil, d.program)
	_ = w.Enter(t.begin, nil, d.init)
	_ = w.Leave(t.initEnd, nil, d.init)
	l.eachUnit(func(r *row, u unit) {
		p := &r.parts[u.from]
		lw.enterPhase(lw.phases.innermostCommon(r.parts[u.from:u.to]), p.begin)
		lw.last = p.end
		if r.parts[u.from].isMessage() {
			lw.writeMessages(r, u)
		} else {
			lw.writeCollective(r, &r.parts[u.from])
		}
	})
	finalize := t.finalize
	if lw.last == t.last {
		finalize++
	}
	lw.enterPhase(noPhase, finalize)
	_ = w.Enter(finalize, nil, d.finalize)
	_ = w.Leave(t.end, nil, d.finalize)
	_ = w.Leave(t.end, nil, d.program)
	lw.events = w.Events()
	return w.Close()
}

// writeCollective writes a collective. A collective without comparable times is recorded as ALLTOALLV: scout counts
// these and derives no waiting from when ranks enter and leave them.
func (lw *locationWriter) writeCollective(r *row, p *part) {
	f, c := p.function(), r.comm
	root := otf2.CollectiveRootNone
	if f.Rooted() {
		root = uint32(c.rank[p.peer])
	}
	sent, received := p.sent, p.received
	if sent == 0 && received == 0 { // scout treats an operation of 0 bytes as none
		sent, received = f.Bytes(1, uint64(len(c.present)), f.Rooted() && int(p.peer) == r.rank)
		lw.unknown++
	}
	op := f.Op
	if p.is(flagUntimed) {
		op = otf2.CollectiveOpAlltoallv
	}
	region := lw.d.callRegion(p, styleOf(p))
	_ = lw.w.Enter(p.begin, nil, region)
	_ = lw.w.MpiCollectiveBegin(p.begin, nil)
	_ = lw.w.MpiCollectiveEnd(p.end, nil, op, c.view, root, sent, received)
	_ = lw.w.Leave(p.end, nil, region)
}

// writeMessages writes the messages of a plan: they are posted when it begins, and end in one region that has its time.
// Messages without comparable times end in regions without length, so that no rank waits in them; if the plan has no
// other messages, the last posting has the time. The ends of sends come before those of receives, see scheduler.
func (lw *locationWriter) writeMessages(r *row, u unit) {
	parts := r.parts[u.from:u.to]
	begin, end := parts[0].begin, parts[0].end
	last, kinds := 0, [2]bool{}
	for i := range parts {
		if p := &parts[i]; !p.is(flagDropped) {
			last = i
			kinds[boolIndex(p.is(flagUntimed|flagQuiet))] = true
		}
	}
	lw.first = lw.first[:0]
	for i := range parts {
		p := &parts[i]
		lw.request++
		lw.first = append(lw.first, lw.request)
		if p.is(flagDropped) {
			continue
		}
		leave := begin
		if i == last && !kinds[0] {
			leave = end
		}
		region := lw.d.callRegion(p, styleOf(p))
		_ = lw.w.Enter(begin, nil, region)
		if p.fn == fnSend {
			_ = lw.w.MpiIsend(begin, nil, uint32(r.comm.rank[p.peer]), r.comm.view, messageTag, lw.messageBytes(p),
				lw.request)
		} else {
			_ = lw.w.MpiIrecvRequest(begin, nil, lw.request)
		}
		_ = lw.w.Leave(leave, nil, region)
	}
	switch {
	case !kinds[1]:
		lw.writeWait(r, parts, begin, end, timed, both)
	case !kinds[0]:
		lw.writeWait(r, parts, end, end, untimed, both)
	default:
		lw.writeWait(r, parts, begin, begin, untimed, sends)
		lw.writeWait(r, parts, begin, end, timed, both)
		lw.writeWait(r, parts, end, end, untimed, receives)
	}
}

func boolIndex(b bool) int {
	if b {
		return 1
	}
	return 0
}

// messageTag is not 0: scout's search for delays behind collectives sends messages with tag 0 on the same communicator,
// and confuses the two (MPI_ERR_TRUNCATE). Source: MpiDelayOps.cpp of Scalasca 2.6; verified.
const messageTag = 1

// messageBytes returns the message's length, at least 1: scout treats a message of 0 bytes as none.
func (lw *locationWriter) messageBytes(p *part) uint64 {
	if p.sent == 0 {
		lw.unknown++
		return 1
	}
	return p.sent
}

// ends are the kinds of messages that a wait region ends.
type ends uint8

const (
	sends ends = 1 << iota
	receives
	both = sends | receives
)

// writeWait writes the region in which messages of a style end.
func (lw *locationWriter) writeWait(r *row, parts []part, begin, end otf2.Timestamp, s style, what ends) {
	open := false
	var region otf2.RegionRef
	for pass, fn := range [2]uint8{fnSend, fnRecv} {
		if what>>pass&1 == 0 {
			continue
		}
		for i := range parts {
			p := &parts[i]
			if p.fn != fn || p.is(flagDropped) || p.is(flagUntimed|flagQuiet) != (s == untimed) {
				continue
			}
			if !open {
				open = true
				shown := s
				if p.is(flagFused) {
					shown = fused
				}
				region = lw.d.waitRegion(p, shown)
				_ = lw.w.Enter(begin, nil, region)
			}
			if fn == fnSend {
				_ = lw.w.MpiIsendComplete(end, nil, lw.first[i])
			} else {
				_ = lw.w.MpiIrecv(end, nil, uint32(r.comm.rank[p.peer]), r.comm.view, messageTag, lw.messageBytes(p),
					lw.first[i])
			}
		}
	}
	if open {
		_ = lw.w.Leave(end, nil, region)
	}
}
