// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"fmt"
	"slices"

	"ncclotf2/otf2"
	"ncclotf2/regions"
)

// source is what an operation's interval is; later ones say more.
type source uint8

const (
	sourceUnknown  source = iota
	sourceDuration        // only the length is known
	sourceEnqueue
	sourceNetwork
	sourceGPU
)

var sourceNames = [...]string{"", "duration", "enqueue", "network", "gpu"}

func (s source) String() string { return sourceNames[s] }

func sourceOf(name string) source {
	for i, n := range sourceNames {
		if n == name {
			return source(i)
		}
	}
	return sourceUnknown
}

// operation is one member's part in a collective, or one end of a message, as its events tell it.
type operation struct {
	comm       *communicator
	rank       int // in the communicator
	location   otf2.LocationRef
	function   string // "AllReduce", "Send"
	collective *regions.Collective
	begin, end otf2.Timestamp
	root       uint32
	size       uint64 // as nccl-tests counts it, bytes
	ordinal    uint64
	details
	peer     int            // of a message: the other end's rank
	grouped  bool           // one of several in a plan: the times are the plan's
	leads    bool           // the first collective of its plan on its communicator
	follows  bool           // a message of a plan with collectives
	plan     uint64         // number of its plan on the location, 0 if it belongs to none
	region   otf2.RegionRef // of its plan
	enter    uint64         // number of the innermost region on the location, NoRegion without one
	sent     uint64         // bytes, as the events have them; of a message both are its length
	received uint64
	phase    *phaseNode
	call     uint64 // how long the call took that asked for it, see callTimes
	called   bool   // call is known
}

// NoRegion is the number of the region of operations outside of regions.
const NoRegion = ^uint64(0)

func (o *operation) duration() uint64 { return uint64(o.end - o.begin) }

// details is what attributes tell of an operation.
type details struct {
	recorded           uint64 // ordinal
	numbered           bool   // it was recorded
	algo, proto, dtype otf2.StringRef
	variant            otf2.StringRef // symmetric kernel, or how copy engines synchronise
	channels           uint32
	count              uint64
	counted            bool // count
	source             source
	uncertainty        uint64                // of the times if they are the GPU's, ns
	stated             bool                  // uncertainty
	parent             uint64                // event of NCCL that asked for it, 0 if not known
	event              uint64                // id of NCCL's event, 0: not told
	device             bool                  // a buffer is in a GPU's memory
	graph              bool                  // captured into or replayed from a CUDA graph
	attributes         []otf2.AttributeValue // of the events that tell it, where they are kept
}

// attributeIDs are the attributes that operations are described by, found by their names.
type attributeIDs struct {
	ordinal, algo, proto, dtype, channels, count, source, uncertainty, event, parent, graph attributeID
	sendClass, recvClass, kernelVariant, syncStrategy                                       attributeID
}

func findAttributes(defs *otf2.Definitions) attributeIDs {
	return attributeIDs{
		ordinal:  findAttribute(defs, "ORDINAL", otf2.TypeUint64),
		algo:     findAttribute(defs, "ALGO", otf2.TypeString),
		proto:    findAttribute(defs, "PROTO", otf2.TypeString),
		dtype:    findAttribute(defs, "DATATYPE", otf2.TypeString),
		channels: findAttribute(defs, "CHANNELS", otf2.TypeUint32),
		count:    findAttribute(defs, "COUNT", otf2.TypeUint64),
		source:   findAttribute(defs, "TIMING_SOURCE", otf2.TypeString),

		uncertainty:   findAttribute(defs, "UNCERTAINTY", otf2.TypeUint64),
		event:         findAttribute(defs, "EVENT_ID", otf2.TypeUint64),
		kernelVariant: findAttribute(defs, "KERNEL_VARIANT", otf2.TypeString),
		syncStrategy:  findAttribute(defs, "SYNC_STRATEGY", otf2.TypeString),
		sendClass:     findAttribute(defs, "SENDBUFF_CLASS", otf2.TypeString),
		recvClass:     findAttribute(defs, "RECVBUFF_CLASS", otf2.TypeString),
		graph:         findAttribute(defs, "GRAPH", otf2.TypeUint8),
		parent:        findAttribute(defs, "PARENT_ID", otf2.TypeUint64),
	}
}

var noDetails = details{algo: otf2.UndefinedString, proto: otf2.UndefinedString, variant: otf2.UndefinedString, dtype: otf2.UndefinedString}

