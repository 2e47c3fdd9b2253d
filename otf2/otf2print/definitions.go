// SPDX-License-Identifier: Apache-2.0

package otf2print

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Definitions writes the global definitions in file order. opts may be nil.
func Definitions(w io.Writer, a *otf2.Archive, opts *Options) error {
	opts = orDefault(opts)
	out := bufio.NewWriterSize(w, 64<<10)
	out.WriteString("\n=== Global Definitions =========================================================\n\n")
	printable.Fprintf(out, "%-27s %12s  Attributes\n", "Definition", "ID")
	out.WriteString(rule)
	p := &defPrinter{names: newNames(a.Defs), out: out, zone: opts.Zone, as: opts.As}
	if p.zone == nil {
		p.zone = time.Local
	}
	eachDef(a.Defs, func(kind otf2.DefKind, i int) {
		p.names.add(kind, i)
		p.kind = kind.UpperName()
		p.print(kind, i)
	})
	return out.Flush()
}

// defPrinter writes definitions; the names are those known so far.
type defPrinter struct {
	names *names
	out   *bufio.Writer
	zone  *time.Location
	kind  string
	as    otf2.Version
}

// row writes the line of a definition with an id.
func (p *defPrinter) row(self uint64, format string, args ...any) {
	printable.Fprintf(p.out, "%-27s %12d  "+format+"\n", append([]any{p.kind, self}, args...)...)
}

// plain writes the line of a definition without id.
func (p *defPrinter) plain(format string, args ...any) {
	printable.Fprintf(p.out, "%-27s %12s  "+format+"\n", append([]any{p.kind, ""}, args...)...)
}

func (p *defPrinter) str(ref otf2.StringRef) string { return p.names.ref(spaceString, uint64(ref)) }

func (p *defPrinter) value(typ otf2.Type, v otf2.Value) string {
	return string(p.names.appendValue(nil, typ, v))
}

func (p *defPrinter) paradigm(v otf2.Paradigm) string {
	return string(p.names.appendParadigm(nil, v))
}

func enum(name string, v uint64) string  { return string(appendEnum(nil, name, v)) }
func flags(name string, v uint64) string { return string(appendFlags(nil, name, v)) }

