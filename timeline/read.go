// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"ncclotf2/analysis"
	"ncclotf2/otf2"
	"ncclotf2/regions"
)

// Data is an archive made ready to be shown.
type Data struct {
	defs       *otf2.Definitions
	rows       []row
	regions    []region
	categories []string
	attributes []otf2.Attribute
	instances  []instance
	functions  []string
	comms      []communicator
	ranks      []rank
	waitKinds  []string
	markers    []marker
	series     []*series // of metrics
	metricLeaf int       // intervals of a node of theirs
	report     *analysis.Report
	matrix     *analysis.MatrixReport
	origin     otf2.Timestamp // time 0 of the page
	duration   uint64         // ns, to the last event

	problems []string
	layout   *layout
}

type region struct {
	name     string
	category int // index into Data.categories
}

// instance is a collective with its parts, or a message with its ends, sender first.
type instance struct {
	comm     uint32
	function uint16
	message  bool
	unlike   bool // the archive says that the members did not record it alike: it is not matched
	ordinal  uint64
	expected int32
	parts    []part
}

// part is the region of one member.
type part struct {
	place
	rank int32
}

type communicator struct {
	ref     otf2.CommRef
	name    string
	members []uint32 // rows, by rank; noRow
}

// rank is a rank of the job.
type rank struct {
	name, host string
	row        uint32 // of its process
}

type marker struct {
	time, length uint64
	text, kind   string
	severity     otf2.MarkerSeverity
	row          uint32 // noRow: all
}

// Read reads an archive. Files that cannot be read to their end are named on the page; what was read of them is shown.
func Read(a *otf2.Archive) (*Data, error) {
	d := &Data{defs: a.Defs, origin: otf2.Timestamp(a.Defs.Clock.Offset), attributes: a.Defs.Attributes, rows: makeRows(a.Defs)}
	total := uint64(0)
	for i := range a.Defs.Locations {
		total += a.Defs.Locations[i].Events
	}
	if total > math.MaxUint32 {
		return nil, fmt.Errorf("the archive has %d events: a timeline can have %d at most", total, uint32(math.MaxUint32))
	}
	if d.origin == 0 || len(d.rows) == 0 {
		d.origin = firstEvent(a)
	}
	d.defineRegions()
	r := newReader(d)
	report, err := analysis.Observe(a, &analysis.Observer{Lane: r.lane, Part: r.operation, Waited: r.wait})
	if err != nil {
		return nil, err
	}
	r.end()
	d.report, d.matrix = report, analysis.Matrix(a)
	d.problems = append(d.problems, report.Problems...)
	d.problems = append(d.problems, d.matrix.Problems...)
	slices.Sort(d.problems)
	d.problems = slices.Compact(d.problems)
	if err := r.readMarkers(a); err != nil {
		d.problems = append(d.problems, err.Error())
	}
	d.layout = newLayout(d)
	return d, nil
}

// firstEvent is when the first event of an archive without clock offset was.
func firstEvent(a *otf2.Archive) otf2.Timestamp {
	first := otf2.UndefinedTimestamp
	for i := range a.Defs.Locations {
		for ev, err := range a.EventsOf(a.Defs.Locations[i].Self) {
			if err == nil {
				first = min(first, ev.Time)
			}
			break
		}
	}
	if first == otf2.UndefinedTimestamp {
		return 0
	}
	return first
}

// Names for groups of regions, where the archive has none.
const (
	categoryApplication = "Application"
	categoryOther       = "Other"
)

func (d *Data) defineRegions() {
	group := make(map[otf2.RegionRef]int)
	names := make(map[string]int)
	category := func(name string) int {
		at, known := names[name]
		if !known {
			at = len(d.categories)
			names[name] = at
			d.categories = append(d.categories, name)
		}
		return at
	}
	for _, g := range d.defs.Groups {
		if g.Type != otf2.GroupTypeRegions {
			continue
		}
		for _, m := range g.Members {
			if _, known := group[otf2.RegionRef(m)]; !known {
				group[otf2.RegionRef(m)] = category(cmp.Or(d.defs.String(g.Name), categoryOther))
			}
		}
	}
	for _, r := range d.defs.Regions {
		at, known := group[r.Self]
		switch {
		case known:
		case r.Paradigm == otf2.ParadigmUser:
			at = category(categoryApplication)
		default: // archives of other tools have no groups
			at = category(r.Paradigm.String())
		}
		d.regions = append(d.regions, region{cmp.Or(d.defs.String(r.Name), "(no name)"), at})
	}
}

