// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/sequence"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/attribute"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/effect"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/lookup"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Names resolves the ids in events, either of an archive or of a process that is being recorded.
type Names interface {
	String(otf2.StringRef) string
	RegionName(otf2.RegionRef) string
	// CommSize is the number of a communicator's ranks, 0 if it is not known.
	CommSize(otf2.CommRef) int
	// Rank is that of a location in a communicator, −1 if it is no member.
	Rank(otf2.CommRef, otf2.LocationRef) int
}

// Operation is one member's part in a collective, or one end of a message, decoded from its events.
type Operation struct {
	Details
	Location   otf2.LocationRef
	Comm       otf2.CommRef
	Root       uint32              // CollectiveRootNone without one
	Function   string              // "AllReduce", "Send"; of collectives that NCCL does not have OTF2's name
	Collective *regions.Collective // nil of messages, and of collectives that NCCL does not have
	Begin, End otf2.Timestamp      // of its own events; operations of one launch have one time
	// when its rank began to wait for it: Begin, but for MPI's requests the begin of the call that ends them
	Since    otf2.Timestamp
	Peer     int    // of a message: the other end's rank
	Size     uint64 // as nccl-tests counts it, bytes
	Sent     uint64 // bytes, as the events have them; a message's one end has its length here,
	Received uint64 // the other one here
	// Ordinal counts the operations of a function on the communicator; messages count by pair, MPI's messages by pair
	// and tag, with the tag in the upper 32 bits.
	Ordinal uint64

	Launch  uint64 // number of its launch on the row, from 1; 0 if it belongs to none
	Index   int    // place among the operations that began in its region
	Message bool
	Grouped bool    // launched together with others
	Leads   bool    // the first collective of its launch on its communicator
	Follows bool    // a message of a launch with collectives
	Last    bool    // all operations that began in its region have ended with it
	StartUp bool    // of the member's first launch on the communicator, see startUp
	InPlace InPlace // of a collective
	// number of operations in its launch if all are equal except for their buffers and so share its time equally; else
	// 0
	Equal  int
	Region otf2.RegionRef // that it ended in, the innermost
	tag    uint32         // of MPI's messages
	Enter  uint64         // number of that region on the row, NoRegion without one
}

// NoRegion is the number of the region of operations outside regions.
const NoRegion = ^uint64(0)

// Duration returns the length of the interval, ns.
func (o *Operation) Duration() uint64 { return uint64(o.End - o.Begin) }

// PairName names the sequence of a message of a rank as sequences of an archive's properties do.
func (o *Operation) PairName(rank int) string {
	if o.Function == "Send" {
		return PairName(rank, o.Peer)
	}
	return PairName(o.Peer, rank)
}

// PairName names the sequence of the messages from one rank of a communicator to another, as an archive's properties
// do.
func PairName(from, to int) string { return sequence.Pair{From: from, To: to}.Name() }

// Region is a region of a row. A region with a TIMING_SOURCE has a number and is one launch by NCCL; others belong to
// threads and networks, or are parts of launches.
type Region struct {
	Details
	Location   otf2.LocationRef
	Region     otf2.RegionRef
	Begin, End otf2.Timestamp
	Number     uint64 // of the launch on its row, from 1; 0: not a launch
	Depth      int    // regions around it
	Begun      int    // operations that began in it
	Ended      int    // and those that ended
	Operations uint64 // stated by the launch, else by the region's name; 1 if neither states it
	Entered    uint64 // number of its Enter on the row, from 0
	Lost       bool   // its Leave is missing: it ended with the region around it

	requests int
	led      map[otf2.CommRef]bool
	held     int  // operations in the row's held
	differs  bool // its operations are not equal
}

var noRegion = Region{Details: NoDetails}

// Grouped reports whether the launch has several operations, which have no times of their own. The result is known when
// the first operation ends.
func (l *Region) Grouped() bool { return l.Operations > 1 || l.requests > 1 }