// print writes definition i of a kind.
func (p *defPrinter) print(kind otf2.DefKind, i int) {
	d, n := p.names.defs, p.names
	switch kind {
	case otf2.DefClockProperties:
		p.clock(&d.Clock)
	case otf2.DefString:
		v := &d.Strings[i]
		p.row(uint64(v.Self), "\"%s\"", v.Text)
	case otf2.DefParadigm:
		v := &d.Paradigms[i]
		p.row(uint64(v.Paradigm), "%s, Name: %s, Class: %s", enum("Paradigm", uint64(v.Paradigm)), p.str(v.Name), enum("ParadigmClass", uint64(v.Class)))
	case otf2.DefParadigmProperty:
		p.paradigmProperty(&d.ParadigmProperties[i])
	case otf2.DefIoParadigm:
		p.ioParadigm(&d.IoParadigms[i])
	case otf2.DefAttribute:
		v := &d.Attributes[i]
		p.row(uint64(v.Self), "Name: %s, Description: %s, Type: %s", p.str(v.Name), p.str(v.Description), enum("Type", uint64(v.Type)))
	case otf2.DefSystemTreeNode:
		v := &d.SystemTreeNodes[i]
		p.row(uint64(v.Self), "Name: %s, Class: %s, Parent: %s", p.str(v.Name), p.str(v.Class), n.ref(spaceSystemTreeNode, uint64(v.Parent)))
	case otf2.DefSystemTreeNodeProperty:
		v := &d.SystemTreeNodeProperties[i]
		p.plain("System Tree Node: %s, Name: %s, Type: %s, Value: %s", n.ref(spaceSystemTreeNode, uint64(v.Node)), p.str(v.Name), enum("Type", uint64(v.Type)), p.value(v.Type, v.Value))
	case otf2.DefSystemTreeNodeDomain:
		v := &d.SystemTreeNodeDomains[i]
		p.plain("System Tree Node: %s, Domain: %s", n.ref(spaceSystemTreeNode, uint64(v.Node)), enum("SystemTreeDomain", uint64(v.Domain)))
	case otf2.DefLocationGroup:
		v := &d.LocationGroups[i]
		p.row(uint64(v.Self), "Name: %s, Type: %s, Parent: %s, Creator: %s", p.str(v.Name), enum("LocationGroupType", uint64(v.Type)),
			n.ref(spaceSystemTreeNode, uint64(v.SystemTreeParent)), n.ref(spaceLocationGroup, uint64(v.Creator)))
	case otf2.DefLocationGroupProperty:
		v := &d.LocationGroupProperties[i]
		p.plain("Location Group: %s, Name: %s, Type: %s, Value: %s", n.ref(spaceLocationGroup, uint64(v.LocationGroup)), p.str(v.Name), enum("Type", uint64(v.Type)), p.value(v.Type, v.Value))
	case otf2.DefLocation:
		v := &d.Locations[i]
		p.row(uint64(v.Self), "Name: %s, Type: %s, # Events: %d, Group: %s", p.str(v.Name), enum("LocationType", uint64(v.Type)), v.Events, n.ref(spaceLocationGroup, uint64(v.Group)))
	case otf2.DefLocationProperty:
		v := &d.LocationProperties[i]
		p.plain("Location: %s, Name: %s, Type: %s, Value: %s", n.ref(spaceLocation, uint64(v.Location)), p.str(v.Name), enum("Type", uint64(v.Type)), p.value(v.Type, v.Value))
	case otf2.DefRegion:
		v := &d.Regions[i]
		p.row(uint64(v.Self), "Name: %s (Aka. %s), Descr.: %s, Role: %s, Paradigm: %s, Flags: %s, File: %s, Begin: %d, End: %d",
			p.str(v.Name), p.str(v.CanonicalName), p.str(v.Description), enum("RegionRole", uint64(v.Role)), p.paradigm(v.Paradigm),
			flags("RegionFlag", uint64(v.Flags)), p.str(v.SourceFile), v.BeginLine, v.EndLine)
	case otf2.DefCallsite:
		v := &d.Callsites[i]
		p.row(uint64(v.Self), "File: %s, Line Number: %d, Entered Region: %s, Left Region: %s", p.str(v.SourceFile), v.LineNumber,
			n.ref(spaceRegion, uint64(v.EnteredRegion)), n.ref(spaceRegion, uint64(v.LeftRegion)))
	case otf2.DefCallpath:
		v := &d.Callpaths[i]
		p.row(uint64(v.Self), "Parent: %s, Region: %s", n.ref(spaceCallpath, uint64(v.Parent)), n.ref(spaceRegion, uint64(v.Region)))
	case otf2.DefCallpathParameter:
		v := &d.CallpathParameters[i]
		p.plain("Callpath: %s, Parameter: %s, Type: %s, Value: %s", n.ref(spaceCallpath, uint64(v.Callpath)), n.ref(spaceParameter, uint64(v.Parameter)),
			enum("Type", uint64(v.Type)), p.value(v.Type, v.Value))
	case otf2.DefGroup:
		p.group(&d.Groups[i])
	case otf2.DefMetricMember:
		v := &d.MetricMembers[i]
		value := string(appendInvalid(nil, uint64(v.ValueType)))
		switch v.ValueType {
		case otf2.TypeUint64, otf2.TypeInt64, otf2.TypeDouble:
			value = v.ValueType.String()
		}
		p.row(uint64(v.Self), "Name: %s, Descr.: %s, Type: %s, Mode: %s, Value Type: %s, Base: %s, Exponent: %d, Unit: %s", p.str(v.Name), p.str(v.Description),
			enum("MetricType", uint64(v.Type)), enum("MetricMode", uint64(v.Mode)), value, enum("Base", uint64(v.Base)), v.Exponent, p.str(v.Unit))
	case otf2.DefMetricClass:
		v := &d.MetricClasses[i]
		p.row(uint64(v.Self), "Occurrence: %s, Kind: %s, %s", enum("MetricOccurrence", uint64(v.Occurrence)), enum("RecorderKind", uint64(v.RecorderKind)),
			list("Member", len(v.Members), func(i int) string { return n.ref(spaceMetricMember, uint64(v.Members[i])) }))
	case otf2.DefMetricInstance:
		v := &d.MetricInstances[i]
		p.row(uint64(v.Self), "Class: %s, Recorder: %s, Scope: %s %s", n.ref(spaceMetric, uint64(v.MetricClass)), n.ref(spaceLocation, uint64(v.Recorder)),
			enum("MetricScope", uint64(v.MetricScope)), p.scope(v.MetricScope, v.Scope))
	case otf2.DefMetricClassRecorder:
		v := &d.MetricClassRecorders[i]
		p.plain("Class: %s, Recorder: %s", n.ref(spaceMetric, uint64(v.Metric)), n.ref(spaceLocation, uint64(v.Recorder)))
	case otf2.DefComm:
		v := &d.Comms[i]
		p.row(uint64(v.Self), "Name: %s, Group: %s, Parent: %s, Flags: %s", p.str(v.Name), n.ref(spaceGroup, uint64(v.Group)), n.ref(spaceComm, uint64(v.Parent)), flags("CommFlag", uint64(v.Flags)))
	case otf2.DefInterComm:
		v := &d.InterComms[i]
		p.row(uint64(v.Self), "name: %s, Group A: %s, Group B: %s, Common Communicator: %s, Flags: %s", p.str(v.Name), n.ref(spaceGroup, uint64(v.GroupA)),
			n.ref(spaceGroup, uint64(v.GroupB)), n.ref(spaceComm, uint64(v.Common)), flags("CommFlag", uint64(v.Flags)))
	case otf2.DefParameter:
		v := &d.Parameters[i]
		p.row(uint64(v.Self), "Name: %s, Type: %s", p.str(v.Name), enum("ParameterType", uint64(v.Type)))
	case otf2.DefRmaWin:
		v := &d.RmaWins[i]
		p.row(uint64(v.Self), "Name: %s, Communicator: %s, Flags: %s", p.str(v.Name), n.ref(spaceComm, uint64(v.Comm)), flags("RmaWinFlag", uint64(v.Flags)))
	case otf2.DefCartDimension:
		v := &d.CartDimensions[i]
		p.row(uint64(v.Self), "Name: %s, Size: %d, Periodicity: %s", p.str(v.Name), v.Size, enum("CartPeriodicity", uint64(v.Periodicity)))
	case otf2.DefCartTopology:
		v := &d.CartTopologies[i]
		p.row(uint64(v.Self), "Name: %s, Communicator: %s, %d%s: (%s)", p.str(v.Name), n.ref(spaceComm, uint64(v.Communicator)), len(v.CartDimensions),
			plural(" Dimension", uint64(len(v.CartDimensions))), join(len(v.CartDimensions), func(i int) string { return n.ref(spaceCartDimension, uint64(v.CartDimensions[i])) }))
	case otf2.DefCartCoordinate:
		v := &d.CartCoordinates[i]
		comm := otf2.UndefinedComm
		if t := d.CartTopology(v.CartTopology); t != nil {
			comm = t.Communicator
		}
		p.plain("Cartesian Topology: %s, Rank: %s, %s: (%s)", n.ref(spaceCartTopology, uint64(v.CartTopology)),
			n.appendRank(nil, otf2.UndefinedLocation, comm, uint64(v.Rank)), plural("Coordinate", uint64(len(v.Coordinates))),
			join(len(v.Coordinates), func(i int) string { return strconv.FormatUint(uint64(v.Coordinates[i]), 10) }))
	case otf2.DefSourceCodeLocation:
		v := &d.SourceCodeLocations[i]
		p.row(uint64(v.Self), "File: %s, Line Number: %d", p.str(v.File), v.LineNumber)
	case otf2.DefCallingContext:
		v := &d.CallingContexts[i]
		p.row(uint64(v.Self), "Region: %s, Source code location: %s, Parent: %s", n.ref(spaceRegion, uint64(v.Region)),
			n.ref(spaceSourceCodeLocation, uint64(v.SourceCodeLocation)), n.ref(spaceCallingContext, uint64(v.Parent)))
	case otf2.DefCallingContextProperty:
		v := &d.CallingContextProperties[i]
		p.plain("Calling Context: %s, Name: %s, Type: %s, Value: %s", n.ref(spaceCallingContext, uint64(v.CallingContext)), p.str(v.Name), enum("Type", uint64(v.Type)), p.value(v.Type, v.Value))
	case otf2.DefInterruptGenerator:
		v := &d.InterruptGenerators[i]
		p.row(uint64(v.Self), "Name: %s, Mode: %s, Base: %s, Exponent: %d, Period: %d", p.str(v.Name), enum("InterruptGeneratorMode", uint64(v.Mode)),
			enum("Base", uint64(v.Base)), v.Exponent, v.Period)
	case otf2.DefIoFileProperty:
		v := &d.IoFileProperties[i]
		p.plain("File: %s, Name: %s, Type: %s, Value: %s", n.ref(spaceIoFile, uint64(v.IoFile)), p.str(v.Name), enum("Type", uint64(v.Type)), p.value(v.Type, v.Value))
	case otf2.DefIoRegularFile:
		v := &d.IoRegularFiles[i]
		p.row(uint64(v.Self), "Name: %s, Scope: %s", p.str(v.Name), n.ref(spaceSystemTreeNode, uint64(v.Scope)))
	case otf2.DefIoDirectory:
		v := &d.IoDirectories[i]
		p.row(uint64(v.Self), "Name: %s, Scope: %s", p.str(v.Name), n.ref(spaceSystemTreeNode, uint64(v.Scope)))
	case otf2.DefIoHandle:
		v := &d.IoHandles[i]
		p.row(uint64(v.Self), "Name: %s, File: %s, I/O Paradigm: %s, Flags: %s, Communicator: %s, Parent: %s", p.str(v.Name), n.ref(spaceIoFile, uint64(v.File)),
			n.ref(spaceIoParadigm, uint64(v.IoParadigm)), flags("IoHandleFlag", uint64(v.Flags)), n.ref(spaceComm, uint64(v.Comm)), n.ref(spaceIoHandle, uint64(v.Parent)))
	case otf2.DefIoPreCreatedHandleState:
		v := &d.IoPreCreatedHandleStates[i]
		p.plain("Handle: %s, Access Mode: %s, Status Flags: %s", n.ref(spaceIoHandle, uint64(v.IoHandle)), enum("IoAccessMode", uint64(v.Mode)), flags("IoStatusFlag", uint64(v.StatusFlags)))
	default:
		printable.Fprintf(p.out, "%-27s\n", "UNKNOWN")
	}
}