// reader fills the rows.
type reader struct {
	*Data
	rowOf    map[otf2.LocationRef]uint32
	regionOf map[otf2.RegionRef]uint32
	event0   otf2.AttributeRef // EVENT_ID
	parents  []otf2.AttributeRef
	states   []map[otf2.LocationGroupRef]*process // by lane
	windows  map[otf2.RmaWinRef][]uint32          // rows by rank
	scale    func(uint64) uint64                  // ticks to ns

	commOf     map[otf2.CommRef]uint32
	functionOf map[string]uint16
	open       map[instanceKey]uint32
	kindOf     map[string]uint8
	homeless   uint64 // operations outside of regions

	recorders map[otf2.LocationRef]*recorder
}

type instanceKey struct {
	comm     uint32
	function uint16
	src, dst int32
	ordinal  uint64
}

// process is what is known of the events of a process while it is read.
type process struct {
	host    uint32
	ids     map[uint64]place // the last region of each event of NCCL
	missing []orphan
}

// orphan is a region or transfer whose parent had not been seen before it.
type orphan struct {
	row      uint32
	number   uint32
	transfer bool
	id       uint64
}

const noAttribute = otf2.AttributeRef(math.MaxUint32)

func newReader(d *Data) *reader {
	r := &reader{
		Data: d, rowOf: make(map[otf2.LocationRef]uint32), regionOf: make(map[otf2.RegionRef]uint32), event0: noAttribute,
		windows: make(map[otf2.RmaWinRef][]uint32), commOf: make(map[otf2.CommRef]uint32), functionOf: make(map[string]uint16),
		open: make(map[instanceKey]uint32), kindOf: make(map[string]uint8), scale: func(t uint64) uint64 { return t },
	}
	if res := d.defs.Clock.Resolution; res != 1e9 && res != 0 {
		r.scale = func(t uint64) uint64 {
			hi, lo := bits.Mul64(t, 1e9)
			q, _ := bits.Div64(hi%res, lo, res)
			return q
		}
	}
	for i := range d.rows {
		if d.rows[i].bars != nil {
			r.rowOf[d.rows[i].location] = uint32(i)
		}
	}
	for i := range d.defs.Regions {
		r.regionOf[d.defs.Regions[i].Self] = uint32(i)
	}
	byName := make(map[string]otf2.AttributeRef)
	for _, a := range d.defs.Attributes {
		byName[d.defs.String(a.Name)] = a.Self
	}
	if id, ok := byName[regions.Attributes[regions.AttrEventID].Name]; ok {
		r.event0 = id
	}
	for _, a := range []otf2.AttributeRef{regions.AttrParentID, regions.AttrExternalID} {
		if id, ok := byName[regions.Attributes[a].Name]; ok {
			r.parents = append(r.parents, id)
		}
	}
	r.communicators()
	r.recorders = recorders(d.defs)
	return r
}

