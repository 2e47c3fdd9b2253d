// SPDX-License-Identifier: Apache-2.0

package otf2print

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode"

	"ncclotf2/otf2"
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
	j.text("version", strconv.Itoa(int(n.Version[0]))+"."+strconv.Itoa(int(n.Version[1]))+"."+strconv.Itoa(int(n.Version[2])))
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

// Definitions writes the global definitions in file order.
func (j *JSON) Definitions() error {
	d := definitionValues(j.a.Defs)
	var err error
	eachDef(j.a.Defs, func(kind otf2.DefKind, i int) {
		if err != nil {
			return
		}
		j.begin("definition")
		j.text("kind", kind.String())
		if values, known := d[kind.String()]; known {
			v := values
			if v.Kind() == reflect.Slice {
				v = v.Index(i)
			}
			j.key("fields")
			j.definition(v)
		}
		err = j.end()
	})
	return errors.Join(err, j.flush(nil))
}

// definitionValues finds the definitions of each kind by the name of its struct.
func definitionValues(defs *otf2.Definitions) map[string]reflect.Value {
	all := map[string]reflect.Value{}
	v := reflect.ValueOf(defs).Elem()
	for i := range v.NumField() {
		if !v.Type().Field(i).IsExported() {
			continue
		}
		t := v.Field(i).Type()
		if t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		if t.Kind() == reflect.Struct && t.Name() != "Record" {
			// ParadigmDef and ParadigmPropertyDef leave the plain names to enumerations.
			all[strings.TrimSuffix(t.Name(), "Def")] = v.Field(i)
		}
	}
	return all
}

// definition writes the fields of a definition's struct.
func (j *JSON) definition(v reflect.Value) {
	j.b = append(j.b, '{')
	for i := range v.NumField() {
		field := v.Type().Field(i)
		f := v.Field(i)
		j.key(lowerFirst(field.Name))
		switch {
		case field.Name == "Self":
			j.b = strconv.AppendUint(j.b, f.Uint(), 10)
		case field.Name == "Scope" && v.FieldByName("MetricScope").IsValid():
			j.scope(otf2.MetricScope(v.FieldByName("MetricScope").Uint()), f.Uint())
		case field.Name == "Members" && v.FieldByName("Paradigm").IsValid():
			j.members(v.Addr().Interface().(*otf2.Group))
		case field.Name == "Value":
			j.value(otf2.Type(v.FieldByName("Type").Uint()), otf2.Value(f.Uint()))
		case field.Name == "Values":
			j.list(f.Len(), func(k int) {
				j.value(otf2.Type(v.FieldByName("Types").Index(k).Uint()), otf2.Value(f.Index(k).Uint()))
			})
		case field.Name == "Rank":
			comm := otf2.UndefinedComm
			if t := j.a.Defs.CartTopology(otf2.CartTopologyRef(v.FieldByName("CartTopology").Uint())); t != nil {
				comm = t.Communicator
			}
			j.rank(otf2.UndefinedLocation, comm, f.Uint())
		case field.Name == "Realtime":
			if f.Uint() == uint64(otf2.UndefinedTimestamp) {
				j.b = append(j.b, "null"...)
			} else {
				j.b = strconv.AppendUint(j.b, f.Uint(), 10)
			}
		default:
			j.goValue(f)
		}
	}
	j.b = append(j.b, '}')
}

// goValue writes a field by its Go type.
func (j *JSON) goValue(f reflect.Value) {
	switch f.Kind() {
	case reflect.String:
		j.b = appendQuoted(j.b, f.String())
	case reflect.Int64:
		j.b = strconv.AppendInt(j.b, f.Int(), 10)
	case reflect.Slice:
		j.list(f.Len(), func(i int) { j.goValue(f.Index(i)) })
	default:
		name := f.Type().Name()
		if s, isRef := spaceOf[name]; isRef {
			j.b = j.appendRef(j.b, s, f.Uint())
		} else if isFlags(name) {
			j.b = appendJSONFlags(j.b, name, f.Uint())
		} else {
			j.b = appendJSONEnum(j.b, name, f.Uint()) // a plain number is one without a name
		}
	}
}

// members writes what a group holds.
func (j *JSON) members(g *otf2.Group) {
	spaceOfGroup := map[otf2.GroupType]space{
		otf2.GroupTypeLocations: spaceLocation, otf2.GroupTypeCommLocations: spaceLocation,
		otf2.GroupTypeRegions: spaceRegion, otf2.GroupTypeMetric: spaceMetricMember,
	}
	s, isRef := spaceOfGroup[g.Type]
	world := j.p.names.world[g.Paradigm]
	j.list(len(g.Members), func(i int) {
		id := g.Members[i]
		switch {
		case isRef:
			j.b = j.appendRef(j.b, s, id)
		case g.Type == otf2.GroupTypeCommGroup:
			j.b = strconv.AppendUint(append(j.b, `{"index":`...), id, 10)
			if world != nil && id < uint64(len(world.Members)) {
				j.ref("location", spaceLocation, world.Members[id])
			}
			j.b = append(j.b, '}')
		default:
			j.b = strconv.AppendUint(j.b, id, 10)
		}
	})
}

