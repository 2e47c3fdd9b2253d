// SPDX-License-Identifier: Apache-2.0

package otf2_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// shape says what a random archive is like.
type shape struct {
	Seed                 uint64
	Locations            int // at least 1
	Events               int // most events of a location
	Long                 int // events of the first location, if more
	EventChunk, DefChunk uint64
	SparseLocations      bool // location ids are any 64-bit numbers
	Mapped, Clocks       bool // mapping tables and clock offsets
	InterComms           bool
	Snapshots            int // of each location
}

// randomArchive writes archives of all kinds of definitions and events with valid references.
type randomArchive struct {
	*rand.Rand
	t         testing.TB
	shape     shape
	defs      *otf2.GlobalDefWriter
	n         map[string]uint64 // definitions by the type of reference to them; ids are 0 … n-1
	locations []otf2.LocationRef
	types     []otf2.Type              // of attributes
	commGroup []otf2.GroupRef          // groups that communicators may have
	groupSize map[otf2.GroupRef]int    // ranks
	members   []otf2.Type              // value types of metric members
	metrics   [][]otf2.MetricMemberRef // members of classes and instances
	comms     []otf2.GroupRef          // group of each communicator
}

// write makes the archive in dir and returns its anchor.
func (s shape) write(t testing.TB, dir string) string {
	g := &randomArchive{Rand: rand.New(rand.NewPCG(s.Seed, 1)), t: t, shape: s, n: map[string]uint64{},
		groupSize: map[otf2.GroupRef]int{}}
	base := filepath.Join(dir, "random")
	ok(t, os.Mkdir(base, 0o755))
	var err error
	g.defs, err = otf2.CreateGlobalDefWriter(base+".def", s.DefChunk)
	ok(t, err)
	g.chooseLocations()
	counts := make([]int, s.Locations)
	for i := range counts {
		counts[i] = g.IntN(s.Events + 1)
	}
	counts[0] = max(counts[0], s.Long)
	g.definitions(counts)
	for i, loc := range g.locations {
		g.location(filepath.Join(base, fmt.Sprint(uint64(loc))), counts[i])
	}
	count := g.defs.Count()
	ok(t, g.defs.Close())
	anchor := base + ".otf2"
	ok(t, otf2.WriteAnchor(anchor, &otf2.Anchor{
		EventChunkSize: s.EventChunk, DefChunkSize: s.DefChunk, Snapshots: uint32(s.Snapshots),
		Locations: uint64(s.Locations), GlobalDefs: count, TraceID: s.Seed | 1,
		MachineName: g.text(), Creator: g.text(), Description: g.text(),
		Properties: []otf2.Property{{Name: "RANDOM::SEED", Value: fmt.Sprint(s.Seed)}},
	}))
	return anchor
}

func (g *randomArchive) chooseLocations() {
	for i := range g.shape.Locations {
		loc := otf2.LocationRef(i)
		if g.shape.SparseLocations {
			loc = otf2.LocationRef(g.Uint64()>>g.IntN(50)) &^ 255 // room for the number
			loc |= otf2.LocationRef(i)
		}
		g.locations = append(g.locations, loc)
	}
	if g.shape.SparseLocations {
		g.Shuffle(len(g.locations), func(i, j int) { g.locations[i], g.locations[j] = g.locations[j], g.locations[i] })
	}
}

// text is empty, plain, long or of unusual characters.
func (g *randomArchive) text() string {
	switch g.IntN(6) {
	case 0:
		return ""
	case 1:
		return strings.Repeat("long ", g.IntN(400))
	case 2:
		return "\"é\" 日本\t\\%s <" + fmt.Sprint(g.IntN(9)) + ">"
	}
	return fmt.Sprintf("text %d", g.IntN(1000))
}

// next counts a definition and returns its id.
func (g *randomArchive) next(ref string) uint64 {
	g.n[ref]++
	return g.n[ref] - 1
}

func (g *randomArchive) ref(kind string) uint64 { return g.Uint64N(g.n[kind]) }

