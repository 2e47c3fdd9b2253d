// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/facts/quantity"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Each member of a metric class gets a row of its own, with a curve. The values that a location records of one class,
// or of one instance of a class, are a series: points in time with a value for each member. An interval is the part of
// a curve between two consecutive points.

// timing is which of the values around an interval applies to it.
type timing uint8

const (
	timingNext timing = iota // the value at its begin, which holds until the next one
	timingLast               // the value at its end, which covers the time since the one before
	timingRate               // the growth of a counter, per second
)

var timingNames = [...]string{"next", "last", "rate"}

// timingOf returns how the values of a mode are drawn. Values at a point in time hold until the next one, as for
// samples. The lower four bits of a mode are what is measured (0: accumulated), the upper four for which time. Source:
// OTF2_Definitions.h, OTF2_MetricMode.
func timingOf(m otf2.MetricMode) timing {
	switch {
	case m&0xf == 0:
		return timingRate
	case m&0xf0 == 0x20:
		return timingLast
	}
	return timingNext
}

// sum sums up consecutive intervals.
type sum struct {
	min, max float64 // +Inf and −Inf: no value
	area     float64 // values times ns
	missing  uint64  // ns without a value
}

// add adds an interval between two values. last: it lies after the last value, where only values that hold until the
// next one apply.
func (s *sum) add(q *quantity.Member, from, to, length uint64, last bool) {
	v, area := 0.0, 0.0
	timing := timingOf(q.Mode)
	switch timing {
	case timingNext:
		v = q.Number(from)
		area = v * float64(length)
	case timingLast:
		v = q.Number(to)
		area = v * float64(length)
	case timingRate:
		area = q.Growth(from, to) * 1e9
		v = area / float64(length) // NaN for an interval without length
	}
	if last && timing != timingNext || math.IsNaN(area) || math.IsInf(area, 0) {
		s.missing += length
		return
	}
	s.area += area
	if length > 0 || timing == timingLast {
		s.min, s.max = min(s.min, v), max(s.max, v)
	}
}

func (s *sum) merge(o *sum) {
	s.min, s.max = min(s.min, o.min), max(s.max, o.max)
	s.area += o.area
	s.missing += o.missing
}

var noSum = sum{min: math.Inf(1), max: math.Inf(-1)}

// metricLeaf is the number of intervals in a node; it grows if there would be too many nodes.
const metricLeaf = 32

// series is the values that a location recorded of a metric. Blocks are made as soon as they are full.
type series struct {
	metric     otf2.MetricRef
	quantities []quantity.Member
	rows       []int // by quantity

	time   []uint64   // ns, of the points of the present block
	bits   [][]uint64 // by quantity: their values
	count  int        // intervals
	finish uint64     // of the last interval, once it is known
	closed bool       // the last interval ends with the archive, after the last values
	to     *spool
	blocks []extent
	starts []uint64 // by node
	sums   [][]sum  // by quantity and node
}

func newSeries(defs *otf2.Definitions, ref otf2.MetricRef, to *spool) *series {
	s := &series{metric: ref, to: to, quantities: quantity.Members(defs, ref)}
	if s.quantities == nil {
		return nil
	}
	s.bits, s.sums = make([][]uint64, len(s.quantities)), make([][]sum, len(s.quantities))
	return s
}

// add takes a point with a value of each member. The first point comes twice: it ends an interval of no length, for
// those that are of the time before them.
func (s *series) add(t uint64, values []uint64, last bool) {
	if len(s.time) == 0 {
		s.point(t, values)
	}
	before := len(s.time) - 1
	t = max(t, s.time[before])
	s.point(t, values)
	if s.count%metricLeaf == 0 {
		s.starts = append(s.starts, s.time[before])
		for i := range s.sums {
			s.sums[i] = append(s.sums[i], noSum)
		}
	}
	node := len(s.starts) - 1
	for i := range s.quantities {
		s.sums[i][node].add(&s.quantities[i], s.bits[i][before], s.bits[i][before+1], t-s.time[before], last)
	}
	if s.count++; len(s.time) == chunk+1 {
		s.flush()
	}
}

func (s *series) point(t uint64, values []uint64) {
	s.time = append(s.time, t)
	for i, v := range values {
		s.bits[i] = append(s.bits[i], v)
	}
}

// flush makes a block of the points; the last point also starts the next block.
func (s *series) flush() {
	columns := make([]*column, 1+len(s.bits))
	time := new(column)
	for _, t := range s.time {
		time.difference(t)
	}
	columns[0] = time
	n := len(s.time) - 1
	for i := range s.bits {
		values := new(column)
		for _, v := range s.bits[i] {
			if s.quantities[i].Type == otf2.TypeDouble {
				values.raw(v)
			} else {
				values.signed(v)
			}
		}
		columns[1+i] = values
		s.bits[i] = append(s.bits[i][:0], s.bits[i][n])
	}
	s.time = append(s.time[:0], s.time[n])
	b := newBlock(columns...)
	b.pack()
	s.blocks = append(s.blocks, s.to.write(b.packed.Bytes()))
	b.release()
}

