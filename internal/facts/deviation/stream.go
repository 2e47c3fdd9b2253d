// SPDX-License-Identifier: Apache-2.0

package deviation

import (
	"fmt"
	"iter"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/sequence"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// stream reads the requests of a member from its event file, in order.
type stream struct {
	next   func() (*otf2.Event, error, bool)
	stop   func()
	reader *facts.Reader
	read   []readOp // operations that request has not returned yet
	tail   []readOp // those that follow the file's
}

type readOp struct {
	number uint64
	Request
}

// newStream starts reading the member of a side: the operations of its key, by their ordinals, or without one all
// collectives by their places. Its requests fail if the file cannot be read.
func newStream(side *jobs.Side) *stream {
	s := new(stream)
	p := side.Member.Process.Shard
	c := side.Member.Comm()
	for i, o := range side.Tail {
		r := readOp{side.Count - uint64(len(side.Tail)-i), Request{Function: o.Function, Ordinal: o.Ordinal,
			Count: o.Count, Datatype: o.Datatype, Root: -1}}
		if f := regions.CollectiveNamed(o.Function); f != nil && f.Rooted() {
			r.Root = o.Root
		}
		s.tail = append(s.tail, r)
	}
	if c.Location < 0 {
		return s
	}
	tail, err := otf2.NewEventTail(experiment.EventFile(side.Member.Process.Shards()[0].Dir, uint32(c.Location)), 0,
		p.EventChunkSize)
	if err != nil {
		return s
	}
	s.next, s.stop = iter.Pull2(tail.Events())
	function := sequence.FunctionOf(side.Key)
	peer := -1
	if rest := strings.TrimLeft(side.Key[len(function):], "<>"); rest != "" {
		if _, err := fmt.Sscanf(rest, "%d", &peer); err != nil {
			return s
		}
	}
	names := facts.ShardNames(p)
	s.reader = facts.NewReader(names, nil)
	place := uint64(0)
	s.reader.Operation = func(o *facts.Operation) {
		if int(o.Comm) != side.Member.Index || side.Key == "" && (o.Message || o.Graph) ||
			side.Key != "" && (o.Function != function || peer >= 0 && o.Peer != peer) {
			return
		}
		r := readOp{o.Ordinal, Request{Ordinal: o.Ordinal, Count: o.Count, Datatype: names.String(o.Datatype), Root: -1,
			Graph: o.Graph}}
		if side.Key == "" {
			r.number, r.Function, place = place, o.Function, place+1
		}
		if o.Root != otf2.CollectiveRootNone {
			r.Root = int(o.Root)
		}
		s.read = append(s.read, r)
	}
	return s
}

// request returns the operation with a number. Numbers of successive calls must not decrease. ok is false if the
// file lacks the operation.
func (s *stream) request(number uint64) (r Request, ok bool) {
	for {
		for len(s.read) > 0 && s.read[0].number < number {
			s.read = s.read[:copy(s.read, s.read[1:])]
		}
		if len(s.read) > 0 {
			return s.read[0].Request, s.read[0].number == number
		}
		if len(s.tail) > 0 && number >= s.tail[0].number || s.reader == nil {
			s.read, s.tail, s.reader = s.tail, nil, nil
			if len(s.read) == 0 {
				return r, false
			}
			continue
		}
		ev, err, more := s.next()
		if !more || err != nil {
			return r, false
		}
		s.reader.Event(ev)
	}
}

func (s *stream) close() {
	if s.stop != nil {
		s.stop()
	}
}
