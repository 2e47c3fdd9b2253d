// SPDX-License-Identifier: Apache-2.0

package otf2_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
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

func (g *randomArchive) str() otf2.StringRef { return otf2.StringRef(g.ref("StringRef")) }

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

// refTypes gives the reference type of attribute types.
var refTypes = map[otf2.Type]string{
	otf2.TypeString: "StringRef", otf2.TypeAttribute: "AttributeRef", otf2.TypeRegion: "RegionRef",
	otf2.TypeGroup:  "GroupRef",
	otf2.TypeMetric: "MetricRef", otf2.TypeComm: "CommRef", otf2.TypeParameter: "ParameterRef",
	otf2.TypeRmaWin:             "RmaWinRef",
	otf2.TypeSourceCodeLocation: "SourceCodeLocationRef", otf2.TypeCallingContext: "CallingContextRef",
	otf2.TypeInterruptGenerator: "InterruptGeneratorRef", otf2.TypeIoFile: "IoFileRef",
	otf2.TypeIoHandle:      "IoHandleRef",
	otf2.TypeLocationGroup: "LocationGroupRef", otf2.TypeLocation: "LocationRef",
}

// value is a value of a type; references through ref, which may give local ids.
func (g *randomArchive) value(typ otf2.Type, ref func(kind string) uint64) otf2.Value {
	switch typ {
	case otf2.TypeUint8:
		return otf2.Value(g.number(8))
	case otf2.TypeUint16:
		return otf2.Value(g.number(16))
	case otf2.TypeUint32:
		return otf2.Value(g.number(32))
	case otf2.TypeInt8:
		return otf2.IntValue(int64(int8(g.number(8))))
	case otf2.TypeInt16:
		return otf2.IntValue(int64(int16(g.number(16))))
	case otf2.TypeInt32:
		return otf2.IntValue(int64(int32(g.number(32))))
	case otf2.TypeFloat:
		return otf2.FloatValue(float32(g.double()))
	case otf2.TypeDouble:
		return otf2.DoubleValue(g.double())
	case otf2.TypeUint64, otf2.TypeInt64:
		return otf2.Value(g.number(64))
	}
	return otf2.Value(ref(refTypes[typ]))
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
		if kind, isRef := refTypes[typ]; isRef && g.n[kind] == 0 {
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

func (g *randomArchive) definitions(counts []int) {
	w, t := g.defs, g.t
	ok(t, w.ClockProperties(1+g.Uint64N(1e12), g.Uint64N(1000), 1<<50, 1_700_000_000_123_456_789))
	for i := range 4 + g.IntN(40) {
		s := g.text()
		if i < 4 {
			s = fmt.Sprint("property ", i)
		}
		ok(t, w.String(otf2.StringRef(g.next("StringRef")), s))
	}
	for p := range 25 {
		if g.IntN(4) == 0 {
			ok(t, w.Paradigm(otf2.Paradigm(p), g.str(), otf2.ParadigmClass(g.enum("ParadigmClass"))))
			ok(t, w.ParadigmProperty(otf2.Paradigm(p), otf2.ParadigmPropertyCommNameTemplate, otf2.TypeString,
				otf2.Value(g.str())))
			ok(t, w.ParadigmProperty(otf2.Paradigm(p), otf2.ParadigmPropertyRmaOnly, otf2.TypeUint8,
				otf2.Value(g.IntN(2))))
		}
	}
	g.some(func() {
		var props []otf2.IoParadigmProperty
		var types []otf2.Type
		var values []otf2.Value
		if g.IntN(2) == 0 {
			props, types, values = []otf2.IoParadigmProperty{0}, []otf2.Type{otf2.TypeString},
				[]otf2.Value{otf2.Value(g.str())}
		}
		ok(t, w.IoParadigm(otf2.IoParadigmRef(g.next("IoParadigmRef")), g.str(), g.str(),
			otf2.IoParadigmClass(g.enum("IoParadigmClass")),
			otf2.IoParadigmFlag(g.flags("IoParadigmFlag")), props, types, values))
	})
	for typ := otf2.Type(1); typ <= 25; typ++ {
		ok(t, w.Attribute(otf2.AttributeRef(g.next("AttributeRef")), g.str(), typ, g.str()))
		g.types = append(g.types, typ)
	}
	g.some(func() {
		parent := otf2.SystemTreeNodeRef(g.maybe("SystemTreeNodeRef"))
		ok(t, w.SystemTreeNode(otf2.SystemTreeNodeRef(g.next("SystemTreeNodeRef")), g.str(), g.str(), parent))
	})
	node := func() otf2.SystemTreeNodeRef { return otf2.SystemTreeNodeRef(g.ref("SystemTreeNodeRef")) }
	ok(t, w.LocationGroup(otf2.LocationGroupRef(g.next("LocationGroupRef")), g.str(), otf2.LocationGroupTypeProcess,
		node(), otf2.UndefinedLocationGroup))
	g.some(func() {
		ok(t, w.LocationGroup(otf2.LocationGroupRef(g.next("LocationGroupRef")), g.str(),
			otf2.LocationGroupTypeAccelerator, node(), 0))
	})
	for i, loc := range g.locations {
		g.next("LocationRef")
		group, typ := otf2.LocationGroupRef(0), otf2.LocationTypeCPUThread
		if i > 0 && g.IntN(2) == 0 {
			group, typ = otf2.LocationGroupRef(1+g.Uint64N(g.n["LocationGroupRef"]-1)),
				otf2.LocationTypeAcceleratorStream
		}
		ok(t, w.Location(loc, g.str(), typ, uint64(counts[i]), group))
	}
	g.some(func() {
		ok(t, w.Region(otf2.RegionRef(g.next("RegionRef")), g.str(), g.str(), g.str(),
			otf2.RegionRole(g.enum("RegionRole")),
			otf2.Paradigm(g.enum("Paradigm")), otf2.RegionFlag(g.flags("RegionFlag")), g.str(), uint32(g.number(31)),
			uint32(g.number(31))))
	})
	region := func() otf2.RegionRef { return otf2.RegionRef(g.ref("RegionRef")) }
	g.some(func() {
		g.members = append(g.members, []otf2.Type{otf2.TypeInt64, otf2.TypeUint64, otf2.TypeDouble}[g.IntN(3)])
		ok(t, w.MetricMember(otf2.MetricMemberRef(g.next("MetricMemberRef")), g.str(), g.str(),
			otf2.MetricType(g.enum("MetricType")),
			otf2.MetricMode(g.enum("MetricMode")), g.members[len(g.members)-1], otf2.Base(g.enum("Base")),
			int64(g.number(64)), g.str()))
	})
	g.groups()
	g.some(func() {
		parent := otf2.CommRef(g.maybe("CommRef"))
		group := g.commGroup[g.IntN(len(g.commGroup))]
		g.comms = append(g.comms, group)
		ok(t, w.Comm(otf2.CommRef(g.next("CommRef")), g.str(), group, parent, otf2.CommFlag(g.flags("CommFlag"))))
	})
	if g.shape.InterComms {
		simple := g.n["CommRef"]
		g.some(func() {
			a, b := g.commGroup[g.IntN(len(g.commGroup))], g.commGroup[g.IntN(len(g.commGroup))]
			ok(t, w.InterComm(otf2.CommRef(g.next("CommRef")), g.str(), a, b, otf2.CommRef(g.Uint64N(simple)),
				otf2.CommFlag(g.flags("CommFlag"))))
		})
	}
	comm := func() otf2.CommRef { return otf2.CommRef(g.IntN(len(g.comms))) }
	g.some(func() {
		ok(t, w.RmaWin(otf2.RmaWinRef(g.next("RmaWinRef")), g.str(), comm(), otf2.RmaWinFlag(g.flags("RmaWinFlag"))))
	})
	for typ := range 3 {
		ok(t, w.Parameter(otf2.ParameterRef(g.next("ParameterRef")), g.str(), otf2.ParameterType(typ)))
	}
	g.some(func() {
		var members []otf2.MetricMemberRef
		for m := range g.members {
			members = append(members, otf2.MetricMemberRef(m))
		}
		g.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		members = members[:1+g.IntN(len(members))]
		g.metrics = append(g.metrics, members)
		occurrence := otf2.MetricOccurrence(g.enum("MetricOccurrence"))
		self := otf2.MetricRef(g.next("MetricRef"))
		ok(t, w.MetricClass(self, members, occurrence, otf2.RecorderKind(g.enum("RecorderKind"))))
		if g.IntN(2) == 0 {
			ok(t, w.MetricClassRecorder(self, otf2.LocationRef(g.global("LocationRef"))))
		}
	})
	classes := len(g.metrics)
	g.some(func() {
		class := g.IntN(classes)
		g.metrics = append(g.metrics, g.metrics[class])
		scope := otf2.MetricScope(g.IntN(4))
		id := g.global([]string{"LocationRef", "LocationGroupRef", "SystemTreeNodeRef", "GroupRef"}[scope])
		ok(t, w.MetricInstance(otf2.MetricRef(g.next("MetricRef")), otf2.MetricRef(class),
			otf2.LocationRef(g.global("LocationRef")), scope, id))
	})
	// What the members of such a group are the readers do not agree on: otf2-print takes them for metric members,
	// the Python bindings for classes and instances. So ids that are both.
	var metrics []uint64
	for id := range min(g.n["MetricRef"], g.n["MetricMemberRef"]) {
		metrics = append(metrics, id)
	}
	ok(t, w.Group(otf2.GroupRef(g.next("GroupRef")), g.str(), otf2.GroupTypeMetric, otf2.ParadigmUnknown, 0, metrics))
	g.some(func() {
		ok(t, w.SourceCodeLocation(otf2.SourceCodeLocationRef(g.next("SourceCodeLocationRef")), g.str(),
			uint32(g.number(31))))
	})
	g.some(func() {
		parent := otf2.CallingContextRef(g.maybe("CallingContextRef"))
		ok(t, w.CallingContext(otf2.CallingContextRef(g.next("CallingContextRef")), region(),
			otf2.SourceCodeLocationRef(g.ref("SourceCodeLocationRef")), parent))
	})
	g.some(func() {
		ok(t, w.InterruptGenerator(otf2.InterruptGeneratorRef(g.next("InterruptGeneratorRef")), g.str(),
			otf2.InterruptGeneratorMode(g.enum("InterruptGeneratorMode")),
			otf2.Base(g.enum("Base")), int64(g.number(64)), g.number(63)))
	})
	g.some(func() { ok(t, w.IoRegularFile(otf2.IoFileRef(g.next("IoFileRef")), g.str(), node())) })
	g.some(func() { ok(t, w.IoDirectory(otf2.IoFileRef(g.next("IoFileRef")), g.str(), node())) })
	g.some(func() {
		parent := otf2.IoHandleRef(g.maybe("IoHandleRef"))
		self := otf2.IoHandleRef(g.next("IoHandleRef"))
		flags := otf2.IoHandleFlag(g.flags("IoHandleFlag"))
		ok(t, w.IoHandle(self, g.str(), otf2.IoFileRef(g.ref("IoFileRef")), otf2.IoParadigmRef(g.ref("IoParadigmRef")),
			flags, comm(), parent))
		if flags&otf2.IoHandleFlagPreCreated != 0 {
			ok(t, w.IoPreCreatedHandleState(self, otf2.IoAccessMode(g.enum("IoAccessMode")),
				otf2.IoStatusFlag(g.flags("IoStatusFlag"))))
		}
	})
	g.some(func() {
		parent := otf2.CallpathRef(g.maybe("CallpathRef"))
		self := otf2.CallpathRef(g.next("CallpathRef"))
		ok(t, w.Callpath(self, parent, region()))
		typ, value := g.property()
		ok(t, w.CallpathParameter(self, otf2.ParameterRef(g.ref("ParameterRef")), typ, value))
	})
	g.some(func() {
		ok(t, w.Callsite(otf2.CallsiteRef(g.next("CallsiteRef")), g.str(), uint32(g.number(31)), region(), region()))
	})
	g.some(func() {
		ok(t, w.CartDimension(otf2.CartDimensionRef(g.next("CartDimensionRef")), g.str(), uint32(g.number(31)),
			otf2.CartPeriodicity(g.IntN(2))))
	})
	c := comm()
	dims := make([]otf2.CartDimensionRef, 1+g.IntN(3))
	coordinates := make([]uint32, len(dims))
	for i := range dims {
		dims[i], coordinates[i] = otf2.CartDimensionRef(g.ref("CartDimensionRef")), uint32(g.number(31))
	}
	ok(t, w.CartTopology(otf2.CartTopologyRef(g.next("CartTopologyRef")), g.str(), c, dims))
	for rank := range min(2, g.groupSize[g.comms[c]]) {
		ok(t, w.CartCoordinate(0, uint32(rank), coordinates))
	}
	name := otf2.StringRef(0) // the bindings want each property of a thing once
	g.some(func() {
		typ, value := g.property()
		ok(t, w.SystemTreeNodeProperty(node(), name, typ, value))
		ok(t, w.LocationGroupProperty(otf2.LocationGroupRef(g.ref("LocationGroupRef")), name, typ, value))
		ok(t, w.LocationProperty(otf2.LocationRef(g.global("LocationRef")), name, typ, value))
		ok(t, w.CallingContextProperty(otf2.CallingContextRef(g.ref("CallingContextRef")), name, typ, value))
		ok(t, w.IoFileProperty(otf2.IoFileRef(g.ref("IoFileRef")), name, typ, value))
		name++
		ok(t, w.SystemTreeNodeDomain(node(), otf2.SystemTreeDomain(g.enum("SystemTreeDomain"))))
	})
}

// groups defines groups of all types: for some paradigms the locations, and groups of ranks among them.
func (g *randomArchive) groups() {
	w, t := g.defs, g.t
	define := func(name otf2.StringRef, typ otf2.GroupType, p otf2.Paradigm, flags otf2.GroupFlag,
		members []uint64) otf2.GroupRef {
		self := otf2.GroupRef(g.next("GroupRef"))
		ok(t, w.Group(self, name, typ, p, flags, members))
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
			g.commGroup = append(g.commGroup, define(
				g.str(), otf2.GroupTypeCommGroup, p, otf2.GroupFlag(g.flags("GroupFlag")), ranks))
		})
		g.commGroup = append(g.commGroup, define(g.str(), otf2.GroupTypeCommSelf, p, 0, nil))
	}
	define(g.str(), otf2.GroupTypeLocations, otf2.ParadigmUnknown, 0, pick("LocationRef"))
	define(g.str(), otf2.GroupTypeRegions, otf2.ParadigmUnknown, 0, pick("RegionRef"))
}

