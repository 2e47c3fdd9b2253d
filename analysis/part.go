// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"slices"

	"github.com/nccl-otf2/nccl-otf2/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Part is one member's part in a collective, or one end of a message: what the archive tells of it. Parts of one
// collective have communicator, function and ordinal in common; the two ends of a message have communicator, sender,
// receiver and ordinal.
type Part struct {
	Comm         otf2.CommRef
	Communicator string
	Ranks        int // of the communicator
	Rank         int // in it
	Location     otf2.LocationRef
	Function     string // "AllReduce", "Send"
	Ordinal      uint64
	Begin, End   otf2.Timestamp
	Root         int // rank, −1 if the operation has none
	// Enter is the number of the innermost region that it ended in: that of the n-th Enter of the location, from 0;
	// facts.NoRegion without one.
	Enter       uint64
	Peer        int // of a message: the other end's rank, else −1
	Size        uint64
	Sent        uint64 // bytes, as the events tell; of a message both are its length
	Received    uint64
	Count       uint64 // elements, as given in the call
	Counted     bool   // Count is known
	Datatype    string // "" if not known, as the following ones
	Algorithm   string
	Protocol    string
	Channels    uint32 // 0: not known
	Source      string // of the times: "gpu", "network", "enqueue", "duration", "" if the archive does not say
	Uncertainty uint64 // of the times, ns
	Stated      bool   // Uncertainty is known
	Event       uint64 // id of NCCL's event, 0: not told
	Parent      uint64 // id of the event that asked for it, 0: not told
	Graph       bool   // replayed from a CUDA graph
	Grouped     bool   // launched together with others; the times are those of all
	Plan        uint64 // number of the launch on the location, from 1; 0: it belongs to none
	Alike       bool   // the members recorded their operations alike, so that ordinals name the same one
	BusFactor   float64
	// Attributes are those of the events that describe it, the outer ones first. A reader of them sees the last one of
	// an id; they are there if they were asked for.
	Attributes []otf2.AttributeValue
}

// Message tells whether it is one end of a message.
func (p *Part) Message() bool { return p.Peer >= 0 }

// PartReader finds the operations in events of one or several locations, each in order of time.
type PartReader struct {
	reader    *operationReader
	defs      *otf2.Definitions
	stretches []facts.Stretch
	emit      func(*Part)
	part      Part
}

// NewPartReader makes a reader that passes operations to emit when they end. What emit gets is valid until it returns.
func NewPartReader(a *otf2.Archive, attributes bool, emit func(*Part)) *PartReader {
	r := &PartReader{defs: a.Defs, stretches: stretchesOf(a.Anchor), emit: emit}
	r.reader = newOperationReader(a.Defs, facts.Communicators(a.Defs), r.take)
	r.reader.Keep = attributes
	return r
}

// Reader decodes the events: who wants regions, transfers, or the lives of communicators, too, asks there.
func (r *PartReader) Reader() *facts.Reader { return r.reader.Reader }

// Event takes the next event.
func (r *PartReader) Event(ev *otf2.Event) { r.reader.Event(ev) }

func (r *PartReader) take(o *operation) {
	fillPart(&r.part, o, r.defs, r.stretches)
	r.emit(&r.part)
}

func fillPart(p *Part, o *operation, defs *otf2.Definitions, stretches []facts.Stretch) {
	*p = Part{
		Comm: o.comm.Ref, Communicator: o.comm.Name, Ranks: o.comm.Size(), Rank: o.rank, Location: o.Location,
		Function: o.Function, Ordinal: o.Ordinal, Begin: o.Begin, End: o.End, Root: -1, Peer: -1, Size: o.Size,
		Enter: o.Enter, Sent: o.Sent, Received: o.Received,
		Count: o.Count, Counted: o.Counted, Datatype: nameOf(defs, o.Datatype), Algorithm: nameOf(defs, o.Algo),
		Protocol: nameOf(defs, o.Proto), Channels: o.Channels, Source: o.Source.String(), Uncertainty: o.Uncertainty,
		Stated: o.Stated, Event: o.Event, Parent: o.Parent, Graph: o.Graph, Grouped: o.Grouped, Plan: o.Launch, BusFactor: 1,
		Attributes: o.Attributes,
	}
	sequence := o.Function
	switch {
	case o.Collective == nil && (o.Function == "Send" || o.Function == "Recv"):
		p.Peer, sequence = o.Peer, o.pairName()
		p.Sent, p.Received = o.Size, o.Size
	case int64(o.Root) < int64(o.comm.Size()):
		p.Root = int(o.Root)
	}
	if o.Collective != nil {
		p.BusFactor = o.Collective.BusFactor(float64(o.comm.Size()))
	}
	p.Alike = !facts.Excluded(stretches, o.comm.Ref, sequence, o.Ordinal)
}