// enum is a value that otf2-print 3.0 knows.
func (g *randomArchive) enum(name string) uint64 {
	last := map[string]uint64{"RegionRole": 38, "Paradigm": 24, "MetricMode": 50}[name]
	if last == 0 {
		for last = 255; ; last-- {
			if _, ok := otf2.EnumName(name, last); ok {
				break
			}
		}
	}
	for {
		v := g.Uint64N(last + 1)
		if _, ok := otf2.EnumName(name, v); ok {
			return v
		}
	}
}

// flags is any combination of the flags of an enumeration.
func (g *randomArchive) flags(name string) (v uint64) {
	for bit := uint64(1); bit < 1<<12; bit <<= 1 {
		if _, ok := otf2.EnumName(name, bit); ok && g.IntN(3) == 0 {
			v |= bit
		}
	}
	return v
}

// maybe is an earlier definition or the undefined one.
func (g *randomArchive) maybe(kind string) uint64 {
	if g.n[kind] == 0 || g.IntN(3) == 0 {
		return 1<<32 - 1
	}
	return g.ref(kind)
}

// number is small, large or an extreme.
func (g *randomArchive) number(bits int) uint64 {
	all := uint64(1)<<(bits-1)<<1 - 1
	switch g.IntN(8) {
	case 0:
		return 0
	case 1:
		return all
	case 2:
		return all >> 1
	case 3, 4:
		return g.Uint64() & all >> g.IntN(bits)
	}
	return g.Uint64N(200)
}

// refName is the type of references to what a value of an enumeration names: "RmaWinRef" for RMA_WIN.
func refName(enum string, v uint64) string {
	name, _ := otf2.EnumName(enum, v)
	var b strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		b.WriteString(word[:1] + strings.ToLower(word[1:]))
	}
	return b.String() + "Ref"
}

// value is a value of a type; references through ref, which may give local ids.
func (g *randomArchive) value(typ otf2.Type, ref func(kind string) uint64) otf2.Value {
	switch typ {
	case otf2.TypeUint8, otf2.TypeUint16, otf2.TypeUint32, otf2.TypeUint64:
		return otf2.Value(g.number(8 << (typ - otf2.TypeUint8)))
	case otf2.TypeInt8, otf2.TypeInt16, otf2.TypeInt32, otf2.TypeInt64:
		bits := 8 << (typ - otf2.TypeInt8)
		return otf2.IntValue(int64(g.number(bits)<<(64-bits)) >> (64 - bits))
	case otf2.TypeFloat:
		return otf2.FloatValue(float32(g.double()))
	case otf2.TypeDouble:
		return otf2.DoubleValue(g.double())
	}
	return otf2.Value(ref(refName("Type", uint64(typ))))
}

func (g *randomArchive) double() float64 {
	switch g.IntN(6) {
	case 0:
		return math.Inf(1 - 2*g.IntN(2))
	case 1:
		return float64(g.IntN(1e7))
	}
	return g.NormFloat64() * math.Pow(10, float64(g.IntN(80)-40))
}

// property is a type and a value of it, references to what is defined so far.
func (g *randomArchive) property() (otf2.Type, otf2.Value) {
	for {
		typ := otf2.Type(1 + g.IntN(25))
		if typ >= otf2.TypeString && g.n[refName("Type", uint64(typ))] == 0 {
			continue
		}
		return typ, g.value(typ, g.global)
	}
}

// global is the id of a definition.
func (g *randomArchive) global(kind string) uint64 {
	id := g.ref(kind)
	if kind == "LocationRef" {
		id = uint64(g.locations[id])
	}
	return id
}

func (g *randomArchive) some(f func()) {
	for range 1 + g.IntN(4) {
		f()
	}
}

