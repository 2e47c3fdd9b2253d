// SPDX-License-Identifier: Apache-2.0

package otf2print

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Events writes the events of all selected locations in global order. opts may be nil.
//
// Damage to an event file does not end the output: the other locations' events follow, and the errors are
// returned joined. An error of w ends it.
func Events(w io.Writer, a *otf2.Archive, opts *Options) error {
	opts = orDefault(opts)
	out := bufio.NewWriterSize(w, 64<<10)
	out.WriteString("=== Events =====================================================================\n")
	fmt.Fprintf(out, "%-32s %15s %20s  Attributes\n", "Event", "Location", "Timestamp")
	out.WriteString(rule)
	p := newEventPrinter(a, opts)
	var damage []error
	for e, err := range a.Events(&otf2.Selection{Locations: opts.Locations, From: opts.From, To: opts.To}) {
		if err != nil {
			damage = append(damage, err)
			continue
		}
		if _, err := out.Write(p.event(e)); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return errors.Join(damage...)
}

// Snapshots writes the snapshots of all selected locations; otf2-print does so after the events if there are any.
// opts may be nil. Errors are as with Events.
func Snapshots(w io.Writer, a *otf2.Archive, opts *Options) error {
	opts = orDefault(opts)
	out := bufio.NewWriterSize(w, 64<<10)
	out.WriteString("=== Snapshots ==================================================================\n")
	fmt.Fprintf(out, "%-32s %15s %20s  Attributes\n", "Snapshot", "Location", "Timestamp")
	out.WriteString(rule)
	p := newEventPrinter(a, opts)
	all, damage := snapshots(a, opts)
	for i := range all {
		out.Write(p.snapshot(&all[i], opts))
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return errors.Join(damage...)
}

// snapshots reads the snapshots of the selected locations in the order of otf2-print.
func snapshots(a *otf2.Archive, opts *Options) (all []otf2.Snapshot, damage []error) {
	for _, loc := range locations(a, opts) {
		for s, err := range a.SnapshotsOf(loc) {
			if err != nil {
				damage = append(damage, err)
				break
			}
			c := *s
			c.Args, c.Attributes = slices.Clone(s.Args), slices.Clone(s.Attributes)
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(x, y otf2.Snapshot) int {
		return cmp.Or(cmp.Compare(x.Time, y.Time), cmp.Compare(x.Location, y.Location))
	})
	return all, damage
}

func orDefault(opts *Options) *Options {
	if opts == nil {
		return &Options{}
	}
	return opts
}

// locations lists the selected locations in the order of their definitions.
func locations(a *otf2.Archive, opts *Options) []otf2.LocationRef {
	var list []otf2.LocationRef
	for i := range a.Defs.Locations {
		if loc := a.Defs.Locations[i].Self; opts.Locations == nil || slices.Contains(opts.Locations, loc) {
			list = append(list, loc)
		}
	}
	return list
}

// Printer writes single events, for output that is selected otherwise than by Events.
type Printer struct {
	names   *names
	layouts [256]*layout // of events
	snaps   [256]*layout // of snapshot records
	unwind  bool         // callers follow calling context events
	line    []byte
}

// NewPrinter returns a printer for the events of an archive.
func NewPrinter(a *otf2.Archive) *Printer { return newEventPrinter(a, &Options{}) }

// Event returns the lines of an event, valid until the next call.
func (p *Printer) Event(e *otf2.Event) []byte { return p.event(e) }

func newEventPrinter(a *otf2.Archive, opts *Options) *Printer {
	p := &Printer{names: newNames(a.Defs, opts).complete(), unwind: opts.Unwind}
	if opts.Relative {
		p.names.epoch = a.Defs.Clock.Offset
	}
	for id := range 256 {
		if k := otf2.EventKind(id); k.Known() {
			p.layouts[id] = newLayout(k.String(), k.UpperName(), k.Fields(), opts.As)
		}
		if k := otf2.SnapshotKind(id); k.Known() {
			p.snaps[id] = newLayout(k.String(), k.UpperName(), k.Fields(), opts.As)
		}
	}
	return p
}

// head writes the columns before the fields.
func (p *Printer) head(name string, loc otf2.LocationRef, t otf2.Timestamp) []byte {
	b := appendPadded(p.line[:0], name, 32)
	b = appendRight(append(b, ' '), uint64(loc), 15)
	var text [20]byte
	return appendRightText(append(b, ' '), appendTime(text[:0], uint64(t), p.names.epoch), 20)
}

// event returns the lines of an event, valid until the next call.
func (p *Printer) event(e *otf2.Event) []byte {
	l := p.layouts[e.Kind]
	if l == nil {
		return p.finish(p.head("UNKNOWN", e.Location, e.Time), e.Attributes)
	}
	b := append(p.head(l.name, e.Location, e.Time), "  "...)
	switch e.Kind {
	case otf2.EventMetric:
		b = p.metric(b, e.Args)
	case otf2.EventProgramBegin:
		b = p.program(b, e.Args)
	default:
		b = l.append(b, p.names, e.Location, e.Args)
	}
	if p.unwind {
		b = p.callers(b, e)
	}
	return p.finish(b, e.Attributes)
}

// callers writes a line for the calling context of an event and for each caller. The mark before it says what
// happened since the event before: + newly entered, * not left, nothing: no progress, ? not known.
func (p *Printer) callers(b []byte, e *otf2.Event) []byte {
	distance := uint32(1)
	switch e.Kind {
	case otf2.EventCallingContextEnter, otf2.EventCallingContextSample:
		distance = uint32(e.Args[1])
	case otf2.EventCallingContextLeave:
	default:
		return b
	}
	b = append(b, '\n')
	ref := otf2.CallingContextRef(e.Args[0])
	for i := uint32(1); ref != otf2.UndefinedCallingContext; i++ {
		c := p.names.defs.CallingContext(ref)
		b = appendPadded(b, "", 71)
		switch {
		case c == nil: // the reference has no mark there
		case distance == 1<<32-1:
			b = append(b, '?')
		case i < distance:
			b = append(b, '+')
		case i == distance:
			b = append(b, '*')
		default:
			b = append(b, ' ')
		}
		b = append(p.names.appendRef(b, otf2.DefCallingContext, uint64(ref)), '\n')
		if c == nil || int(i) > len(p.names.defs.CallingContexts) { // the second: a circle
			break
		}
		ref = c.Parent
	}
	return b[:len(b)-1] // finish ends the line
}

// snapshotMetric is the id of Metric records in snapshot files.
const snapshotMetric otf2.SnapshotKind = 26

// snapshot returns the lines of a snapshot record, none if it is outside the selected times. The time shown is
// that of the event that the record repeats.
func (p *Printer) snapshot(s *otf2.Snapshot, opts *Options) []byte {
	l := p.snaps[s.Kind]
	if l == nil {
		return p.finish(p.head("UNKNOWN", s.Location, s.Time), s.Attributes)
	}
	if !p.wanted(s, opts) {
		return nil
	}
	t := s.Time
	if !framing(s) {
		t = otf2.Timestamp(s.Args[0])
	}
	b := append(p.head(l.name, s.Location, t), "  "...)
	if s.Kind == snapshotMetric {
		b = p.metric(b, s.Args[1:])
	} else {
		b = l.append(b, p.names, s.Location, s.Args)
	}
	return p.finish(b, s.Attributes)
}

// framing reports whether a record begins or ends a snapshot.
func framing(s *otf2.Snapshot) bool {
	return s.Kind == otf2.SnapshotStart || s.Kind == otf2.SnapshotEnd
}

// wanted reports whether a snapshot and the event that its record repeats are within the selected times.
func (p *Printer) wanted(s *otf2.Snapshot, opts *Options) bool {
	within := func(t otf2.Timestamp) bool { return t >= opts.From && (opts.To == 0 || t <= opts.To) }
	return within(s.Time) && (!s.Kind.Known() || framing(s) || within(otf2.Timestamp(s.Args[0])))
}

// finish ends the line and writes the attributes' one.
func (p *Printer) finish(b []byte, attributes []otf2.AttributeValue) []byte {
	b = append(b, '\n')
	if len(attributes) > 0 {
		b = appendPadded(b, "", 70)
		b = append(b, " ADDITIONAL ATTRIBUTES: "...)
		for i, v := range attributes {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = p.names.appendRef(append(b, '('), otf2.DefAttribute, uint64(v.ID))
			b = appendEnum(append(b, "; "...), "Type", uint64(v.Type))
			b = p.names.appendValue(append(b, "; "...), v.Type, v.Value())
			b = append(b, ')')
		}
		b = append(b, '\n')
	}
	p.line = b
	return b
}

// metric writes the fields of a Metric: metric, number of values, then type and value of each.
func (p *Printer) metric(b []byte, args []uint64) []byte {
	b = p.names.appendRef(append(b, "Metric: "...), metricKind, args[0])
	b = strconv.AppendUint(append(b, ", "...), args[1], 10)
	b = append(b, plural(" Value", args[1])...)
	members := p.names.metricMembers(otf2.MetricRef(args[0]))
	for i, values := 0, args[2:]; len(values) >= 2; i, values = i+1, values[2:] {
		b = append(b, separator(i)...)
		b = append(b, '(')
		if i < len(members) {
			b = p.names.appendRef(b, otf2.DefMetricMember, uint64(members[i]))
		} else {
			b = append(b, "INVALID"...)
		}
		switch t := otf2.Type(values[0]); t {
		case otf2.TypeInt64, otf2.TypeUint64, otf2.TypeDouble:
			b = appendEnum(append(b, "; "...), "Type", uint64(t))
			b = p.names.appendValue(append(b, "; "...), t, otf2.Value(values[1]))
		default:
			b = appendInvalid(append(b, "; "...), uint64(t))
			b = fmt.Appendf(b, "; %08x", values[1])
		}
		b = append(b, ')')
	}
	return b
}

// program writes the fields of a ProgramBegin.
func (p *Printer) program(b []byte, args []uint64) []byte {
	b = p.names.appendRef(append(b, "Name: "...), otf2.DefString, args[0])
	b = strconv.AppendUint(append(b, ", "...), args[1], 10)
	b = append(b, plural(" Argument", args[1])...)
	for i, arg := range args[2:] {
		b = p.names.appendRef(append(b, separator(i)...), otf2.DefString, arg)
	}
	return b
}

// metricMembers returns the members of a metric class or of an instance's class.
func (n *names) metricMembers(ref otf2.MetricRef) []otf2.MetricMemberRef {
	if m := n.defs.MetricInstance(ref); m != nil {
		ref = m.MetricClass
	}
	if c := n.defs.MetricClass(ref); c != nil {
		return c.Members
	}
	return nil
}

func plural(word string, n uint64) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

func separator(i int) string {
	if i == 0 {
		return ": "
	}
	return ", "
}
