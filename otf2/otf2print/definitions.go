// SPDX-License-Identifier: Apache-2.0

package otf2print

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Definitions writes the global definitions in file order. opts may be nil.
func Definitions(w io.Writer, a *otf2.Archive, opts *Options) error {
	opts = orDefault(opts)
	out := bufio.NewWriterSize(w, 64<<10)
	out.WriteString("\n=== Global Definitions =========================================================\n\n")
	fmt.Fprintf(out, "%-27s %12s  Attributes\n", "Definition", "ID")
	out.WriteString(rule)
	p := &defPrinter{names: newNames(a.Defs, opts), zone: opts.Zone, as: opts.As}
	p.zone = cmp.Or(p.zone, time.Local)
	layouts := make(map[otf2.DefKind]*defLayout)
	eachDef(a.Defs, func(kind otf2.DefKind, i int) {
		p.names.add(kind, i)
		text, known := defTexts[kind]
		if !known {
			fmt.Fprintf(out, "%-27s\n", "UNKNOWN")
			return
		}
		v := p.names.values[kind.String()]
		if v.Kind() == reflect.Slice {
			v = v.Index(i)
		}
		if layouts[kind] == nil {
			layouts[kind] = newDefLayout(text, v.Type(), defFields[kind])
		}
		id := ""
		if self := idOf(kind, v); self.IsValid() {
			id = strconv.FormatUint(self.Uint(), 10)
		}
		opts.write(out, "%-27s %12s  %s\n", kind.UpperName(), id, string(layouts[kind].append(nil, p, v)))
	})
	return out.Flush()
}

// idOf is the field with a definition's number, none where a definition has none.
func idOf(kind otf2.DefKind, v reflect.Value) reflect.Value {
	if kind == otf2.DefParadigm {
		return v.FieldByName("Paradigm")
	}
	return v.FieldByName("Self")
}

// defPrinter writes definitions; the names are those known so far.
type defPrinter struct {
	names *names
	zone  *time.Location
	as    otf2.Version
}