// nameOf is a string's text, "" if it is not defined.
func nameOf(defs *otf2.Definitions, ref otf2.StringRef) string {
	if ref == otf2.UndefinedString {
		return ""
	}
	if d := defs.StringDef(ref); d != nil {
		return d.Text
	}
	return ""
}

// EachPart passes all operations of an archive to f, location by location in the order of their ids, on each in the order
// of their ends. What f gets is valid until it returns; its first error ends the reading and is returned. Files that cannot
// be read to their end are named in problems.
func EachPart(a *otf2.Archive, f func(*Part) error) (problems []string, err error) {
	r := NewPartReader(a, false, func(p *Part) {
		if err == nil {
			err = f(p)
		}
	})
	locations := make(map[otf2.LocationRef]bool)
	for _, c := range r.reader.comms {
		for _, l := range c.Members {
			locations[l] = true
		}
	}
	for _, l := range ascending(locations) {
		for ev, damage := range a.EventsOf(l) {
			if damage != nil {
				problems = append(problems, damage.Error())
				continue
			}
			if r.Event(ev); err != nil {
				return problems, err
			}
		}
		r.reader.Forget(l)
	}
	return problems, nil
}

func ascending(locations map[otf2.LocationRef]bool) []otf2.LocationRef {
	all := make([]otf2.LocationRef, 0, len(locations))
	for l := range locations {
		all = append(all, l)
	}
	slices.Sort(all)
	return all
}

// Transfer is what the network carried from one rank to another in one piece, as the sender's proxy saw it.
type Transfer struct {
	Comm         otf2.CommRef // of the operation, not of its network; UndefinedComm if it is not known
	Communicator string
	From         int // rank in the communicator, −1: not told
	To           int
	Location     otf2.LocationRef // of the sending proxy
	Target       otf2.LocationRef // where the receiver's transfers are shown; UndefinedLocation if it is not known
	Channel      int              // −1: not told, as the following ones
	Step         int
	QP           int
	Begin, End   otf2.Timestamp // handed to the network, and known to be sent
	Ended        bool           // End is known; else it is Begin
	Inside       bool           // it began in a region of its row
	Bytes        uint64
	Parent       uint64 // id of the operation's event, 0: not told
}

// EachTransfer passes the transfers of an archive to f, sending location by sending location in the order of their ids, on
// each in the order of their ends; those without an end come last. Otherwise it is as EachPart.
func EachTransfer(a *otf2.Archive, f func(*Transfer) error) (problems []string, err error) {
	r := NewTransferReader(a)
	m := r.lane.matrix
	var t Transfer
	var done []transfer
	flush := func(all []transfer) error {
		for i := range all {
			m.fill(&t, &all[i])
			if err := f(&t); err != nil {
				return err
			}
		}
		return nil
	}
	for _, l := range r.Locations() {
		lane := m.lane()
		for ev, damage := range a.Events(&otf2.Selection{Locations: []otf2.LocationRef{l}, Kinds: facts.TransferKinds}) {
			if damage != nil {
				problems = append(problems, damage.Error())
				continue
			}
			done = lane.event(ev, done[:0])
			if err := flush(done); err != nil {
				return problems, err
			}
		}
		lane.done = nil
		for _, t := range lane.operations.Unended() {
			lane.transfer(&t)
		}
		if err := flush(lane.done); err != nil {
			return problems, err
		}
	}
	return problems, nil
}

// TransferReader finds transfers in events of one or several locations.
type TransferReader struct {
	lane     *matrixLane
	done     []transfer
	transfer Transfer
}

// NewTransferReader makes a reader of an archive's transfers.
func NewTransferReader(a *otf2.Archive) *TransferReader {
	return &TransferReader{lane: newMatrix(a.Defs).lane()}
}

