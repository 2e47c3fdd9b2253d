// SPDX-License-Identifier: Apache-2.0

package otf2print

import (
	"path"
	"reflect"
	"strconv"

	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// The names of definitions are kept by kind and id. Ids are unique in a kind, except that three pairs of kinds share
// theirs.
const (
	metricKind = otf2.DefMetricClass   // also of instances
	ioFileKind = otf2.DefIoRegularFile // also of directories
	commKind   = otf2.DefComm          // also of inter-communicators
)

// kindsByName finds the kind of definitions that a field or a value refers to, by the name of the field's type
// (RmaWinRef) or by OTF2's name of the value's type (RMA_WIN).
var kindsByName = func() map[string]otf2.DefKind {
	kinds := map[string]otf2.DefKind{"MetricRef": metricKind, "METRIC": metricKind, "IoFileRef": ioFileKind,
		"IO_FILE": ioFileKind}
	for id := range 256 {
		if kind := otf2.DefKind(id); kind.Known() {
			kinds[kind.String()+"Ref"], kinds[kind.UpperName()] = kind, kind
		}
	}
	return kinds
}()

// entry is a definition's name; known ones may have none.
type entry struct {
	known, named bool
	name         string
}

// table holds the names of one kind of definitions, small ids in a list.
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
	tables    [256]table               // by kind
	paradigms map[otf2.Paradigm]string
	world     map[otf2.Paradigm]*otf2.Group // COMM_LOCATIONS by paradigm
	epoch     uint64                        // subtracted from times among the fields
	printable bool                          // see Options
}

func newNames(defs *otf2.Definitions, opts *Options) *names {
	return &names{defs: defs, values: definitionValues(defs), printable: opts.Printable,
		paradigms: map[otf2.Paradigm]string{}, world: map[otf2.Paradigm]*otf2.Group{}}
}

// undefined reports whether an id of a kind of definitions is the undefined one.
func undefined(kind otf2.DefKind, id uint64) bool {
	if kind == otf2.DefLocation {
		return id == uint64(otf2.UndefinedLocation)
	}
	return uint32(id) == 1<<32-1
}

// appendRef writes a reference: "name" <id>, or the id of a definition without name.
func (n *names) appendRef(b []byte, kind otf2.DefKind, id uint64) []byte {
	if undefined(kind, id) {
		return append(b, "UNDEFINED"...)
	}
	e := n.tables[kind].get(id)
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

func (n *names) ref(kind otf2.DefKind, id uint64) string { return string(n.appendRef(nil, kind, id)) }

// raw is the bare name, empty if there is none.
func (n *names) raw(kind otf2.DefKind, id uint64) string { return n.tables[kind].get(id).name }

// name defines id with the text of a string definition.
func (n *names) name(kind otf2.DefKind, id uint64, str otf2.StringRef) {
	e := n.tables[otf2.DefString].get(uint64(str))
	n.tables[kind].set(id, entry{named: e.known && str != otf2.UndefinedString, name: e.name})
}

// call defines id with a composed name.
func (n *names) call(kind otf2.DefKind, id uint64, name string) {
	n.tables[kind].set(id, entry{named: true, name: name})
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

// named says how those definitions get their names that have other ones than their field Name: most are composed of
// others' names.
var named = map[otf2.DefKind]func(n *names, i int){
	otf2.DefString: func(n *names, i int) {
		n.call(otf2.DefString, uint64(n.defs.Strings[i].Self), n.defs.Strings[i].Text)
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
		return
	}
	all := n.values[kind.String()]
	if all.Kind() != reflect.Slice {
		return
	}
	v, name := all.Index(i), otf2.UndefinedString
	self := v.FieldByName("Self")
	if !self.IsValid() {
		return
	}
	if f := v.FieldByName("Name"); f.IsValid() {
		name = otf2.StringRef(f.Uint())
	}
	switch kind {
	case otf2.DefMetricInstance:
		kind = metricKind
	case otf2.DefInterComm:
		kind = commKind
	}
	n.name(kind, self.Uint(), name)
}

// text is what a string definition has, empty if there is none.
func (n *names) text(ref otf2.StringRef) string { return n.raw(otf2.DefString, uint64(ref)) }

func (n *names) group(i int) {
	g := &n.defs.Groups[i]
	n.name(otf2.DefGroup, uint64(g.Self), g.Name)
	if g.Type == otf2.GroupTypeCommLocations {
		n.world[g.Paradigm] = g
	}
}

func (n *names) systemTreeNode(i int) {
	v := &n.defs.SystemTreeNodes[i]
	n.call(otf2.DefSystemTreeNode, uint64(v.Self), n.text(v.Class)+"::"+n.text(v.Name))
}

func (n *names) sourceCodeLocation(i int) {
	v := &n.defs.SourceCodeLocations[i]
	n.call(otf2.DefSourceCodeLocation, uint64(v.Self),
		n.text(v.File)+":"+strconv.FormatInt(int64(int32(v.LineNumber)), 10))
}

func (n *names) callingContext(i int) {
	v := &n.defs.CallingContexts[i]
	name := "UNDEFINED"
	if e := n.tables[otf2.DefRegion].get(uint64(v.Region)); e.known {
		name = e.name
	}
	if line := n.raw(otf2.DefSourceCodeLocation, uint64(v.SourceCodeLocation)); line != "" {
		name += "@" + path.Base(line)
	}
	n.call(otf2.DefCallingContext, uint64(v.Self), name)
}

func (n *names) file(kind string, self otf2.IoFileRef, name otf2.StringRef) {
	n.call(ioFileKind, uint64(self), kind+n.text(name))
}

func (n *names) ioHandle(i int) {
	v := &n.defs.IoHandles[i]
	if n.text(v.Name) != "" {
		n.name(otf2.DefIoHandle, uint64(v.Self), v.Name)
		return
	}
	n.call(otf2.DefIoHandle, uint64(v.Self), "["+n.raw(otf2.DefIoParadigm, uint64(v.IoParadigm))+"]"+n.raw(
		ioFileKind, uint64(v.File)))
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
