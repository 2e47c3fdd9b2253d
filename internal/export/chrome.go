// SPDX-License-Identifier: Apache-2.0

package export

import (
	"cmp"
	"io"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Chrome writes the timeline as trace-event JSON, which Perfetto and chrome://tracing open, to path, or to stdout if
// that is "-". A name that ends in .gz asks for gzip.
//
// A process of the trace is a process of the job, or a GPU of one; a thread is a row. Ids are places in the archive's
// order, so they are the same at each export. Times are microseconds since the begin of the archive.
func Chrome(a *otf2.Archive, path string, stdout io.Writer, opts *Options) (*Result, error) {
	e := newExporter(a, opts)
	if err := e.into(path, stdout, zipped(path, e.chrome)); err != nil {
		return nil, err
	}
	return &e.result, nil
}

func (e *exporter) chrome(w io.Writer) error {
	c := &chromeWriter{exporter: e, out: newJSONWriter(w), pids: make(map[*row]int), tids: make(map[*row]int),
		waited: make(map[*row]bool)}
	c.out.raw("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")
	c.describe()
	c.markers()
	for _, p := range e.rows.processes {
		c.walk(p, c)
	}
	// Flows come behind: a viewer binds them to the slices that it knows by then.
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
	waited map[*row]bool // rows that have a thread with their waits
	events uint64
	flows  uint64 // ids so far
}

// event begins an event on a row, or of no process; the caller adds fields and closes it.
func (c *chromeWriter) event(phase, name, category string, l *row, t otf2.Timestamp) {
	pid, tid := 0, 0
	if l != nil {
		pid, tid = c.pids[l], c.tids[l]
	}
	c.eventAt(phase, name, category, pid, tid, t)
}

func (c *chromeWriter) eventAt(phase, name, category string, pid, tid int, t otf2.Timestamp) {
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
	c.out.integer("pid", int64(pid))
	c.out.integer("tid", int64(tid))
	c.out.micros("ts", c.rows.clock.fromBegin(t))
}

func (c *chromeWriter) close() { c.out.raw("}") }

// id is what events of one line or transfer have in common.
func (c *chromeWriter) id(id uint64) { c.out.id("id", id) }

// describe names processes and threads and gives their order: each job process, then its GPUs, rows by their ids.
func (c *chromeWriter) describe() {
	for i, u := range c.rows.units() {
		pid := i + 1
		c.meta("process_name", pid, 0, "name", u.name(), 0)
		c.meta("process_sort_index", pid, 0, "sort_index", "", i)
		if label := u.label(); label != "" {
			c.meta("process_labels", pid, 0, "labels", label, 0)
		}
		for j, l := range u.rows {
			c.pids[l], c.tids[l] = pid, 2*j+1
			c.thread(pid, 2*j+1, l.label())
		}
	}
}

// thread names a thread. They stand in the order of their numbers: behind each row is place for one with its waits.
func (c *chromeWriter) thread(pid, tid int, name string) {
	c.meta("thread_name", pid, tid, "name", name, 0)
	c.meta("thread_sort_index", pid, tid, "sort_index", "", tid)
}

// meta says something of a process or thread: a text, or a number if that is empty.
func (c *chromeWriter) meta(name string, pid, tid int, key, text string, number int) {
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
	c.close()
}

// markers are instants of their rows, or of all processes.
func (c *chromeWriter) markers() {
	c.eachMarker(func(l *row, category string, m *otf2.Marker) {
		scope := "t"
		if l == nil {
			scope = "g"
		}
		c.event("i", category, "marker", l, m.Time)
		c.out.text("s", scope)
		c.out.object("args")
		c.out.text("text", m.Text)
		c.rows.markerFigures(c.out, m)
		c.out.raw("}")
		c.close()
		c.count("markers")
	})
}

func (c *chromeWriter) begin(r *walkRow, s *span) {
	if !s.open {
		c.slice(r, s)
	}
}

func (c *chromeWriter) end(r *walkRow, s *span) {
	if s.passedOn {
		c.slice(r, s)
	}
}

// slice draws a region. One that overlaps with others of its row is drawn by its begin and its end, as slices of a
// thread nest.
func (c *chromeWriter) slice(r *walkRow, s *span) {
	if s.beside {
		c.flows++
		c.event("b", c.rows.nameOfSlice(s), c.rows.group[s.region], r.row, s.begin)
		c.id(c.flows)
	} else {
		c.event("X", c.rows.nameOfSlice(s), c.rows.group[s.region], r.row, s.begin)
		c.out.micros("dur", c.rows.clock.fromBegin(s.end)-c.rows.clock.fromBegin(s.begin))
	}
	if len(s.attributes) > 0 || s.ended.operations > 0 {
		c.out.object("args")
		c.rows.writeAttributes(c.out, s.attributes)
		s.ended.figures(c.out)
		c.out.raw("}")
	}
	c.close()
	if s.beside {
		c.event("e", c.rows.nameOfSlice(s), c.rows.group[s.region], r.row, s.end)
		c.id(c.flows)
		c.close()
	}
	c.count("slices")
	if s.cut {
		c.leaveOut(openRegions)
	}
}

func (c *chromeWriter) child(r *walkRow, t otf2.Timestamp, parent origin) {
	c.flow("parent", "parent", []flowPoint{{parent.row, parent.time}, {r.row, t}})
}

func (c *chromeWriter) put(r *walkRow, t *facts.Transfer) {
	c.flows++
	r.puts[facts.PutName{Window: t.Window, Matching: t.Matching}] = c.flows
	c.event("b", nameOfTransfer(t), "transfer", r.row, t.Begin)
	c.id(c.flows)
	c.out.object("args")
	c.out.unsigned("bytes", t.Bytes)
	c.rows.writeAttributes(c.out, t.Attributes)
	c.out.raw("}")
	c.close()
	c.count("transfers")
}

func (c *chromeWriter) sent(r *walkRow, t *facts.Transfer) {
	key := facts.PutName{Window: t.Window, Matching: t.Matching}
	c.event("e", "transfer", "transfer", r.row, t.End)
	c.id(r.puts[key])
	c.close()
	delete(r.puts, key)
}

func (c *chromeWriter) unsent(*walkRow, *facts.Transfer) { c.leaveOut(openTransfers) }

func (c *chromeWriter) instant(l *row, name string, t otf2.Timestamp) {
	c.event("i", name, "measurement", l, t)
	c.out.text("s", "t")
	c.close()
	c.count("instants")
}

func (c *chromeWriter) value(l *row, q *facts.Quantity, t otf2.Timestamp, v float64) {
	c.event("C", l.name+": "+q.Name, "metric", l, t)
	c.out.object("args")
	c.out.number(cmp.Or(q.Unit, "value"), v)
	c.out.raw("}")
	c.close()
	c.count("counter values")
}

// wait draws a member's waiting beside its row.
func (c *chromeWriter) wait(w *waits.Wait) {
	l := c.rows.of[w.Place.Location]
	pid, tid := c.pids[l], c.tids[l]+1
	if !c.waited[l] {
		c.waited[l] = true
		c.thread(pid, tid, l.label()+": "+waitingName)
	}
	c.eventAt("X", c.rows.waitName(w), waitCategory, pid, tid, w.Begin)
	c.out.micros("dur", c.rows.clock.nanoseconds(int64(w.Waited)))
	c.out.object("args")
	c.rows.waitFigures(c.out, w)
	c.out.raw("}")
	c.close()
	c.count("waits")
}

func (c *chromeWriter) otherData() map[string]any {
	return map[string]any{
		"creator": strings.TrimSpace("nccl-otf2 " + c.opts.Version), "archive": c.archive.Anchor.Description,
		"begin_ns": strconv.FormatInt(c.rows.clock.since1970(otf2.Timestamp(c.rows.clock.Offset)), 10),
		"records":  c.result.Records, "left_out": c.result.LeftOut,
	}
}