// closeSeries closes the series at the end of the archive, up to which the last values hold.
func (s *series) closeSeries(duration uint64) {
	n := len(s.time) - 1
	if s.time[n] < duration {
		s.closed = true
		last := make([]uint64, len(s.bits))
		for i := range s.bits {
			last[i] = s.bits[i][n]
		}
		s.add(duration, last, true)
	}
	if len(s.time) > 1 {
		s.flush()
	}
	s.finish, s.time, s.bits = s.time[len(s.time)-1], nil, nil
}

// coarser merges each four nodes into one.
func (s *series) coarser() {
	n := 0
	for from := 0; from < len(s.starts); from += 4 {
		s.starts[n] = s.starts[from]
		for i := range s.sums {
			all := noSum
			for _, one := range s.sums[i][from:min(from+4, len(s.starts))] {
				all.merge(&one)
			}
			s.sums[i][n] = all
		}
		n++
	}
	s.starts = s.starts[:n]
	for i := range s.sums {
		s.sums[i] = s.sums[i][:n]
	}
}

// recorder is the metrics of a location. One goroutine fills it.
type recorder struct {
	series    map[otf2.MetricRef]*series // nil: the metric is undefined, or its values are not numbers
	values    []uint64                   // of the present event
	last      uint64                     // ns
	undefined uint64                     // events of undefined metrics
	unlike    uint64                     // events whose values have other types than their members
}

// recorders makes recorders for all locations, including those without a row.
func recorders(defs *otf2.Definitions) map[otf2.LocationRef]*recorder {
	all := make(map[otf2.LocationRef]*recorder)
	for i := range defs.Locations {
		all[defs.Locations[i].Self] = &recorder{series: make(map[otf2.MetricRef]*series)}
	}
	return all
}

// addMetric adds a METRIC event.
func (r *reader) addMetric(time uint64, ev *otf2.Event) {
	rec := r.recorders[ev.Location]
	if rec == nil {
		return
	}
	m := ev.Metric()
	s := keyed.EntryMade(rec.series, m.Metric, func() *series { return newSeries(r.defs, m.Metric, &r.spool) })
	if s == nil {
		rec.undefined++
		return
	}
	values, fits := quantity.StoredValues(rec.values[:0], s.quantities, m)
	if rec.values = values; !fits {
		rec.unlike++
		return
	}
	rec.last = max(rec.last, time)
	s.add(time, rec.values, false)
}

// endMetrics gives each member of each series a row. Before it is called, duration must cover all events, except those
// of asynchronous metrics.
func (r *reader) endMetrics() {
	for _, rec := range r.recorders {
		r.duration = max(r.duration, rec.last)
	}
	var undefined, unlike uint64
	places := metricPlaces{Data: r.Data, rowOf: r.rowOf, own: make(map[otf2.LocationRef]int)}
	for i := range r.defs.Locations {
		l := &r.defs.Locations[i]
		rec := r.recorders[l.Self]
		if rec == nil { // a location that is defined twice
			continue
		}
		delete(r.recorders, l.Self)
		undefined += rec.undefined
		unlike += rec.unlike
		for _, ref := range slices.Sorted(maps.Keys(rec.series)) {
			s := rec.series[ref]
			if s == nil || s.count == 0 {
				continue
			}
			s.closeSeries(r.duration)
			parent := places.shownRow(l, ref)
			for i := range s.quantities {
				s.rows = append(s.rows, len(r.rows))
				r.rows = append(r.rows, row{name: places.unique(parent, s.quantities[i].Name, l), kind: kindMetric,
					parent: parent})
			}
			r.series = append(r.series, s)
		}
	}
	r.metricLeaf = metricLeaf
	for r.metricNodes() > maxNodes && r.metricLeaf*4 <= chunk {
		r.metricLeaf *= 4
		for _, s := range r.series {
			s.coarser()
		}
	}
	if undefined > 0 {
		r.notes = append(r.notes, fmt.Sprintf(
			"%d events of metrics are not shown: the archive does not define their metrics as numbers", undefined))
	}
	if unlike > 0 {
		r.notes = append(r.notes, fmt.Sprintf(
			"%d events of metrics are not shown: their values are not as their metrics are defined", unlike))
	}
}

func (d *Data) metricNodes() (n int) {
	for _, s := range d.series {
		n += len(s.starts) * len(s.quantities)
	}
	return n
}

// metricPlaces finds the rows that metrics belong to.
type metricPlaces struct {
	*Data
	rowOf map[otf2.LocationRef]uint32
	own   map[otf2.LocationRef]int // rows of locations that record only metrics
	names map[placeName]bool
}

type placeName struct {
	parent int
	name   string
}

