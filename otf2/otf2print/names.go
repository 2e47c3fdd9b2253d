// SPDX-License-Identifier: Apache-2.0

package otf2print

import (
	"path"
	"strconv"

	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// space is an id space of definitions.
type space uint8

const (
	spaceString space = iota
	spaceAttribute
	spaceSystemTreeNode
	spaceLocationGroup
	spaceLocation
	spaceRegion
	spaceCallsite
	spaceCallpath
	spaceGroup
	spaceMetric
	spaceMetricMember
	spaceComm
	spaceParameter
	spaceRmaWin
	spaceCartDimension
	spaceCartTopology
	spaceSourceCodeLocation
	spaceCallingContext
	spaceInterruptGenerator
	spaceIoFile
	spaceIoHandle
	spaceIoParadigm
	spaces
)

// spaceOf finds the id space of a field by its type.
var spaceOf = map[string]space{
	"StringRef": spaceString, "AttributeRef": spaceAttribute, "SystemTreeNodeRef": spaceSystemTreeNode,
	"LocationGroupRef": spaceLocationGroup, "LocationRef": spaceLocation, "RegionRef": spaceRegion,
	"CallsiteRef": spaceCallsite, "CallpathRef": spaceCallpath, "GroupRef": spaceGroup, "MetricRef": spaceMetric,
	"MetricMemberRef": spaceMetricMember, "CommRef": spaceComm, "ParameterRef": spaceParameter, "RmaWinRef": spaceRmaWin,
	"CartDimensionRef": spaceCartDimension, "CartTopologyRef": spaceCartTopology,
	"SourceCodeLocationRef": spaceSourceCodeLocation, "CallingContextRef": spaceCallingContext,
	"InterruptGeneratorRef": spaceInterruptGenerator, "IoFileRef": spaceIoFile, "IoHandleRef": spaceIoHandle,
	"IoParadigmRef": spaceIoParadigm,
}

// spaceOfType finds the id space of an attribute value's type.
var spaceOfType = map[otf2.Type]space{
	otf2.TypeString: spaceString, otf2.TypeAttribute: spaceAttribute, otf2.TypeLocation: spaceLocation,
	otf2.TypeRegion: spaceRegion, otf2.TypeGroup: spaceGroup, otf2.TypeMetric: spaceMetric, otf2.TypeComm: spaceComm,
	otf2.TypeParameter: spaceParameter, otf2.TypeRmaWin: spaceRmaWin,
	otf2.TypeSourceCodeLocation: spaceSourceCodeLocation, otf2.TypeCallingContext: spaceCallingContext,
	otf2.TypeInterruptGenerator: spaceInterruptGenerator, otf2.TypeIoFile: spaceIoFile,
	otf2.TypeIoHandle: spaceIoHandle, otf2.TypeLocationGroup: spaceLocationGroup,
}

// entry is a definition's name; known ones may have none.
type entry struct {
	known, named bool
	name         string
}

// table holds the names of one id space, small ids in a list.
type table struct {
	list []entry
	more map[uint64]entry
}

func (t *table) get(id uint64) entry {
	if id < uint64(len(t.list)) {
		return t.list[id]
	}
	return t.more[id]
}

func (t *table) set(id uint64, e entry) {
	e.known = true
	const gap = 1024
	if id >= uint64(len(t.list)) && id < uint64(len(t.list)+gap) {
		t.list = append(t.list, make([]entry, int(id)+1-len(t.list))...)
	}
	if id < uint64(len(t.list)) {
		t.list[id] = e
		return
	}
	if t.more == nil {
		t.more = map[uint64]entry{}
	}
	t.more[id] = e
}

// names grows with the definitions, so that a definition's line names what stands before it, as otf2-print does.
type names struct {
	defs      *otf2.Definitions
	tables    [spaces]table
	paradigms map[otf2.Paradigm]string
	world     map[otf2.Paradigm]*otf2.Group // COMM_LOCATIONS by paradigm
	epoch     uint64                        // subtracted from times among the fields
}

func newNames(defs *otf2.Definitions) *names {
	return &names{defs: defs, paradigms: map[otf2.Paradigm]string{}, world: map[otf2.Paradigm]*otf2.Group{}}
}

// undefined reports whether an id of the space is the undefined one.
func undefined(s space, id uint64) bool {
	if s == spaceLocation {
		return id == uint64(otf2.UndefinedLocation)
	}
	return uint32(id) == 1<<32-1
}

// appendRef writes a reference: "name" <id>, or the id of a definition without name.
func (n *names) appendRef(b []byte, s space, id uint64) []byte {
	if undefined(s, id) {
		return append(b, "UNDEFINED"...)
	}
	e := n.tables[s].get(id)
	switch {
	case !e.known:
		return appendInvalid(b, id)
	case !e.named:
		return strconv.AppendUint(b, id, 10)
	}
	return appendNamed(b, e.name, id)
}

func appendNamed(b []byte, name string, id uint64) []byte {
	b = append(append(b, '"'), printable.Name(name)...)
	b = append(b, "\" <"...)
	b = strconv.AppendUint(b, id, 10)
	return append(b, '>')
}

func appendInvalid(b []byte, id uint64) []byte {
	b = append(b, "INVALID <"...)
	b = strconv.AppendUint(b, id, 10)
	return append(b, '>')
}

func (n *names) ref(s space, id uint64) string { return string(n.appendRef(nil, s, id)) }

// raw is the bare name, empty if there is none.
func (n *names) raw(s space, id uint64) string { return n.tables[s].get(id).name }

// name defines id with the text of a string definition.
func (n *names) name(s space, id uint64, str otf2.StringRef) {
	e := n.tables[spaceString].get(uint64(str))
	n.tables[s].set(id, entry{named: e.known && str != otf2.UndefinedString, name: e.name})
}

// call defines id with a composed name.
func (n *names) call(s space, id uint64, name string) {
	n.tables[s].set(id, entry{named: true, name: name})
}

// appendParadigm writes a paradigm by the name its definition gives it, else by OTF2's.
func (n *names) appendParadigm(b []byte, p otf2.Paradigm) []byte {
	if name, ok := n.paradigms[p]; ok {
		return appendNamed(b, name, uint64(p))
	}
	return appendEnum(b, "Paradigm", uint64(p))
}

func appendEnum(b []byte, enum string, v uint64) []byte {
	if name, ok := otf2.EnumName(enum, v); ok {
		return append(b, name...)
	}
	return appendInvalid(b, v)
}

// appendFlags writes {A, B}, or NONE.
func appendFlags(b []byte, enum string, v uint64) []byte {
	if v == 0 {
		return append(b, "NONE"...)
	}
	flags, rest := otf2.EnumFlags(enum, v)
	b = append(b, '{')
	for i, f := range flags {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(b, f...)
	}
	if rest != 0 {
		if len(flags) > 0 {
			b = append(b, ", "...)
		}
		b = append(b, "INVALID <0x"...)
		b = strconv.AppendUint(b, rest, 16)
		b = append(b, '>')
	}
	return append(b, '}')
}

// add takes a definition's name into the tables.
func (n *names) add(kind otf2.DefKind, i int) {
	d := n.defs
	str := func(ref otf2.StringRef) string { return n.raw(spaceString, uint64(ref)) }
	switch kind {
	case otf2.DefString:
		n.call(spaceString, uint64(d.Strings[i].Self), d.Strings[i].Text)
	case otf2.DefParadigm:
		n.paradigms[d.Paradigms[i].Paradigm] = str(d.Paradigms[i].Name)
	case otf2.DefIoParadigm:
		n.name(spaceIoParadigm, uint64(d.IoParadigms[i].Self), d.IoParadigms[i].Name)
	case otf2.DefAttribute:
		n.name(spaceAttribute, uint64(d.Attributes[i].Self), d.Attributes[i].Name)
	case otf2.DefSystemTreeNode:
		v := &d.SystemTreeNodes[i]
		n.call(spaceSystemTreeNode, uint64(v.Self), str(v.Class)+"::"+str(v.Name))
	case otf2.DefLocationGroup:
		n.name(spaceLocationGroup, uint64(d.LocationGroups[i].Self), d.LocationGroups[i].Name)
	case otf2.DefLocation:
		n.name(spaceLocation, uint64(d.Locations[i].Self), d.Locations[i].Name)
	case otf2.DefRegion:
		n.name(spaceRegion, uint64(d.Regions[i].Self), d.Regions[i].Name)
	case otf2.DefCallsite:
		n.name(spaceCallsite, uint64(d.Callsites[i].Self), otf2.UndefinedString)
	case otf2.DefCallpath:
		n.name(spaceCallpath, uint64(d.Callpaths[i].Self), otf2.UndefinedString)
	case otf2.DefGroup:
		v := &d.Groups[i]
		n.name(spaceGroup, uint64(v.Self), v.Name)
		if v.Type == otf2.GroupTypeCommLocations {
			n.world[v.Paradigm] = v
		}
	case otf2.DefMetricMember:
		n.name(spaceMetricMember, uint64(d.MetricMembers[i].Self), d.MetricMembers[i].Name)
	case otf2.DefMetricClass:
		n.name(spaceMetric, uint64(d.MetricClasses[i].Self), otf2.UndefinedString)
	case otf2.DefMetricInstance:
		n.name(spaceMetric, uint64(d.MetricInstances[i].Self), otf2.UndefinedString)
	case otf2.DefComm:
		n.name(spaceComm, uint64(d.Comms[i].Self), d.Comms[i].Name)
	case otf2.DefInterComm:
		n.name(spaceComm, uint64(d.InterComms[i].Self), d.InterComms[i].Name)
	case otf2.DefParameter:
		n.name(spaceParameter, uint64(d.Parameters[i].Self), d.Parameters[i].Name)
	case otf2.DefRmaWin:
		n.name(spaceRmaWin, uint64(d.RmaWins[i].Self), d.RmaWins[i].Name)
	case otf2.DefCartDimension:
		n.name(spaceCartDimension, uint64(d.CartDimensions[i].Self), d.CartDimensions[i].Name)
	case otf2.DefCartTopology:
		n.name(spaceCartTopology, uint64(d.CartTopologies[i].Self), d.CartTopologies[i].Name)
	case otf2.DefSourceCodeLocation:
		v := &d.SourceCodeLocations[i]
		n.call(spaceSourceCodeLocation, uint64(v.Self), str(v.File)+":"+strconv.FormatInt(int64(int32(v.LineNumber)), 10))
	case otf2.DefCallingContext:
		v := &d.CallingContexts[i]
		name := "UNDEFINED"
		if e := n.tables[spaceRegion].get(uint64(v.Region)); e.known {
			name = e.name
		}
		if line := n.raw(spaceSourceCodeLocation, uint64(v.SourceCodeLocation)); line != "" {
			name += "@" + path.Base(line)
		}
		n.call(spaceCallingContext, uint64(v.Self), name)
	case otf2.DefInterruptGenerator:
		n.name(spaceInterruptGenerator, uint64(d.InterruptGenerators[i].Self), d.InterruptGenerators[i].Name)
	case otf2.DefIoRegularFile:
		n.call(spaceIoFile, uint64(d.IoRegularFiles[i].Self), "file://"+str(d.IoRegularFiles[i].Name))
	case otf2.DefIoDirectory:
		n.call(spaceIoFile, uint64(d.IoDirectories[i].Self), "directory://"+str(d.IoDirectories[i].Name))
	case otf2.DefIoHandle:
		v := &d.IoHandles[i]
		if str(v.Name) != "" {
			n.name(spaceIoHandle, uint64(v.Self), v.Name)
		} else {
			n.call(spaceIoHandle, uint64(v.Self), "["+n.raw(spaceIoParadigm, uint64(v.IoParadigm))+"]"+n.raw(spaceIoFile, uint64(v.File)))
		}
	}
}

// complete takes in all definitions.
func (n *names) complete() *names {
	eachDef(n.defs, n.add)
	return n
}

// eachDef calls visit for every record of the file in its order, with its index among those of its kind.
func eachDef(defs *otf2.Definitions, visit func(kind otf2.DefKind, i int)) {
	var index [256]int
	for _, kind := range defs.Order {
		visit(kind, index[kind])
		index[kind]++
	}
}
