// SPDX-License-Identifier: Apache-2.0

package export

import (
	"cmp"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/nccl-otf2/nccl-otf2/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Chrome writes the timeline as trace-event JSON, which Perfetto and chrome://tracing open, to path, or to stdout if
// that is "-". A name that ends in .gz asks for gzip.
//
// A process of the trace is a process of the job, or a GPU of one; a thread is a row. Ids are places in the archive's order,
// so they are the same at each export. Times are microseconds since the begin of the archive.
func Chrome(a *otf2.Archive, path string, stdout io.Writer, opts *Options) (*Result, error) {
	e := newExporter(a, opts)
	err := e.into(path, stdout, func(w io.Writer) error {
		if !strings.HasSuffix(path, ".gz") {
			return e.chrome(w)
		}
		z := gzip.NewWriter(w)
		if err := e.chrome(z); err != nil {
			return err
		}
		return z.Close()
	})
	if err != nil {
		return nil, err
	}
	return &e.result, nil
}

func (e *exporter) chrome(w io.Writer) error {
	c := &chromeWriter{exporter: e, out: newJSONWriter(w), pids: make(map[*row]int), tids: make(map[*row]int)}
	c.out.raw("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")
	c.describe()
	c.markers()
	for _, p := range e.rows.processes {
		c.process(p)
	}
	// Flows come last: a viewer binds them to the slices that it knows by then.
	c.matches()
	c.transfers()
	c.out.raw("\n],\"otherData\":")
	c.out.value(c.otherData())
	c.out.raw("}\n")
	return c.out.flush()
}

// chromeWriter writes events. Event objects stand on lines of their own.
type chromeWriter struct {
	*exporter
	out    *jsonWriter
	pids   map[*row]int
	tids   map[*row]int
	events uint64
	flows  uint64 // ids so far
}

// begin begins an event; the caller adds fields and ends it.
func (c *chromeWriter) begin(phase, name, category string, l *row, t otf2.Timestamp) {
	if c.events > 0 {
		c.out.raw(",")
	}
	c.events++
	c.out.raw("\n{")
	c.out.text("ph", phase)
	c.out.text("name", name)
	if category != "" {
		c.out.text("cat", category)
	}
	if l != nil {
		c.out.integer("pid", int64(c.pids[l]))
		c.out.integer("tid", int64(c.tids[l]))
	}
	c.out.micros("ts", c.rows.clock.fromBegin(t))
}

func (c *chromeWriter) end() { c.out.raw("}") }

// describe names processes and threads and gives their order: each job process, then its GPUs, rows by their ids.
func (c *chromeWriter) describe() {
	type unit struct {
		name, labels string
		rows         []*row
	}
	var units []unit
	for _, p := range c.rows.processes {
		byGPU := map[string]*unit{}
		var order []string
		for _, l := range p.rows {
			u := byGPU[l.gpu]
			if u == nil {
				u = &unit{name: p.name, labels: p.host}
				if l.gpu != "" {
					u.name, u.labels = p.name+" "+l.gpu, cmp.Or(l.uuid, p.host)
				}
				byGPU[l.gpu] = u
				order = append(order, l.gpu)
			}
			u.rows = append(u.rows, l)
		}
		slices.Sort(order) // the process itself first
		for _, gpu := range order {
			units = append(units, *byGPU[gpu])
		}
	}
	meta := func(name string, pid, tid int, key, text string, number int) {
		if c.events > 0 {
			c.out.raw(",")
		}
		c.events++
		c.out.raw("\n{")
		c.out.text("ph", "M")
		c.out.text("name", name)
		c.out.integer("pid", int64(pid))
		if tid > 0 {
			c.out.integer("tid", int64(tid))
		}
		c.out.object("args")
		if text != "" {
			c.out.text(key, text)
		} else {
			c.out.integer(key, int64(number))
		}
		c.out.raw("}")
		c.end()
	}
	for i, u := range units {
		pid := i + 1
		meta("process_name", pid, 0, "name", cmp.Or(u.name, "unnamed"), 0)
		meta("process_sort_index", pid, 0, "sort_index", "", i)
		if u.labels != "" {
			meta("process_labels", pid, 0, "labels", u.labels, 0)
		}
		for j, l := range u.rows {
			c.pids[l], c.tids[l] = pid, j+1
			meta("thread_name", pid, j+1, "name", cmp.Or(l.name, "unnamed"), 0)
			meta("thread_sort_index", pid, j+1, "sort_index", "", j)
		}
	}
}

// markers are instants of all processes.
func (c *chromeWriter) markers() {
	defs, all, err := c.archive.Markers()
	if err != nil {
		c.problems([]string{err.Error()})
	}
	category := make(map[otf2.MarkerRef]string)
	for _, d := range defs {
		category[d.Self] = d.Category
	}
	for _, m := range all {
		l := c.rows.of[otf2.LocationRef(m.Scope)]
		scope := "t"
		if m.ScopeType != otf2.MarkerScopeLocation || l == nil {
			scope, l = "g", nil
		}
		c.begin("i", cmp.Or(category[m.Marker], "marker"), "marker", l, m.Time)
		if l == nil {
			c.out.integer("pid", 0)
			c.out.integer("tid", 0)
		}
		c.out.text("s", scope)
		c.out.object("args")
		c.out.text("text", m.Text)
		if m.Duration > 0 {
			c.out.integer("duration_ns", c.rows.clock.nanoseconds(int64(min(m.Duration, math.MaxInt64))))
		}
		c.out.raw("}")
		c.end()
		c.count("markers")
	}
}

// slice is a region on its way into the trace. Outer regions are written before what lies in them.
type slice struct {
	region     otf2.RegionRef
	begin, end otf2.Timestamp
	open       bool
	cut        bool // open when the data ended
	launched   bool // only when it was launched is known
	attributes []otf2.AttributeValue
}

// chromeRow is the state of one row.
type chromeRow struct {
	row    *row
	slices []slice // from the outermost open region on
	stack  []int   // open ones
	parent uint64  // that the last line led from
	puts   map[[2]uint64]uint64
}

// maxSlices bounds what is held of a region that is open for long.
const maxSlices = 1 << 14

func (c *chromeWriter) process(p *process) {
	rows := make(map[otf2.LocationRef]*chromeRow)
	locations := make([]otf2.LocationRef, len(p.rows))
	for i, l := range p.rows {
		rows[l.location] = &chromeRow{row: l, puts: make(map[[2]uint64]uint64)}
		locations[i] = l.location
	}
	parents := &recent{}
	defs := c.rows.defs
	reader := facts.NewReader(facts.ArchiveNames(defs, nil), c.rows.attributes)
	reader.Keep = true
	reader.Enter = func(region *facts.Region) {
		r := rows[region.Location]
		r.stack = append(r.stack, len(r.slices))
		r.slices = append(r.slices, slice{region: region.Region, begin: region.Begin, open: true, launched: region.Source == facts.SourceEnqueue, attributes: region.Attributes})
		c.lineage(r, &region.Details, region.Begin, parents)
	}
	var last otf2.Timestamp
	reader.Begun = func(d *facts.Details, in *facts.Region) { // of one of several operations in a launch
		if in != nil {
			c.lineage(rows[in.Location], d, last, parents)
		}
	}
	reader.Leave = func(region *facts.Region) {
		r := rows[region.Location]
		n := len(r.stack)
		s := &r.slices[r.stack[n-1]]
		s.end, s.open, s.cut, s.attributes = region.End, false, region.Lost, region.Attributes
		r.stack = r.stack[:n-1]
		c.release(r)
	}
	reader.Put = func(t *facts.Transfer) {
		if !c.opts.Selection.At(t.Location, t.Begin) {
			return
		}
		c.flows++
		r := rows[t.Location]
		r.puts[[2]uint64{uint64(t.Window), t.Matching}] = c.flows
		c.begin("b", "transfer to rank "+strconv.Itoa(t.To), "transfer", r.row, t.Begin)
		c.out.integer("id", int64(c.flows))
		c.args(t.Attributes, "bytes", t.Bytes)
		c.end()
		c.count("transfers")
	}
	reader.Transfer = func(t *facts.Transfer) {
		r, key := rows[t.Location], [2]uint64{uint64(t.Window), t.Matching}
		if !t.Ended || !c.opts.Selection.At(t.Location, t.Begin) {
			return // another one has taken its name
		}
		c.begin("e", "transfer", "transfer", r.row, t.End)
		c.out.integer("id", int64(r.puts[key]))
		c.end()
		delete(r.puts, key)
	}
	selected := c.opts.Selection
	selected.Regions(reader)
	for ev, err := range c.archive.Events(&otf2.Selection{Locations: locations}) {
		if err != nil {
			c.problems([]string{err.Error()})
			continue
		}
		last = max(last, ev.Time)
		reader.Event(ev)
		if !selected.At(ev.Location, ev.Time) {
			continue
		}
		switch r := rows[ev.Location]; ev.Kind {
		case otf2.EventMetric:
			c.metric(r.row, ev)
		case otf2.EventMeasurementOnOff:
			name := "recording on"
			if ev.MeasurementOnOff().MeasurementMode == otf2.MeasurementOff {
				name = "recording off"
			}
			c.begin("i", name, "measurement", r.row, ev.Time)
			c.out.text("s", "t")
			c.end()
			c.count("instants")
		}
	}
	for _, l := range p.rows {
		r := rows[l.location]
		for _, i := range r.stack {
			r.slices[i].end, r.slices[i].open, r.slices[i].cut = last, false, true
		}
		r.stack = nil
		c.release(r)
		if n := len(r.puts); n > 0 {
			c.result.LeftOut["ends of transfers"] += uint64(n)
		}
	}
}

// release writes the regions that are over, unless an outer one is open for which they wait.
func (c *chromeWriter) release(r *chromeRow) {
	if len(r.stack) > 0 && len(r.slices) < maxSlices {
		return
	}
	kept := r.slices[:0]
	for i := range r.slices {
		s := &r.slices[i]
		if s.open {
			kept = append(kept, *s)
			continue
		}
		name := c.rows.regionName(s.region)
		if s.launched {
			name += facts.LaunchedOnly
		}
		c.begin("X", name, c.rows.group[s.region], r.row, s.begin)
		c.out.micros("dur", c.rows.clock.fromBegin(s.end)-c.rows.clock.fromBegin(s.begin))
		c.args(s.attributes, "", 0)
		c.end()
		c.count("slices")
		if s.cut {
			c.leaveOut("ends of regions that were open at the end")
		}
	}
	clear(r.slices[len(kept):])
	r.slices = kept
	for i := range r.stack {
		r.stack[i] = i
	}
}

// args writes attributes by their names, and one number more if it has a name.
func (c *chromeWriter) args(attributes []otf2.AttributeValue, name string, number uint64) {
	if len(attributes) == 0 && name == "" {
		return
	}
	c.out.object("args")
	if name != "" {
		c.out.unsigned(name, number)
	}
	for _, a := range attributes {
		d := c.rows.defs.Attribute(a.ID)
		if d == nil {
			continue
		}
		key := strings.ToLower(c.rows.defs.String(d.Name))
		switch a.Type {
		case otf2.TypeString:
			c.out.text(key, c.rows.defs.String(otf2.StringRef(a.Bits)))
		case otf2.TypeComm:
			if one := c.rows.comms[otf2.CommRef(a.Bits)]; one != nil {
				c.out.text(key, one.Name)
			}
		case otf2.TypeDouble:
			c.out.number(key, a.Value().Double())
		case otf2.TypeFloat:
			c.out.number(key, float64(a.Value().Float()))
		case otf2.TypeInt8, otf2.TypeInt16, otf2.TypeInt32, otf2.TypeInt64:
			c.out.integer(key, int64(a.Bits))
		default:
			c.out.unsigned(key, a.Bits)
		}
	}
	c.out.raw("}")
}

// metric writes the values of a metric event as counters of its row.
func (c *chromeWriter) metric(l *row, ev *otf2.Event) {
	m := ev.Metric()
	defs := c.rows.defs
	class := defs.MetricClass(m.Metric)
	if class == nil {
		if in := defs.MetricInstance(m.Metric); in != nil {
			class = defs.MetricClass(in.MetricClass)
		}
	}
	if class == nil {
		c.leaveOut("values of metrics that are not defined")
		return
	}
	for i := range min(m.Len(), len(class.Members)) {
		member := defs.MetricMember(class.Members[i])
		if member == nil {
			continue
		}
		typ, bits := m.At(i)
		value := float64(bits)
		switch typ {
		case otf2.TypeDouble:
			value = math.Float64frombits(bits)
		case otf2.TypeInt64:
			value = float64(int64(bits))
		}
		if math.IsNaN(value) || math.IsInf(value, 0) {
			c.leaveOut("values of metrics that are no numbers")
			continue
		}
		c.begin("C", l.name+": "+defs.String(member.Name), "metric", l, ev.Time)
		c.out.object("args")
		c.out.number(cmp.Or(defs.String(member.Unit), "value"), value)
		c.out.raw("}")
		c.end()
		c.count("counter values")
	}
}

func (c *chromeWriter) otherData() map[string]any {
	return map[string]any{
		"creator": strings.TrimSpace("nccl-otf2 " + c.opts.Version), "archive": c.archive.Anchor.Description,
		"begin_ns": strconv.FormatInt(c.rows.clock.since1970(otf2.Timestamp(c.rows.clock.Offset)), 10),
		"records":  c.result.Records, "left_out": c.result.LeftOut,
	}
}
