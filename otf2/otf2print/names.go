// SPDX-License-Identifier: Apache-2.0

package otf2print

import (
	"path"
	"reflect"
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
	"MetricMemberRef": spaceMetricMember, "CommRef": spaceComm, "ParameterRef": spaceParameter,
	"RmaWinRef":        spaceRmaWin,
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
	values    map[string]reflect.Value // see definitionValues
	tables    [spaces]table
	paradigms map[otf2.Paradigm]string
	world     map[otf2.Paradigm]*otf2.Group // COMM_LOCATIONS by paradigm
	epoch     uint64                        // subtracted from times among the fields
	printable bool                          // see Options
}

func newNames(defs *otf2.Definitions, opts *Options) *names {
	return &names{defs: defs, values: definitionValues(defs), printable: opts.Printable,
		paradigms: map[otf2.Paradigm]string{}, world: map[otf2.Paradigm]*otf2.Group{}}
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
	return n.appendNamed(b, e.name, id)
}

func (n *names) appendNamed(b []byte, name string, id uint64) []byte {
	if n.printable {
		name = printable.Name(name)
	}
	b = append(append(b, '"'), name...)
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
		return n.appendNamed(b, name, uint64(p))
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

// plainSpaces are the id spaces of kinds that are named by the string in their field Name, or have no names.
var plainSpaces = map[otf2.DefKind]space{
	otf2.DefIoParadigm: spaceIoParadigm, otf2.DefAttribute: spaceAttribute, otf2.DefLocationGroup: spaceLocationGroup,
	otf2.DefLocation: spaceLocation, otf2.DefRegion: spaceRegion, otf2.DefMetricMember: spaceMetricMember,
	otf2.DefComm: spaceComm, otf2.DefInterComm: spaceComm, otf2.DefParameter: spaceParameter,
	otf2.DefRmaWin: spaceRmaWin, otf2.DefCartDimension: spaceCartDimension, otf2.DefCartTopology: spaceCartTopology,
	otf2.DefInterruptGenerator: spaceInterruptGenerator, otf2.DefCallsite: spaceCallsite,
	otf2.DefCallpath: spaceCallpath, otf2.DefMetricClass: spaceMetric, otf2.DefMetricInstance: spaceMetric,
}

// named says how definitions of other kinds get their names: most are composed of others' names.
var named = map[otf2.DefKind]func(n *names, i int){
	otf2.DefString: func(n *names, i int) {
		n.call(spaceString, uint64(n.defs.Strings[i].Self), n.defs.Strings[i].Text)
	},
	otf2.DefParadigm: func(n *names, i int) {
		n.paradigms[n.defs.Paradigms[i].Paradigm] = n.text(n.defs.Paradigms[i].Name)
	},
	otf2.DefGroup:              (*names).group,
	otf2.DefSystemTreeNode:     (*names).systemTreeNode,
	otf2.DefSourceCodeLocation: (*names).sourceCodeLocation,
	otf2.DefCallingContext:     (*names).callingContext,
	otf2.DefIoRegularFile: func(n *names, i int) {
		n.file("file://", n.defs.IoRegularFiles[i].Self, n.defs.IoRegularFiles[i].Name)
	},
	otf2.DefIoDirectory: func(n *names, i int) {
		n.file("directory://", n.defs.IoDirectories[i].Self, n.defs.IoDirectories[i].Name)
	},
	otf2.DefIoHandle: (*names).ioHandle,
}

// add takes a definition's name into the tables; i counts the definitions of its kind.
func (n *names) add(kind otf2.DefKind, i int) {
	if take := named[kind]; take != nil {
		take(n, i)
	} else if space, plain := plainSpaces[kind]; plain {
		v, name := n.values[kind.String()].Index(i), otf2.UndefinedString
		if f := v.FieldByName("Name"); f.IsValid() {
			name = otf2.StringRef(f.Uint())
		}
		n.name(space, v.FieldByName("Self").Uint(), name)
	}
}

// text is what a string definition has, empty if there is none.
func (n *names) text(ref otf2.StringRef) string { return n.raw(spaceString, uint64(ref)) }

func (n *names) group(i int) {
	g := &n.defs.Groups[i]
	n.name(spaceGroup, uint64(g.Self), g.Name)
	if g.Type == otf2.GroupTypeCommLocations {
		n.world[g.Paradigm] = g
	}
}

func (n *names) systemTreeNode(i int) {
	v := &n.defs.SystemTreeNodes[i]
	n.call(spaceSystemTreeNode, uint64(v.Self), n.text(v.Class)+"::"+n.text(v.Name))
}

func (n *names) sourceCodeLocation(i int) {
	v := &n.defs.SourceCodeLocations[i]
	n.call(spaceSourceCodeLocation, uint64(v.Self),
		n.text(v.File)+":"+strconv.FormatInt(int64(int32(v.LineNumber)), 10))
}

func (n *names) callingContext(i int) {
	v := &n.defs.CallingContexts[i]
	name := "UNDEFINED"
	if e := n.tables[spaceRegion].get(uint64(v.Region)); e.known {
		name = e.name
	}
	if line := n.raw(spaceSourceCodeLocation, uint64(v.SourceCodeLocation)); line != "" {
		name += "@" + path.Base(line)
	}
	n.call(spaceCallingContext, uint64(v.Self), name)
}

func (n *names) file(kind string, self otf2.IoFileRef, name otf2.StringRef) {
	n.call(spaceIoFile, uint64(self), kind+n.text(name))
}

func (n *names) ioHandle(i int) {
	v := &n.defs.IoHandles[i]
	if n.text(v.Name) != "" {
		n.name(spaceIoHandle, uint64(v.Self), v.Name)
		return
	}
	n.call(spaceIoHandle, uint64(v.Self), "["+n.raw(spaceIoParadigm, uint64(v.IoParadigm))+"]"+n.raw(
		spaceIoFile, uint64(v.File)))
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
