// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selfreport"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/attribute"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/effect"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// eventCheck checks the events of all locations in the order of time.
type eventCheck struct {
	*Findings
	archive  *otf2.Archive
	defs     *otf2.Definitions
	refs     *references
	comms    map[otf2.CommRef]*membership.Communicator
	windows  map[otf2.RmaWinRef]*membership.Communicator
	memberOf map[otf2.LocationRef][]*membership.Communicator
	ids      *attribute.Table
	tracks   map[otf2.LocationRef]*track
	match    *matcher
	events   uint64
	timed    map[string]uint64 // operations by timing source, in upper case
	perPlan  map[otf2.RegionRef]uint64
}

// track is the state of one location.
type track struct {
	location *otf2.Location
	events   uint64
	last     otf2.Timestamp
	stack    []openRegion
	begun    openCollective
	requests map[uint64]request
	rma      map[rmaOp]Place
	strange  bool // the location has used a window that it is not a member of
	off      bool // recording is off
	offAt    Place
	comms    map[otf2.CommRef]*commUse
	damaged  bool
}

// Place identifies an event of a location.
type Place struct {
	Location otf2.LocationRef
	Event    uint64
	Time     otf2.Timestamp
}

type openRegion struct {
	region  otf2.RegionRef
	at      Place
	ordinal uint64 // of the region's operation, if it has one
	known   bool
}

type openCollective struct {
	open    bool
	depth   int // nesting depth of regions at its begin
	at      Place
	ordinal uint64
	known   bool
}

type request struct {
	kind    otf2.EventKind // kind of the event that made it
	at      Place
	ordinal uint64
	known   bool
}

type rmaOp struct{ win, id uint64 }

// commUse is the lifetime of a communicator on one location.
type commUse struct {
	created, destroyed bool
	used               bool
	reported           bool
}

func newEventCheck(a *otf2.Archive, fs *Findings) *eventCheck {
	c := &eventCheck{
		Findings: fs, archive: a, defs: a.Defs, refs: newReferences(a.Defs), comms: membership.Communicators(a.Defs),
		ids:     attribute.Find(a.Defs),
		tracks:  make(map[otf2.LocationRef]*track, len(a.Defs.Locations)),
		timed:   make(map[string]uint64),
		perPlan: make(map[otf2.RegionRef]uint64),
	}
	c.memberOf = membership.ByLocation(a.Defs, c.comms)
	c.windows = membership.Windows(a.Defs)
	silent := make(map[otf2.LocationRef]bool)
	for i := range a.Defs.Locations {
		l := &a.Defs.Locations[i]
		c.tracks[l.Self] = &track{location: l, requests: make(map[uint64]request),
			comms: make(map[otf2.CommRef]*commUse)}
		silent[l.Self] = l.Events == 0
	}
	ps := fs.said
	_, ours := ps.Number(property.Processes)
	c.match = newMatcher(fs, c.comms, silent, fs.apart, ours)
	c.match.unreported, _ = ps.Number(property.Paused.Below(selfreport.ByRAS))
	c.match.merged, c.match.transfers = ps.Merged(), otf2.UndefinedComm
	if ref, ok := ps.Number(property.Transfers); ok {
		c.match.transfers = otf2.CommRef(ref)
	}
	return c
}

func (c *eventCheck) run() {
	for ev, err := range c.archive.Events(nil) {
		if err != nil {
			c.damaged(err)
			continue
		}
		c.events++
		if t := c.tracks[ev.Location]; t != nil {
			c.event(t, ev)
		}
	}
	for _, l := range c.defs.Locations {
		c.end(c.tracks[l.Self])
	}
	c.destruction()
	c.match.end()
}