// read takes what the event's attributes tell over what base told.
func (ids *attributeIDs) read(defs *otf2.Definitions, ev *otf2.Event, base details) details {
	for _, a := range ev.Attributes {
		switch {
		case ids.ordinal.is(a.ID):
			base.recorded, base.numbered = a.Bits, true
		case ids.algo.is(a.ID):
			base.algo = otf2.StringRef(a.Bits)
		case ids.proto.is(a.ID):
			base.proto = otf2.StringRef(a.Bits)
		case ids.kernelVariant.is(a.ID), ids.syncStrategy.is(a.ID):
			base.variant = otf2.StringRef(a.Bits)
		case ids.dtype.is(a.ID):
			base.dtype = otf2.StringRef(a.Bits)
		case ids.channels.is(a.ID):
			base.channels = uint32(a.Bits)
		case ids.count.is(a.ID):
			base.count, base.counted = a.Bits, true
		case ids.source.is(a.ID):
			base.source = sourceOf(defs.String(otf2.StringRef(a.Bits)))
		case ids.uncertainty.is(a.ID):
			base.uncertainty, base.stated = a.Bits, true
		case ids.event.is(a.ID):
			base.event = a.Bits
		case ids.sendClass.is(a.ID), ids.recvClass.is(a.ID):
			base.device = base.device || defs.String(otf2.StringRef(a.Bits)) == "device"
		case ids.graph.is(a.ID):
			base.graph = a.Bits != 0
		case ids.parent.is(a.ID):
			base.parent = a.Bits
		}
	}
	return base
}

func (a attributeID) is(id otf2.AttributeRef) bool { return a.found && a.id == id }

// operationReader turns events into operations. One region of a communicator rank's location is one
// plan of NCCL: a blocking collective, or several requests with the same times.
type operationReader struct {
	defs    *otf2.Definitions
	ids     attributeIDs
	comms   map[otf2.CommRef]*communicator
	rows    map[otf2.LocationRef]*rowState
	member  map[otf2.LocationRef]bool // of any communicator
	emit    func(*operation)
	keep    bool   // attributes
	alone   uint64 // operations on communicators of one rank, which have no events of their own
	op      operation
	perPlan map[otf2.RegionRef]uint64
}

// rowState is the state of one location.
type rowState struct {
	stack   []plan
	plans   uint64
	enters  uint64
	begin   otf2.Timestamp // of the blocking collective under way
	attrs   details
	open    map[uint64]started // by request
	ordinal map[nextKey]uint64
}

type nextKey struct {
	comm     otf2.CommRef
	function string
	peer     int
}

// plan is an open region.
type plan struct {
	details
	region otf2.RegionRef
	timed  bool // TIMING_SOURCE: it is a plan on a communicator rank's location
	n      int  // operations in it that have ended
	begun  int  // operations with requests that have begun
	number uint64
	enter  uint64 // how many regions the location had entered before
	led    map[otf2.CommRef]bool
}

// started is an operation with a request.
type started struct {
	details
	begin   otf2.Timestamp
	message bool
	comm    otf2.CommRef
	peer    int
	length  uint64
}

func newOperationReader(defs *otf2.Definitions, comms map[otf2.CommRef]*communicator, emit func(*operation)) *operationReader {
	member := make(map[otf2.LocationRef]bool)
	for _, c := range comms {
		for _, l := range c.members {
			member[l] = true
		}
	}
	return &operationReader{
		member: member, defs: defs, ids: findAttributes(defs), comms: comms, emit: emit,
		rows: make(map[otf2.LocationRef]*rowState), perPlan: make(map[otf2.RegionRef]uint64),
	}
}

// read takes what the event's attributes tell over what base told.
func (r *operationReader) read(ev *otf2.Event, base details) details {
	d := r.ids.read(r.defs, ev, base)
	if r.keep && len(ev.Attributes) > 0 {
		d.attributes = slices.Concat(base.attributes, ev.Attributes)
	}
	return d
}

func (r *operationReader) event(ev *otf2.Event) {
	row := r.rows[ev.Location]
	if row == nil {
		row = &rowState{open: make(map[uint64]started), ordinal: make(map[nextKey]uint64)}
		r.rows[ev.Location] = row
	}
	switch ev.Kind {
	case otf2.EventEnter:
		p := plan{details: r.read(ev, noDetails), region: otf2.RegionRef(ev.Args[0]), enter: row.enters}
		row.enters++
		p.timed = p.source != sourceUnknown
		if p.timed {
			row.plans++
			p.number = row.plans
		}
		row.stack = append(row.stack, p)
	case otf2.EventLeave:
		if n := len(row.stack); n > 0 {
			if p := &row.stack[n-1]; p.timed && p.n == 0 && !r.member[ev.Location] {
				r.alone += r.operations(p.region)
			}
			row.stack = row.stack[:n-1]
		}
	case otf2.EventMpiCollectiveBegin:
		row.begin = ev.Time
		row.attrs = r.read(ev, row.top())
	case otf2.EventMpiCollectiveEnd:
		r.collective(row, ev, row.begin, r.read(ev, row.attrs), false)
	case otf2.EventNonBlockingCollectiveRequest, otf2.EventMpiIrecvRequest:
		row.request()
		row.open[ev.Args[0]] = started{details: r.read(ev, row.top()), begin: ev.Time}
	case otf2.EventNonBlockingCollectiveComplete:
		if s, ok := row.open[ev.Args[5]]; ok {
			delete(row.open, ev.Args[5])
			r.collective(row, ev, s.begin, r.read(ev, s.details), true)
		}
	case otf2.EventMpiIsend:
		row.request()
		row.open[ev.Args[4]] = started{
			details: r.read(ev, row.top()), begin: ev.Time, message: true,
			comm: otf2.CommRef(ev.Args[1]), peer: int(ev.Args[0]), length: ev.Args[3],
		}
	case otf2.EventMpiIsendComplete:
		if s, ok := row.open[ev.Args[0]]; ok && s.message {
			delete(row.open, ev.Args[0])
			r.message(row, ev, "Send", &s)
		}
	case otf2.EventMpiIrecv:
		if s, ok := row.open[ev.Args[4]]; ok {
			delete(row.open, ev.Args[4])
			s.comm, s.peer, s.length = otf2.CommRef(ev.Args[1]), int(ev.Args[0]), ev.Args[3]
			r.message(row, ev, "Recv", &s)
		}
	}
}