func (p *defPrinter) clock(v *otf2.ClockProperties) {
	date := "UNDEFINED"
	if v.Realtime != uint64(otf2.UndefinedTimestamp) {
		date = time.Unix(int64(v.Realtime/1e9), int64(v.Realtime%1e9)).In(p.zone).Format("2006-01-02 15:04:05.000000000 -0700")
	}
	p.plain("Ticks per Seconds: %d, Global Offset: %d, Length: %d, Date: %s", v.Resolution, v.Offset, v.Length, date)
}

func (p *defPrinter) paradigmProperty(v *otf2.ParadigmPropertyDef) {
	typ, value := enum("Type", uint64(v.Type)), fmt.Sprintf("TYPE MISMATCH <%d>", uint64(v.Value))
	switch v.Property {
	case otf2.ParadigmPropertyCommNameTemplate, otf2.ParadigmPropertyRmaWinNameTemplate:
		if v.Type == otf2.TypeString {
			value = p.str(otf2.StringRef(v.Value))
		}
	case otf2.ParadigmPropertyRmaOnly:
		if v.Type == otf2.TypeUint8 {
			typ, value = "BOOLEAN", enum("CartPeriodicity", uint64(v.Value)) // the same two names
		}
	default:
		value = fmt.Sprintf("UNKNOWN PROPERTY <%d>", uint64(v.Value))
	}
	p.plain("Paradigm: %s, Property: %s, Type: %s, Value: %s", p.paradigm(v.Paradigm), enum("ParadigmProperty", uint64(v.Property)), typ, value)
}

