// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selection"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selfreport"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/lateness"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/timing"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Part is one member's part in a collective, or one end of a message, as the archive describes it. The parts of a
// collective have the same communicator, function and ordinal; the two ends of a message have the same communicator,
// sender, receiver and ordinal.
type Part struct {
	Comm         otf2.CommRef
	Communicator string
	Ranks        int // of the communicator
	Rank         int // in the communicator
	Location     otf2.LocationRef
	Function     string // "AllReduce", "Send"
	Ordinal      uint64
	Begin, End   otf2.Timestamp
	Root         int // rank, −1 if the operation has none
	// Enter identifies the innermost region in which it ended: the one of the location's n-th Enter event, from 0;
	// facts.NoRegion if there is none.
	Enter       uint64
	Peer        int // rank of the other end of a message, otherwise −1
	Size        uint64
	Sent        uint64 // bytes, from the events; for a message both are its length
	Received    uint64
	Count       uint64 // elements, as given in the call
	Counted     bool   // Count is known
	Datatype    string // "" if unknown, like the following ones
	Algorithm   string
	Protocol    string
	Channels    uint32 // 0: unknown
	Source      string // source of the times: "gpu", "network", "enqueue", "duration"; "" if the archive does not say
	Uncertainty uint64 // of the times, ns
	Stated      bool   // Uncertainty is known
	Event       uint64 // id of NCCL's event; 0: unknown
	Parent      uint64 // id of the event that called it; 0: unknown
	Graph       bool   // replayed from a CUDA graph
	Grouped     bool   // launched together with others; the times are those of the whole launch
	Plan        uint64 // number of the launch on the location, from 1; 0: it belongs to none
	Consistent  bool   // all members recorded the same operations, so that ordinals identify them
	Unfinished  bool   // it was open when the data ended
	// Equal is the number of operations in its launch if all are equal, so that each has its part of the time; 0: it
	// is alone, or they differ.
	Equal   int
	StartUp bool // of the member's first launch on the communicator, in which NCCL makes its connections
	InPlace facts.InPlace
	Variant string // symmetric kernel, or how copy engines synchronize; "" if unknown
	Device  bool   // a buffer is known to be in a GPU's memory
	// Leads marks the first collective of its launch on its communicator. The arrivals of a launch are taken from it.
	Leads bool
	// WaitKind says whom the members of a collective wait for: "collective", "late broadcast", "early reduce"; "" for
	// messages.
	WaitKind  string
	Share     uint64 // the part of Size that one rank contributes or gets, in bytes
	BusFactor float64
	// Attributes are those of the events that describe it, the outer events first. If an id occurs several times, the
	// last one counts. They are present only on request.
	Attributes []otf2.AttributeValue
}

// HasBandwidth reports whether the time is how long this operation alone ran.
func (p *Part) HasBandwidth() bool {
	return timing.HasBandwidth(facts.SourceOf(p.Source), p.Grouped, p.Equal)
}

// Message reports whether the part is one end of a message.
func (p *Part) Message() bool { return p.Peer >= 0 }

// PartReader finds the operations in the events of one or several locations. The events of each must be in order of
// time.
type PartReader struct {
	// Selection limits the parts that are passed on; nil: all parts.
	Selection *selection.Selection

	reader    *analysis.OperationReader
	defs      *otf2.Definitions
	stretches []property.Stretch
	emit      func(*Part)
	part      Part
}

// NewPartReader returns a reader that passes operations to emit when they end. A part is valid until emit returns.
func NewPartReader(a *otf2.Archive, attributes bool, emit func(*Part)) *PartReader {
	r := &PartReader{defs: a.Defs, stretches: selfreport.StretchesOf(a.Anchor), emit: emit}
	r.reader = analysis.NewOperationReader(a.Defs, membership.Communicators(a.Defs), r.addOperation)
	r.reader.Keep = attributes
	return r
}

// Reader returns the decoder of the events, for hooks on regions, transfers, or communicators' lifetimes.
func (r *PartReader) Reader() *facts.Reader { return r.reader.Reader }

// Event takes the next event.
func (r *PartReader) Event(ev *otf2.Event) { r.reader.Event(ev) }

func (r *PartReader) addOperation(o *analysis.Operation) {
	if !r.Selection.Operation(o) || !r.Selection.Shown(o.Location) {
		return
	}
	fillPart(&r.part, o, r.defs, r.stretches)
	r.emit(&r.part)
}

