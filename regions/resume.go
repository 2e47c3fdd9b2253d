// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"slices"

	"github.com/nccl-otf2/nccl-otf2/experiment"
)

// What one model takes over from another that died in the midst of a process: ordinals, calls without their operations, threads. What it
// writes for that is shard.json's Resume (package experiment).

// resume takes over what another model left of the process.
func (ts *threads) resume() {
	last := ts.opts.Resume
	if last == nil {
		return
	}
	application := make(map[int]bool)
	for _, l := range last.Locations {
		tid := l.Present().TID
		application[tid] = application[tid] || l.Kind == experiment.KindThread && tid != 0
	}
	for ring, tid := range last.Resume.Threads {
		th := ts.thread(ring)
		th.tid, th.application = tid, application[tid]
	}
}

// resumeThread gives a thread of the application its row again.
func (ts *threads) resumeThread(th *thread) {
	if th.application && th.loc == nil {
		th.application = false
		ts.threadLocation(th)
	}
}

// resumeComm goes on with the ordinals of a communicator rank, and with its calls.
func (ops *operations) resumeComm(c *commRank) {
	last := ops.opts.Resume
	if last == nil || c.index >= len(last.Comms) {
		return
	}
	was := &last.Comms[c.index]
	if was.InitTime == 0 || was.ID != c.ID || was.Rank != c.Rank {
		return
	}
	c.InitTime, c.begun = was.InitTime, was.Begun
	lost := last.Unwritten(c.index)
	for key, s := range was.Sequences {
		c.sequence(key).Sequence = s
	}
	for key, n := range lost {
		c.sequence(key).lose(n)
	}
	past := int64(1)
	for _, l := range last.Resume.Calls {
		past = max(past, l.Group+1)
	}
	for _, l := range last.Resume.Calls {
		if l.Comm != c.index {
			continue
		}
		before := l.Group - past
		if l.Open { // further calls of its group may come, and are without one
			before = 0
		}
		call := &call{
			before: before, handle: l.Handle, parent: l.Parent, comm: c, p2p: l.P2P, name: l.Function, count: l.Count, datatype: l.Datatype, root: l.Root,
			stream: l.Stream, tag: l.Tag, start: l.Start, stop: l.Stop,
		}
		ops.calls[l.Handle] = call
		c.calls = append(c.calls, call)
	}
}

// lose leaves out operations that come next.
func (s *sequence) lose(n uint64) {
	if n == 0 {
		return
	}
	s.Holes = slices.Clone(s.Holes)
	if last := len(s.Holes) - 1; last >= 0 && s.Holes[last].To == s.Count {
		s.Holes[last].To += n
	} else {
		s.Holes = append(s.Holes, experiment.Hole{From: s.Count, To: s.Count + n})
	}
	s.Count += n
}

// resumable tells what another model would need to go on.
func (m *Model) resumable() (r experiment.Resume) {
	for _, th := range m.threads.byRing {
		r.Threads = append(r.Threads, th.tid)
	}
	for _, c := range m.ranks.live {
		if c.final {
			continue
		}
		for _, call := range c.calls {
			r.Calls = append(r.Calls, experiment.Call{
				Comm: c.index, Handle: call.handle, Parent: call.parent, P2P: call.p2p, Function: call.name, Count: call.count, Datatype: call.datatype,
				Root: call.root, Stream: call.stream, Tag: call.tag, Start: call.start, Stop: call.stop, Group: call.groupNumber(), Open: !call.over(),
			})
		}
	}
	return r
}
