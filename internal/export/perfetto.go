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
	"github.com/nccl-otf2/nccl-otf2/internal/facts/quantity"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Perfetto writes the timeline in Perfetto's own format to path, or to stdout if that is "-". If the name ends in .gz,
// the file is compressed.
//
// Tracks are nested: hosts, processes, GPUs, rows; a row's waits, transfers and metrics are tracks below it. Times are
// on the archive's common clock, which the trace relates to real time if the archive does. Memory holds only open
// regions and the strings that the archive defines.
func Perfetto(a *otf2.Archive, path string, stdout io.Writer, opts *Options) (*Result, error) {
	e := newExporter(a, opts)
	if err := e.writeFile(path, stdout, gzipWriter(path, e.writePerfetto)); err != nil {
		return nil, err
	}
	return &e.result, nil
}

func (e *exporter) writePerfetto(w io.Writer) error {
	id := e.archive.Anchor.TraceID
	p := &perfettoWriter{exporter: e, out: newPackets(w, uint32(id^id>>32)), tracks: make(map[*row]uint64),
		below: make(map[belowKey]*lanes), counters: make(map[counterKey]uint64)}
	p.first = min(analysis.FirstEvent(e.archive), otf2.Timestamp(p.rows.clock.Offset))
	p.out.writeClock(p.rows.clock.perfettoClock(p.first))
	p.describeTracks()
	p.writeMarkers()
	for _, process := range p.rows.processes {
		p.walkProcess(process)
	}
	p.writeArrivals()
	p.writeAnswers()
	return p.out.err
}

// perfettoClock returns the Perfetto clock of the archive's times, and what it shows at t, in ns.
func (c *clock) perfettoClock(t otf2.Timestamp) (id uint64, shows int64) {
	if c.Realtime == 0 || c.Realtime > math.MaxInt64 { // the clock that Score-P measured with, on its machine
		return clockMonotonic, c.nanoseconds(int64(t))
	}
	return clockRealtime, c.since1970(t)
}

// perfettoWriter writes the packets of single rows, which walkers find, and of several rows.
type perfettoWriter struct {
	*exporter
	out      *packets
	first    otf2.Timestamp // the origin of the trace's times
	tracks   map[*row]uint64
	below    map[belowKey]*lanes
	counters map[counterKey]uint64
	roots    int // tracks without a parent so far
}

// belowKey identifies tracks below a row's regions; without a row: of the run.
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

// places are the positions of tracks below a row.
var places = map[string]int{waitingName: 0, transfersName: 1 << 8, arrivalsName: 1 << 10, overlapsName: 1 << 9}

const countersPlace = 1 << 11

// lanes are the tracks of one subject, as many as its overlapping slices need.
type lanes struct {
	parent uint64
	name   string
	rank   int // of the first one among the parent's tracks
	all    []lane
}

// lane remembers its latest slices, because nearly all slices come in the order of time.
type lane struct {
	uuid  uint64
	shown [64][2]int64 // begins and ends; of empty ones the end is not after the begin
	next  int
}

// isFree reports whether a slice does not overlap the earlier ones of the lane. Of slices that touch, the end of one
// must precede the begin of the other in the file, because readers keep the order of packets with equal times.
func (l *lane) isFree(begin, end int64) bool {
	for _, s := range l.shown {
		if s[1] > s[0] && begin < s[1] && s[0] <= end {
			return false
		}
	}
	return true
}