// define writes a definition by the writer's method of its name and returns its number. A parameter that is not given by
// its index gets a value of its type: references what is defined, those to what is of the same kind nothing at times, and
// a value of any type follows its type.
func (g *randomArchive) define(kind string, given map[int]any) uint64 {
	m := reflect.ValueOf(g.defs).MethodByName(kind)
	self := ""
	for id := range 256 {
		if k := otf2.DefKind(id); k.String() == kind && k.Fields()[0].Name == "self" {
			self = m.Type().In(0).Name()
		}
	}
	var in []reflect.Value
	var value otf2.Value
	for i := range m.Type().NumIn() {
		typ := m.Type().In(i)
		name := typ.Name()
		v, isGiven := given[i]
		switch {
		case isGiven:
		case name == self && i == 0:
			v = g.n[self]
		case name == self:
			v = g.maybe(self)
		case strings.HasSuffix(name, "Ref"):
			v = g.global(name)
		case strings.HasSuffix(name, "Flag"):
			v = g.flags(name)
		case name == "Type":
			v, value = g.property()
		case name == "Value":
			v = value
		case name == "uint32", name == "uint64":
			v = g.number(typ.Bits() - 1)
		case name == "int64":
			v = g.number(64)
		default:
			v = g.enum(name)
		}
		in = append(in, reflect.ValueOf(v).Convert(typ))
	}
	err, _ := m.Call(in)[0].Interface().(error)
	ok(g.t, err)
	if self == "" {
		return 0
	}
	return g.next(self)
}

// someOf writes one to four definitions of a kind.
func (g *randomArchive) someOf(kinds ...string) {
	for _, kind := range kinds {
		g.some(func() { g.define(kind, nil) })
	}
}

func (g *randomArchive) definitions(counts []int) {
	g.define("ClockProperties", map[int]any{0: 1 + g.Uint64N(1e12), 1: g.Uint64N(1000), 2: 1 << 50,
		3: 1_700_000_000_123_456_789})
	for i := range 4 + g.IntN(40) {
		s := g.text()
		if i < 4 {
			s = fmt.Sprint("property ", i)
		}
		g.define("String", map[int]any{1: s})
	}
	for p := range 25 {
		if g.IntN(4) == 0 {
			g.define("Paradigm", map[int]any{0: p})
			g.define("ParadigmProperty", map[int]any{0: p, 1: otf2.ParadigmPropertyCommNameTemplate,
				2: otf2.TypeString, 3: g.ref("StringRef")})
			g.define("ParadigmProperty", map[int]any{0: p, 1: otf2.ParadigmPropertyRmaOnly, 2: otf2.TypeUint8,
				3: g.IntN(2)})
		}
	}
	g.some(func() {
		n := g.IntN(2)
		g.define("IoParadigm", map[int]any{5: []otf2.IoParadigmProperty{0}[:n], 6: []otf2.Type{otf2.TypeString}[:n],
			7: []otf2.Value{otf2.Value(g.ref("StringRef"))}[:n]})
	})
	for typ := otf2.Type(1); typ <= 25; typ++ {
		g.define("Attribute", map[int]any{2: typ})
		g.types = append(g.types, typ)
	}
	g.someOf("SystemTreeNode")
	g.define("LocationGroup", map[int]any{2: otf2.LocationGroupTypeProcess, 4: otf2.UndefinedLocationGroup})
	g.some(func() { g.define("LocationGroup", map[int]any{2: otf2.LocationGroupTypeAccelerator, 4: 0}) })
	for i, loc := range g.locations {
		group, typ := uint64(0), otf2.LocationTypeCPUThread
		if i > 0 && g.IntN(2) == 0 {
			group, typ = 1+g.Uint64N(g.n["LocationGroupRef"]-1), otf2.LocationTypeAcceleratorStream
		}
		g.define("Location", map[int]any{0: loc, 2: typ, 3: counts[i], 4: group})
	}
	g.someOf("Region")
	g.some(func() {
		g.members = append(g.members, []otf2.Type{otf2.TypeInt64, otf2.TypeUint64, otf2.TypeDouble}[g.IntN(3)])
		g.define("MetricMember", map[int]any{5: g.members[len(g.members)-1]})
	})
	g.groups()
	group := func() otf2.GroupRef { return g.commGroup[g.IntN(len(g.commGroup))] }
	g.some(func() {
		g.comms = append(g.comms, group())
		g.define("Comm", map[int]any{2: g.comms[len(g.comms)-1]})
	})
	g.someOf("RmaWin")
	for typ := range 3 {
		g.define("Parameter", map[int]any{2: typ})
	}
	g.some(func() {
		var members []otf2.MetricMemberRef
		for _, m := range g.Perm(len(g.members))[:1+g.IntN(len(g.members))] {
			members = append(members, otf2.MetricMemberRef(m))
		}
		g.metrics = append(g.metrics, members)
		self := g.define("MetricClass", map[int]any{1: members})
		if g.IntN(2) == 0 {
			g.define("MetricClassRecorder", map[int]any{0: self})
		}
	})
	classes := len(g.metrics)
	g.some(func() {
		class := g.IntN(classes)
		g.metrics = append(g.metrics, g.metrics[class])
		scope := g.IntN(4)
		id := g.global([]string{"LocationRef", "LocationGroupRef", "SystemTreeNodeRef", "GroupRef"}[scope])
		g.define("MetricInstance", map[int]any{1: class, 3: scope, 4: id})
	})
	// What the members of such a group are the readers do not agree on: otf2-print takes them for metric members,
	// the Python bindings for classes and instances. So ids that are both.
	var metrics []uint64
	for id := range min(g.n["MetricRef"], g.n["MetricMemberRef"]) {
		metrics = append(metrics, id)
	}
	g.define("Group", map[int]any{2: otf2.GroupTypeMetric, 3: otf2.ParadigmUnknown, 4: 0, 5: metrics})
	g.someOf("SourceCodeLocation", "CallingContext", "InterruptGenerator", "IoRegularFile", "IoDirectory")
	g.some(func() {
		flags := g.flags("IoHandleFlag")
		self := g.define("IoHandle", map[int]any{4: flags})
		if otf2.IoHandleFlag(flags)&otf2.IoHandleFlagPreCreated != 0 {
			g.define("IoPreCreatedHandleState", map[int]any{0: self})
		}
	})
	g.some(func() { g.define("CallpathParameter", map[int]any{0: g.define("Callpath", nil)}) })
	g.someOf("Callsite", "CartDimension")
	c := g.ref("CommRef")
	dims := make([]otf2.CartDimensionRef, 1+g.IntN(3))
	coordinates := make([]uint32, len(dims))
	for i := range dims {
		dims[i], coordinates[i] = otf2.CartDimensionRef(g.ref("CartDimensionRef")), uint32(g.number(31))
	}
	g.define("CartTopology", map[int]any{2: c, 3: dims})
	for rank := range min(2, g.groupSize[g.comms[c]]) {
		g.define("CartCoordinate", map[int]any{0: 0, 1: rank, 2: coordinates})
	}
	name := 0 // the bindings want each property of a thing once
	g.some(func() {
		for _, of := range []string{"SystemTreeNode", "LocationGroup", "Location", "CallingContext", "IoFile"} {
			g.define(of+"Property", map[int]any{1: name})
		}
		name++
		g.define("SystemTreeNodeDomain", nil)
	})
	if simple := g.n["CommRef"]; g.shape.InterComms { // last: what else has a communicator has one of a group
		g.some(func() { g.define("InterComm", map[int]any{2: group(), 3: group(), 4: g.Uint64N(simple)}) })
	}
}