// communicators resolves communicators and windows to rows.
func (r *reader) communicators() {
	locations := make(map[otf2.Paradigm][]uint64)
	for _, g := range r.defs.Groups {
		if g.Type == otf2.GroupTypeCommLocations {
			locations[g.Paradigm] = g.Members
		}
	}
	members := make(map[otf2.CommRef][]uint32)
	for _, c := range r.defs.Comms {
		g := r.defs.Group(c.Group)
		if g == nil || g.Type != otf2.GroupTypeCommGroup {
			continue
		}
		world := locations[g.Paradigm]
		rows := make([]uint32, len(g.Members))
		for rank, m := range g.Members {
			rows[rank] = noRow
			if m < uint64(len(world)) {
				if at, ok := r.rowOf[otf2.LocationRef(world[m])]; ok {
					rows[rank] = at
				}
			}
		}
		members[c.Self] = rows
	}
	for _, w := range r.defs.RmaWins {
		r.windows[w.Self] = members[w.Comm]
	}
	for _, c := range analysis.Communicators(r.defs) {
		r.commOf[c.Ref] = uint32(len(r.comms))
		r.comms = append(r.comms, communicator{c.Ref, c.Name, members[c.Ref]})
	}
	ranks, _ := analysis.WorldRanks(r.defs)
	processes := make(map[otf2.LocationGroupRef]uint32)
	for i := range r.rows {
		if r.rows[i].kind == KindProcess {
			processes[r.rows[i].group] = uint32(i)
		}
	}
	for _, w := range ranks {
		at, ok := processes[w.Process]
		if !ok {
			at = noRow
		}
		r.ranks = append(r.ranks, rank{w.Name, w.Host, at})
	}
}

// lane gives what takes the events of one more lane.
func (r *reader) lane() func(*otf2.Event) {
	lane := len(r.states)
	r.states = append(r.states, make(map[otf2.LocationGroupRef]*process))
	return func(ev *otf2.Event) { r.event(lane, ev) }
}

// event takes an event of a lane.
func (r *reader) event(lane int, ev *otf2.Event) {
	if ev.Kind == otf2.EventMetric {
		r.metric(r.scale(uint64(ev.Time-min(ev.Time, r.origin))), ev)
	}
	at, ok := r.rowOf[ev.Location]
	if !ok {
		return
	}
	row := &r.rows[at]
	b := row.bars
	time := r.scale(uint64(ev.Time - min(ev.Time, r.origin)))
	b.last = time
	switch ev.Kind {
	case otf2.EventEnter:
		p := r.process(lane, row)
		number := uint32(len(b.start))
		region, known := r.regionOf[otf2.RegionRef(ev.Args[0])]
		if !known {
			region = r.unknownRegion()
		}
		parent, id := r.parent(p, ev)
		if id != 0 {
			p.missing = append(p.missing, orphan{at, number, false, id})
		}
		if n := len(b.open); parent == nowhere && n > 0 {
			parent = place{at, uint32(b.open[n-1])}
		}
		b.enter(time, region, parent, ev.Attributes)
		r.register(p, ev, place{at, number})
	case otf2.EventLeave:
		b.leave(time, ev.Attributes)
	case otf2.EventNonBlockingCollectiveRequest, otf2.EventMpiIrecvRequest, otf2.EventMpiIsend:
		r.request(lane, at, ev)
	case otf2.EventRmaPut:
		r.put(lane, at, time, ev)
	case otf2.EventRmaOpCompleteNonBlocking, otf2.EventRmaOpCompleteBlocking:
		key := putKey{otf2.RmaWinRef(ev.Args[0]), ev.Args[1]}
		if i, ok := b.puts[key]; ok {
			delete(b.puts, key)
			t := &b.transfers[i]
			t.length, t.ended = time-min(time, t.start), true
		}
	}
}

// unknownRegion is the index that regions get which are not defined.
func (r *reader) unknownRegion() uint32 { return uint32(len(r.regions)) }

// request takes the begin of an operation within a launch of several: what it tells belongs to the launch's region.
func (r *reader) request(lane int, at uint32, ev *otf2.Event) {
	b := r.rows[at].bars
	if len(b.open) == 0 || len(ev.Attributes) == 0 {
		return
	}
	number := uint32(b.open[len(b.open)-1])
	p := r.process(lane, &r.rows[at])
	if event := r.register(p, ev, place{at, number}); event != 0 {
		b.asked[request{number, event}] = b.notes.add(ev.Attributes)
	}
	if b.parent[number] != nowhere {
		return
	}
	parent, id := r.parent(p, ev)
	if b.parent[number] = parent; id != 0 {
		p.missing = append(p.missing, orphan{at, number, false, id})
	}
}