// defTexts gives the text of each definition's fields. {Field} stands for a field of its struct by the field's type: a
// reference with its name, an enumeration by OTF2's name, a value by the field Type, else a number or text; or for what
// defFields has of that name.
var defTexts = map[otf2.DefKind]string{
	otf2.DefClockProperties: "Ticks per Seconds: {Resolution}, Global Offset: {Offset}, Length: {Length}, Date: " +
		"{Realtime}",
	otf2.DefString:           `"{Text}"`,
	otf2.DefParadigm:         "{Paradigm}, Name: {Name}, Class: {Class}",
	otf2.DefParadigmProperty: "Paradigm: {Paradigm}, Property: {Property}, Type: {Type}, Value: {Value}",
	otf2.DefIoParadigm: "Identification: {Identification}, Name: {Name}, Class: {Class}, Flags: {Flags}, " +
		"{Properties}",
	otf2.DefAttribute:      "Name: {Name}, Description: {Description}, Type: {Type}",
	otf2.DefSystemTreeNode: "Name: {Name}, Class: {Class}, Parent: {Parent}",
	otf2.DefLocationGroup:  "Name: {Name}, Type: {Type}, Parent: {SystemTreeParent}, Creator: {Creator}",
	otf2.DefLocation:       "Name: {Name}, Type: {Type}, # Events: {Events}, Group: {Group}",
	otf2.DefCallsite: "File: {SourceFile}, Line Number: {LineNumber}, Entered Region: {EnteredRegion}, Left " +
		"Region: {LeftRegion}",
	otf2.DefCallpath:          "Parent: {Parent}, Region: {Region}",
	otf2.DefCallpathParameter: "Callpath: {Callpath}, Parameter: {Parameter}, Type: {Type}, Value: {Value}",
	otf2.DefGroup:             "Name: {Name}, Type: {Type}, Paradigm: {Paradigm}, Flags: {Flags}, {Members}",
	otf2.DefRegion: "Name: {Name} (Aka. {CanonicalName}), Descr.: {Description}, Role: {Role}, Paradigm: {Paradigm}, " +
		"Flags: {Flags}, File: {SourceFile}, Begin: {BeginLine}, End: {EndLine}",
	otf2.DefMetricMember: "Name: {Name}, Descr.: {Description}, Type: {Type}, Mode: {Mode}, Value Type: {ValueType}, " +
		"Base: {Base}, Exponent: {Exponent}, Unit: {Unit}",
	otf2.DefMetricClass:         "Occurrence: {Occurrence}, Kind: {RecorderKind}, {Members}",
	otf2.DefMetricInstance:      "Class: {MetricClass}, Recorder: {Recorder}, Scope: {MetricScope} {Scope}",
	otf2.DefMetricClassRecorder: "Class: {Metric}, Recorder: {Recorder}",
	otf2.DefComm:                "Name: {Name}, Group: {Group}, Parent: {Parent}, Flags: {Flags}",
	otf2.DefInterComm: "name: {Name}, Group A: {GroupA}, Group B: {GroupB}, Common Communicator: {Common}, " +
		"Flags: {Flags}",
	otf2.DefParameter:          "Name: {Name}, Type: {Type}",
	otf2.DefRmaWin:             "Name: {Name}, Communicator: {Comm}, Flags: {Flags}",
	otf2.DefCartDimension:      "Name: {Name}, Size: {Size}, Periodicity: {Periodicity}",
	otf2.DefCartTopology:       "Name: {Name}, Communicator: {Communicator}, {CartDimensions}",
	otf2.DefCartCoordinate:     "Cartesian Topology: {CartTopology}, Rank: {Rank}, {Coordinates}",
	otf2.DefSourceCodeLocation: "File: {File}, Line Number: {LineNumber}",
	otf2.DefCallingContext:     "Region: {Region}, Source code location: {SourceCodeLocation}, Parent: {Parent}",
	otf2.DefInterruptGenerator: "Name: {Name}, Mode: {Mode}, Base: {Base}, Exponent: {Exponent}, Period: {Period}",
	otf2.DefIoRegularFile:      "Name: {Name}, Scope: {Scope}",
	otf2.DefIoDirectory:        "Name: {Name}, Scope: {Scope}",
	otf2.DefIoHandle: "Name: {Name}, File: {File}, I/O Paradigm: {IoParadigm}, Flags: {Flags}, " +
		"Communicator: {Comm}, Parent: {Parent}",

	otf2.DefSystemTreeNodeProperty:  "System Tree Node: {Node}, Name: {Name}, Type: {Type}, Value: {Value}",
	otf2.DefSystemTreeNodeDomain:    "System Tree Node: {Node}, Domain: {Domain}",
	otf2.DefLocationGroupProperty:   "Location Group: {LocationGroup}, Name: {Name}, Type: {Type}, Value: {Value}",
	otf2.DefLocationProperty:        "Location: {Location}, Name: {Name}, Type: {Type}, Value: {Value}",
	otf2.DefCallingContextProperty:  "Calling Context: {CallingContext}, Name: {Name}, Type: {Type}, Value: {Value}",
	otf2.DefIoFileProperty:          "File: {IoFile}, Name: {Name}, Type: {Type}, Value: {Value}",
	otf2.DefIoPreCreatedHandleState: "Handle: {IoHandle}, Access Mode: {Mode}, Status Flags: {StatusFlags}",
}

// defField writes what a field's type does not say how to; def is a pointer to the definition.
type defField func(p *defPrinter, def any) string

// fieldOf makes a defField of a function of one kind of definition.
func fieldOf[T any](f func(p *defPrinter, v *T) string) defField {
	return func(p *defPrinter, def any) string { return f(p, def.(*T)) }
}

// defFields are the fields of definitions that are not written by their types.
var defFields = map[otf2.DefKind]map[string]defField{
	otf2.DefClockProperties: {"Realtime": fieldOf((*defPrinter).date)},
	otf2.DefParadigm:        {"Paradigm": fieldOf((*defPrinter).definedParadigm)},
	otf2.DefParadigmProperty: {"Type": fieldOf((*defPrinter).paradigmType),
		"Value": fieldOf((*defPrinter).paradigmValue)},
	otf2.DefIoParadigm:     {"Properties": fieldOf((*defPrinter).ioProperties)},
	otf2.DefGroup:          {"Members": fieldOf((*defPrinter).groupMembers)},
	otf2.DefMetricMember:   {"ValueType": fieldOf((*defPrinter).valueType)},
	otf2.DefMetricClass:    {"Members": fieldOf((*defPrinter).metricMembers)},
	otf2.DefMetricInstance: {"Scope": fieldOf((*defPrinter).scope)},
	otf2.DefCartTopology:   {"CartDimensions": fieldOf((*defPrinter).dimensions)},
	otf2.DefCartCoordinate: {"Rank": fieldOf((*defPrinter).rank), "Coordinates": fieldOf((*defPrinter).coordinates)},
}

// defLayout is the prepared text of a kind of definition.
type defLayout struct {
	pieces []defPiece
	tail   string // text behind the last piece
}

// defPiece is literal text and the field behind it.
type defPiece struct {
	text  string
	own   defField // if it is not written by its type
	field int      // of the struct
	typed int      // of a value, the field with its type; else -1
	piece piece
}

