// SPDX-License-Identifier: Apache-2.0

package deviation

import (
	"fmt"
	"iter"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// stream reads the requests of a member from its event file, in order.
type stream struct {
	next   func() (*otf2.Event, error, bool)
	stop   func()
	reader *facts.Reader
	read   []readOp // operations that request has not returned yet
}

type readOp struct {
	ordinal uint64
	Request
}

// newStream starts reading the member of a side. Its requests fail if the file cannot be read.
func newStream(side *jobs.Side) *stream {
	s := new(stream)
	p := side.Member.Process.Shard
	c := side.Member.Comm()
	tail, err := otf2.NewEventTail(experiment.EventFile(side.Member.Process.Shards()[0].Dir, uint32(c.Location)), 0,
		p.EventChunkSize)
	if err != nil || c.Location < 0 {
		return s
	}
	s.next, s.stop = iter.Pull2(tail.Events())
	function := experiment.FunctionOf(side.Key)
	peer := -1
	if rest := strings.TrimLeft(side.Key[len(function):], "<>"); rest != "" {
		if _, err := fmt.Sscanf(rest, "%d", &peer); err != nil {
			return s
		}
	}
	names := facts.ShardNames(p)
	s.reader = facts.NewReader(names, nil)
	s.reader.Operation = func(o *facts.Operation) {
		if int(o.Comm) != side.Member.Index || o.Function != function || peer >= 0 && o.Peer != peer {
			return
		}
		r := readOp{o.Ordinal, Request{Count: o.Count, Datatype: names.String(o.Datatype), Root: -1, Graph: o.Graph}}
		if o.Root != otf2.CollectiveRootNone {
			r.Root = int(o.Root)
		}
		s.read = append(s.read, r)
	}
	return s
}

// request returns the operation with an ordinal. Ordinals of successive calls must not decrease. ok is false if the
// file lacks the operation.
func (s *stream) request(ordinal uint64) (r Request, ok bool) {
	if s.reader == nil {
		return r, false
	}
	for {
		for len(s.read) > 0 && s.read[0].ordinal < ordinal {
			s.read = s.read[:copy(s.read, s.read[1:])]
		}
		if len(s.read) > 0 {
			return s.read[0].Request, s.read[0].ordinal == ordinal
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