func (r *reader) put(lane int, at uint32, time uint64, ev *otf2.Event) {
	b := r.rows[at].bars
	parent, id := r.parent(r.process(lane, &r.rows[at]), ev)
	t := transfer{start: time, bytes: ev.Args[2], to: noRow, parent: parent, notes: b.notes.add(ev.Attributes)}
	if members := r.windows[otf2.RmaWinRef(ev.Args[0])]; ev.Args[1] < uint64(len(members)) {
		t.to = members[ev.Args[1]]
	}
	number := len(b.transfers)
	b.transfers = append(b.transfers, t)
	b.puts[putKey{otf2.RmaWinRef(ev.Args[0]), ev.Args[3]}] = number
	if id != 0 {
		p := r.process(lane, &r.rows[at])
		p.missing = append(p.missing, orphan{at, uint32(number), true, id})
	}
}

func (r *reader) process(lane int, row *row) *process {
	group := processOf(r.defs, row.group)
	p := r.states[lane][group]
	if p == nil {
		p = &process{ids: make(map[uint64]place), host: r.hostRow(row)}
		r.states[lane][group] = p
	}
	return p
}

func (r *reader) hostRow(row *row) uint32 {
	at := row.parent
	for r.rows[at].parent >= 0 {
		at = r.rows[at].parent
	}
	return uint32(at)
}

// parent is the region that an event names as what asked for it; id is the event that it names if that is not known (yet).
func (r *reader) parent(p *process, ev *otf2.Event) (at place, id uint64) {
	for _, want := range r.parents {
		for i := range ev.Attributes {
			if a := &ev.Attributes[i]; a.ID == want && a.Bits != 0 {
				if at, ok := p.ids[a.Bits]; ok {
					return at, 0
				}
				return nowhere, a.Bits
			}
		}
	}
	return nowhere, 0
}

// register remembers the region of the event of NCCL that an event names itself by, and returns its id.
func (r *reader) register(p *process, ev *otf2.Event, at place) uint64 {
	for i := range ev.Attributes {
		if a := &ev.Attributes[i]; a.ID == r.event0 && a.Bits != 0 {
			p.ids[a.Bits] = at
			return a.Bits
		}
	}
	return 0
}

// operation takes a part of a collective, or an end of a message.
func (r *reader) operation(p *analysis.Part) {
	at, ok := r.rowOf[p.Location]
	if !ok || p.Enter == analysis.NoRegion {
		r.homeless++
		return
	}
	fn, ok := r.functionOf[p.Function]
	if !ok && len(r.functions) < math.MaxUint16 {
		fn = uint16(len(r.functions))
		r.functionOf[p.Function] = fn
		r.functions = append(r.functions, p.Function)
	}
	comm := r.commOf[p.Comm]
	key := instanceKey{comm: comm, function: fn, src: -1, dst: -1, ordinal: p.Ordinal}
	expected := len(r.comms[comm].members)
	rank := int32(p.Rank)
	if p.Message() {
		key.function, expected = math.MaxUint16, 2
		key.src, key.dst = rank, int32(p.Peer)
		if p.Function == "Recv" {
			key.src, key.dst = key.dst, key.src
		}
	}
	i, known := r.open[key]
	if !known || !p.Alike {
		i = uint32(len(r.instances))
		r.instances = append(r.instances, instance{comm: comm, function: fn, message: p.Message(), unlike: !p.Alike, ordinal: p.Ordinal, expected: int32(expected)})
		if p.Alike {
			r.open[key] = i
		}
	}
	in := &r.instances[i]
	one := part{place{at, uint32(p.Enter)}, rank}
	if p.Message() && p.Function == "Send" {
		in.parts = slices.Insert(in.parts, 0, one)
	} else {
		in.parts = append(in.parts, one)
	}
	if len(in.parts) >= expected {
		delete(r.open, key)
	}
	b := r.rows[at].bars
	op := operation{number: uint32(p.Enter), instance: i, sent: p.Sent, received: p.Received, root: uint32(p.Root), event: p.Event}
	b.operations = append(b.operations, op)
}