// groups defines groups of all types: for some paradigms the locations, and groups of ranks among them.
func (g *randomArchive) groups() {
	define := func(name uint64, typ otf2.GroupType, p otf2.Paradigm, flags uint64, members []uint64) otf2.GroupRef {
		self := otf2.GroupRef(g.define("Group", map[int]any{1: name, 2: typ, 3: p, 4: flags, 5: members}))
		g.groupSize[self] = len(members)
		return self
	}
	pick := func(kind string) (ids []uint64) {
		for range g.IntN(5) {
			ids = append(ids, g.global(kind))
		}
		return ids
	}
	paradigms := []otf2.Paradigm{otf2.ParadigmMPI, otf2.ParadigmCUDA, otf2.ParadigmOpenMP}[:1+g.IntN(3)]
	for _, p := range paradigms {
		var world []uint64
		for _, loc := range g.locations {
			if len(world) == 0 || g.IntN(4) > 0 {
				world = append(world, uint64(loc))
			}
		}
		define(0, otf2.GroupTypeCommLocations, p, 0, world)
		g.some(func() {
			var ranks []uint64
			for i := range world {
				if g.IntN(3) > 0 {
					ranks = append(ranks, uint64(i))
				}
			}
			g.Shuffle(len(ranks), func(i, j int) { ranks[i], ranks[j] = ranks[j], ranks[i] })
			g.commGroup = append(g.commGroup, define(g.ref("StringRef"), otf2.GroupTypeCommGroup, p,
				g.flags("GroupFlag"), ranks))
		})
		g.commGroup = append(g.commGroup, define(g.ref("StringRef"), otf2.GroupTypeCommSelf, p, 0, nil))
	}
	define(g.ref("StringRef"), otf2.GroupTypeLocations, otf2.ParadigmUnknown, 0, pick("LocationRef"))
	define(g.ref("StringRef"), otf2.GroupTypeRegions, otf2.ParadigmUnknown, 0, pick("RegionRef"))
}

