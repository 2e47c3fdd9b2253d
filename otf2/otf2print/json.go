// SPDX-License-Identifier: Apache-2.0

package otf2print

import (
	"bufio"
	"errors"
	"io"
	"strconv"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// JSON writes the content of an archive for programs: one object per line, with "record" saying what it is.
//
//	anchor        the anchor's numbers and texts, "properties"
//	definition    "kind" (LocationGroup), "fields"
//	mappingTable  "location", "type" (REGION), "global", and "local" if the table is sparse
//	clockOffset   "location", "time", "offset", "stdDev"
//	event         "location", "time", "kind" (MpiCollectiveEnd), "fields", "attributes" if there are any
//	snapshot      as event; "time" is the snapshot's
//	markerDef, marker, thumbnail
//
// Fields have the names of libotf2's event records, definitions those of package otf2's structs with a small first
// letter. Values:
//
//   - A reference is {"id": 3, "name": "world"}, without name where the definition has none, and with "invalid":
//     true where there is no definition; the undefined reference is null.
//   - A rank is {"rank": 1, "location": {"id": …, "name": …}}, without location where that is not known; roots that
//     are no ranks are OTF2's words: "NONE".
//   - An enumeration is OTF2's word, a number where it has none; flags are a list of them.
//   - Numbers are written in full: ids and counters may need 64 bits. Times that are not defined are null; floating
//     point numbers that JSON has no form for are "nan", "inf" and "-inf".
//   - An attribute is {"id": 0, "name": "SEQ", "type": "UINT64", "value": 5}, and so are the "values" of a Metric,
//     which have {"member": …} for id and name.
//
// Errors are as with the functions of the same name: damage does not end the output.
type JSON struct {
	a    *otf2.Archive
	opts *Options
	out  *bufio.Writer
	p    *Printer // names and layouts
	b    []byte
}

// NewJSON returns a writer for an archive. opts may be nil.
func NewJSON(w io.Writer, a *otf2.Archive, opts *Options) *JSON {
	opts = orDefault(opts)
	return &JSON{a: a, opts: opts, out: bufio.NewWriterSize(w, 64<<10), p: newEventPrinter(a, opts)}
}

// begin starts a line.
func (j *JSON) begin(record string) {
	j.b = append(append(j.b[:0], `{"record":`...), quoted(record)...)
}

// key starts a member of an object.
func (j *JSON) key(name string) {
	if last := j.b[len(j.b)-1]; last != '{' {
		j.b = append(j.b, ',')
	}
	j.b = append(appendQuoted(j.b, name), ':')
}

func (j *JSON) text(name, text string) { j.key(name); j.b = appendQuoted(j.b, text) }

func (j *JSON) number(name string, v uint64) { j.key(name); j.b = strconv.AppendUint(j.b, v, 10) }

func (j *JSON) float(name string, v float64) { j.key(name); j.b = appendJSONFloat(j.b, v) }

func (j *JSON) enum(name, enum string, v uint64) { j.key(name); j.b = appendJSONEnum(j.b, enum, v) }

func (j *JSON) ref(name string, s space, id uint64) { j.key(name); j.b = j.appendRef(j.b, s, id) }

func (j *JSON) time(name string, t uint64) { j.key(name); j.b = j.appendTime(j.b, t) }

func (j *JSON) numbers(name string, vs []uint64) {
	j.key(name)
	j.list(len(vs), func(i int) { j.b = strconv.AppendUint(j.b, vs[i], 10) })
}

// list writes an array of n elements.
func (j *JSON) list(n int, element func(i int)) {
	j.b = append(j.b, '[')
	for i := range n {
		if i > 0 {
			j.b = append(j.b, ',')
		}
		element(i)
	}
	j.b = append(j.b, ']')
}

// end writes the line.
func (j *JSON) end() error {
	j.b = append(j.b, "}\n"...)
	_, err := j.out.Write(j.b)
	return err
}

// flush ends a section.
func (j *JSON) flush(damage []error) error {
	if err := j.out.Flush(); err != nil {
		return err
	}
	return errors.Join(damage...)
}

// Anchor writes the content of the anchor file.
func (j *JSON) Anchor() error {
	n := j.a.Anchor
	j.begin("anchor")
	j.text("version", strconv.Itoa(int(n.Version[0]))+"."+strconv.Itoa(int(n.Version[1]))+"."+strconv.Itoa(
		int(n.Version[2])))
	j.number("eventChunkSize", n.EventChunkSize)
	j.number("defChunkSize", n.DefChunkSize)
	j.enum("substrate", "FileSubstrate", uint64(n.Substrate))
	j.enum("compression", "Compression", uint64(n.Compression))
	j.number("locations", n.Locations)
	j.number("globalDefs", n.GlobalDefs)
	j.text("machineName", n.MachineName)
	j.text("creator", n.Creator)
	j.text("description", n.Description)
	j.key("properties")
	j.list(len(n.Properties), func(i int) {
		j.b = append(j.b, '{')
		j.text("name", n.Properties[i].Name)
		j.text("value", n.Properties[i].Value)
		j.b = append(j.b, '}')
	})
	j.text("traceID", strconv.FormatUint(n.TraceID, 16))
	j.number("snapshots", uint64(n.Snapshots))
	j.number("thumbnails", uint64(n.Thumbnails))
	return errors.Join(j.end(), j.flush(nil))
}

// LocalDefs writes the mapping tables and clock offsets of the selected locations.
func (j *JSON) LocalDefs() error {
	var damage []error
	for _, loc := range locations(j.a, j.opts) {
		maps, clocks, err := j.a.LocalDefs(loc)
		if err != nil {
			damage = append(damage, err)
		}
		if j.opts.NoMappings {
			maps = nil
		}
		if j.opts.NoClockOffsets {
			clocks = nil
		}
		for i := range maps {
			j.begin("mappingTable")
			j.ref("location", spaceLocation, uint64(loc))
			j.text("type", maps[i].Type.String())
			if maps[i].Local != nil {
				j.numbers("local", maps[i].Local)
			}
			j.numbers("global", maps[i].Global)
			if err := j.end(); err != nil {
				return err
			}
		}
		for _, c := range clocks {
			j.begin("clockOffset")
			j.ref("location", spaceLocation, uint64(loc))
			j.number("time", uint64(c.Time))
			j.key("offset")
			j.b = strconv.AppendInt(j.b, c.Offset, 10)
			j.float("stdDev", c.StdDev)
			if err := j.end(); err != nil {
				return err
			}
		}
	}
	return j.flush(damage)
}

// Events writes the events of all selected locations in global order.
func (j *JSON) Events() error {
	var damage []error
	for e, err := range j.a.Events(&otf2.Selection{Locations: j.opts.Locations, From: j.opts.From, To: j.opts.To}) {
		if err != nil {
			damage = append(damage, err)
			continue
		}
		j.begin("event")
		j.record(e.Location, e.Time, e.Kind.String(), e.Kind.Fields(), j.p.layouts[e.Kind], e.Args, e.Attributes)
		if err := j.end(); err != nil {
			return err
		}
	}
	return j.flush(damage)
}

// Snapshots writes the snapshots of all selected locations, nothing if the archive has none.
func (j *JSON) Snapshots() error {
	if j.a.Anchor.Snapshots == 0 {
		return nil
	}
	all, damage := snapshots(j.a, j.opts)
	for i := range all {
		s := &all[i]
		if !j.p.wanted(s, j.opts) {
			continue
		}
		j.begin("snapshot")
		j.record(s.Location, s.Time, s.Kind.String(), s.Kind.Fields(), j.p.snaps[s.Kind], s.Args, s.Attributes)
		if err := j.end(); err != nil {
			return err
		}
	}
	return j.flush(damage)
}

// record writes the members of an event or snapshot record.
func (j *JSON) record(loc otf2.LocationRef, t otf2.Timestamp, kind string, fields []otf2.Field, l *layout,
	args []uint64, attributes []otf2.AttributeValue) {
	j.ref("location", spaceLocation, uint64(loc))
	j.time("time", uint64(t))
	j.text("kind", kind)
	if l != nil {
		j.key("fields")
		j.b = append(j.b, '{')
		for i := range fields {
			f := &fields[i]
			if f.Repeated {
				j.repeated(kind, f.Name, args, i)
				break
			}
			p := l.pieceFor(i)
			if p == nil {
				plain := pieceOf(f)
				p = &plain
			}
			j.key(f.Name)
			j.field(p, loc, args, args[i])
		}
		j.b = append(j.b, '}')
	}
	if len(attributes) > 0 {
		j.key("attributes")
		j.list(len(attributes), func(i int) {
			v := &attributes[i]
			j.b = j.appendRef(j.b, spaceAttribute, uint64(v.ID))
			if j.b[len(j.b)-1] == '}' {
				j.b = j.b[:len(j.b)-1] // the members join those of the reference
			} else {
				j.b = append(j.b[:len(j.b)-len("null")], `{"id":null`...)
			}
			j.typed(v.Type, v.Value())
			j.b = append(j.b, '}')
		})
	}
}

// typed writes the members type and value.
func (j *JSON) typed(typ otf2.Type, v otf2.Value) {
	j.enum("type", "Type", uint64(typ))
	j.key("value")
	j.value(typ, v)
}

// repeated writes the repetition that begins with field i: the values of a Metric, else a list of strings.
func (j *JSON) repeated(kind, name string, args []uint64, i int) {
	rest := args[i:]
	if kind != otf2.EventMetric.String() {
		j.key(name)
		j.list(len(rest), func(k int) { j.b = j.appendRef(j.b, spaceString, rest[k]) })
		return
	}
	members := j.p.names.metricMembers(otf2.MetricRef(args[i-2]))
	j.key("values")
	j.list(len(rest)/2, func(k int) {
		j.b = append(j.b, '{')
		if k < len(members) {
			j.ref("member", spaceMetricMember, uint64(members[k]))
		}
		j.typed(otf2.Type(rest[2*k]), otf2.Value(rest[2*k+1]))
		j.b = append(j.b, '}')
	})
}

// pieceFor is the piece of a field, nil if the layout does not show it.
func (l *layout) pieceFor(arg int) *piece {
	for i := range l.pieces {
		if l.pieces[i].arg == arg {
			return &l.pieces[i]
		}
	}
	return nil
}

// field writes the value of a field.
func (j *JSON) field(p *piece, at otf2.LocationRef, args []uint64, v uint64) {
	switch p.form {
	case formNumber:
		j.b = strconv.AppendUint(j.b, v, 10)
	case formSigned:
		j.b = strconv.AppendInt(j.b, int64(v), 10)
	case formMaybe:
		if uint32(v) == 1<<32-1 {
			j.b = append(j.b, "null"...)
		} else {
			j.b = strconv.AppendUint(j.b, v, 10)
		}
	case formTime:
		j.b = j.appendTime(j.b, v)
	case formRef:
		j.b = j.appendRef(j.b, p.space, v)
	case formEnum:
		j.b = appendJSONEnum(j.b, p.enum, v)
	case formFlags:
		j.b = appendJSONFlags(j.b, p.enum, v)
	case formParadigm:
		if name, ok := j.p.names.paradigms[otf2.Paradigm(v)]; ok {
			j.b = appendNamedJSON(j.b, v, name)
		} else {
			j.b = appendJSONEnum(j.b, "Paradigm", v)
		}
	case formRank, formWindowRank:
		if name, ok := otf2.EnumName("CollectiveRoot", v); ok && p.roots {
			j.b = appendQuoted(j.b, name)
			return
		}
		comm := otf2.CommRef(args[p.other])
		if p.form == formWindowRank {
			comm = j.p.names.commOfWindow(otf2.RmaWinRef(args[p.other]))
		}
		j.rank(at, comm, v)
	}
}

// Markers writes the kinds of markers and the markers in file order.
func (j *JSON) Markers() error {
	defs, markers, damage := j.a.Markers()
	for _, d := range defs {
		j.begin("markerDef")
		j.number("self", uint64(d.Self))
		j.text("group", d.Group)
		j.text("category", d.Category)
		j.enum("severity", "MarkerSeverity", uint64(d.Severity))
		if err := j.end(); err != nil {
			return err
		}
	}
	for _, m := range markers {
		j.begin("marker")
		j.number("time", uint64(m.Time))
		j.number("duration", m.Duration)
		j.number("marker", uint64(m.Marker))
		j.enum("scopeType", "MarkerScope", uint64(m.ScopeType))
		j.key("scope")
		if m.ScopeType == otf2.MarkerScopeGlobal {
			j.b = append(j.b, "null"...)
		} else {
			j.b = strconv.AppendUint(j.b, m.Scope, 10)
		}
		j.text("text", m.Text)
		if err := j.end(); err != nil {
			return err
		}
	}
	return j.flush([]error{damage})
}

// Thumbnails writes the thumbnails with their samples.
func (j *JSON) Thumbnails() error {
	damage := j.a.EachThumbnail(func(i uint32, t *otf2.Thumbnail) error {
		j.begin("thumbnail")
		j.number("id", uint64(i))
		j.text("name", t.Name)
		j.text("description", t.Description)
		j.enum("type", "ThumbnailType", uint64(t.Type))
		j.number("declaredSamples", uint64(t.Declared))
		j.numbers("refs", t.Refs)
		j.key("samples")
		j.list(len(t.Samples), func(k int) {
			j.b = append(j.b, '{')
			j.number("baseline", t.Samples[k].Baseline)
			j.numbers("values", t.Samples[k].Values)
			j.b = append(j.b, '}')
		})
		return j.end()
	})
	return j.flush([]error{damage})
}