func (r *reader) wait(w *analysis.Wait) {
	at, ok := r.rowOf[w.Place.Location]
	if !ok || w.Place.Enter == analysis.NoRegion {
		return
	}
	kind, ok := r.kindOf[w.Kind]
	if !ok {
		kind = uint8(len(r.waitKinds))
		r.kindOf[w.Kind] = kind
		r.waitKinds = append(r.waitKinds, w.Kind)
	}
	b := r.rows[at].bars
	b.waits = append(b.waits, wait{number: uint32(w.Place.Enter), length: r.scale(w.Waited), kind: kind, rank: uint16(min(max(w.For, 0), math.MaxUint16)), first: w.StartUp})
}

// end settles what only the end of all events tells.
func (r *reader) end() {
	var all []*process
	for _, states := range r.states {
		for _, p := range states {
			all = append(all, p)
		}
	}
	for _, p := range all {
		for _, o := range p.missing {
			at, ok := p.ids[o.id]
			if !ok {
				at, ok = elsewhere(all, p, o.id)
			}
			if !ok {
				continue
			}
			if b := r.rows[o.row].bars; o.transfer {
				b.transfers[o.number].parent = at
			} else if at != (place{o.row, o.number}) {
				b.parent[o.number] = at
			}
		}
	}
	r.states = nil
	unknown := false
	for i := range r.rows {
		b := r.rows[i].bars
		if b == nil {
			continue
		}
		b.end()
		r.duration = max(r.duration, b.last)
		slices.SortStableFunc(b.operations, func(x, y operation) int { return cmp.Compare(x.number, y.number) })
		slices.SortFunc(b.waits, func(x, y wait) int { return cmp.Compare(x.number, y.number) })
		unknown = unknown || slices.Contains(b.region, r.unknownRegion())
	}
	r.endMetrics()
	if unknown {
		r.regions = append(r.regions, region{"(not defined)", len(r.categories)})
		r.categories = append(r.categories, categoryOther)
	}
	for i := range r.instances {
		if in := &r.instances[i]; !in.message {
			slices.SortFunc(in.parts, func(a, b part) int { return cmp.Compare(a.rank, b.rank) })
		}
	}
}

// elsewhere looks for an event in the other processes of the host: with PXN they carry out transfers for each other.
// Ids can come twice; then none is meant.
func elsewhere(all []*process, but *process, id uint64) (found place, ok bool) {
	for _, p := range all {
		if p == but || p.host != but.host {
			continue
		}
		if at, has := p.ids[id]; has {
			if ok {
				return nowhere, false
			}
			found, ok = at, true
		}
	}
	return found, ok
}

func (r *reader) readMarkers(a *otf2.Archive) error {
	kinds, all, err := a.Markers()
	kindOf := make(map[otf2.MarkerRef]otf2.MarkerDef)
	for _, k := range kinds {
		kindOf[k.Self] = k
	}
	for _, m := range all {
		k := kindOf[m.Marker]
		one := marker{
			time: r.scale(uint64(m.Time - min(m.Time, r.origin))), length: r.scale(m.Duration), text: m.Text,
			kind: k.Category, severity: k.Severity, row: noRow,
		}
		if m.ScopeType == otf2.MarkerScopeLocation {
			if at, ok := r.rowOf[otf2.LocationRef(m.Scope)]; ok {
				one.row = at
			}
		}
		r.markers = append(r.markers, one)
	}
	slices.SortStableFunc(r.markers, func(a, b marker) int { return cmp.Compare(a.time, b.time) })
	return err
}

// Damage notes that definitions could not be read to their end. err may be nil.
func (d *Data) Damage(err error) {
	if err != nil {
		d.problems = append(d.problems, err.Error())
	}
}

// String says how much there is to be seen.
func (d *Data) String() string {
	rows := 0
	for i := range d.rows {
		if d.rows[i].bars != nil {
			rows++
		}
	}
	return fmt.Sprintf("%d regions in %d rows over %v", d.layout.total, rows, time.Duration(d.duration))
}
