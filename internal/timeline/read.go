// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/matrix"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selection"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selfreport"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/attribute"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/effect"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Data is an archive prepared for the page.
type Data struct {
	defs       *otf2.Definitions
	rows       []row
	regions    []region
	categories []string
	attributes []otf2.Attribute
	functions  []string
	comms      []communicator
	ranks      []rank
	waitKinds  []string
	markers    []marker
	series     []*series // of metrics
	metricLeaf int       // intervals of a node
	runs       *phaseRuns
	report     *operations.Report
	matrix     *matrix.Report
	origin     otf2.Timestamp // time 0 of the page
	duration   uint64         // ns, to the last event shown
	begin      uint64         // ns, of the selection; 0: everything is shown
	selected   *selection.Selection

	problems []string // damaged or missing files, and undefined objects
	notes    []string // records that the page cannot show, and operations that ranks recorded differently
	layout   *layout
	tell     func(what string, done, total uint64) // reports progress; may be nil
	*store
}

type region struct {
	name     string
	category int // index into Data.categories
}

type communicator struct {
	ref     otf2.CommRef
	name    string
	members []uint32 // rows by rank; noRow: none
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
// A selection limits the page to regions and transfers that begin in it, and to operations with the members' parts that
// do. Close frees the temporary files.
func Read(a *otf2.Archive, selected *selection.Selection) (*Data, error) {
	return ReadTelling(a, selected, nil)
}

// ReadTelling is Read with a function that receives the present activity and its progress; 0 of 0: unknown. tell is
// called from several goroutines; it may be nil.
func ReadTelling(a *otf2.Archive, selected *selection.Selection, tell func(what string, done, total uint64)) (
	*Data, error) {
	return readKeeping(a, selected, keptBytes, tell)
}

// readKeeping sets the bytes of entries that each sorter keeps in memory.
func readKeeping(a *otf2.Archive, selected *selection.Selection, kept int, tell func(string, uint64, uint64)) (
	*Data, error) {
	d := &Data{tell: tell, selected: selected, begin: math.MaxUint64, defs: a.Defs,
		origin: otf2.Timestamp(a.Defs.Clock.Offset), attributes: a.Defs.Attributes,
		rows: selectRows(makeRows(a.Defs), selected), store: newStore(kept)}
	if err := d.read(a); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func (d *Data) read(a *otf2.Archive) error {
	total := uint64(0)
	for i := range a.Defs.Locations {
		total += a.Defs.Locations[i].Events
	}
	if total > math.MaxUint32 {
		return fmt.Errorf("the archive has %d events: a timeline can have %d at most", total, uint32(math.MaxUint32))
	}
	if d.origin == 0 || len(d.rows) == 0 {
		d.origin = analysis.FirstEvent(a)
	}
	d.defineRegions()
	r := newReader(d)
	r.total = total
	d.reportProgress("Opening the files", 0, 0)
	d.runs = newPhaseRuns()
	d.steps.origin = d.origin
	charged := &charges{sorterBuffer: sorterBuffer{to: d.chargesOf}, since: d.since}
	observer := operations.Observer{
		Selection: d.selected, Lane: r.newLane, Part: r.addOperation, Waited: r.addWait,
		Charged: charged.addCharge, Path: &d.steps, Phase: d.runs.addPhase,
	}
	sent := matrix.OfOperations(a, d.selected)
	if sent != nil {
		observer.Operation = sent.Add
	}
	report, err := operations.Observe(a, &observer)
	if err != nil {
		return err
	}
	d.reportProgress("Sorting what was read", 0, 0)
	charged.storeCharges()
	charged.flush()
	d.runs.rounds = nil
	r.finishReading()
	d.steps.findSteps(report.CriticalPath)
	if err := d.temp.failed(); err != nil {
		return err
	}
	d.report = report
	if sent != nil {
		d.matrix = sent.Report()
	} else {
		d.reportProgress("Adding up who sends whom how much", 0, 0)
		d.matrix = matrix.Read(a, d.selected)
	}
	d.problems = append(d.problems, report.Problems...)
	d.problems = append(d.problems, d.matrix.Problems...)
	slices.Sort(d.problems)
	d.problems = slices.Compact(d.problems)
	d.notes = append(d.notes, selfreport.Differing(a.Anchor)...)
	if err := r.readMarkers(a); err != nil {
		d.problems = append(d.problems, err.Error())
	}
	d.layout = newLayout(d)
	return nil
}

func (d *Data) reportProgress(what string, done, total uint64) {
	if d.tell != nil {
		d.tell(what, done, total)
	}
}

// Names for groups of regions, if the archive has none.
const (
	categoryApplication = regions.GroupApplication
	categoryOther       = "Other"
)

func (d *Data) defineRegions() {
	group := make(map[otf2.RegionRef]int)
	names := make(map[string]int)
	category := func(name string) int {
		return keyed.EntryMade(names, name, func() int {
			d.categories = append(d.categories, name)
			return len(d.categories) - 1
		})
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
	launched map[otf2.RegionRef]uint32 // regions of operations of which only the launch is known
	ids      *attribute.Table
	lanes    []*laneReader
	windows  map[otf2.RmaWinRef][]uint32 // rows by rank
	scale    func(uint64) uint64         // ticks to ns

	processes struct {
		sync.Mutex
		hosts []uint32 // rows, by process
	}
	names *sorter // by event of NCCL: see nameGiven

	found      sorterBuffer // results of the analysis, by number of region: see foundOperation
	waited     sorterBuffer // all waits, see keepWait
	order      uint64       // number of results so far
	commOf     map[otf2.CommRef]uint32
	present    []int // by communicator: members with events
	functionOf map[string]uint16
	open       map[instanceKey]openInstance
	kindOf     map[string]uint8

	recorders map[otf2.LocationRef]*recorder

	done  atomic.Uint64 // events, as lanes report them
	total uint64
}

type instanceKey struct {
	comm     uint32
	function uint16
	src, dst int32
	ordinal  uint64
}

// openInstance is an instance that may get further parts.
type openInstance struct {
	index uint64
	parts int
}

// laneReader is the state of one lane of the analysis.
type laneReader struct {
	processes map[otf2.LocationGroupRef]*process
	unknown   bool // a region is undefined

	deep, kids, asked, ends, names, fallback sorterBuffer
}

// process is the state of a process while its events are read.
type process struct {
	key uint64 // its number, in the upper bits
	seq uint64 // of registrations and references
}

func newReader(d *Data) *reader {
	r := &reader{
		Data: d, rowOf: make(map[otf2.LocationRef]uint32), regionOf: make(map[otf2.RegionRef]uint32),
		ids:     attribute.Find(d.defs),
		windows: make(map[otf2.RmaWinRef][]uint32), commOf: make(map[otf2.CommRef]uint32),
		functionOf: make(map[string]uint16),
		open:       make(map[instanceKey]openInstance), names: d.newSorter(), found: sorterBuffer{to: d.newSorter()},
		waited: sorterBuffer{to: d.waitsInTime}, kindOf: make(map[string]uint8),
		scale: func(t uint64) uint64 { return t },
	}
	if res := d.defs.Clock.Resolution; res != 1e9 && res != 0 {
		r.scale = func(t uint64) uint64 {
			hi, lo := bits.Mul64(t, 1e9)
			q, _ := bits.Div64(hi%res, lo, res)
			return q
		}
	}
	piece := min(max(piecesBytes/(streamsPerRow*max(len(d.rows), 1)), leastPiece), mostPiece)
	for i := range d.rows {
		if row := &d.rows[i]; row.bars != nil {
			row.bars = newBars(uint32(i), &d.spool, piece)
			r.rowOf[row.location] = uint32(i)
		}
	}
	for i := range d.defs.Regions {
		r.regionOf[d.defs.Regions[i].Self] = uint32(i)
	}
	r.defineLaunched()
	r.resolveComms()
	r.recorders = recorders(d.defs)
	return r
}

// defineLaunched gives operations of which only the launch is known regions of their own, so that their times are not
// taken for durations of operations.
func (r *reader) defineLaunched() {
	r.launched = make(map[otf2.RegionRef]uint32)
	if !r.ids.Has(regions.AttrTimingSource) || !slices.ContainsFunc(r.defs.Strings, isEnqueue) {
		return
	}
	for i := range r.defs.Regions {
		of := r.Data.regions[i]
		if group := r.categories[of.category]; group == regions.GroupCollectives || group == regions.GroupPointToPoint {
			r.launched[r.defs.Regions[i].Self] = uint32(len(r.Data.regions))
			r.Data.regions = append(r.Data.regions, region{of.name + facts.LaunchedOnly, of.category})
		}
	}
}

// onlyLaunched reports whether an event begins such an operation.
func (r *reader) onlyLaunched(ev *otf2.Event) bool {
	if len(r.launched) == 0 {
		return false
	}
	if _, known := r.launched[otf2.RegionRef(ev.Args[0])]; !known {
		return false
	}
	source, ok := r.ids.Value(ev, regions.AttrTimingSource)
	return ok && facts.SourceOf(r.defs.String(otf2.StringRef(source))) == facts.SourceEnqueue
}

func isEnqueue(s otf2.String) bool { return facts.SourceOf(s.Text) == facts.SourceEnqueue }

// resolveComms resolves communicators and windows to rows.
func (r *reader) resolveComms() {
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
	for _, c := range placement.Communicators(r.defs) {
		r.commOf[c.Ref] = uint32(len(r.comms))
		r.comms = append(r.comms, communicator{c.Ref, c.Name, members[c.Ref]})
		r.present = append(r.present, r.withData(members[c.Ref]))
	}
	ranks, _ := placement.WorldRanks(r.defs)
	processes := make(map[otf2.LocationGroupRef]uint32)
	for i := range r.rows {
		if r.rows[i].kind == kindProcess {
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

// withData returns how many of some rows have events; all, if the archive does not say.
func (r *reader) withData(rows []uint32) (n int) {
	for _, at := range rows {
		if at != noRow {
			if l := r.defs.Location(r.rows[at].location); l != nil && l.Events > 0 {
				n++
			}
		}
	}
	if n == 0 {
		return len(rows)
	}
	return n
}

// tellEach is the number of events after which a lane reports progress.
const tellEach = 1 << 12

// newLane returns a function that reads the events of one more lane.
func (r *reader) newLane() func(*otf2.Event) {
	lane := &laneReader{processes: make(map[otf2.LocationGroupRef]*process)}
	lane.deep.to, lane.kids.to, lane.asked.to, lane.ends.to, lane.names.to, lane.fallback.to = r.deep, r.kids, r.asked,
		r.ends, r.names, r.claims
	r.lanes = append(r.lanes, lane)
	said := uint64(0)
	return func(ev *otf2.Event) {
		r.readEvent(lane, ev)
		if said++; said%tellEach == 0 {
			r.reportProgress("Reading events", min(r.done.Add(tellEach), r.total), r.total)
		}
	}
}

// readEvent reads an event of a lane.
func (r *reader) readEvent(lane *laneReader, ev *otf2.Event) {
	shown := r.selected.At(ev.Location, ev.Time)
	if ev.Kind == otf2.EventMetric && shown {
		r.addMetric(r.scale(uint64(ev.Time-min(ev.Time, r.origin))), ev)
	}
	at, ok := r.rowOf[ev.Location]
	if !ok {
		return
	}
	row := &r.rows[at]
	b := row.bars
	time := r.scale(uint64(ev.Time - min(ev.Time, r.origin)))
	step, ended := effect.StepOf(ev), -1
	switch step.Kind {
	case effect.Enter:
		shown = b.begins(step.Region, shown)
	case effect.Leave:
		found := false
		ended, found = b.ends(step.Region)
		shown = ended >= 0 || !found && r.selected == nil
	case effect.Request:
		shown = b.inner()
	case effect.PutDone:
		_, open := b.puts[step.Put]
		shown = open || r.selected == nil
	case effect.Put:
	default: // the run lasts from its first to its last event, a selection from the first item shown
		shown = r.selected == nil
	}
	if !shown {
		return
	}
	if step.Kind != effect.Leave {
		b.first = min(b.first, time)
	}
	b.last = time
	switch step.Kind {
	case effect.Enter:
		region, known := r.regionOf[step.Region]
		if !known {
			region = r.unknownRegion()
			lane.unknown = true
		} else if r.onlyLaunched(ev) {
			region = r.launched[step.Region]
		}
		f := b.enterRegion(time, region, ev.Attributes)
		p := r.process(lane, row)
		named := r.addReference(lane, p, ev, nameRegion, uint64(f.at), uint64(f.number))
		switch {
		case f.enclosing == nowhere:
		case named: // an end without a begin ends the region around it
			lane.fallback.add(uint64(f.at), math.MaxUint64, uint64(f.enclosing), uint64(f.number))
		default:
			lane.kids.add(uint64(f.enclosing), numbered(at, f.number), uint64(f.at))
		}
		r.register(lane, p, ev, f.at)
	case effect.Leave:
		if ended >= 0 {
			b.leaveRegion(ended, time, ev.Attributes, &lane.deep)
		}
	case effect.Request:
		r.beginRequest(lane, row, ev)
	case effect.Put:
		r.beginTransfer(lane, row, time, ev, &step)
	case effect.PutDone:
		if put, ok := b.puts[step.Put]; ok {
			delete(b.puts, step.Put)
			lane.ends.add(numbered(at, put.number), 0, time-min(time, put.start))
		}
	}
}

// unknownRegion is the index of all undefined regions.
func (r *reader) unknownRegion() uint32 { return uint32(len(r.regions)) }

// beginRequest reads the request of an operation in a launch of several. Its attributes belong to the launch's region,
// including what caused it unless the region has a cause.
func (r *reader) beginRequest(lane *laneReader, row *row, ev *otf2.Event) {
	b := row.bars
	if len(b.open) == 0 || len(ev.Attributes) == 0 {
		return
	}
	f := &b.open[len(b.open)-1]
	p := r.process(lane, row)
	if event := r.register(lane, p, ev, f.at); event != 0 {
		var own notes
		own.add(ev.Attributes)
		from := len(lane.asked.data)
		lane.asked.data = own.record(lane.asked.data)
		lane.asked.endEntry(uint64(f.at), event, from)
	}
	if f.enclosing == nowhere {
		r.addReference(lane, p, ev, nameRegion, uint64(f.at), uint64(f.number))
	}
}

// beginTransfer begins a transfer. Its record: start (difference), bytes, row + 1 (0: unknown), attributes.
func (r *reader) beginTransfer(lane *laneReader, row *row, time uint64, ev *otf2.Event, step *effect.Step) {
	b := row.bars
	to := uint32(noRow)
	if members := r.windows[step.Put.Window]; step.To < uint64(len(members)) {
		to = members[step.To]
	}
	b.transfers.writeNumber(time - b.transferStart)
	b.transfers.writeNumber(step.Bytes)
	b.transfers.writeNumber(uint64(to + 1))
	var own notes
	own.add(ev.Attributes)
	b.transfers.buf = own.record(b.transfers.buf)
	b.transfers.endRecord()
	r.addReference(lane, r.process(lane, row), ev, nameTransfer, numbered(b.row, b.transferCount), 0)
	b.puts[step.Put] = openTransfer{b.transferCount, time}
	b.transferCount++
	b.transferStart = time
}

func (r *reader) process(lane *laneReader, row *row) *process {
	if row.process != nil {
		return row.process
	}
	group := processOf(r.defs, row.group)
	p := lane.processes[group]
	if p == nil {
		r.processes.Lock()
		p = &process{key: uint64(len(r.processes.hosts)) << processShift}
		r.processes.hosts = append(r.processes.hosts, r.hostRow(row))
		r.processes.Unlock()
		lane.processes[group] = p
	}
	row.process = p
	return p
}

func (r *reader) hostRow(row *row) uint32 {
	at := row.parent
	for r.rows[at].parent >= 0 {
		at = r.rows[at].parent
	}
	return uint32(at)
}

// Kinds of entries of reader.names. Keys: id of an event of NCCL, then process and order within it.
const (
	nameGiven    = iota // the event belongs to a region: address
	nameRegion          // the event caused a region: its address and number
	nameTransfer        // the event caused a transfer: row and number
)

// processShift is the number of bits for the entries of a process.
const processShift = 40

func (p *process) next() uint64 {
	p.seq++
	return p.key | p.seq
}

// addReference notes the event that an event names as its cause, if it does.
func (r *reader) addReference(lane *laneReader, p *process, ev *otf2.Event, kind, what, number uint64) (named bool) {
	for _, want := range askedBy {
		if id, ok := r.ids.Value(ev, want); ok && id != 0 {
			lane.names.add(id, p.next(), kind, what, number)
			return true
		}
	}
	return false
}

// askedBy are the attributes that name the causing event of NCCL, the nearest one first.
var askedBy = [...]otf2.AttributeRef{regions.AttrParentID, regions.AttrExternalID}

// register notes the region of an NCCL event by the event's own id, and returns the id.
func (r *reader) register(lane *laneReader, p *process, ev *otf2.Event, at address) uint64 {
	id, ok := r.ids.Value(ev, regions.AttrEventID)
	if !ok || id == 0 {
		return 0
	}
	lane.names.add(id, p.next(), nameGiven, uint64(at))
	return id
}

// addOperation adds a part of a collective, or an end of a message.
func (r *reader) addOperation(p *operations.Part) {
	at, ok := r.rowOf[p.Location]
	if !ok || p.Enter == facts.NoRegion {
		return // an operation outside of regions
	}
	fn := r.functionNumber(p.Function)
	comm := r.commOf[p.Comm]
	key := instanceKey{comm: comm, function: fn, src: -1, dst: -1, ordinal: p.Ordinal}
	members, rank := r.comms[comm].members, int32(p.Rank)
	expected, present := len(members), r.present[comm]
	// The parts of a collective are in the order of ranks; of a message the sender comes first.
	place := uint64(rank) ^ 1<<63
	if p.Message() {
		expected, present, place = 2, 2, 0
		key.function, key.src, key.dst = math.MaxUint16, rank, int32(p.Peer)
		if p.Function == "Recv" {
			key.src, key.dst, place = key.dst, key.src, 1
		}
		if p.Peer < len(members) && members[p.Peer] == noRow {
			present = 1
		}
	}
	in, known := r.open[key]
	if !known || !p.Consistent {
		in = openInstance{index: r.instanceCount}
		r.instanceCount++
		r.instances.writeNumber(analysis.BoolCount(p.Message()) | analysis.BoolCount(!p.Consistent)<<1)
		r.instances.writeNumber(uint64(comm))
		r.instances.writeNumber(uint64(fn))
		r.instances.writeNumber(p.Ordinal)
		r.instances.writeNumber(uint64(expected))
		r.instances.endRecord()
	}
	if in.parts++; in.parts >= present {
		delete(r.open, key)
	} else if p.Consistent {
		r.open[key] = in
	}
	r.addFound(at, p.Enter, foundOperation, in.index, place, uint64(rank), p.Sent, p.Received, uint64(uint32(p.Root)),
		p.Size, p.Event)
}

func (r *reader) addWait(w *waits.Wait) {
	r.keepWait(w)
	at, ok := r.rowOf[w.Place.Location]
	if !ok || w.Place.Enter == facts.NoRegion {
		return
	}
	kind := keyed.EntryMade(r.kindOf, w.Kind, func() uint8 {
		r.waitKinds = append(r.waitKinds, w.Kind)
		return uint8(len(r.waitKinds) - 1)
	})
	r.addFound(at, w.Place.Enter, foundWait, r.scale(w.Waited), uint64(kind),
		uint64(min(max(w.For, 0), math.MaxUint16)), analysis.BoolCount(w.StartUp))
}

// Kinds of entries of reader.found. Keys: number of the region, then order.
const (
	foundOperation = iota // instance, key of the part in it, rank, then as in an operation record
	foundWait             // as in a wait record
)

func (r *reader) addFound(row uint32, enter uint64, kind uint64, numbers ...uint64) {
	from := len(r.found.data)
	r.found.data = binary.AppendUvarint(r.found.data, kind)
	for _, n := range numbers {
		r.found.data = binary.AppendUvarint(r.found.data, n)
	}
	r.order++
	r.found.endEntry(numbered(row, uint32(enter)), r.order, from)
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
		if m.ScopeType == otf2.MarkerScopeLocation && !r.selected.At(otf2.LocationRef(m.Scope), m.Time) {
			continue
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

// Problems lists what the page cannot show of the archive, and why, one line each.
func (d *Data) Problems() []string { return d.problems }

// Notes lists further lines of the page: what it cannot show, and what ranks recorded differently.
func (d *Data) Notes() []string { return d.notes }

// Empty reports whether there is nothing to show: no region, no transfer, no value of a metric.
func (d *Data) Empty() bool {
	return d.layout.total == 0 && len(d.series) == 0 &&
		!slices.ContainsFunc(d.rows, func(r row) bool { return r.bars != nil && r.bars.transferCount > 0 })
}

// String states the amount of data.
func (d *Data) String() string {
	rows := 0
	for i := range d.rows {
		if d.rows[i].bars != nil {
			rows++
		}
	}
	return fmt.Sprintf("%d regions in %d rows over %s", d.layout.total, rows, units.Duration(d.duration-d.begin, 1))
}
