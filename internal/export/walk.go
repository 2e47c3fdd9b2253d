// SPDX-License-Identifier: Apache-2.0

package export

import (
	"cmp"
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/quantity"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// span is a region that is to be written to a timeline.
type span struct {
	region     otf2.RegionRef
	enter      uint64 // number of its Enter event on the row
	begin, end otf2.Timestamp
	open       bool
	cut        bool // it was still open when the data ended
	passedOn   bool // its begin was written while it was open
	beside     bool // it began in another region, but ended after it
	launched   bool // only its launch time is known
	attributes []otf2.AttributeValue
	events     []uint64 // ids of the NCCL events that it stands for
	parents    []uint64 // ids of their parent events, if known
	ended      ended
}

// ended combines the operations that ended in a region.
type ended struct {
	operations int
	differ     bool
	size       uint64  // bytes of each operation, as nccl-tests counts them
	algbw      float64 // GB/s, by this member's time; 0: unknown
	busbw      float64
	comm       string
	matches    []uint64 // one id per operation, shared with its counterparts
}

// annotate writes the size and bandwidths of a slice's operations, if they have equal ones.
func (e *ended) annotate(out *packets) {
	if e.operations == 0 || e.differ {
		return
	}
	out.unsigned("size_bytes", e.size)
	if e.algbw > 0 {
		out.number("algbw_gbs", e.algbw)
		out.number("busbw_gbs", e.busbw)
	}
}

func (e *ended) add(p *operations.Part, algbw float64) {
	if e.operations++; e.operations == 1 {
		e.size, e.algbw, e.busbw, e.comm = p.Size, algbw, algbw*p.BusFactor, p.Communicator
	} else if e.size != p.Size || e.busbw != algbw*p.BusFactor || e.comm != p.Communicator {
		e.differ = true
	}
	if id, ok := matchOf(p); ok && !slices.Contains(e.matches, id) {
		e.matches = append(e.matches, id)
	}
}

// matchOf returns an id that all parts of a collective, or both ends of a message, share. It returns false if members
// recorded different sequences, because ordinals then do not identify counterparts.
func matchOf(p *operations.Part) (id uint64, ok bool) {
	if !p.Consistent {
		return 0, false
	}
	if !p.Message() {
		return hashID("collective", p.Function, uint64(p.Comm), p.Ordinal), true
	}
	from, to := p.Rank, p.Peer
	if p.Function == "Recv" {
		from, to = to, from
	}
	return hashID("message", "", uint64(p.Comm), uint64(from), uint64(to), p.Ordinal), true
}

// walkRow is the state of one row.
type walkRow struct {
	row    *row
	spans  []span // all spans since the outermost open region began
	steps  []step // their begins and ends that are not yet written
	stack  []int  // indices of open spans
	enters uint64
	parent uint64 // the parent annotated last
}

// step is a region's begin or end.
type step struct {
	span int
	end  bool
}

// maxSlices limits the spans that are held back while an outer region is open.
const maxSlices = 1 << 14

// walker reads the rows of one process in the order of time. It holds regions back until the outermost one ends.
type walker struct {
	*perfettoWriter
	rows    map[otf2.LocationRef]*walkRow
	parents recent
	last    otf2.Timestamp

	quantities map[otf2.MetricRef][]quantity.Member // nil: the metric's values are not numbers
	stored     []uint64                             // buffer for the values of an event
}

// walkProcess writes the rows of a process.
func (p *perfettoWriter) walkProcess(of *process) {
	w := &walker{perfettoWriter: p, rows: make(map[otf2.LocationRef]*walkRow),
		quantities: make(map[otf2.MetricRef][]quantity.Member)}
	locations := make([]otf2.LocationRef, len(of.rows))
	for i, l := range of.rows {
		w.rows[l.location] = &walkRow{row: l}
		locations[i] = l.location
	}
	parts := operations.NewPartReader(p.archive, true, w.addPart)
	parts.Selection = p.opts.Selection
	w.addHandlers(parts.Reader())
	for ev, err := range p.archive.Events(&otf2.Selection{Locations: locations}) {
		if err != nil {
			p.addProblems([]string{err.Error()})
			continue
		}
		w.last = max(w.last, ev.Time)
		parts.Event(ev)
		w.handleEvent(ev)
	}
	for _, l := range of.rows {
		w.closeRow(w.rows[l.location])
	}
	unended := parts.Reader().Unended()
	for i := range unended {
		if t := &unended[i]; w.isSelected(t.Location, t.Begin) {
			w.writeUnsent(w.rows[t.Location], t)
		}
	}
}

func (w *walker) isSelected(l otf2.LocationRef, t otf2.Timestamp) bool {
	return w.opts.Selection.At(l, t)
}

// addHandlers sets the reader's functions for regions and transfers.
func (w *walker) addHandlers(reader *facts.Reader) {
	reader.Enter = func(region *facts.Region) {
		r := w.rows[region.Location]
		r.enters++
		if !w.isSelected(region.Location, region.Begin) {
			return
		}
		n := len(r.spans)
		r.stack, r.steps = append(r.stack, n), append(r.steps, step{span: n})
		r.spans = append(r.spans, span{region: region.Region, enter: r.enters - 1, begin: region.Begin, open: true,
			launched: region.Source == facts.SourceEnqueue, attributes: region.Attributes})
		w.annotateParents(r, &region.Details)
	}
	reader.Begun = func(d *facts.Details, in *facts.Region) { // for each of several operations in a launch
		if in != nil && w.isSelected(in.Location, in.Begin) {
			w.annotateParents(w.rows[in.Location], d)
		}
	}
	reader.Leave = func(region *facts.Region) {
		if !w.isSelected(region.Location, region.Begin) {
			return
		}
		r := w.rows[region.Location]
		at := facts.IndexOpen(r.stack, region, func(i *int) uint64 { return r.spans[*i].enter })
		if at < 0 {
			return // its outer region ended it, see findOverlaps
		}
		w.findOverlaps(r, at+1, region.End)
		n := r.stack[at]
		s := &r.spans[n]
		s.end, s.open, s.cut, s.attributes = region.End, false, region.Lost, region.Attributes
		r.stack, r.steps = slices.Delete(r.stack, at, at+1), append(r.steps, step{span: n, end: true})
		w.releaseSpans(r)
	}
	reader.Sums = w.exporter.countNetSums
	reader.Transfer = func(t *facts.Transfer) {
		switch {
		case !w.isSelected(t.Location, t.Begin):
		case t.Ended:
			w.writeSent(w.rows[t.Location], t)
		default: // its id was reused before it ended
			w.writeUnsent(w.rows[t.Location], t)
		}
	}
}

// addPart adds an operation that ends to the open region that it belongs to.
func (w *walker) addPart(p *operations.Part) {
	r := w.rows[p.Location]
	for i := len(r.stack) - 1; i >= 0; i-- {
		if s := &r.spans[r.stack[i]]; s.enter == p.Enter {
			clock := &w.exporter.rows.clock
			algbw, _ := partBandwidth(p, clock.since1970(p.End)-clock.since1970(p.Begin))
			s.ended.add(p, algbw)
			return
		}
	}
}

// findOverlaps handles the open regions from stack index from on, when the region before them ends at t. They are shown
// beside that region. Those whose begin was already written inside it end with it.
func (w *walker) findOverlaps(r *walkRow, from int, t otf2.Timestamp) {
	for i := len(r.stack) - 1; i >= from; i-- {
		s := &r.spans[r.stack[i]]
		if !s.passedOn {
			if !s.beside {
				s.beside, s.end = true, t // in case it never ends
			}
			continue
		}
		s.end, s.open, s.cut = t, false, true
		r.steps = append(r.steps, step{span: r.stack[i], end: true})
		r.stack = slices.Delete(r.stack, i, i+1)
	}
}

// annotateParents adds an NCCL event, and its parent if that began earlier, to the innermost open region. Successive
// regions of the same operation have the same parent, which is added only once.
func (w *walker) annotateParents(r *walkRow, d *facts.Details) {
	s := &r.spans[r.stack[len(r.stack)-1]]
	if d.Event != 0 {
		w.parents.addID(d.Event)
		s.events = append(s.events, d.Event)
	}
	if d.Parent == 0 || d.Parent == r.parent {
		return
	}
	if !w.parents.hasID(d.Parent) {
		w.countLeftOut("lines from parents that are not in the archive, or began later")
		return
	}
	r.parent = d.Parent
	s.parents = append(s.parents, d.Parent)
}

// releaseSpans writes the held regions, unless an outer one is still open and there is room to wait for it.
func (w *walker) releaseSpans(r *walkRow) {
	if len(r.stack) > 0 && len(r.spans) < maxSlices {
		return
	}
	for _, st := range r.steps {
		s := &r.spans[st.span]
		if st.end {
			w.endRegion(r, s)
			continue
		}
		s.passedOn = s.open
		w.beginRegion(r, s)
	}
	r.steps = r.steps[:0]
	for i, at := range r.stack { // keep the open ones
		r.spans[i] = r.spans[at]
		r.stack[i] = i
	}
	clear(r.spans[len(r.stack):])
	r.spans = r.spans[:len(r.stack)]
}

// closeRow ends the regions that are open at the end of the data.
func (w *walker) closeRow(r *walkRow) {
	for len(r.stack) > 0 {
		at := r.stack[len(r.stack)-1]
		s := &r.spans[at]
		if s.open, s.cut = false, true; !s.beside {
			s.end = w.last
		}
		r.stack, r.steps = r.stack[:len(r.stack)-1], append(r.steps, step{span: at, end: true})
	}
	w.releaseSpans(r)
}

// handleEvent handles metric and recording on/off events.
func (w *walker) handleEvent(ev *otf2.Event) {
	if !w.isSelected(ev.Location, ev.Time) {
		return
	}
	switch l := w.rows[ev.Location].row; ev.Kind {
	case otf2.EventMetric:
		w.writeMetric(l, ev)
	case otf2.EventMeasurementOnOff:
		name := "recording on"
		if ev.MeasurementOnOff().MeasurementMode == otf2.MeasurementOff {
			name = "recording off"
		}
		w.writeInstant(l, name, ev.Time)
	}
}

// writeMetric writes the values of a metric event, converted to their units.
func (w *walker) writeMetric(l *row, ev *otf2.Event) {
	m := ev.Metric()
	quantities := keyed.EntryMade(w.quantities, m.Metric,
		func() []quantity.Member { return quantity.Members(w.exporter.rows.defs, m.Metric) })
	if quantities == nil {
		w.countLeftOut("values of metrics that are not defined as numbers")
		return
	}
	values, fits := quantity.StoredValues(w.stored[:0], quantities, m)
	if w.stored = values; !fits {
		w.countLeftOut("values of metrics that are not as their metrics are defined")
		return
	}
	for i, bits := range values {
		value := quantities[i].Number(bits)
		if math.IsNaN(value) || math.IsInf(value, 0) {
			w.countLeftOut("values of metrics that are not numbers")
			continue
		}
		w.writeValue(l, &quantities[i], ev.Time, value)
	}
}

// recent holds the ids of the latest events, at least maxEvents of them.
type recent struct{ young, old map[uint64]struct{} }

const maxEvents = 1 << 18

func (r *recent) addID(id uint64) {
	if r.young == nil || len(r.young) >= maxEvents {
		r.young, r.old = make(map[uint64]struct{}), r.young
	}
	r.young[id] = struct{}{}
}

func (r *recent) hasID(id uint64) bool {
	_, young := r.young[id]
	_, old := r.old[id]
	return young || old
}

// unit is a group of rows: a process, or one of its GPUs.
type unit struct {
	process *process
	gpu     string // "" for the process itself
	rows    []*row
}

// processUnits returns each process, followed by its GPUs, with their rows sorted by id.
func (r *rows) processUnits() (all []unit) {
	for _, p := range r.processes {
		first := len(all)
		for _, l := range p.rows {
			at := slices.IndexFunc(all[first:], func(u unit) bool { return u.gpu == l.gpu })
			if at < 0 {
				at = len(all) - first
				all = append(all, unit{process: p, gpu: l.gpu})
			}
			all[first+at].rows = append(all[first+at].rows, l)
		}
		// the process itself first
		slices.SortFunc(all[first:], func(a, b unit) int { return cmp.Compare(a.gpu, b.gpu) })
	}
	return all
}