// Locations lists the rows that show transfers, in the order of their ids.
func (r *TransferReader) Locations() []otf2.LocationRef {
	locations := make(map[otf2.LocationRef]bool)
	for _, w := range r.lane.windows {
		for _, l := range w.Members {
			locations[l] = true
		}
	}
	for l := range r.lane.ranks {
		locations[l] = true
	}
	return ascending(locations)
}

// Inside tells whether a row is in a region, where the reader is given its regions, too.
func (r *TransferReader) Inside(l otf2.LocationRef) bool { return r.lane.operations.Row(l).Depth() > 0 }

// Unended is how many transfers have begun and not ended.
func (r *TransferReader) Unended() int { return len(r.lane.operations.Unended()) }

// Event takes the next event, and gives the transfer that ends with it, nil if none does. The transfer is valid until the
// next call.
func (r *TransferReader) Event(ev *otf2.Event) *Transfer {
	r.done = r.lane.event(ev, r.done[:0])
	if len(r.done) == 0 {
		return nil
	}
	r.lane.fill(&r.transfer, &r.done[len(r.done)-1])
	return &r.transfer
}

func (m *matrix) fill(t *Transfer, from *transfer) {
	*t = Transfer{
		Comm: otf2.UndefinedComm, Communicator: from.network.Communicator, From: from.from, To: from.To, Location: from.Location,
		Target: otf2.UndefinedLocation, Channel: int(from.Channel), Step: int(from.Step), QP: int(from.QP), Begin: from.Begin, End: from.End,
		Ended: from.Ended, Inside: from.Inside, Bytes: from.Bytes, Parent: from.Parent,
	}
	if p := from.network.parent; p != nil {
		t.Comm = p.Ref
	}
	if c := m.rows[from.network.Comm]; c != nil && from.To < len(c.Members) {
		t.Target = c.Members[from.To]
	}
}

// Matches says what of an archive's operations is wanted, brought together between locations. What is passed on is
// valid until the function returns.
type Matches struct {
	Collective func(parts []Part)    // all members with data have ended it
	Message    func(send, recv *End) // both ends are there
	Wait       func(w *Wait)         // a member waited for another
}

// End is one end of a message.
type End struct {
	Comm     otf2.CommRef
	Location otf2.LocationRef
	Rank     int
	Ordinal  uint64
	Begin    otf2.Timestamp
	End      otf2.Timestamp
}

// matchLanes is a fixed number, so that results come in the same order on every machine.
const matchLanes = 8

// EachMatch reads all events, brings operations together as the report does, and passes on what is wanted. The order
// is the same whenever and wherever the archive is read.
func EachMatch(a *otf2.Archive, m *Matches) (problems []string) {
	ps := propertiesOf(a.Anchor)
	comms := facts.Communicators(a.Defs)
	o := newOperations(a, ps, comms)
	var parts []Part
	if m.Collective != nil {
		o.matched = func(members []operation) {
			parts = slices.Grow(parts[:0], len(members))[:len(members)]
			for i := range members {
				fillPart(&parts[i], &members[i], a.Defs, o.stretches)
			}
			m.Collective(parts)
		}
	}
	if m.Message != nil {
		o.waits.paired = func(x, y *messageEnd) {
			if !x.send {
				x, y = y, x
			}
			m.Message(x.end(), y.end())
		}
	}
	o.waits.see = m.Wait
	lanes := dealOut(a.Defs, matchLanes)
	readers := make([]*operationReader, len(lanes))
	found := make([][]operation, len(lanes))
	for i := range lanes {
		readers[i] = newOperationReader(a.Defs, comms, func(op *operation) { found[i] = append(found[i], *op) })
	}
	problems = readLanes(a, lanes, func(i int, ev *otf2.Event, items []operation) []operation {
		found[i] = items
		readers[i].Event(ev)
		return found[i]
	}, o.add)
	o.waits.result() // what waited for more to come
	return problems
}

func (e *messageEnd) end() *End {
	return &End{Comm: e.plan.comm.Ref, Location: e.plan.location, Rank: e.rank, Ordinal: e.ordinal, Begin: e.begin, End: e.begin + otf2.Timestamp(e.plan.time)}
}