// localIDs are the ids that a location uses: local[i] stands for global[i].
type localIDs struct{ local, global []uint64 }

// mappings makes tables of a location: dense, sparse or none for each id space.
func (g *randomArchive) mappings(mapped bool) (map[string]localIDs, []*otf2.MappingTable) {
	ids := map[string]localIDs{}
	var tables []*otf2.MappingTable
	for space := otf2.MappingString; space <= otf2.MappingLocationGroup; space++ {
		kind := refName("MappingType", uint64(space))
		var all []uint64
		for i := range g.n[kind] {
			id := i
			if kind == "LocationRef" {
				id = uint64(g.locations[i])
			}
			all = append(all, id)
		}
		l := localIDs{all, all}
		if form := g.IntN(4); mapped && form > 1 {
			global := slices.Clone(all)
			g.Shuffle(len(global), func(i, j int) { global[i], global[j] = global[j], global[i] })
			local := make([]uint64, len(global))
			m := &otf2.MappingTable{Type: space, Global: global}
			id := uint64(0)
			for i := range local {
				if form == 3 {
					id += g.Uint64N(1000)
				}
				local[i] = id
				id++
			}
			if form == 3 {
				m.Local = local
			}
			l = localIDs{local, global}
			tables = append(tables, m)
		}
		ids[kind] = l
	}
	return ids, tables
}

// location writes the files of a location; path is theirs without extension.
func (g *randomArchive) location(path string, events int) {
	t := g.t
	ids, tables := g.mappings(g.shape.Mapped)
	w, err := otf2.CreateEventWriter(path+".evt", &otf2.EventWriterOptions{ChunkSize: g.shape.EventChunk})
	ok(t, err)
	at := otf2.Timestamp(10_000 + g.IntN(100))
	first := at
	var a otf2.AttributeList
	for range events {
		at += otf2.Timestamp(g.IntN(5))
		if g.IntN(1000) == 0 {
			at += otf2.Timestamp(g.Uint64N(1 << 40))
		}
		a.Reset()
		if g.IntN(3) == 0 {
			g.attributes(&a, ids)
		}
		kind, args := g.event(at, ids)
		ok(t, w.Write(kind, at, &a, args))
		if g.IntN(2000) == 0 {
			ok(t, w.Flush())
		}
	}
	ok(t, w.Close())
	var clocks []otf2.ClockOffset
	if g.shape.Clocks {
		when, offset := uint64(first), int64(0)
		for range g.IntN(5) {
			step := 1 + g.Uint64N(uint64(at-first)+2)
			clocks = append(clocks, otf2.ClockOffset{Time: otf2.Timestamp(when), Offset: offset,
				StdDev: math.Abs(g.NormFloat64())})
			// Steep enough to matter, not so much that time would go back.
			when += step
			offset += int64(float64(step) * (g.Float64()*1.6 - 0.8))
			offset = max(offset, -5000)
		}
	}
	ok(t, otf2.WriteLocalDefs(path+".def", tables, clocks, g.shape.DefChunk))
	if g.shape.Snapshots > 0 {
		g.snapshots(path + ".snap")
	}
}