// destruction reports communicators that only some of their members destroyed. A program may end without destroying a
// communicator, but then no member destroys it.
func (c *eventCheck) destruction() {
	for _, d := range c.defs.Comms {
		comm := c.comms[d.Self]
		if comm == nil || !comm.Events || comm.Self {
			continue
		}
		var without []otf2.LocationRef
		created := 0
		for _, l := range comm.Members {
			if t := c.tracks[l]; t != nil && t.comms[d.Self] != nil && t.comms[d.Self].created {
				created++
				if !t.comms[d.Self].destroyed {
					without = append(without, l)
				}
			}
		}
		if n := len(without); n > 0 && n < created {
			c.At(Note, Place{Location: without[0]}, RuleCommunicator,
				"no CommDestroy of communicator %q at %d of its %d members", comm.Name, n, created)
		}
	}
}

// damaged reports a file that could not be read to its end. What it lacks explains what others miss.
func (c *eventCheck) damaged(err error) {
	f := Finding{Severity: Error, Rule: RuleFile, Text: err.Error()}
	var format *otf2.FormatError
	if errors.As(err, &format) {
		if t := c.tracks[format.Location]; t != nil {
			f.HasLocation, f.Location = true, format.Location
			t.damaged = true
		}
	}
	c.Add(f)
	c.lenient = true
}

// report adds a finding about the current event of a track.
func (c *eventCheck) report(t *track, rule Rule, format string, args ...any) {
	c.At(Error, t.place(), rule, format, args...)
}

// At adds a finding about an event.
func (fs *Findings) At(severity Severity, p Place, rule Rule, format string, args ...any) {
	if fs.room(severity, rule) { // findings that are only counted are not formatted
		fs.all = append(fs.all, Finding{
			Severity: severity, Rule: rule, HasLocation: true, Location: p.Location, Event: p.Event, Time: p.Time,
			Text: fmt.Sprintf(format, args...),
		})
	}
}

func (t *track) place() Place { return Place{t.location.Self, t.events, t.last} }

func (c *eventCheck) isInClockRange(t otf2.Timestamp) bool {
	clock := &c.defs.Clock
	return uint64(t) >= clock.Offset && uint64(t)-clock.Offset <= clock.Length
}

func (c *eventCheck) event(t *track, ev *otf2.Event) {
	t.events++
	before := t.last
	t.last = ev.Time
	if ev.Time < before {
		c.report(t, RuleTimeOrder, "time goes back by %d, from %d", before-ev.Time, before)
	}
	if !c.isInClockRange(ev.Time) {
		c.report(t, RuleTimeRange, "outside the clock properties, %d to %d", c.defs.Clock.Offset,
			c.defs.Clock.Offset+c.defs.Clock.Length)
	}
	if !c.references(t, ev) {
		return
	}
	ordinal, known := c.ids.Value(ev, regions.AttrOrdinal)
	switch ev.Kind {
	case otf2.EventEnter:
		region := otf2.RegionRef(ev.Args[0])
		t.stack = append(t.stack, openRegion{region, t.place(), ordinal, known})
		if source, ok := c.ids.Value(ev, regions.AttrTimingSource); ok {
			c.timed[strings.ToUpper(c.defs.String(otf2.StringRef(source)))] += c.operations(ev)
		}
	case otf2.EventLeave:
		c.leave(t, otf2.RegionRef(ev.Args[0]))
	case otf2.EventMpiCollectiveBegin:
		c.begin(t, ordinal, known)
	case otf2.EventMpiCollectiveEnd:
		c.collectiveEnd(t, ev, ordinal, known)
	case otf2.EventCommCreate:
		c.commCreate(t, otf2.CommRef(ev.Args[0]))
	case otf2.EventCommDestroy:
		c.commDestroy(t, otf2.CommRef(ev.Args[0]))
	case otf2.EventMeasurementOnOff:
		c.onOff(t, otf2.MeasurementMode(ev.Args[0]))
	case otf2.EventRmaPut, otf2.EventRmaGet, otf2.EventRmaAtomic:
		c.remote(t, ev)
		c.rmaBegin(t, rmaOp{ev.Args[0], ev.Args[len(ev.Args)-1]})
	case otf2.EventRmaOpCompleteBlocking, otf2.EventRmaOpCompleteNonBlocking, otf2.EventRmaOpCompleteRemote:
		c.rmaComplete(t, ev.Kind, rmaOp{ev.Args[0], ev.Args[1]})
	default:
		c.communication(t, ev, ordinal, known)
	}
}