func fillPart(p *Part, o *analysis.Operation, defs *otf2.Definitions, stretches []property.Stretch) {
	*p = Part{
		Comm: o.Communicator.Ref, Communicator: o.Communicator.Name, Ranks: o.Communicator.Size(), Rank: o.Rank,
		Location: o.Location,
		Function: o.Function, Ordinal: o.Ordinal, Begin: o.Begin, End: o.End, Root: -1, Peer: -1, Size: o.Size,
		Enter: o.Enter, Sent: o.Sent, Received: o.Received,
		Count: o.Count, Counted: o.Counted, Datatype: placement.NameOf(defs, o.Datatype),
		Algorithm: placement.NameOf(defs, o.Algo),
		Protocol:  placement.NameOf(defs, o.Proto), Channels: o.Channels, Source: o.Source.String(),
		Uncertainty: o.Uncertainty,
		Stated:      o.Stated, Event: o.Event, Parent: o.Parent, Graph: o.Graph, Grouped: o.Grouped, Plan: o.Launch,
		BusFactor:  o.BusFactor(o.Communicator.Size()),
		Unfinished: o.Unfinished,
		Equal:      o.Equal, StartUp: o.StartUp, InPlace: o.InPlace, Variant: placement.NameOf(defs, o.Variant),
		Share:  o.Size,
		Device: o.Device, Leads: o.Leads,
		Attributes: o.Attributes,
	}
	sequence := o.Function
	switch {
	case o.Collective == nil && facts.IsMessage(o.Function):
		p.Peer, sequence = o.Peer, o.Sequence()
		p.Sent, p.Received = o.Size, o.Size
	case int64(o.Root) < int64(o.Communicator.Size()):
		p.Root = int(o.Root)
	}
	if !p.Message() {
		p.WaitKind = lateness.WaitKindOf(o.Collective).String()
	}
	if o.Collective != nil {
		p.Share = o.Collective.Share(o.Size, uint64(o.Communicator.Size()))
	}
	p.Consistent = !property.Excluded(stretches, o.Communicator.Ref, sequence, o.Ordinal)
}

// EachPart passes all selected operations of an archive to f, location by location in the order of their ids, and for
// each location in the order of their ends. It covers a slice of the members' locations. A part is valid until f
// returns. The first error of f ends the reading and is returned. problems names files that cannot be read to their
// end.
func EachPart(a *otf2.Archive, selected *selection.Selection, slice analysis.Slice, f func(*Part) error) (
	problems []string, err error) {
	r := NewPartReader(a, false, func(p *Part) {
		if err == nil {
			err = f(p)
		}
	})
	r.Selection = selected
	locations := make(map[otf2.LocationRef]bool)
	for _, c := range r.reader.Comms {
		for _, l := range c.Members {
			locations[l] = true
		}
	}
	for _, l := range slice.Cut(a.Defs, analysis.Ascending(locations)) {
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

// Matches says which operations of an archive are wanted, matched between locations. Arguments of its functions are
// valid until the function returns.
type Matches struct {
	Selection  *selection.Selection  // nil: everything
	Collective func(parts []Part)    // all members with data have ended it
	Message    func(send, recv *End) // both ends are known
	Wait       func(w *waits.Wait)   // a member waited for another
	// Span is called once all events have been read, unless there are none.
	Span func(Span)
}

// Span is the time of an archive's events, as in the report.
type Span struct {
	Begin       otf2.Timestamp // of all events
	First, Last otf2.Timestamp // of the selected events
	events      bool
}

func (s *Span) add(ev *otf2.Event, selected *selection.Selection) {
	s.Begin = min(s.Begin, ev.Time)
	if selected.At(ev.Location, ev.Time) {
		s.First, s.Last, s.events = min(s.First, ev.Time), max(s.Last, ev.Time), true
	}
}

// End is one end of a message.
type End struct {
	Location otf2.LocationRef
	Begin    otf2.Timestamp
	End      otf2.Timestamp
}

// matchLanes is fixed, so that results come in the same order on every machine.
const matchLanes = 8

// EachMatch reads all events, matches operations as the report does, and passes on what m asks for, in the same order
// on every run and machine.
func EachMatch(a *otf2.Archive, m *Matches) (problems []string) {
	comms := membership.Communicators(a.Defs)
	o := newOperations(a, comms)
	var parts []Part
	if m.Collective != nil {
		o.matched = func(members []analysis.Operation) {
			parts = slices.Grow(parts[:0], len(members))[:len(members)]
			for i := range members {
				fillPart(&parts[i], &members[i], a.Defs, o.stretches)
			}
			m.Collective(parts)
		}
	}
	if m.Message != nil {
		o.waits.Paired = func(x, y *waits.MessageEnd) {
			if !x.Send {
				x, y = y, x
			}
			if m.Selection == nil || !x.Outside() {
				m.Message(endOf(x), endOf(y))
			}
		}
	}
	o.choose(m.Selection, m.Wait)
	lanes := analysis.DealOut(a.Defs, matchLanes)
	readers := make([]*analysis.OperationReader, len(lanes))
	found := make([][]analysis.Operation, len(lanes))
	for i := range lanes {
		readers[i] = analysis.NewOperationReader(a.Defs, comms, func(op *analysis.Operation) {
			op.Local.Outside = !m.Selection.Operation(op)
			found[i] = append(found[i], *op)
		})
	}
	spans := slices.Repeat([]Span{{Begin: otf2.UndefinedTimestamp, First: otf2.UndefinedTimestamp}}, len(lanes)+1)
	problems = analysis.ReadLanes(a, lanes, func(
		i int, ev *otf2.Event, items []analysis.Operation) []analysis.Operation {
		found[i] = items
		spans[i].add(ev, m.Selection)
		readers[i].Event(ev)
		return found[i]
	}, o.add)
	o.waits.Result() // passes on the waits that are still pending
	all := &spans[len(lanes)]
	for _, s := range spans[:len(lanes)] {
		all.Begin, all.First, all.Last, all.events = min(all.Begin, s.Begin), min(all.First, s.First),
			max(all.Last, s.Last), all.events || s.events
	}
	if m.Span != nil && all.events {
		m.Span(*all)
	}
	return problems
}

func endOf(e *waits.MessageEnd) *End {
	return &End{Location: e.Plan.Location, Begin: e.Begin, End: e.Begin + otf2.Timestamp(e.Plan.Time)}
}