// idSpaces gives the reference type of the id spaces that can be mapped.
var idSpaces = []string{
	otf2.MappingString: "StringRef", otf2.MappingAttribute: "AttributeRef", otf2.MappingLocation: "LocationRef",
	otf2.MappingRegion: "RegionRef",
	otf2.MappingGroup:  "GroupRef", otf2.MappingMetric: "MetricRef", otf2.MappingComm: "CommRef",
	otf2.MappingParameter: "ParameterRef",
	otf2.MappingRmaWin:    "RmaWinRef", otf2.MappingSourceCodeLocation: "SourceCodeLocationRef",
	otf2.MappingCallingContext:     "CallingContextRef",
	otf2.MappingInterruptGenerator: "InterruptGeneratorRef", otf2.MappingIoFile: "IoFileRef",
	otf2.MappingIoHandle:      "IoHandleRef",
	otf2.MappingLocationGroup: "LocationGroupRef",
}

// localIDs are the ids that a location uses: local[i] stands for global[i].
type localIDs struct{ local, global []uint64 }

// mappings makes tables of a location: dense, sparse or none for each id space.
func (g *randomArchive) mappings() (map[string]localIDs, []*otf2.MappingTable) {
	ids := map[string]localIDs{}
	var tables []*otf2.MappingTable
	for space, kind := range idSpaces {
		var all []uint64
		for i := range g.n[kind] {
			id := i
			if kind == "LocationRef" {
				id = uint64(g.locations[i])
			}
			all = append(all, id)
		}
		l := localIDs{all, all}
		if form := g.IntN(4); g.shape.Mapped && form > 1 {
			global := slices.Clone(all)
			g.Shuffle(len(global), func(i, j int) { global[i], global[j] = global[j], global[i] })
			local := make([]uint64, len(global))
			m := &otf2.MappingTable{Type: otf2.MappingType(space), Global: global}
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
	ids, tables := g.mappings()
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
	ids := map[string]localIDs{}
	for _, kind := range idSpaces {
		var all []uint64
		for i := range g.n[kind] {
			all = append(all, i)
		}
		ids[kind] = localIDs{all, all}
	}
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