// Reader decodes the events of rows.
type Reader struct {
	Names Names
	// Operation, if set, is given each operation when it ends. It is valid during the call.
	Operation func(*Operation)
	// Enter, if set, is given each region when it begins, and Leave when it ends, after its operations. It is valid
	// during the call.
	Enter, Leave func(*Region)
	// Begun, if set, receives the attributes of the one event that begins an operation in a launch of several, and the
	// innermost region (nil if none).
	Begun func(d *Details, in *Region)
	// Put, if set, is given each transfer when it begins, and Transfer when it ends. It is valid during the call.
	Put, Transfer func(*Transfer)
	// Sums, if set, receives sums of transfers. They are valid during the call.
	Sums func(*NetSums)
	// Life, if set, is called when a communicator is created or destroyed on a row.
	Life func(ev *otf2.Event, comm otf2.CommRef, begins bool)
	Keep bool // attributes, in Details.Attributes
	// Calls, if set, reports whether the operations of a communicator are calls of threads, see Communicator.Calls.
	Calls func(otf2.CommRef) bool
	// Lacks, if set, reports whether the archive lacks a call, see Communicator.Lacks.
	Lacks func(comm otf2.CommRef, l otf2.LocationRef, function string, ordinal uint64) bool

	attributes *attribute.Table
	nested     bool // regions of a row nest, see effect.NewestOpen
	rows       lookup.ByLocation[*Row]
	sources    map[otf2.StringRef]Source
	sizes      map[otf2.StringRef]uint64
	launched   lookup.ByRegion[uint64] // number of operations by the region's name, plus one
	sums       lookup.ByRegion[int]    // place in naming.SumNames, and two; 1: none
	op         Operation
	done       Transfer
	left       Region  // that ends while others that began in it are open
	begun      started // the operation that begins now

	// Spare memory for rows: few of many rows have an open region or operation at one time.
	unopened [][]Region
	ended    []*started
}

// NewReader returns a reader of events whose ids names resolves. attributes is nil for the events of a process.
func NewReader(names Names, attributes *attribute.Table) *Reader {
	return &Reader{
		Names: names, attributes: attributes, nested: attributes.Has(regions.AttrTimingSource),
		sources: make(map[otf2.StringRef]Source),
		sizes:   make(map[otf2.StringRef]uint64),
	}
}

// Row is the state of one location.
type Row struct {
	reader   *Reader
	open     []Region
	puts     map[effect.PutName]Transfer // that have not ended
	launches uint64
	enters   uint64
	blocking *started         // the open collective without a request
	blocks   bool             // it is open
	requests map[uint64]int32 // which of started
	started  []started
	free     []int32
	ordinals map[numbering]*uint64 // the next one; nil: there is one sequence at most
	last     numbering             // that was numbered, and its next one
	next     *uint64
	only     uint64      // the next one of the first sequence
	held     []Operation // of the innermost region, as long as they are equal
	first    firstLaunch
	calls    uint64      // that ended messages, by communicator
	returned []Operation // messages of calls that have not returned, of the innermost region
}

// numbering identifies a sequence in which operations are numbered.
type numbering struct {
	comm     otf2.CommRef
	function string
	peer     int
	tag      uint32 // of MPI's messages
}

// started is an operation that has begun.
type started struct {
	Details
	begin   otf2.Timestamp
	entered otf2.Timestamp // the region around, without one begin
	index   int
	message bool
	comm    otf2.CommRef
	peer    int
	length  uint64
	tag     uint32
	ordinal uint64 // of a send, by its call
}

// Kinds are the kinds of events that operations and regions are decoded from; callers may skip others.
var Kinds = otf2.Kinds(otf2.EventEnter, otf2.EventLeave, otf2.EventMpiCollectiveBegin, otf2.EventMpiCollectiveEnd,
	otf2.EventNonBlockingCollectiveRequest, otf2.EventNonBlockingCollectiveComplete,
	otf2.EventMpiSend, otf2.EventMpiRecv, otf2.EventMpiIsend, otf2.EventMpiIsendComplete, otf2.EventMpiIrecvRequest,
	otf2.EventMpiIrecv)

