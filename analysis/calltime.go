// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// callTimes tells how long the application's thread was in the call that asked for an operation: of a group of
// calls, in the whole group. It is given the events of whole processes in order of time.
type callTimes struct {
	api           map[otf2.RegionRef]bool
	eventID       attributeID
	count, graph  attributeID
	processes     map[otf2.LocationRef]otf2.LocationGroupRef
	threads       map[otf2.LocationRef]*apiThread
	calls         callTable[*apiCall]
	waiting       map[*apiCall]bool // calls that have not returned, with operations that have ended
	operationDone func(*operation)
}

// apiThread is how deep a thread is in NCCL's API.
type apiThread struct {
	depth int
	call  *apiCall // the outermost one
}

// apiCall is an outermost call of NCCL's API.
type apiCall struct {
	begin    otf2.Timestamp
	took     uint64
	returned bool
	held     []operation // that ended before it returned
}

func newCallTimes(defs *otf2.Definitions, done func(*operation)) *callTimes {
	return &callTimes{
		api:     regionsOf(defs, regions.GroupAPI, otf2.ParadigmCUDA, otf2.ParadigmHIP),
		eventID: findAttribute(defs, regions.AttrEventID),
		count:   findAttribute(defs, regions.AttrCount),
		graph:   findAttribute(defs, regions.AttrGraph),

		processes: processes(defs), threads: make(map[otf2.LocationRef]*apiThread), waiting: make(map[*apiCall]bool),
		operationDone: done,
	}
}

func (c *callTimes) event(ev *otf2.Event) {
	if ev.Kind != otf2.EventEnter && ev.Kind != otf2.EventLeave || !c.api[otf2.RegionRef(ev.Args[0])] {
		return
	}
	t := c.threads[ev.Location]
	if ev.Kind == otf2.EventLeave {
		if t == nil || t.depth == 0 {
			return // of a damaged archive
		}
		if t.depth--; t.depth == 0 {
			c.returned(t.call, ev.Time)
		}
		return
	}
	if t == nil {
		t = new(apiThread)
		c.threads[ev.Location] = t
	}
	if t.depth == 0 {
		t.call = &apiCall{begin: ev.Time}
	}
	t.depth++
	// Calls that ask for an operation have a count. Those that were captured into a graph are over when it is replayed.
	if _, counted := c.count.of(ev); !counted {
		return
	}
	if captured, _ := c.graph.of(ev); captured != 0 {
		return
	}
	if id, known := c.eventID.of(ev); known {
		c.calls.put(callKey{c.processes[ev.Location], id}, t.call)
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

func (c *callTimes) finish(o *operation, call *apiCall) {
	o.call, o.called = call.took, true
	c.operationDone(o)
}

// operation takes an operation that has ended, and hands it on when its call has returned, too.
func (c *callTimes) operation(o *operation) {
	var call *apiCall
	if o.Parent != 0 {
		call = c.calls.take(callKey{c.processes[o.Location], o.Parent})
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

// end hands on the operations of calls that have not returned.
func (c *callTimes) end() {
	for call := range c.waiting {
		for i := range call.held {
			c.operationDone(&call.held[i])
		}
	}
	clear(c.waiting)
}
