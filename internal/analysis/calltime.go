// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/naming"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// callTimes measures how long the application's thread was in the call that led to an operation; for a group of calls,
// in the whole group. It needs the events of whole processes in order of time.
type callTimes struct {
	api           map[otf2.RegionRef]string
	defs          *otf2.Definitions
	threads       map[otf2.LocationRef]*apiThread
	calls         CallTable[*apiCall]
	waiting       map[*apiCall]bool // calls that have not returned, but whose operations have ended
	operationDone func(*Operation)
}

// apiThread is the nesting of a thread in NCCL's API.
type apiThread struct {
	depth int
	call  *apiCall // the outermost call
}

// apiCall is an outermost call of NCCL's API.
type apiCall struct {
	begin    otf2.Timestamp
	took     uint64
	returned bool
	held     []Operation // operations that ended before it returned
}

// newCallTimes returns a reader of an archive's calls. It passes each operation to done when the time of its call is
// known or can no longer become known.
func newCallTimes(defs *otf2.Definitions, done func(*Operation)) *callTimes {
	return &callTimes{
		api: naming.CallRegions(defs), defs: defs, threads: make(map[otf2.LocationRef]*apiThread),
		waiting:       make(map[*apiCall]bool),
		operationDone: done,
	}
}

// enter takes a region that begins.
func (c *callTimes) enter(r *facts.Region) {
	if _, called := c.api[r.Region]; !called {
		return
	}
	t := keyed.Entry(c.threads, r.Location)
	if t.depth == 0 {
		t.call = &apiCall{begin: r.Begin}
	}
	t.depth++
	// A call captured into a graph has ended before the graph is replayed, so it has no operations.
	if r.Counted && !r.Graph && r.Event != 0 {
		c.calls.Put(CallKey{placement.ProcessAt(c.defs, r.Location), r.Event}, t.call)
	}
}

// leave takes a region that ends.
func (c *callTimes) leave(r *facts.Region) {
	if _, called := c.api[r.Region]; !called {
		return
	}
	if t := c.threads[r.Location]; t != nil && t.depth > 0 {
		if t.depth--; t.depth == 0 {
			c.returned(t.call, r.End)
		}
	}
}

func (c *callTimes) returned(call *apiCall, at otf2.Timestamp) {
	call.took, call.returned = uint64(at-call.begin), true
	delete(c.waiting, call)
	for i := range call.held {
		c.finish(&call.held[i], call)
	}
	call.held = nil
}

func (c *callTimes) finish(o *Operation, call *apiCall) {
	o.CallTime, o.Called = call.took, true
	c.operationDone(o)
}

// operation takes an operation that has ended, and passes it on once its call has returned.
func (c *callTimes) operation(o *Operation) {
	var call *apiCall
	if o.Parent != 0 {
		call = c.calls.Take(CallKey{placement.ProcessAt(c.defs, o.Location), o.Parent})
	}
	switch {
	case call == nil:
		c.operationDone(o)
	case call.returned:
		c.finish(o, call)
	default:
		call.held = append(call.held, *o)
		c.waiting[call] = true
	}
}

// end passes on the operations of calls that have not returned.
func (c *callTimes) end() {
	for call := range c.waiting {
		for i := range call.held {
			c.operationDone(&call.held[i])
		}
	}
	clear(c.waiting)
}

// ReadOperations passes each operation of an archive's members to take, with the time of its call if known, on the
// caller's goroutine. An operation is valid until take returns. problems names files that cannot be read to their end.
func ReadOperations(a *otf2.Archive, comms map[otf2.CommRef]*membership.Communicator, take func(*Operation)) (
	problems []string) {
	lanes := LanesOf(a.Defs)
	readers := make([]*callReader, len(lanes))
	for i := range lanes {
		readers[i] = newCallReader(a.Defs, comms)
	}
	problems = ReadLanes(a, lanes, func(i int, ev *otf2.Event, found []Operation) []Operation {
		r := readers[i]
		r.found = found
		r.operations.Event(ev)
		return r.found
	}, take)
	for _, r := range readers {
		r.found = nil
		r.calls.end()
		for i := range r.found {
			take(&r.found[i])
		}
	}
	return problems
}

// callReader finds the operations of a lane, and how long their calls took.
type callReader struct {
	calls      *callTimes
	operations *OperationReader
	found      []Operation
}

func newCallReader(defs *otf2.Definitions, comms map[otf2.CommRef]*membership.Communicator) *callReader {
	r := new(callReader)
	r.calls = newCallTimes(defs, func(o *Operation) { r.found = append(r.found, *o) })
	r.operations = NewOperationReader(defs, comms, r.calls.operation)
	r.operations.Enter, r.operations.Leave = r.calls.enter, r.calls.leave
	return r
}