// newDefLayout prepares the text of a definition with the given struct.
func newDefLayout(text string, of reflect.Type, own map[string]defField) *defLayout {
	l := new(defLayout)
	index := func(name string) int {
		f, ok := of.FieldByName(name)
		if !ok {
			panic(fmt.Sprintf("otf2print: text of %s: no field %q", of, name))
		}
		return f.Index[0]
	}
	for {
		literal, rest, ok := strings.Cut(text, "{")
		if !ok {
			l.tail = literal
			return l
		}
		name, rest, _ := strings.Cut(rest, "}")
		q := defPiece{text: literal, own: own[name], typed: -1}
		if q.own == nil {
			q.field = index(name)
			f := of.Field(q.field).Type
			if f == reflect.TypeFor[otf2.Value]() {
				q.typed = index("Type")
			}
			q.piece = pieceOf(&otf2.Field{Type: enumName(f), Encoding: encodingOf(f)})
		}
		l.pieces = append(l.pieces, q)
		text = rest
	}
}

// enumName is OTF2's name of a field's type, "" of plain numbers and texts.
func enumName(t reflect.Type) string {
	if t.PkgPath() == "" {
		return ""
	}
	return t.Name()
}

func encodingOf(t reflect.Type) otf2.Encoding {
	if t.Kind() == reflect.Int64 {
		return otf2.EncodingS64
	}
	return otf2.EncodingC64
}

// append writes the fields of a definition.
func (l *defLayout) append(b []byte, p *defPrinter, v reflect.Value) []byte {
	for i := range l.pieces {
		q := &l.pieces[i]
		b = append(b, q.text...)
		if q.own != nil {
			b = append(b, q.own(p, v.Addr().Interface())...)
			continue
		}
		switch f := v.Field(q.field); {
		case q.typed >= 0:
			b = p.names.appendValue(b, otf2.Type(v.Field(q.typed).Uint()), otf2.Value(f.Uint()))
		case f.Kind() == reflect.String:
			b = append(b, f.String()...)
		case f.CanInt():
			b = q.piece.append(b, p.names, otf2.UndefinedLocation, []uint64{uint64(f.Int())})
		default:
			b = q.piece.append(b, p.names, otf2.UndefinedLocation, []uint64{f.Uint()})
		}
	}
	return append(b, l.tail...)
}

func (p *defPrinter) str(ref otf2.StringRef) string { return p.names.ref(otf2.DefString, uint64(ref)) }

func enum(name string, v uint64) string { return string(appendEnum(nil, name, v)) }

// date is when the clock showed its first time.
func (p *defPrinter) date(v *otf2.ClockProperties) string {
	if v.Realtime == uint64(otf2.UndefinedTimestamp) {
		return "UNDEFINED"
	}
	return time.Unix(int64(v.Realtime/1e9), int64(v.Realtime%1e9)).In(p.zone).Format(
		"2006-01-02 15:04:05.000000000 -0700")
}

// definedParadigm is OTF2's name, not the one that is defined.
func (p *defPrinter) definedParadigm(v *otf2.ParadigmDef) string {
	return enum("Paradigm", uint64(v.Paradigm))
}

// rmaOnly reports whether a property is the one whose values are named as truths are.
func rmaOnly(v *otf2.ParadigmPropertyDef) bool {
	return v.Property == otf2.ParadigmPropertyRmaOnly && v.Type == otf2.TypeUint8
}

func (p *defPrinter) paradigmType(v *otf2.ParadigmPropertyDef) string {
	if rmaOnly(v) {
		return "BOOLEAN"
	}
	return enum("Type", uint64(v.Type))
}

func (p *defPrinter) paradigmValue(v *otf2.ParadigmPropertyDef) string {
	switch v.Property {
	case otf2.ParadigmPropertyCommNameTemplate, otf2.ParadigmPropertyRmaWinNameTemplate:
		if v.Type == otf2.TypeString {
			return p.str(otf2.StringRef(v.Value))
		}
	case otf2.ParadigmPropertyRmaOnly:
		if rmaOnly(v) {
			return enum("CartPeriodicity", uint64(v.Value)) // the same two names
		}
	default:
		return fmt.Sprintf("UNKNOWN PROPERTY <%d>", uint64(v.Value))
	}
	return fmt.Sprintf("TYPE MISMATCH <%d>", uint64(v.Value))
}