// communication takes events of messages, and of collectives with requests. ordinal is the event's own; known reports
// whether it has one.
func (c *eventCheck) communication(t *track, ev *otf2.Event, ordinal uint64, known bool) {
	switch ev.Kind {
	case otf2.EventNonBlockingCollectiveRequest:
		c.open(t, ev.Kind, ev.Args[0], ordinal, known)
	case otf2.EventMpiIrecvRequest:
		ordinal, known = t.ordinal(ordinal, known)
		c.open(t, ev.Kind, ev.Args[0], ordinal, known)
	case otf2.EventNonBlockingCollectiveComplete:
		r := c.endRequest(t, ev.Args[5], otf2.EventNonBlockingCollectiveRequest)
		if !known {
			ordinal, known = r.ordinal, r.known
		}
		c.collective(t, otf2.CollectiveOp(ev.Args[0]), otf2.CommRef(ev.Args[1]), uint32(ev.Args[2]), ev.Args[3],
			ev.Args[4], ordinal, known)
	case otf2.EventMpiIsend:
		c.open(t, ev.Kind, ev.Args[4], ordinal, known)
		ordinal, known = t.ordinal(ordinal, known)
		c.message(t, ev, true, ordinal, known)
	case otf2.EventMpiIsendComplete:
		c.endRequest(t, ev.Args[0], otf2.EventMpiIsend)
	case otf2.EventMpiIrecv:
		r := c.endRequest(t, ev.Args[4], otf2.EventMpiIrecvRequest)
		c.message(t, ev, false, r.ordinal, r.known)
	case otf2.EventMpiRequestCancelled:
		if _, ok := t.requests[ev.Args[0]]; !ok {
			c.report(t, RuleRequest, "request %d is canceled, but is not open", ev.Args[0])
		}
		delete(t.requests, ev.Args[0])
	case otf2.EventMpiSend, otf2.EventMpiRecv:
		ordinal, known = t.ordinal(ordinal, known)
		c.message(t, ev, ev.Kind == otf2.EventMpiSend, ordinal, known)
	}
}

// references checks that everything that the event and its attributes refer to is defined, and the types of the
// attributes. It reports whether the event can be used.
func (c *eventCheck) references(t *track, ev *otf2.Event) (usable bool) {
	usable = true
	fields := ev.Kind.Fields()
	plain := 0
	for plain < len(fields) && !fields[plain].Repeated {
		plain++
	}
	for i, v := range ev.Args {
		f := i
		if i >= plain {
			f = plain + (i-plain)%(len(fields)-plain)
		}
		space := fields[f].Space
		if space == otf2.NoSpace || c.refs.defined(space, v) {
			continue
		}
		if v == uint64(otf2.UndefinedString) && space != otf2.MappingRegion && space != otf2.MappingComm {
			continue // an undefined reference is allowed if nothing depends on it
		}
		c.report(t, RuleReference, "%v: %s %d is not defined", ev.Kind, fields[f].Name, v)
		usable = false
	}
	for i, a := range ev.Attributes {
		def := c.defs.Attribute(a.ID)
		switch {
		case def == nil:
			c.report(t, RuleReference, "%v: attribute %d is not defined", ev.Kind, a.ID)
			continue
		case def.Type != a.Type:
			c.report(t, RuleAttribute, "%v: attribute %q is a %v here, a %v by definition", ev.Kind,
				c.defs.String(def.Name), a.Type, def.Type)
		}
		if space, ok := typeSpaces[a.Type]; ok && !c.refs.defined(space, a.Bits) {
			c.report(t, RuleReference, "%v: value of attribute %q: %v %d is not defined", ev.Kind,
				c.defs.String(def.Name), a.Type, a.Bits)
		}
		for _, b := range ev.Attributes[:i] {
			if a.ID == b.ID {
				c.report(t, RuleAttribute, "%v: attribute %q comes twice", ev.Kind, c.defs.String(def.Name))
			}
		}
	}
	return usable
}