// snapshots writes a snapshot file. Its ids are global.
func (g *randomArchive) snapshots(path string) {
	t := g.t
	w, err := otf2.CreateSnapshotWriter(path, g.shape.EventChunk)
	ok(t, err)
	ids, _ := g.mappings(false)
	at := otf2.Timestamp(1000)
	for range g.shape.Snapshots {
		at += otf2.Timestamp(g.IntN(1000))
		records := g.IntN(60)
		ok(t, w.Write(otf2.SnapshotStart, at, nil, []uint64{uint64(records)}))
		for range records {
			kind := otf2.SnapshotKind(12 + g.IntN(18))
			args := []uint64{g.Uint64N(uint64(at))}
			if kind.String() == otf2.EventMetric.String() {
				args = append(args, g.metric(ids)...)
			} else {
				args = append(args, g.fields(kind.String(), kind.Fields()[1:], 0, ids)...)
			}
			ok(t, w.Write(kind, at, nil, args))
		}
		ok(t, w.Write(otf2.SnapshotEnd, at, nil, []uint64{g.Uint64N(1000)}))
	}
	ok(t, w.Close())
}

// attributes fills a list with some of the attributes, each with a value of its type.
func (g *randomArchive) attributes(a *otf2.AttributeList, ids map[string]localIDs) {
	own := ids["AttributeRef"]
	for _, i := range g.Perm(len(own.local))[:g.IntN(1+len(own.local))] {
		typ := g.types[own.global[i]]
		a.Add(otf2.AttributeRef(own.local[i]), typ, g.value(typ, func(kind string) uint64 { return g.pick(ids, kind) }))
	}
}

// pick is a local id.
func (g *randomArchive) pick(ids map[string]localIDs, kind string) uint64 {
	l := ids[kind]
	return l.local[g.IntN(len(l.local))]
}

// event chooses a kind of event that otf2-print 3.0 knows, and its fields.
func (g *randomArchive) event(at otf2.Timestamp, ids map[string]localIDs) (otf2.EventKind, []uint64) {
	kind := otf2.EventBufferFlush + otf2.EventKind(g.IntN(int(otf2.EventCommDestroy-otf2.EventBufferFlush)+1))
	var args []uint64
	switch kind {
	case otf2.EventMetric:
		return kind, g.metric(ids)
	case otf2.EventProgramBegin:
		n := g.IntN(70)
		args = append(args, g.pick(ids, "StringRef"), uint64(n))
		for range n {
			args = append(args, g.pick(ids, "StringRef"))
		}
		return kind, args
	}
	return kind, g.fields(kind.String(), kind.Fields(), at, ids)
}

// metric gives the fields of a Metric: as many values as the class has members, each of its member's type.
func (g *randomArchive) metric(ids map[string]localIDs) []uint64 {
	l := ids["MetricRef"]
	i := g.IntN(len(l.local))
	members := g.metrics[l.global[i]]
	args := []uint64{l.local[i], uint64(len(members))}
	for _, m := range members {
		args = append(args, uint64(g.members[m]), uint64(g.value(g.members[m], nil)))
	}
	return args
}

// fields gives values to the fields of a record without repetition.
func (g *randomArchive) fields(record string, fields []otf2.Field, at otf2.Timestamp, ids map[string]localIDs) (
	args []uint64) {
	for _, f := range fields {
		var v uint64
		_, mapped := ids[f.Type]
		switch {
		case f.Type == "Timestamp":
			// libotf2 corrects what follows by the interval of the last time it saw, this one included.
			v = uint64(at)
		case f.Type == "IoParadigmRef":
			v = g.ref(f.Type)
		case f.Type == "ParameterRef":
			l := ids[f.Type] // the parameters are, in this order, of the types STRING, INT64 and UINT64
			parameter := slices.Index([]string{"ParameterString", "ParameterInt", "ParameterUnsignedInt"}, record)
			v = l.local[slices.Index(l.global, uint64(parameter))]
		case mapped:
			v = g.pick(ids, f.Type)
		case f.Type == "CollectiveRoot":
			v = []uint64{uint64(otf2.CollectiveRootNone), uint64(otf2.CollectiveRootSelf),
				uint64(otf2.CollectiveRootThisGroup), 0, 1}[g.IntN(5)]
		case strings.HasSuffix(f.Type, "Flag") || f.Type == "RmaSyncLevel":
			v = g.flags(f.Type)
		case f.Type != "":
			v = g.enum(f.Type)
		case f.Encoding == otf2.EncodingC32:
			v = g.number(32)
		default:
			v = g.number(64)
		}
		args = append(args, v)
	}
	return args
}
