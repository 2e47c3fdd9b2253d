// SPDX-License-Identifier: Apache-2.0

package cube

import (
	"math"
	"strings"
)

// sample has one of everything that is written.
func sample() (*Definitions, values) {
	d := &Definitions{
		Attributes: []Attribute{{AttributeCreator, "cube tests"}, {AttributeParameterCounters, "2"},
			{"odd <&>'\"", "\t\"&amp;\" &#38; ]]> é\u00a0"}},
		Mirrors:      []string{"https://example.invalid/a?b&c"},
		MetricsTitle: "Metrics", ProgramTitle: "Calls & such", SystemTitle: "Machines",
	}
	visits := d.AddMetric(Metric{Parent: None, UniqueName: "visits", DisplayName: "Visits", Type: Uint64, Unit: "occ",
		Kind: Exclusive})
	time := d.AddMetric(Metric{Parent: None, UniqueName: "time", DisplayName: "Time", Type: Double, Unit: "sec",
		Kind: Inclusive, URL: "@mirror@time", Description: "time < all"})
	wait := d.AddMetric(Metric{Parent: time, UniqueName: "wait", Type: Double, Unit: "sec", Kind: Inclusive,
		Attributes: []Attribute{{"a", "b"}}})
	d.AddMetric(Metric{Parent: wait, UniqueName: "wait::late", Type: Double, Unit: "sec", Kind: Exclusive})
	lowest := d.AddMetric(Metric{Parent: None, UniqueName: "min_time", Type: MinDouble, Unit: "sec", Kind: Exclusive})
	highest := d.AddMetric(Metric{Parent: None, UniqueName: "max_time", Type: MaxDouble, Unit: "sec", Kind: Exclusive})
	signed := d.AddMetric(Metric{Parent: None, UniqueName: "change", Type: Int16, Kind: Inclusive})
	d.AddMetric(Metric{Parent: None, UniqueName: "rate", Type: Double, Unit: "1/sec", Kind: PostDerived,
		Expression: "metric::visits() / metric::time()"})
	d.AddMetric(Metric{Parent: None, UniqueName: "late", Type: Double, Kind: PostDerived,
		Init:       "{ global(limit); ${limit} = 1; return 0; }",
		Expression: `{ ${v} = 0; if ((metric::time() > ${limit}) and ("a&b" eq "a&b")) { ${v} = 1; }; return ${v}; }`})
	ghost := d.AddMetric(Metric{Parent: None, UniqueName: "ghost", Type: Uint8, Kind: Exclusive, Hidden: true})

	program := d.AddRegion(Region{Name: "a.out", MangledName: "/x/a.out", Paradigm: ParadigmMeasurement,
		Role: RoleArtificial, Attributes: []Attribute{{AttributeArguments, "1"}}})
	phase := d.AddRegion(Region{Name: `phase "<1>"`, Paradigm: "user", Role: "phase", Module: "a&b.py", Begin: 3,
		End: 9, URL: "u", Description: "  d "})
	call := d.AddRegion(Region{Name: "call", Paradigm: "libwrap:x"})
	kernels := d.AddRegion(Region{Name: "KERNELS", Paradigm: ParadigmCUDA, Role: RoleArtificial})
	kernel := d.AddRegion(Region{Name: "k<4>", Paradigm: ParadigmCUDA, Role: RoleFunction, Module: ModuleKernel})

	// As in the description of the orders: ids follow neither.
	c0 := d.AddCnode(Cnode{Parent: None, Callee: program})
	c1 := d.AddCnode(Cnode{Parent: c0, Callee: phase, Line: 7, Module: "main.py"})
	c2 := d.AddCnode(Cnode{Parent: c0, Callee: kernels, Attributes: []Attribute{{"k", "v"}}})
	c3 := d.AddCnode(Cnode{Parent: c1, Callee: call,
		Parameters: []Parameter{{"size", "4096", true}, {"comm", `"w" & <x>`, false}}})
	d.AddCnode(Cnode{Parent: c2, Callee: kernel})
	d.AddCnode(Cnode{Parent: c1, Callee: call})
	d.AddCnode(Cnode{Parent: c3, Callee: call})
	d.AddCnode(Cnode{Parent: None, Callee: phase})

	machine := d.AddNode(SystemTreeNode{Parent: None, Name: "machine m", Class: ClassMachine})
	n0 := d.AddNode(SystemTreeNode{Parent: machine, Name: "node 0", Class: ClassNode, Description: "first",
		Attributes: []Attribute{{"host", "n0"}}})
	n1 := d.AddNode(SystemTreeNode{Parent: machine, Name: "node 1", Class: ClassNode})
	g0 := d.AddGroup(LocationGroup{Node: n0, Name: "Rank 0", Rank: 0})
	g1 := d.AddGroup(LocationGroup{Node: n1, Name: "Rank 1", Rank: 1})
	gpu := d.AddGroup(LocationGroup{Node: n0, Name: "GPU", Rank: 2, Type: GroupAccelerator,
		Attributes: []Attribute{{AttributeCreatingGroup, "Rank 0"}}})
	l0 := d.AddLocation(Location{Group: g0, Name: "Master thread"})
	l1 := d.AddLocation(Location{Group: g1, Name: "Master thread", Attributes: []Attribute{{"core", "3"}}})
	d.AddLocation(Location{Group: gpu, Name: "stream 7", Type: LocationStream})
	d.AddLocation(Location{Group: g0, Name: "thread 1", Rank: 1})
	d.Topologies = []Topology{
		{Name: "ring", Dimensions: []Dimension{{"rank", 2, true}, {"", 1, false}},
			Places: []Place{{PlaceOfLocation, int32(l0), []int{0, 0}}, {PlaceOfLocation, int32(l1), []int{1, 0}}}},
		{Dimensions: []Dimension{{"", 3, false}}, Places: []Place{{PlaceOfGroup, int32(g1), []int{2}}}},
	}

	f := math.Float64bits
	none := math.MaxFloat64
	v := values{
		visits: {{1, 1, 0, 1}, {10, 11, 0, 13}, {0, 0, 0, 0}, {30, 31, 0, 33}, {0, 0, 42, 0}, {50, 0, 0, 0},
			{0, 61, 0, 0}, {70, 71, 0, 1 << 40}},
		time: {{f(9), f(8.5), f(.1), f(7)}, {f(5), f(4), 0, f(3)}, {0, 0, f(.1), 0}, {f(4), f(3), 0, f(2)},
			{0, 0, f(.1), 0}, {f(.5), 0, 0, 0}, {0, f(1e-300), 0, 0}, {f(1), f(2), 0, f(3)}},
		wait: {{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}, {f(.25), 0, 0, 0}, {0, 0, 0, 0},
			{0, 0, 0, 0}},
		lowest: {{f(9), f(8.5), f(none), f(7)}, {f(5), f(4), f(none), f(3)}, {f(none), f(none), f(none), f(none)},
			{f(4), f(0), f(none), f(2)}, {f(none), f(none), f(.1), f(none)}, {f(.5), f(none), f(none), f(none)},
			{f(none), f(1e-300), f(none), f(none)}, {f(1), f(2), f(none), f(3)}},
		highest: {{f(9), f(8.5), f(-none), f(7)}, {f(5), f(4), f(-none), f(3)},
			{f(-none), f(-none), f(-none), f(-none)}, {f(4), f(0), f(-none), f(2)},
			{f(-none), f(-none), f(.1), f(-none)}, {f(.5), f(-none), f(-none), f(-none)},
			{f(-none), f(1e-300), f(-none), f(-none)}, {f(1), f(2), f(-none), f(3)}},
		signed: {{0, 1, 2, 3}, {^uint64(0), 0x7f00, ^uint64(0x6fff), 0}, {0, 0, 0, 0}, {0, 0, 0, 1}, {0, 0, 0, 0},
			{5, 0, 0, 0}, {0, 6, 0, 0}, {0, 0, 7, 0}},
		ghost: {{255, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0},
			{0, 0, 0, 1}},
	}
	return d, v
}

// variants are the forms of files.
var variants = map[string]*Options{"sparse": nil, "dense": {Dense: true}, "compressed": {Compress: true},
	"dense-compressed": {Dense: true, Compress: true}}

// one is the smallest profile: one of each.
func one() *Definitions {
	d := new(Definitions)
	d.AddMetric(Metric{Parent: None, UniqueName: "time", Type: Double, Kind: Inclusive})
	d.AddCnode(Cnode{Parent: None, Callee: d.AddRegion(Region{Name: "main"})})
	n := d.AddNode(SystemTreeNode{Parent: None, Name: "n", Class: ClassNode})
	d.AddLocation(Location{Group: d.AddGroup(LocationGroup{Node: n, Name: "p"}), Name: "t"})
	return d
}

func xs(n int) string { return strings.Repeat("x", n) }