// Resumes reports whether reading of a row can start at this event, if not at the first. Regions that began before are
// then unknown.
func Resumes(ev *otf2.Event) bool { return ev.Kind == otf2.EventEnter }

// Event takes the next event of its location.
func (r *Reader) Event(ev *otf2.Event) { r.Row(ev.Location).Event(ev) }

// Row returns the state of a location. Callers may keep it to avoid the look-up for each event.
func (r *Reader) Row(l otf2.LocationRef) *Row {
	row := r.rows.Get(l)
	if row == nil {
		row = &Row{reader: r}
		r.rows.Set(l, row)
	}
	return row
}

// Forget drops the state of a location.
func (r *Reader) Forget(l otf2.LocationRef) { r.rows.Delete(l) }

// Event takes the next event of the location.
func (row *Row) Event(ev *otf2.Event) {
	switch ev.Kind {
	case otf2.EventEnter:
		row.enterRegion(ev)
	case otf2.EventLeave:
		row.leaveRegion(ev)
	case otf2.EventMpiCollectiveBegin:
		row.beginBlocking(ev)
		row.blocks = true
	case otf2.EventMpiCollectiveEnd:
		if !row.blocks { // its begin is missing; it did not begin before the region around it
			row.beginBlocking(ev)
			row.blocking.begin = row.blocking.entered
		}
		row.blocks = false
		row.endCollective(ev, row.blocking)
		row.reader.ended, row.blocking = append(row.reader.ended, row.blocking), nil
	case otf2.EventNonBlockingCollectiveRequest, otf2.EventMpiIrecvRequest:
		row.beginOperation(ev, true, &row.reader.begun)
		row.addRequest(ev.Args[0], &row.reader.begun)
	case otf2.EventNonBlockingCollectiveComplete:
		if s := row.removeRequest(ev.Args[5]); s != nil {
			row.endCollective(ev, s)
		}
	case otf2.EventMpiIsend:
		s := &row.reader.begun
		row.beginOperation(ev, true, s)
		s.message, s.comm, s.peer, s.tag, s.length = true, otf2.CommRef(ev.Args[1]), int(ev.Args[0]),
			uint32(ev.Args[2]), ev.Args[3]
		if row.isCall(s.comm) {
			s.ordinal = row.nextOrdinal(numbering{s.comm, "Send", s.peer, s.tag})
		}
		row.addRequest(ev.Args[4], s)
	case otf2.EventMpiSend, otf2.EventMpiRecv:
		row.blockingMessage(ev)
	case otf2.EventMpiIsendComplete:
		if i, ok := row.requests[ev.Args[0]]; ok && row.started[i].message {
			row.endMessage(ev, "Send", row.removeRequest(ev.Args[0]))
		}
	case otf2.EventCommCreate, otf2.EventCommDestroy:
		if row.reader.Life != nil {
			row.reader.Life(ev, otf2.CommRef(ev.Args[0]), ev.Kind == otf2.EventCommCreate)
		}
	case otf2.EventRmaPut:
		if row.reader.Put != nil || row.reader.Transfer != nil {
			row.beginTransfer(ev)
		}
	case otf2.EventRmaOpCompleteNonBlocking, otf2.EventRmaOpCompleteBlocking:
		row.endTransfer(ev)
	case otf2.EventMpiIrecv:
		if s := row.removeRequest(ev.Args[4]); s != nil {
			s.comm, s.peer, s.tag, s.length = otf2.CommRef(ev.Args[1]), int(ev.Args[0]), uint32(ev.Args[2]), ev.Args[3]
			row.endMessage(ev, "Recv", s)
		}
	}
}