func (p *defPrinter) ioParadigm(v *otf2.IoParadigm) {
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
		text += separator(i) + "(" + enum("IoParadigmProperty", uint64(property)) + "; " + enum("Type", uint64(v.Types[i])) + "; " + value + ")"
	}
	p.row(uint64(v.Self), "Identification: %s, Name: %s, Class: %s, Flags: %s, %s", p.str(v.Identification), p.str(v.Name),
		enum("IoParadigmClass", uint64(v.Class)), flags("IoParadigmFlag", uint64(v.Flags)), text)
}

func (p *defPrinter) group(v *otf2.Group) {
	n := p.names
	member := func(i int) string {
		id := v.Members[i]
		switch v.Type {
		case otf2.GroupTypeLocations, otf2.GroupTypeCommLocations:
			return n.ref(spaceLocation, id)
		case otf2.GroupTypeRegions:
			return n.ref(spaceRegion, id)
		case otf2.GroupTypeMetric:
			return n.ref(spaceMetricMember, id)
		case otf2.GroupTypeCommGroup:
			name := "INVALID"
			rank := id
			if p.as >= v32 && v.Flags&otf2.GroupFlagGlobalMembers != 0 {
				rank = uint64(i) // 3.2 names the location of the rank in place of the member's
			}
			if world := n.world[v.Paradigm]; world != nil && rank < uint64(len(world.Members)) {
				name = n.ref(spaceLocation, world.Members[rank])
			}
			return strconv.FormatUint(id, 10) + " (" + name + ")"
		}
		if id == 1<<64-1 {
			return "UNDEFINED"
		}
		return strconv.FormatUint(id, 10)
	}
	p.row(uint64(v.Self), "Name: %s, Type: %s, Paradigm: %s, Flags: %s, %s", p.str(v.Name), enum("GroupType", uint64(v.Type)), p.paradigm(v.Paradigm),
		flags("GroupFlag", uint64(v.Flags)), list("Member", len(v.Members), member))
}

// scope names the scope of a metric instance.
func (p *defPrinter) scope(typ otf2.MetricScope, id uint64) string {
	switch typ {
	case otf2.MetricScopeLocation:
		return p.names.ref(spaceLocation, id)
	case otf2.MetricScopeLocationGroup:
		return p.names.ref(spaceLocationGroup, id)
	case otf2.MetricScopeSystemTreeNode:
		return p.names.ref(spaceSystemTreeNode, id)
	case otf2.MetricScopeGroup:
		return p.names.ref(spaceGroup, id)
	}
	return strconv.FormatUint(id, 10)
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