// operations returns the number of NCCL operations that a region of the timeline model represents, by the event that
// enters it.
func (c *eventCheck) operations(ev *otf2.Event) uint64 {
	if n, stated := c.ids.Value(ev, regions.AttrOperations); stated {
		return n
	}
	r := otf2.RegionRef(ev.Args[0])
	return keyed.EntryMade(c.perPlan, r, func() uint64 { return regions.LaunchSize(c.defs.RegionName(r)) })
}

func (c *eventCheck) leave(t *track, region otf2.RegionRef) {
	if len(t.stack) == 0 {
		c.report(t, RuleNesting, "region %q is left, but none is open", c.defs.RegionName(region))
		return
	}
	if top := t.stack[len(t.stack)-1]; top.region != region {
		c.report(t, RuleNesting, "region %q is left, but %q is open (event %d)", c.defs.RegionName(region),
			c.defs.RegionName(top.region), top.at.Event)
	}
	if at := effect.NewestOpen(t.stack, region, func(o *openRegion) otf2.RegionRef { return o.region }); at >= 0 {
		t.stack = slices.Delete(t.stack, at, at+1)
	}
	if t.begun.open && len(t.stack) < t.begun.depth {
		c.report(t, RuleCollective, "region %q is left before the collective begun in it (event %d) has ended",
			c.defs.RegionName(region), t.begun.at.Event)
		t.begun.open = false
	}
}

func (c *eventCheck) begin(t *track, ordinal uint64, known bool) {
	if t.begun.open {
		c.report(t, RuleCollective, "a collective begins before the one of event %d has ended", t.begun.at.Event)
	}
	if len(t.stack) == 0 {
		c.report(t, RuleCollective, "a collective begins outside any region")
	} else if top := t.stack[len(t.stack)-1]; !known {
		ordinal, known = top.ordinal, top.known
	}
	t.begun = openCollective{true, len(t.stack), t.place(), ordinal, known}
}

func (c *eventCheck) collectiveEnd(t *track, ev *otf2.Event, ordinal uint64, known bool) {
	switch {
	case !t.begun.open:
		c.report(t, RuleCollective, "a collective ends that has not begun")
	case len(t.stack) != t.begun.depth:
		c.report(t, RuleCollective, "a collective ends in another region than it began in (event %d)", t.begun.at.Event)
	}
	if !known && t.begun.open {
		ordinal, known = t.begun.ordinal, t.begun.known
	}
	t.begun.open = false
	c.collective(t, otf2.CollectiveOp(ev.Args[0]), otf2.CommRef(ev.Args[1]), uint32(ev.Args[2]), ev.Args[3], ev.Args[4],
		ordinal, known)
}

func (c *eventCheck) open(t *track, kind otf2.EventKind, id, ordinal uint64, known bool) {
	if r, ok := t.requests[id]; ok {
		c.report(t, RuleRequest, "%v: request %d is open already (event %d)", kind, id, r.at.Event)
	}
	t.requests[id] = request{kind, t.place(), ordinal, known}
}

// endRequest ends a request, which an event of the given kind must have made. It returns an empty request if none is
// open.
func (c *eventCheck) endRequest(t *track, id uint64, kind otf2.EventKind) request {
	r, ok := t.requests[id]
	switch {
	case !ok:
		c.report(t, RuleRequest, "request %d is completed, but is not open", id)
	case r.kind != kind:
		c.report(t, RuleRequest, "request %d is completed as of %v, but was made by %v (event %d)", id, kind, r.kind,
			r.at.Event)
	}
	delete(t.requests, id)
	return r
}

func (c *eventCheck) rmaBegin(t *track, op rmaOp) {
	if at, ok := t.rma[op]; ok {
		c.report(t, RuleRequest, "matching id %d is under way in window %d already (event %d)", op.id, op.win, at.Event)
	}
	if t.rma == nil {
		t.rma = make(map[rmaOp]Place)
	}
	t.rma[op] = t.place()
}