func (p *defPrinter) ioProperties(v *otf2.IoParadigm) string {
	n := len(v.Properties)
	text := strconv.Itoa(n) + " Properties"
	if n == 1 {
		text = "1 Property"
	}
	for i, property := range v.Properties {
		value := fmt.Sprintf("TYPE MISMATCH <%d>", uint64(v.Values[i]))
		if v.Types[i] == otf2.TypeString {
			value = p.str(otf2.StringRef(v.Values[i]))
		}
		if property != otf2.IoParadigmPropertyVersion {
			value = fmt.Sprintf("UNKNOWN I/O PROPERTY <%d>", uint64(v.Values[i]))
		}
		text += separator(i) + "(" + enum("IoParadigmProperty", uint64(property)) + "; " +
			enum("Type", uint64(v.Types[i])) + "; " + value + ")"
	}
	return text
}

// valueType is the type of a metric's values: of OTF2's types only three are allowed.
func (p *defPrinter) valueType(v *otf2.MetricMember) string {
	switch v.ValueType {
	case otf2.TypeUint64, otf2.TypeInt64, otf2.TypeDouble:
		return v.ValueType.String()
	}
	return string(appendInvalid(nil, uint64(v.ValueType)))
}

func (p *defPrinter) metricMembers(v *otf2.MetricClass) string {
	return list("Member", len(v.Members), func(i int) string {
		return p.names.ref(otf2.DefMetricMember, uint64(v.Members[i]))
	})
}

func (p *defPrinter) dimensions(v *otf2.CartTopology) string {
	n := len(v.CartDimensions)
	all := join(n, func(i int) string { return p.names.ref(otf2.DefCartDimension, uint64(v.CartDimensions[i])) })
	return strconv.Itoa(n) + plural(" Dimension", uint64(n)) + ": (" + all + ")"
}

func (p *defPrinter) rank(v *otf2.CartCoordinate) string {
	comm := otf2.UndefinedComm
	if t := p.names.defs.CartTopology(v.CartTopology); t != nil {
		comm = t.Communicator
	}
	return string(p.names.appendRank(nil, otf2.UndefinedLocation, comm, uint64(v.Rank)))
}

func (p *defPrinter) coordinates(v *otf2.CartCoordinate) string {
	n := len(v.Coordinates)
	return plural("Coordinate", uint64(n)) + ": (" +
		join(n, func(i int) string { return strconv.FormatUint(uint64(v.Coordinates[i]), 10) }) + ")"
}

// kindOfMember are the kinds of what groups hold, where it is definitions.
var kindOfMember = map[otf2.GroupType]otf2.DefKind{
	otf2.GroupTypeLocations: otf2.DefLocation, otf2.GroupTypeCommLocations: otf2.DefLocation,
	otf2.GroupTypeRegions: otf2.DefRegion, otf2.GroupTypeMetric: otf2.DefMetricMember,
}

func (p *defPrinter) groupMembers(v *otf2.Group) string {
	return list("Member", len(v.Members), func(i int) string { return p.member(v, i) })
}

// member is what a group holds at an index.
func (p *defPrinter) member(v *otf2.Group, i int) string {
	id := v.Members[i]
	if kind, isRef := kindOfMember[v.Type]; isRef {
		return p.names.ref(kind, id)
	}
	if v.Type == otf2.GroupTypeCommGroup {
		name := "INVALID"
		rank := id
		if p.as >= v32 && v.Flags&otf2.GroupFlagGlobalMembers != 0 {
			rank = uint64(i) // 3.2 names the location of the rank in place of the member's
		}
		if world := p.names.world[v.Paradigm]; world != nil && rank < uint64(len(world.Members)) {
			name = p.names.ref(otf2.DefLocation, world.Members[rank])
		}
		return strconv.FormatUint(id, 10) + " (" + name + ")"
	}
	if id == 1<<64-1 {
		return "UNDEFINED"
	}
	return strconv.FormatUint(id, 10)
}

// kindOfScope are the kinds of what metrics are of.
var kindOfScope = map[otf2.MetricScope]otf2.DefKind{
	otf2.MetricScopeLocation: otf2.DefLocation, otf2.MetricScopeLocationGroup: otf2.DefLocationGroup,
	otf2.MetricScopeSystemTreeNode: otf2.DefSystemTreeNode, otf2.MetricScopeGroup: otf2.DefGroup,
}

// scope names the scope of a metric instance.
func (p *defPrinter) scope(v *otf2.MetricInstance) string {
	if kind, isRef := kindOfScope[v.MetricScope]; isRef {
		return p.names.ref(kind, v.Scope)
	}
	return strconv.FormatUint(v.Scope, 10)
}

// list writes "2 Members: a, b".
func list(word string, n int, item func(i int) string) string {
	text := strconv.Itoa(n) + plural(" "+word, uint64(n))
	if n > 0 {
		text += ": " + join(n, item)
	}
	return text
}

func join(n int, item func(i int) string) string {
	var b []byte
	for i := range n {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(b, item(i)...)
	}
	return string(b)
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