// request counts the beginning of an operation into the innermost region.
func (row *rowState) request() {
	if n := len(row.stack); n > 0 {
		row.stack[n-1].begun++
	}
}

// top is what the innermost region tells.
func (row *rowState) top() details {
	if n := len(row.stack); n > 0 {
		return row.stack[n-1].details
	}
	return noDetails
}

func (r *operationReader) operations(region otf2.RegionRef) uint64 {
	n, ok := r.perPlan[region]
	if !ok {
		n = 1
		if d := r.defs.Region(region); d != nil {
			n = operationsOf(r.defs.String(d.Name))
		}
		r.perPlan[region] = n
	}
	return n
}

// begun counts an operation into the innermost region and sets what that says of it.
func (r *operationReader) begun(row *rowState, o *operation, message bool) {
	n := len(row.stack)
	o.leads, o.enter = !message, NoRegion
	if n == 0 {
		return
	}
	p := &row.stack[n-1]
	o.enter = p.enter
	p.n++
	o.region = p.region
	if p.timed {
		o.plan, o.follows = p.number, message && len(p.led) > 0
		o.grouped = r.operations(p.region) > 1 || p.begun > 1
	}
	if !o.grouped || message {
		return
	}
	o.leads = !p.led[o.comm.ref]
	if o.leads {
		if p.led == nil {
			p.led = make(map[otf2.CommRef]bool)
		}
		p.led[o.comm.ref] = true
	}
}

func (r *operationReader) collective(row *rowState, ev *otf2.Event, begin otf2.Timestamp, d details, request bool) {
	comm := r.comms[otf2.CommRef(ev.Args[1])]
	if comm == nil || comm.self {
		return
	}
	op := otf2.CollectiveOp(ev.Args[0])
	o := &r.op
	*o = operation{
		comm: comm, rank: comm.rankOf(ev.Location), location: ev.Location,
		function: functionName(op), collective: regions.CollectiveOf(op),
		begin: begin, end: ev.Time, root: uint32(ev.Args[2]), sent: ev.Args[3], received: ev.Args[4], details: d,
	}
	r.begun(row, o, false)
	o.ordinal = row.number(nextKey{comm.ref, o.function, -1}, d)
	o.size = r.size(o, ev.Args[3], ev.Args[4])
	if o.rank >= 0 {
		r.emit(o)
	}
}

// size is nccl-tests' size of the operation: from element count and type where both are known, else
// from the bytes that the member counts.
func (r *operationReader) size(o *operation, sent, received uint64) uint64 {
	ranks := uint64(len(o.comm.members))
	if o.collective == nil {
		return max(sent, received)
	}
	if bytes := regions.DatatypeSize(r.defs.String(o.dtype)); bytes > 0 && o.counted {
		return o.collective.Size(o.count*bytes, ranks)
	}
	if fits := shares(o.collective, sent, received, ranks, int64(o.root) == int64(o.rank)); len(fits) > 0 {
		return o.collective.Size(fits[0], ranks)
	}
	return max(sent, received)
}

func (r *operationReader) message(row *rowState, ev *otf2.Event, function string, s *started) {
	comm := r.comms[s.comm]
	if comm == nil {
		return
	}
	o := &r.op
	*o = operation{
		comm: comm, rank: comm.rankOf(ev.Location), location: ev.Location, function: function,
		begin: s.begin, end: ev.Time, root: otf2.CollectiveRootNone, size: s.length, sent: s.length, received: s.length, peer: s.peer,
		details: r.read(ev, s.details),
	}
	r.begun(row, o, true)
	o.ordinal = row.number(nextKey{s.comm, function, s.peer}, o.details)
	if o.rank >= 0 {
		r.emit(o)
	}
}

// number is the operation's ordinal: as recorded, else counted.
func (row *rowState) number(key nextKey, d details) uint64 {
	n := row.ordinal[key]
	if d.numbered {
		n = d.recorded
	}
	row.ordinal[key] = n + 1
	return n
}

// pairName names the direction of a message as sequences of an archive's properties do.
func (o *operation) pairName() string {
	if o.function == "Send" {
		return fmt.Sprintf("Send %d>%d", o.rank, o.peer)
	}
	return fmt.Sprintf("Send %d>%d", o.peer, o.rank)
}

func isMessage(function string) bool { return function == "Send" || function == "Recv" }