func (c *eventCheck) rmaComplete(t *track, kind otf2.EventKind, op rmaOp) {
	if _, ok := t.rma[op]; !ok {
		c.report(t, RuleRequest, "%v of matching id %d, which is not under way in window %d", kind, op.id, op.win)
	}
	if kind != otf2.EventRmaOpCompleteRemote {
		delete(t.rma, op)
	}
}

// remote checks the target and the origin of an operation in a window.
func (c *eventCheck) remote(t *track, ev *otf2.Event) {
	comm := c.windows[otf2.RmaWinRef(ev.Args[0])]
	if comm == nil || comm.Global {
		return // a broken definition that has been reported, or ranks of all locations
	}
	if remote := ev.Args[1]; remote >= uint64(comm.Size()) {
		c.report(t, RuleRank, "%v: rank %d of %q, which has %d ranks", ev.Kind, remote, comm.Name, comm.Size())
	}
	if comm.RankOf(t.location.Self) < 0 && !t.strange {
		t.strange = true // one finding is enough
		c.report(t, RuleCommunicator, "%v: the location is not a member of %q, whose window it is", ev.Kind, comm.Name)
	}
}

// onOff checks that recording is switched off and on alternately.
func (c *eventCheck) onOff(t *track, mode otf2.MeasurementMode) {
	off := mode == otf2.MeasurementOff
	switch {
	case off && t.off:
		c.report(t, RuleMeasurement, "recording goes off, but is off since event %d", t.offAt.Event)
	case !off && !t.off:
		c.report(t, RuleMeasurement, "recording goes on, but was not off")
	}
	t.off, t.offAt = off, t.place()
}

// use checks that the location may use the communicator now. It returns nil if that cannot be decided.
func (c *eventCheck) use(t *track, ref otf2.CommRef) *membership.Communicator {
	comm := c.comms[ref]
	if comm == nil {
		return nil // an inter-communicator, or a broken definition that has been reported
	}
	u := t.use(ref)
	u.used = true
	switch {
	case u.reported: // one finding is enough
	case comm.RankOf(t.location.Self) < 0:
		u.reported = true
		c.report(t, RuleCommunicator, "communicator %q is used by a location that is not a member", comm.Name)
	case u.destroyed:
		u.reported = true
		c.report(t, RuleCommunicator, "communicator %q is used after its CommDestroy", comm.Name)
	case comm.Events && !u.created:
		u.reported = true
		c.report(t, RuleCommunicator, "communicator %q is used before its CommCreate", comm.Name)
	}
	return comm
}

func (t *track) use(ref otf2.CommRef) *commUse {
	return keyed.Entry(t.comms, ref)
}

func (c *eventCheck) commCreate(t *track, ref otf2.CommRef) {
	comm := c.comms[ref]
	if comm == nil {
		return
	}
	u := t.use(ref)
	switch {
	case comm.RankOf(t.location.Self) < 0:
		c.report(t, RuleCommunicator, "CommCreate of communicator %q by a location that is not a member", comm.Name)
	case u.created:
		c.report(t, RuleCommunicator, "second CommCreate of communicator %q", comm.Name)
	}
	u.created = true
}

func (c *eventCheck) commDestroy(t *track, ref otf2.CommRef) {
	comm := c.comms[ref]
	if comm == nil {
		return
	}
	u := t.use(ref)
	switch {
	case u.destroyed:
		c.report(t, RuleCommunicator, "second CommDestroy of communicator %q", comm.Name)
	case comm.Events && !u.created:
		c.report(t, RuleCommunicator, "CommDestroy of communicator %q before its CommCreate", comm.Name)
	}
	u.destroyed = true
}