// shownRow returns the row below which a location's metric is shown: that of the measured object, otherwise that of the
// location.
func (p *metricPlaces) shownRow(l *otf2.Location, ref otf2.MetricRef) int {
	if in := p.defs.MetricInstance(ref); in != nil {
		at := -1
		switch in.MetricScope {
		case otf2.MetricScopeLocation:
			if row, ok := p.rowOf[otf2.LocationRef(in.Scope)]; ok {
				at = int(row)
			}
		case otf2.MetricScopeLocationGroup:
			at = p.groupRow(otf2.LocationGroupRef(in.Scope), false)
		case otf2.MetricScopeSystemTreeNode:
			if n := p.defs.SystemTreeNode(otf2.SystemTreeNodeRef(in.Scope)); n != nil {
				name := p.defs.String(n.Name)
				at = slices.IndexFunc(p.rows, func(r row) bool { return r.kind == kindHost && r.name == name })
			}
		}
		if at >= 0 {
			return at
		}
	}
	if row, ok := p.rowOf[l.Self]; ok {
		return int(row)
	}
	return keyed.EntryMade(p.own, l.Self, func() int {
		p.rows = append(p.rows, row{name: cmp.Or(p.defs.String(l.Name), "(no name)"), kind: kindSensors,
			parent: p.groupRow(l.Group, true)})
		return len(p.rows) - 1
	})
}

// groupRow returns the row of a location group: that of a GPU or a process. orProcess: if it has none, that of its
// process.
func (p *metricPlaces) groupRow(g otf2.LocationGroupRef, orProcess bool) int {
	find := func(g otf2.LocationGroupRef) int {
		return slices.IndexFunc(p.rows, func(r row) bool {
			return (r.kind == kindDevice || r.kind == kindProcess) &&
				r.group == g
		})
	}
	at := find(g)
	if at < 0 && orProcess {
		at = find(processOf(p.defs, g))
	}
	return at
}

// unique returns a name that no other metric of the row has, if the location's name suffices for that.
func (p *metricPlaces) unique(parent int, name string, l *otf2.Location) string {
	if p.names == nil {
		p.names = make(map[placeName]bool)
	}
	if p.names[placeName{parent, name}] {
		name = fmt.Sprintf("%s (%s)", name, p.defs.String(l.Name))
	}
	p.names[placeName{parent, name}] = true
	return name
}

// headMetrics is the description of the metrics in the head.
type headMetrics struct {
	Leaf   int                `json:"leaf"`  // intervals of a node
	Nodes  int                `json:"nodes"` // block
	Series []headMetricSeries `json:"series"`
}

// headMetricSeries describes a series.
type headMetricSeries struct {
	headSeries              // intervals
	End        uint64       `json:"end"`    // of the last interval
	Closed     bool         `json:"closed"` // the last interval lies after the last values
	Members    []headMetric `json:"members"`
}

type headMetric struct {
	Row         int     `json:"row"`
	Description string  `json:"description"`
	Unit        string  `json:"unit"`
	Mode        string  `json:"mode"`
	Timing      string  `json:"timing"`
	Type        string  `json:"type"`
	Factor      float64 `json:"factor"`
	Divisor     float64 `json:"divisor"`
}

// writeMetrics writes the blocks of the metrics after all others; first is the number of the first block.
func (d *Data) writeMetrics(to sink, first int) (headMetrics, error) {
	h := headMetrics{Leaf: d.metricLeaf, Series: []headMetricSeries{}}
	if len(d.series) == 0 {
		return h, nil
	}
	var packed []byte
	for _, s := range d.series {
		one := headMetricSeries{headSeries: headSeries{first, s.count}, End: s.finish, Closed: s.closed}
		for i := range s.quantities {
			q := &s.quantities[i]
			one.Members = append(one.Members, headMetric{s.rows[i], q.Description, q.Unit, q.Mode.String(),
				timingNames[timingOf(q.Mode)], q.Type.String(), q.Factor, q.Divisor})
		}
		h.Series = append(h.Series, one)
		for _, e := range s.blocks {
			packed = d.spool.read(e, packed)
			if err := to.block(packed); err != nil {
				return h, err
			}
			first++
		}
	}
	h.Nodes = first
	b := d.metricNodeBlock()
	b.pack()
	defer b.release()
	return h, to.block(b.packed.Bytes())
}

func (d *Data) metricNodeBlock() *block {
	var start, numbers, missing column
	for _, s := range d.series {
		start.last = 0
		for _, t := range s.starts {
			start.difference(t)
		}
		for i := range s.sums {
			for _, n := range s.sums[i] {
				numbers.raw(math.Float64bits(n.min))
				numbers.raw(math.Float64bits(n.max))
				numbers.raw(math.Float64bits(n.area))
				missing.add(n.missing)
			}
		}
	}
	return newBlock(&start, &numbers, &missing)
}
