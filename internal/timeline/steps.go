// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"encoding/binary"
	"iter"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/criticalpath"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// The critical path of the report, step by step. Which steps belong to the path is known only at the end, so all steps
// are kept in a temporary file. A step's number is the offset after its first byte; its predecessor is before it in the
// file.

// pathSteps keeps the steps of paths.
type pathSteps struct {
	spool  spool
	buf    []byte // steps not written yet
	at     uint64 // offset in the file at which buf begins
	origin otf2.Timestamp

	trace *criticalpath.Trace
	own   []uint64 // numbers of the path's steps, from its begin on
	count int      // of segments
}

const (
	stepsPiece  = 64 << 10
	stepNumbers = 12 // size of the numbers of a record, at most
)

// Step keeps a step; see criticalpath.Tracer.
func (p *pathSteps) Step(s *criticalpath.Step) (number uint64) {
	if len(p.buf) >= stepsPiece {
		p.flush()
	}
	at := p.at + uint64(len(p.buf))
	before := uint64(0)
	if s.Before > 0 {
		before = at + 1 - s.Before
	}
	for _, n := range [...]uint64{before, uint64(s.Rank), uint64(s.What), uint64(s.Start - min(s.Start, p.origin)),
		s.In, s.Unknown, s.StartUp} {
		p.buf = binary.AppendUvarint(p.buf, n)
	}
	for _, n := range s.Own {
		p.buf = binary.AppendUvarint(p.buf, n)
	}
	return at + 1
}

func (p *pathSteps) flush() {
	if len(p.buf) > 0 {
		p.spool.write(p.buf)
		p.at += uint64(len(p.buf))
		p.buf = p.buf[:0]
	}
}

// findSteps finds the steps of the path.
func (p *pathSteps) findSteps(r *criticalpath.Result) {
	p.flush()
	if r == nil || r.Trace == nil {
		return
	}
	p.trace = r.Trace
	read := stepReader{of: p}
	for n := r.Trace.Last.Before; n > 0 && p.spool.temp.failed() == nil; {
		p.own = append(p.own, n)
		n = read.step(n).Before
	}
	slices.Reverse(p.own)
	for range p.segments() {
		p.count++
	}
}

// stepReader reads steps that are close to each other in the file.
type stepReader struct {
	of       *pathSteps
	from, to uint64 // offsets in the file that buf covers
	buf      []byte
	step1    criticalpath.Step
}

// step returns a step; it is valid until the next call.
func (r *stepReader) step(number uint64) *criticalpath.Step {
	at := number - 1
	if longest := min(at+stepNumbers*binary.MaxVarintLen64, r.of.at); at < r.from || longest > r.to {
		r.from = at - min(at, stepsPiece)
		r.to = min(at+stepsPiece, r.of.at)
		r.buf = r.of.spool.read(extent{int64(r.from), int(r.to - r.from)}, r.buf)
	}
	c := cursor{buf: r.buf, at: int(min(at-r.from, uint64(len(r.buf))))}
	s := &r.step1
	*s = criticalpath.Step{}
	if before := c.readNumber(); before > 0 && before <= at {
		s.Before = number - before
	}
	s.Rank, s.What = int32(c.readNumber()), int32(c.readNumber())
	s.Start = r.of.origin + otf2.Timestamp(c.readNumber())
	s.In, s.Unknown, s.StartUp = c.readNumber(), c.readNumber(), c.readNumber()
	for k := range s.Own {
		s.Own[k] = c.readNumber()
	}
	return s
}

// segment is a part of the path: ns of an activity of a rank, −1: of no rank.
type segment struct {
	start  otf2.Timestamp
	length uint64
	rank   int32
	what   int32 // index of the activity in criticalpath
}

// segments iterates over the segments of the path in order.
func (p *pathSteps) segments() iter.Seq[segment] {
	return func(yield func(segment) bool) {
		if p.trace == nil {
			return
		}
		var parts []segment
		if p.trace.Since > p.origin {
			parts = append(parts, segment{p.origin, uint64(p.trace.Since - p.origin), -1, int32(p.trace.First)})
		}
		read := stepReader{of: p}
		for n := 0; ; n++ {
			for _, s := range parts {
				if !yield(s) {
					return
				}
			}
			switch parts = parts[:0]; {
			case n < len(p.own):
				parts = appendSegments(parts, read.step(p.own[n]))
			case n == len(p.own):
				parts = appendSegments(parts, &p.trace.Last)
			default:
				return
			}
		}
	}
}

// appendSegments appends the segments of a step, which follow each other.
func appendSegments(to []segment, s *criticalpath.Step) []segment {
	start := s.Start
	add := func(ns uint64, rank, what int32) {
		if ns > 0 {
			to = append(to, segment{start, ns, rank, what})
			start += otf2.Timestamp(ns)
		}
	}
	add(s.In, s.Rank, s.What)
	add(s.Unknown, -1, int32(criticalpath.Unknown))
	add(s.StartUp, -1, int32(criticalpath.StartUp))
	for k, ns := range s.Own {
		add(ns, s.Rank, int32(k))
	}
	return to
}

// headPath is the index of the critical path in the head.
type headPath struct {
	headSeries
	Starts []uint64       `json:"starts"` // by block: begin of its first segment
	What   []headActivity `json:"what"`   // activities of segments
}

type headActivity struct {
	Activity  string `json:"activity"`
	Operation string `json:"operation,omitempty"`
	Comm      int    `json:"comm"` // index into comms; −1: none
}

// writePath writes the segments of the critical path: length, rank + 1 (signed differences), activity.
func (w *writer) writePath() {
	h := &headPath{headSeries: headSeries{w.made, w.steps.count}, Starts: []uint64{}, What: []headActivity{}}
	if h.Count == 0 {
		return
	}
	comms := make(map[otf2.CommRef]int)
	for i, c := range w.comms {
		comms[c.ref] = i
	}
	numbers := make(map[int32]int)
	number := func(what int32) int {
		n, known := numbers[what]
		if !known {
			n = len(h.What)
			numbers[what] = n
			activity, op := w.steps.trace.Name(what)
			one := headActivity{Activity: activity.String(), Operation: op.Function, Comm: -1}
			if at, ok := comms[op.Comm]; ok && op.Function != "" {
				one.Comm = at
			}
			h.What = append(h.What, one)
		}
		return n
	}
	var length, rank, what column
	at := 0
	for s := range w.steps.segments() {
		if at%chunk == 0 {
			h.Starts = append(h.Starts, w.since(s.start))
		}
		length.add(s.length)
		rank.signed(uint64(s.rank + 1))
		what.add(uint64(number(s.what)))
		if at++; at%chunk == 0 || at == h.Count {
			w.block(newBlock(&length, &rank, &what))
		}
	}
	w.plan.path = h
}