// scope writes the scope of a metric instance.
func (j *JSON) scope(typ otf2.MetricScope, id uint64) {
	spaceOfScope := map[otf2.MetricScope]space{
		otf2.MetricScopeLocation: spaceLocation, otf2.MetricScopeLocationGroup: spaceLocationGroup,
		otf2.MetricScopeSystemTreeNode: spaceSystemTreeNode, otf2.MetricScopeGroup: spaceGroup,
	}
	if s, isRef := spaceOfScope[typ]; isRef {
		j.b = j.appendRef(j.b, s, id)
	} else {
		j.b = strconv.AppendUint(j.b, id, 10)
	}
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
func (j *JSON) record(loc otf2.LocationRef, t otf2.Timestamp, kind string, fields []otf2.Field, l *layout, args []uint64, attributes []otf2.AttributeValue) {
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

// rank writes a rank of a communicator with its location.
func (j *JSON) rank(at otf2.LocationRef, comm otf2.CommRef, rank uint64) {
	if uint32(rank) == 1<<32-1 {
		j.b = append(j.b, "null"...)
		return
	}
	j.b = strconv.AppendUint(append(j.b, `{"rank":`...), rank, 10)
	if loc, ok := j.p.names.rankLocation(at, comm, rank); ok {
		j.ref("location", spaceLocation, uint64(loc))
	}
	j.b = append(j.b, '}')
}

// value writes an attribute or property value.
func (j *JSON) value(typ otf2.Type, v otf2.Value) {
	switch typ {
	case otf2.TypeInt8, otf2.TypeInt16, otf2.TypeInt32, otf2.TypeInt64:
		j.b = strconv.AppendInt(j.b, int64(v), 10)
	case otf2.TypeFloat:
		j.b = appendJSONFloat(j.b, float64(v.Float()))
	case otf2.TypeDouble:
		j.b = appendJSONFloat(j.b, v.Double())
	default:
		if s, isRef := spaceOfType[typ]; isRef {
			j.b = j.appendRef(j.b, s, uint64(v))
		} else {
			j.b = strconv.AppendUint(j.b, uint64(v), 10)
		}
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
	var damage []error
	for i := range j.a.Anchor.Thumbnails {
		t, err := j.a.Thumbnail(i)
		if err != nil {
			damage = append(damage, err)
			continue
		}
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
		if err := j.end(); err != nil {
			return err
		}
	}
	return j.flush(damage)
}

func (j *JSON) appendRef(b []byte, s space, id uint64) []byte {
	if undefined(s, id) {
		return append(b, "null"...)
	}
	e := j.p.names.tables[s].get(id)
	switch {
	case !e.known:
		return append(strconv.AppendUint(append(b, `{"id":`...), id, 10), `,"invalid":true}`...)
	case !e.named:
		return append(strconv.AppendUint(append(b, `{"id":`...), id, 10), '}')
	}
	return appendNamedJSON(b, id, e.name)
}

func appendNamedJSON(b []byte, id uint64, name string) []byte {
	b = strconv.AppendUint(append(b, `{"id":`...), id, 10)
	return append(appendQuoted(append(b, `,"name":`...), name), '}')
}

func (j *JSON) appendTime(b []byte, t uint64) []byte {
	if t == uint64(otf2.UndefinedTimestamp) {
		return append(b, "null"...)
	}
	return appendTime(b, t, j.p.names.epoch)
}

func appendJSONEnum(b []byte, enum string, v uint64) []byte {
	if name, ok := otf2.EnumName(enum, v); ok {
		return appendQuoted(b, name)
	}
	return strconv.AppendUint(b, v, 10)
}

// appendJSONFlags writes a list of flags, bits without a name as a number.
func appendJSONFlags(b []byte, enum string, v uint64) []byte {
	b = append(b, '[')
	flags, rest := otf2.EnumFlags(enum, v)
	for i, f := range flags {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendQuoted(b, f)
	}
	if rest != 0 {
		if len(flags) > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, rest, 10)
	}
	return append(b, ']')
}

func appendJSONFloat(b []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(b, `"nan"`...)
	case math.IsInf(v, 1):
		return append(b, `"inf"`...)
	case math.IsInf(v, -1):
		return append(b, `"-inf"`...)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

func quoted(s string) []byte { return appendQuoted(nil, s) }

// appendQuoted writes a JSON string. Bytes that are no UTF-8 become U+FFFD.
func appendQuoted(b []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			q, err := json.Marshal(s) // never fails for a string
			if err != nil {
				panic(err)
			}
			return append(b, q...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

func lowerFirst(s string) string {
	r := []rune(s)
	r[0] = unicode.ToLower(r[0])
	return string(r)
}