// findTrack returns the first lane with room for a slice.
func (p *perfettoWriter) findTrack(l *lanes, begin, end int64) uint64 {
	i := 0
	for i < len(l.all) && !l.all[i].isFree(begin, end) {
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

// newTrack describes a track. Its number is unlikely to collide with one of another trace.
func (p *perfettoWriter) newTrack(parent uint64, name, description string, rank int, unit *string) uint64 {
	p.countRecord("tracks")
	uuid := hashID("track", name, p.archive.Anchor.TraceID, parent, p.result.Records["tracks"])
	p.out.writeTrack(uuid, parent, name, description, rank, unit)
	return uuid
}

// newRootTrack describes a track without a parent.
func (p *perfettoWriter) newRootTrack(name string) uint64 {
	p.roots++
	return p.newTrack(0, name, "", p.roots, nil)
}

// describeTracks writes the tracks of hosts, processes, GPUs and rows.
func (p *perfettoWriter) describeTracks() {
	hosts := make(map[string]uint64)
	processes := make(map[*process]uint64)
	for i, u := range p.rows.processUnits() {
		host := cmp.Or(u.process.host, units.UnknownHost)
		if hosts[host] == 0 {
			hosts[host] = p.newRootTrack(host)
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

// tracksBelow returns the lanes of a subject below a row.
func (p *perfettoWriter) tracksBelow(l *row, what string) *lanes {
	return keyed.EntryMade(p.below, belowKey{l, what},
		func() *lanes { return &lanes{parent: p.tracks[l], name: what, rank: places[what]} })
}

// sinceBegin returns a time in ns since the first event; earlier markers and windows are moved to that event.
func (p *perfettoWriter) sinceBegin(t otf2.Timestamp) int64 {
	return max(p.rows.clock.nanoseconds(int64(t-p.first)), 0)
}

// finishEvent ends an event.
func (p *perfettoWriter) finishEvent(ns int64) { p.out.write(packetTrackEvent, true, ns) }

// writeSlice completes a slice that was begun and annotated, and writes its end.
func (p *perfettoWriter) writeSlice(track uint64, begin, end int64) {
	p.finishEvent(begin)
	p.out.beginEvent(typeEnd, track)
	p.finishEvent(end)
}

// beginRegion writes the begin of a region. Outer regions come before inner ones. Of an open region, only the
// attributes of its begin are known.
func (p *perfettoWriter) beginRegion(r *walkRow, s *span) {
	if s.beside {
		if !s.open {
			p.writeOverlapping(r, s)
		}
		return
	}
	p.out.beginEvent(typeBegin, p.tracks[r.row])
	p.out.setName(p.rows.nameOfSlice(s), p.rows.group[s.region])
	if !s.passedOn {
		p.annotateRegion(s)
	}
	p.finishEvent(p.sinceBegin(s.begin))
	p.countRecord("slices")
}

func (p *perfettoWriter) endRegion(r *walkRow, s *span) {
	if s.beside {
		if s.passedOn {
			p.writeOverlapping(r, s)
		}
		return
	}
	p.out.beginEvent(typeEnd, p.tracks[r.row])
	if s.passedOn {
		p.annotateRegion(s)
	}
	p.finishEvent(p.sinceBegin(s.end))
	if s.cut {
		p.countLeftOut(openRegions)
	}
}

// writeOverlapping writes a region that overlaps others of its row on a track below, because the slices of one track
// must be nested.
func (p *perfettoWriter) writeOverlapping(r *walkRow, s *span) {
	begin, end := p.sinceBegin(s.begin), p.sinceBegin(s.end)
	track := p.findTrack(p.tracksBelow(r.row, overlapsName), begin, end)
	p.out.beginEvent(typeBegin, track)
	p.out.setName(p.rows.nameOfSlice(s), p.rows.group[s.region])
	p.annotateRegion(s)
	p.writeSlice(track, begin, end)
	p.countRecord("slices")
	if s.cut {
		p.countLeftOut(openRegions)
	}
}

// annotateRegion adds what is known of a region.
func (p *perfettoWriter) annotateRegion(s *span) {
	for _, id := range s.events {
		p.out.addFlow(hashID("event", "", id))
	}
	for _, id := range s.parents {
		p.out.addFlow(hashID("event", "", id))
	}
	for _, id := range s.ended.matches {
		p.out.addFlow(id)
	}
	p.writeAttributes(s.attributes)
	s.ended.annotate(p.out)
	if s.ended.comm != "" && !s.ended.differ {
		p.out.text("communicator", s.ended.comm)
	}
}

func (p *perfettoWriter) writeSent(r *walkRow, t *facts.Transfer) {
	begin, end := p.sinceBegin(t.Begin), p.sinceBegin(t.End)
	track := p.findTrack(p.tracksBelow(r.row, transfersName), begin, end)
	p.writeTransfer(track, t)
	p.out.addFlow(transferID(uint64(t.Location), uint64(t.Begin), uint64(t.End), uint64(t.To), uint64(t.Channel),
		uint64(t.Step), t.Bytes))
	p.writeSlice(track, begin, end)
}

// writeUnsent writes a transfer that does not end.
func (p *perfettoWriter) writeUnsent(r *walkRow, t *facts.Transfer) {
	track := p.findTrack(p.tracksBelow(r.row, transfersName), p.sinceBegin(t.Begin), math.MaxInt64)
	p.writeTransfer(track, t)
	p.finishEvent(p.sinceBegin(t.Begin))
	p.countLeftOut(openTransfers)
}

func (p *perfettoWriter) writeTransfer(track uint64, t *facts.Transfer) {
	p.out.beginEvent(typeBegin, track)
	p.out.setName("transfer to rank "+strconv.Itoa(t.To), "transfer")
	p.out.unsigned("bytes", t.Bytes)
	p.writeAttributes(t.Attributes)
	p.countRecord("transfers")
}

// transferID returns the id that a transfer and its arrival share.
func transferID(of ...uint64) uint64 { return hashID("transfer", "", of...) }

// writeArrivals writes the destinations of transfers, at the time when they are known to be sent.
func (p *perfettoWriter) writeArrivals() {
	lines := matrix.NewTransferReader(p.archive)
	selection := &otf2.Selection{Locations: lines.Locations(), Kinds: facts.TransferKinds}
	if len(selection.Locations) == 0 {
		return
	}
	for ev, err := range p.archive.Events(selection) {
		if err != nil {
			p.addProblems([]string{err.Error()})
			continue
		}
		t := lines.Event(ev)
		if t == nil || !t.Ended || !p.opts.Selection.At(t.Location, t.Begin) {
			continue
		}
		l := p.rows.of[t.Target]
		if l == nil {
			p.countLeftOut("arrivals of transfers at rows that are not known")
			continue
		}
		p.out.beginEvent(typeInstant, p.findTrack(p.tracksBelow(l, arrivalsName), 0, 0))
		p.out.setName("from rank "+strconv.Itoa(t.From), "transfer")
		p.out.addFlow(transferID(uint64(t.Location), uint64(t.Begin), uint64(t.End), uint64(t.To),
			uint64(int32(t.Channel)), uint64(int32(t.Step)), t.Bytes))
		p.out.unsigned("bytes", t.Bytes)
		p.finishEvent(p.sinceBegin(t.End))
		p.countRecord("arrivals")
	}
}

func (p *perfettoWriter) writeInstant(l *row, name string, t otf2.Timestamp) {
	p.out.beginEvent(typeInstant, p.tracks[l])
	p.out.setName(name, "measurement")
	p.finishEvent(p.sinceBegin(t))
	p.countRecord("instants")
}

func (p *perfettoWriter) writeValue(l *row, q *quantity.Member, t otf2.Timestamp, v float64) {
	key := counterKey{l, q.Member}
	if p.counters[key] == 0 {
		p.counters[key] = p.newTrack(p.tracks[l], q.Name, "", countersPlace+len(p.counters), &q.Unit)
	}
	p.writeCounter(p.counters[key], p.sinceBegin(t), v)
}

func (p *perfettoWriter) writeCounter(track uint64, ns int64, v float64) {
	p.out.beginEvent(typeCounter, track)
	p.out.message = putDouble(p.out.message, eventDoubleValue, v)
	p.finishEvent(ns)
	p.countRecord("counter values")
}

// writeMarkers writes markers as instants of their row, else on a track of their own.
func (p *perfettoWriter) writeMarkers() {
	defs, all, err := p.archive.Markers()
	if err != nil {
		p.addProblems([]string{err.Error()})
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
				root = p.newRootTrack(markersName)
			}
			track = root
		}
		p.out.beginEvent(typeInstant, track)
		p.out.setName(cmp.Or(category[m.Marker], "marker"), "marker")
		p.out.inlineText("text", m.Text)
		if m.Duration > 0 {
			p.out.integer("duration_ns", p.rows.clock.nanoseconds(int64(min(m.Duration, math.MaxInt64))))
		}
		p.finishEvent(p.sinceBegin(m.Time))
		p.countRecord("markers")
	}
}
