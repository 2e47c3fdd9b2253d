// SPDX-License-Identifier: Apache-2.0

package export

import (
	"cmp"
	"io"
	"math"
	"strconv"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/matrix"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Perfetto writes the timeline in Perfetto's own format to path, or to stdout if that is "-". A name that ends in .gz
// asks for gzip.
//
// Tracks lie in each other: hosts, processes, GPUs, rows; a row's waits, transfers and metrics are tracks below it.
// Times count on the clock that the archive's times were brought to, which the trace relates to real time where the
// archive does. What is held is what is open at a time, and the strings that the archive defines.
func Perfetto(a *otf2.Archive, path string, stdout io.Writer, opts *Options) (*Result, error) {
	e := newExporter(a, opts)
	if err := e.into(path, stdout, zipped(path, e.perfetto)); err != nil {
		return nil, err
	}
	return &e.result, nil
}

func (e *exporter) perfetto(w io.Writer) error {
	id := e.archive.Anchor.TraceID
	p := &perfettoWriter{exporter: e, out: newPackets(w, uint32(id^id>>32)), tracks: make(map[*row]uint64),
		below: make(map[belowKey]*lanes), counters: make(map[counterKey]uint64)}
	p.first = min(analysis.FirstEvent(e.archive), otf2.Timestamp(p.rows.clock.Offset))
	p.out.clock(p.rows.clock.known(p.first))
	p.describe()
	p.markers()
	for _, process := range p.rows.processes {
		p.walk(process)
	}
	p.arrivals()
	p.answers()
	return p.out.err
}

// known is the clock of Perfetto's that the archive's times are of, and what it shows at one of them, ns.
func (c *clock) known(t otf2.Timestamp) (id uint64, shows int64) {
	if c.Realtime == 0 || c.Realtime > math.MaxInt64 { // the clock that Score-P measured with, on its machine
		return clockMonotonic, c.nanoseconds(int64(t))
	}
	return clockRealtime, c.since1970(t)
}

// perfettoWriter writes packets: what walkers find on the rows, and what is of several rows.
type perfettoWriter struct {
	*exporter
	out      *packets
	first    otf2.Timestamp // when the trace's times begin
	tracks   map[*row]uint64
	below    map[belowKey]*lanes
	counters map[counterKey]uint64
	roots    int // tracks without a parent so far
}

// belowKey names what is shown of a row beside its regions; no row: of the run.
type belowKey struct {
	row  *row
	what string
}

type counterKey struct {
	row    *row
	metric otf2.MetricMemberRef
}

// Names of tracks.
const (
	transfersName = "transfers"
	arrivalsName  = "arrivals"
	markersName   = "markers"
	overlapsName  = "overlapping"
)

// places are where tracks below a row's stand.
var places = map[string]int{waitingName: 0, transfersName: 1 << 8, arrivalsName: 1 << 10, overlapsName: 1 << 9}

const countersPlace = 1 << 11

// lanes are tracks that show one thing, as many as are needed for slices that overlap.
type lanes struct {
	parent uint64
	name   string
	rank   int // of the first one among the parent's tracks
	all    []lane
}

// lane remembers what it showed last: nearly all comes in the order of time.
type lane struct {
	uuid  uint64
	shown [64][2]int64 // begins and ends; of empty ones the end is not after the begin
	next  int
}

// free reports whether a slice can be shown beside those that were. At one time the end of one must stand before the
// begin of another in the file, as readers take what is of one time in that order.
func (l *lane) free(begin, end int64) bool {
	for _, s := range l.shown {
		if s[1] > s[0] && begin < s[1] && s[0] <= end {
			return false
		}
	}
	return true
}

// track gives the first lane on which a slice can be shown.
func (p *perfettoWriter) track(l *lanes, begin, end int64) uint64 {
	i := 0
	for i < len(l.all) && !l.all[i].free(begin, end) {
		i++
	}
	if i == len(l.all) {
		name := l.name
		if i > 0 {
			name += " " + strconv.Itoa(i+1)
		}
		l.all = append(l.all, lane{uuid: p.newTrack(l.parent, name, "", l.rank+i, nil)})
	}
	at := &l.all[i]
	at.shown[at.next%len(at.shown)] = [2]int64{begin, end}
	at.next++
	return at.uuid
}

// newTrack describes a track. Its number is unlikely to be one of another trace.
func (p *perfettoWriter) newTrack(parent uint64, name, description string, rank int, unit *string) uint64 {
	p.count("tracks")
	uuid := idOf("track", name, p.archive.Anchor.TraceID, parent, p.result.Records["tracks"])
	p.out.track(uuid, parent, name, description, rank, unit)
	return uuid
}

// root describes a track that lies in no other.
func (p *perfettoWriter) root(name string) uint64 {
	p.roots++
	return p.newTrack(0, name, "", p.roots, nil)
}

// describe makes the tracks of hosts, processes, GPUs and rows.
func (p *perfettoWriter) describe() {
	hosts := make(map[string]uint64)
	processes := make(map[*process]uint64)
	for i, u := range p.rows.units() {
		host := cmp.Or(u.process.host, units.UnknownHost)
		if hosts[host] == 0 {
			hosts[host] = p.root(host)
		}
		if processes[u.process] == 0 {
			var description string
			if u.process.pid != 0 {
				description = "PID " + strconv.FormatUint(u.process.pid, 10)
			}
			processes[u.process] = p.newTrack(hosts[host], cmp.Or(u.process.name, unnamed), description,
				u.process.number, nil)
		}
		parent := processes[u.process]
		if u.gpu != "" {
			parent = p.newTrack(parent, u.gpu, u.rows[0].uuid, i+1<<16, nil)
		}
		for j, l := range u.rows {
			p.tracks[l] = p.newTrack(parent, l.label(), "", j, nil)
		}
	}
}

// beside gives the tracks of something that is shown below a row's.
func (p *perfettoWriter) beside(l *row, what string) *lanes {
	key := belowKey{l, what}
	if p.below[key] == nil {
		p.below[key] = &lanes{parent: p.tracks[l], name: what, rank: places[what]}
	}
	return p.below[key]
}

// at is a time in ns since the first event; markers and windows that begin before it are shown there.
func (p *perfettoWriter) at(t otf2.Timestamp) int64 {
	return max(p.rows.clock.nanoseconds(int64(t-p.first)), 0)
}

// finish ends an event.
func (p *perfettoWriter) finish(ns int64) { p.out.write(packetTrackEvent, true, ns) }

// slice writes an event that has begun, to which all has been added, and its end.
func (p *perfettoWriter) slice(track uint64, begin, end int64) {
	p.finish(begin)
	p.out.event(typeEnd, track)
	p.finish(end)
}

// begin draws the begin of a region. Outer ones come before what lies in them. Of an open one, only what it began with
// is known.
func (p *perfettoWriter) begin(r *walkRow, s *span) {
	if s.beside {
		if !s.open {
			p.overlapping(r, s)
		}
		return
	}
	p.out.event(typeBegin, p.tracks[r.row])
	p.out.named(p.rows.nameOfSlice(s), p.rows.group[s.region])
	if !s.passedOn {
		p.say(s)
	}
	p.finish(p.at(s.begin))
	p.count("slices")
}

func (p *perfettoWriter) end(r *walkRow, s *span) {
	if s.beside {
		if s.passedOn {
			p.overlapping(r, s)
		}
		return
	}
	p.out.event(typeEnd, p.tracks[r.row])
	if s.passedOn {
		p.say(s)
	}
	p.finish(p.at(s.end))
	if s.cut {
		p.leaveOut(openRegions)
	}
}

// overlapping draws a region that overlaps with others of its row below that: slices of one track nest.
func (p *perfettoWriter) overlapping(r *walkRow, s *span) {
	begin, end := p.at(s.begin), p.at(s.end)
	track := p.track(p.beside(r.row, overlapsName), begin, end)
	p.out.event(typeBegin, track)
	p.out.named(p.rows.nameOfSlice(s), p.rows.group[s.region])
	p.say(s)
	p.slice(track, begin, end)
	p.count("slices")
	if s.cut {
		p.leaveOut(openRegions)
	}
}

// say adds what is known of a region.
func (p *perfettoWriter) say(s *span) {
	for _, id := range s.events {
		p.out.flow(idOf("event", "", id))
	}
	for _, id := range s.parents {
		p.out.flow(idOf("event", "", id))
	}
	for _, id := range s.ended.matches {
		p.out.flow(id)
	}
	p.writeAttributes(s.attributes)
	s.ended.figures(p.out)
	if s.ended.comm != "" && !s.ended.differ {
		p.out.text("communicator", s.ended.comm)
	}
}

func (p *perfettoWriter) sent(r *walkRow, t *facts.Transfer) {
	begin, end := p.at(t.Begin), p.at(t.End)
	track := p.track(p.beside(r.row, transfersName), begin, end)
	p.transfer(track, t)
	p.out.flow(transferID(uint64(t.Location), uint64(t.Begin), uint64(t.End), uint64(t.To), uint64(t.Channel),
		uint64(t.Step), t.Bytes))
	p.slice(track, begin, end)
}

// unsent draws a transfer that does not end.
func (p *perfettoWriter) unsent(r *walkRow, t *facts.Transfer) {
	track := p.track(p.beside(r.row, transfersName), p.at(t.Begin), math.MaxInt64)
	p.transfer(track, t)
	p.finish(p.at(t.Begin))
	p.leaveOut(openTransfers)
}

func (p *perfettoWriter) transfer(track uint64, t *facts.Transfer) {
	p.out.event(typeBegin, track)
	p.out.named("transfer to rank "+strconv.Itoa(t.To), "transfer")
	p.out.unsigned("bytes", t.Bytes)
	p.writeAttributes(t.Attributes)
	p.count("transfers")
}

// transferID is what a transfer and its arrival have in common.
func transferID(of ...uint64) uint64 { return idOf("transfer", "", of...) }

// arrivals draws where transfers came to, when they were known to be sent.
func (p *perfettoWriter) arrivals() {
	lines := matrix.NewTransferReader(p.archive)
	selection := &otf2.Selection{Locations: lines.Locations(), Kinds: facts.TransferKinds}
	if len(selection.Locations) == 0 {
		return
	}
	for ev, err := range p.archive.Events(selection) {
		if err != nil {
			p.problems([]string{err.Error()})
			continue
		}
		t := lines.Event(ev)
		if t == nil || !t.Ended || !p.opts.Selection.At(t.Location, t.Begin) {
			continue
		}
		l := p.rows.of[t.Target]
		if l == nil {
			p.leaveOut("arrivals of transfers at rows that are not known")
			continue
		}
		p.out.event(typeInstant, p.track(p.beside(l, arrivalsName), 0, 0))
		p.out.named("from rank "+strconv.Itoa(t.From), "transfer")
		p.out.flow(transferID(uint64(t.Location), uint64(t.Begin), uint64(t.End), uint64(t.To),
			uint64(int32(t.Channel)), uint64(int32(t.Step)), t.Bytes))
		p.out.unsigned("bytes", t.Bytes)
		p.finish(p.at(t.End))
		p.count("arrivals")
	}
}

func (p *perfettoWriter) instant(l *row, name string, t otf2.Timestamp) {
	p.out.event(typeInstant, p.tracks[l])
	p.out.named(name, "measurement")
	p.finish(p.at(t))
	p.count("instants")
}

func (p *perfettoWriter) value(l *row, q *facts.Quantity, t otf2.Timestamp, v float64) {
	key := counterKey{l, q.Member}
	if p.counters[key] == 0 {
		p.counters[key] = p.newTrack(p.tracks[l], q.Name, "", countersPlace+len(p.counters), &q.Unit)
	}
	p.counter(p.counters[key], p.at(t), v)
}

func (p *perfettoWriter) counter(track uint64, ns int64, v float64) {
	p.out.event(typeCounter, track)
	p.out.message = putDouble(p.out.message, eventDoubleValue, v)
	p.finish(ns)
	p.count("counter values")
}

// markers are instants of the row that they are of, else of a track of their own.
func (p *perfettoWriter) markers() {
	defs, all, err := p.archive.Markers()
	if err != nil {
		p.problems([]string{err.Error()})
	}
	category := make(map[otf2.MarkerRef]string)
	for _, d := range defs {
		category[d.Self] = d.Category
	}
	root := uint64(0)
	for i := range all {
		m := &all[i]
		var track uint64
		if l := p.rows.of[otf2.LocationRef(m.Scope)]; l != nil && m.ScopeType == otf2.MarkerScopeLocation {
			track = p.tracks[l]
		} else {
			if root == 0 {
				root = p.root(markersName)
			}
			track = root
		}
		p.out.event(typeInstant, track)
		p.out.named(cmp.Or(category[m.Marker], "marker"), "marker")
		p.out.once("text", m.Text)
		if m.Duration > 0 {
			p.out.integer("duration_ns", p.rows.clock.nanoseconds(int64(min(m.Duration, math.MaxInt64))))
		}
		p.finish(p.at(m.Time))
		p.count("markers")
	}
}