func (row *Row) enterRegion(ev *otf2.Event) {
	n := len(row.open)
	if n < cap(row.open) {
		row.open = row.open[:n+1]
	} else if spare := row.reader.unopened; n == 0 && len(spare) > 0 {
		row.open, row.reader.unopened = spare[len(spare)-1][:1], spare[:len(spare)-1]
	} else {
		row.open = append(row.open, Region{})
	}
	l := &row.open[n]
	*l = noRegion // set in place: a literal would be made elsewhere and copied
	l.Location, l.Region, l.Begin, l.Depth, l.Entered = ev.Location, otf2.RegionRef(ev.Args[0]), ev.Time, n, row.enters
	row.enters++
	if len(ev.Attributes) > 0 {
		row.reader.Read(ev, &l.Details)
	}
	if l.Source != SourceUnknown {
		row.launches++
		l.Number = row.launches
	}
	if row.reader.Enter != nil {
		row.reader.Enter(l)
	}
	if row.reader.Sums != nil && len(ev.Attributes) > 0 {
		row.readNetSums(ev)
	}
}

func (row *Row) leaveRegion(ev *otf2.Event) {
	at := effect.NewestOpen(row.open, otf2.RegionRef(ev.Args[0]), func(l *Region) otf2.RegionRef { return l.Region })
	if at < 0 {
		return // its Enter is missing
	}
	for row.reader.nested && len(row.open) > at+1 {
		row.endRegion(len(row.open)-1, ev.Time, true)
	}
	if len(ev.Attributes) > 0 {
		row.reader.Read(ev, &row.open[at].Details)
	}
	row.endRegion(at, ev.Time, false)
}

// endRegion closes one of the open regions.
func (row *Row) endRegion(at int, t otf2.Timestamp, lost bool) {
	n := len(row.open)
	l := &row.open[at]
	row.release(at)
	if at == n-1 {
		row.deliverMessages(t)
		row.open = row.open[:n-1]
	} else { // inner regions go on
		row.reader.left = *l
		l, row.open = &row.reader.left, slices.Delete(row.open, at, at+1)
	}
	if row.reader.Leave != nil {
		l.End, l.Lost = t, lost
		if l.Operations == 0 {
			l.Operations = row.reader.operations(l)
		}
		row.reader.Leave(l)
	}
	if n == 1 {
		row.reader.unopened, row.open = append(row.reader.unopened, row.open), nil
	}
}

// beginBlocking takes an event that begins a collective without a request.
func (row *Row) beginBlocking(ev *otf2.Event) {
	if done := row.reader.ended; row.blocking == nil && len(done) > 0 {
		row.blocking, row.reader.ended = done[len(done)-1], done[:len(done)-1]
	} else if row.blocking == nil {
		row.blocking = new(started)
	}
	row.beginOperation(ev, false, row.blocking)
}

// beginOperation takes an event that begins an operation.
func (row *Row) beginOperation(ev *otf2.Event, request bool, s *started) {
	s.begin, s.entered, s.index, s.message, s.comm, s.peer, s.length, s.tag, s.ordinal = ev.Time, ev.Time, 0, false, 0,
		0, 0, 0, 0
	if n := len(row.open); n > 0 {
		l := &row.open[n-1]
		s.Details, s.index, s.entered = l.Details, l.Begun, l.Begin
		l.Begun++
		if request {
			l.requests++
		}
	} else {
		s.Details = NoDetails
	}
	if len(ev.Attributes) > 0 {
		row.reader.Read(ev, &s.Details)
	}
	if row.reader.Begun != nil {
		row.reportBegun(ev)
	}
}

// reportBegun passes on the attributes of the event that begins an operation.
func (row *Row) reportBegun(ev *otf2.Event) {
	d := NoDetails
	row.reader.Read(ev, &d)
	var in *Region
	if n := len(row.open); n > 0 {
		in = &row.open[n-1]
	}
	row.reader.Begun(&d, in)
}

// addRequest keeps an operation until its request completes.
func (row *Row) addRequest(id uint64, s *started) {
	if row.requests == nil {
		row.requests = make(map[uint64]int32)
	}
	row.removeRequest(id) // a request that never completed
	if n := len(row.free); n > 0 {
		row.requests[id], row.free = row.free[n-1], row.free[:n-1]
		row.started[row.requests[id]] = *s
		return
	}
	row.requests[id] = int32(len(row.started))
	row.started = append(row.started, *s)
}