func (c *eventCheck) collective(t *track, op otf2.CollectiveOp, ref otf2.CommRef, root uint32, sent, received,
	ordinal uint64, known bool) {
	comm := c.comms[ref]
	if op < otf2.CollectiveOpCreateHandle {
		comm = c.use(t, ref)
	} // otherwise it creates or destroys the communicator itself, which Score-P records before or after
	if comm == nil {
		return
	}
	if root < otf2.CollectiveRootThisGroup && int64(root) >= int64(comm.Size()) {
		c.report(t, RuleRank, "root %d of communicator %q, which has %d ranks", root, comm.Name, comm.Size())
		return
	}
	if rank := comm.RankOf(t.location.Self); rank >= 0 && !comm.Self {
		c.match.collective(t.place(), comm, rank, op, root, sent, received, ordinal, known)
	}
}

// ordinal returns the event's own ordinal if known, otherwise that of its region.
func (t *track) ordinal(own uint64, known bool) (uint64, bool) {
	if n := len(t.stack); !known && n > 0 {
		return t.stack[n-1].ordinal, t.stack[n-1].known
	}
	return own, known
}

// message takes MpiSend, MpiIsend, MpiRecv and MpiIrecv, whose first fields are peer, communicator, tag, length.
func (c *eventCheck) message(t *track, ev *otf2.Event, send bool, ordinal uint64, known bool) {
	comm := c.use(t, otf2.CommRef(ev.Args[1]))
	if comm == nil {
		return
	}
	peer := ev.Args[0]
	if peer >= uint64(comm.Size()) {
		c.report(t, RuleRank, "peer %d of communicator %q, which has %d ranks", peer, comm.Name, comm.Size())
		return
	}
	if rank := comm.RankOf(t.location.Self); rank >= 0 {
		c.match.message(t.place(), comm, rank, int(peer), ev.Args[2], ev.Args[3], send, ordinal, known)
	}
}

// end checks what must not remain open at the end of a location.
func (c *eventCheck) end(t *track) {
	severity := c.pairing()
	if n := len(t.stack); n > 0 {
		top := t.stack[n-1]
		c.At(severity, top.at, RuleNesting, "region %q is never left", c.defs.RegionName(top.region))
	}
	if t.begun.open {
		c.At(severity, t.begun.at, RuleCollective, "the collective never ends")
	}
	c.leftOver(t, severity)
	for _, comm := range c.memberOf[t.location.Self] {
		if !comm.Events || t.events == 0 {
			continue
		}
		if u := t.use(comm.Ref); !u.created && !u.reported {
			c.At(severity, Place{Location: t.location.Self}, RuleCommunicator, "no CommCreate of communicator %q",
				comm.Name)
		}
	}
	if t.damaged {
		return
	}
	at := Place{Location: t.location.Self}
	if t.events != t.location.Events {
		c.At(Error, at, RuleEventCount, "the definition announces %d events, the file has %d", t.location.Events,
			t.events)
	}
	n, err := headerEvents(c.archive.EventFile(t.location.Self), c.archive.Anchor.EventChunkSize)
	if err != nil {
		c.At(Error, at, RuleFile, "chunk header: %v", err)
	} else if n != t.events {
		c.At(Error, at, RuleEventCount, "the last chunk's header counts %d events, the file has %d", n, t.events)
	}
}

// leftOver reports requests and RMA operations that never ended, the first one of each location.
func (c *eventCheck) leftOver(t *track, severity Severity) {
	first, n := Place{}, 0
	var id uint64
	for k, r := range t.requests {
		if n == 0 || r.at.Event < first.Event {
			first, id = r.at, k
		}
		n++
	}
	if n > 0 {
		c.At(severity, first, RuleRequest, "request %d is never completed%s", id, andMore(n-1))
	}
	first, n = Place{}, 0
	for k, at := range t.rma {
		if n == 0 || at.Event < first.Event {
			first, id = at, k.id
		}
		n++
	}
	if n > 0 {
		c.At(severity, first, RuleRequest, "the RMA operation of matching id %d is never completed%s", id, andMore(n-1))
	}
}

func andMore(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more of this location)", n)
}