// removeRequest removes a request and returns its operation, nil if there is none. The result is valid until the next
// one begins.
func (row *Row) removeRequest(id uint64) *started {
	i, ok := row.requests[id]
	if !ok {
		return nil
	}
	delete(row.requests, id)
	row.free = append(row.free, i)
	return &row.started[i]
}

// operations returns the number of operations of a launch: as stated, or else by the name of its region.
func (r *Reader) operations(l *Region) uint64 {
	if l.Together > 0 {
		return uint64(l.Together)
	}
	known := r.launched.Get(l.Region)
	if known == 0 {
		known = regions.LaunchSize(r.Names.RegionName(l.Region)) + 1
		r.launched.Set(l.Region, known)
	}
	return known - 1
}

// countInRegion counts an operation in the innermost region and sets the fields that depend on it.
func (row *Row) countInRegion(o *Operation) {
	o.Leads, o.Enter, o.Last = !o.Message, NoRegion, true
	n := len(row.open)
	if n == 0 {
		return
	}
	l := &row.open[n-1]
	o.Enter, o.Region = l.Entered, l.Region
	l.Ended++
	o.Last = l.Ended == l.Begun
	if l.Number > 0 {
		if l.Operations == 0 {
			l.Operations = row.reader.operations(l)
		}
		o.Launch, o.Follows, o.Grouped = l.Number, o.Message && len(l.led) > 0, l.Grouped()
	}
	if !o.Grouped || o.Message {
		return
	}
	if o.Leads = !l.led[o.Comm]; o.Leads {
		if l.led == nil {
			l.led = make(map[otf2.CommRef]bool)
		}
		l.led[o.Comm] = true
	}
}

// endCollective handles the end of a collective. MpiCollectiveEnd has the first fields of
// NonBlockingCollectiveComplete.
func (row *Row) endCollective(ev *otf2.Event, s *started) {
	r, op := row.reader, otf2.CollectiveOp(ev.Args[0])
	o := &r.op
	*o = Operation{}
	o.Details, o.Location, o.Comm, o.Begin, o.End, o.Since, o.Index = s.Details, ev.Location, otf2.CommRef(ev.Args[1]),
		s.begin, ev.Time, s.begin, s.index
	o.Function, o.Collective = functionOf(op)
	o.Root, o.Sent, o.Received, o.Peer = uint32(ev.Args[2]), ev.Args[3], ev.Args[4], -1
	if row.isCall(o.Comm) {
		o.Source = sourceOfCall(ev.Kind == otf2.EventMpiCollectiveEnd)
	}
	if len(ev.Attributes) > 0 {
		r.Read(ev, &o.Details)
	}
	row.countInRegion(o)
	row.setOrdinal(o)
	o.Size = r.size(o)
	o.InPlace = r.inPlace(o)
	row.deliver(o)
}

func (row *Row) endMessage(ev *otf2.Event, function string, s *started) {
	r := row.reader
	o := &r.op
	*o = Operation{
		Details: s.Details, Location: ev.Location, Comm: s.comm, Function: function, Message: true, Begin: s.begin,
		End:  ev.Time,
		Root: otf2.CollectiveRootNone, Peer: s.peer, Size: s.length, Index: s.index, Since: s.begin,
	}
	if function == "Send" {
		o.Sent = s.length
	} else {
		o.Received = s.length
	}
	if len(ev.Attributes) > 0 {
		r.Read(ev, &o.Details)
	}
	row.countInRegion(o)
	if row.isCall(o.Comm) {
		row.holdMessage(o, s)
		return
	}
	row.setOrdinal(o)
	row.deliver(o)
}

// setOrdinal sets the ordinal of an operation: as recorded, else by counting.
func (row *Row) setOrdinal(o *Operation) {
	row.selectSequence(numbering{comm: o.Comm, function: o.Function, peer: o.Peer})
	o.Ordinal = o.Recorded
	if !o.Numbered {
		o.Ordinal = *row.next
		for row.reader.Lacks != nil && row.reader.Lacks(o.Comm, o.Location, o.Function, o.Ordinal) {
			o.Ordinal++
		}
	}
	*row.next = o.Ordinal + 1
	o.StartUp = row.startUp(o)
}

// selectSequence makes row.next the counter of a sequence.
func (row *Row) selectSequence(key numbering) {
	switch {
	case row.next == nil: // many rows have one sequence
		row.last, row.next = key, &row.only
		return
	case key == row.last: // operations of one sequence often follow each other
		return
	case row.ordinals == nil:
		row.ordinals = map[numbering]*uint64{row.last: row.next}
	}
	if row.last, row.next = key, row.ordinals[key]; row.next == nil {
		row.next = new(uint64)
		row.ordinals[key] = row.next
	}
}

// size returns the size of a collective as nccl-tests defines it: from element count and type if both are known, else
// from the member's bytes.
func (r *Reader) size(o *Operation) uint64 {
	c := o.Collective
	if c == nil {
		return max(o.Sent, o.Received)
	}
	ranks := uint64(max(r.Names.CommSize(o.Comm), 0))
	if bytes := r.ElementSize(o.Datatype); bytes > 0 && o.Counted {
		return c.Size(o.Count*bytes, ranks)
	}
	if ranks > 0 {
		root := c.Rooted() && int64(r.Names.Rank(o.Comm, o.Location)) == int64(o.Root)
		if fits := c.Shares(o.Sent, o.Received, ranks, root); len(fits) > 0 {
			return c.Size(fits[0], ranks)
		}
	}
	return max(o.Sent, o.Received)
}

// AloneSize returns the size of the only operation of a launch that has no events for it, as on communicators of one
// rank or where NCCL reported too little. It is 0 if not stated.
func (r *Reader) AloneSize(l *Region, ranks int) uint64 {
	element := r.ElementSize(l.Datatype)
	if element == 0 || !l.Counted {
		return 0
	}
	size := l.Count * element
	if c := regions.CollectiveNamed(r.Names.RegionName(l.Region)); c != nil {
		size = c.Size(size, uint64(max(ranks, 1)))
	}
	return size
}

// FunctionName returns NCCL's name of a collective, or OTF2's if NCCL does not have it.
func FunctionName(op otf2.CollectiveOp) string {
	name, _ := functionOf(op)
	return name
}

// functionOf returns the name of a collective, and its description if NCCL has it, else nil.
func functionOf(op otf2.CollectiveOp) (string, *regions.Collective) {
	if c := regions.CollectiveOf(op); c != nil {
		return c.Name, c
	}
	return op.String(), nil
}

// IsMessage reports whether a function is one end of a message.
func IsMessage(function string) bool { return function == "Send" || function == "Recv" }

// SendAndRecv is the function of messages that were launched together and share one time.
const SendAndRecv = "Send and Recv"

// TimeOf is the time of one member's part, ns: of one of several equal operations of a launch its part of the launch's.
func (o *Operation) TimeOf() float64 { return float64(o.Duration()) / float64(max(o.Equal, 1)) }

// BusFactor turns algorithm bandwidth into bus bandwidth, for an operation on a communicator of so many ranks; 1 of
// messages, and of collectives that NCCL does not have.
func (o *Operation) BusFactor(ranks int) float64 {
	if o.Collective == nil {
		return 1
	}
	return o.Collective.BusFactor(float64(ranks))
}

// IndexOpen returns the index of a region that ends in a caller's list of open ones (newest last), −1 if it is not
// there. entered returns the Region.Entered of an element. The rule is that of effect.NewestOpen.
func IndexOpen[T any](open []T, ended *Region, entered func(*T) uint64) int {
	for i := len(open) - 1; i >= 0; i-- {
		if entered(&open[i]) == ended.Entered {
			return i
		}
	}
	return -1
}
