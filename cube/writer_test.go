// SPDX-License-Identifier: Apache-2.0

package cube

import (
	"archive/tar"
	"bytes"
	std "cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// What is written is read back. What stands in the files, cube_dump says of the sample (fixture_test.go).
func TestWrittenProfilesReadBack(t *testing.T) {
	for name, o := range variants {
		t.Run(name, func(t *testing.T) {
			d, v := sample()
			b, err := written(d, v, o)
			check(t, err)
			p, got := readBack(t, b, d, v)
			again, err := written(&p.Definitions, got, o)
			check(t, err)
			testkit.Check(t, bytes.Equal(again, rewritten(t, d, v, o)), "written again, the profile has other bytes")
		})
	}
}

// rewritten writes with what reading changes: nodes and groups are numbered in the order of the file.
func rewritten(t *testing.T, d *Definitions, v values, o *Options) []byte {
	t.Helper()
	b, err := written(d, v, o)
	check(t, err)
	p, err := inMemory(b)
	check(t, err)
	b, err = written(&p.Definitions, v, o)
	check(t, err)
	return b
}

// complete adds what unwritten metrics read as.
func complete(d *Definitions, v values) {
	for id := range d.Metrics {
		if m := &d.Metrics[id]; !m.Kind.Derived() && v[MetricID(id)] == nil {
			row := newRow(m, len(d.Locations))
			for range d.Cnodes {
				var bits []uint64
				for l := range d.Locations {
					bits = append(bits, row.At(LocationID(l)).Bits())
				}
				v[MetricID(id)] = append(v[MetricID(id)], bits)
			}
		}
	}
}

// tester is what tests and properties have in common.
type tester interface {
	Helper()
	Fatal(...any)
	Errorf(string, ...any)
}

// readBack reads what was written of definitions and values, and compares it with them. Ordinary tar readers see the
// same members, none of which ends at the end of a block. Values of what was not written are added.
func readBack(t tester, b []byte, d *Definitions, v values) (*Profile, values) {
	t.Helper()
	p, err := inMemory(b)
	check(t, err)
	files := p.Files()
	for r := tar.NewReader(bytes.NewReader(b)); ; files = files[1:] {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		check(t, err)
		if len(files) == 0 || h.Name != files[0].Name || h.Size != files[0].Size || h.Size%512 == 0 && h.Size > 0 ||
			h.ModTime.Unix() != 0 {
			t.Errorf("tar has %s of %d bytes, made at %v, readers of profiles have %v", h.Name, h.Size, h.ModTime, files)
			break
		}
	}
	if len(files) > 0 {
		t.Errorf("tar does not list %v", files)
	}
	if version := map[bool]string{true: "4.7", false: "4.4"}[d.accelerated()]; p.Version != version {
		t.Errorf("version %s, want %s", p.Version, version)
	}
	got, err := stored(p)
	check(t, err)
	complete(d, v)
	if diff := cmp.Diff(v, got); diff != "" {
		t.Errorf("values: %s", diff)
	}
	// Nodes and groups have numbers in the order of the file.
	placed := func(d *Definitions) (all []Location) {
		for _, l := range d.Locations {
			g := d.Groups[l.Group]
			l.Name = fmt.Sprintf("%q of %q, %v %d %q on %q", l.Name, g.Name, g.Type, g.Rank, g.Attributes,
				d.Nodes[g.Node].Name)
			l.Group = 0
			all = append(all, l)
		}
		return all
	}
	if diff := cmp.Diff(placed(d), placed(&p.Definitions)); diff != "" {
		t.Errorf("locations: %s", diff)
	}
	numbered := cmpopts.IgnoreFields(Definitions{}, "Nodes", "Groups", "Locations", "Topologies")
	if diff := cmp.Diff(asRead(d, p.Attributes[:2]), &p.Definitions, numbered, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("definitions: %s", diff)
	}
	return p, got
}

// asRead are definitions with what readers take where nothing was said.
func asRead(d *Definitions, head []Attribute) *Definitions {
	all := *d
	all.Attributes = append(slices.Clone(head), d.Attributes...)
	all.Metrics, all.Regions, all.Cnodes = slices.Clone(d.Metrics), slices.Clone(d.Regions), slices.Clone(d.Cnodes)
	line := func(n *int) {
		if *n <= 0 {
			*n = -1
		}
	}
	for i := range all.Metrics {
		m := &all.Metrics[i]
		m.DisplayName = std.Or(m.DisplayName, m.UniqueName)
	}
	for i := range all.Regions {
		r := &all.Regions[i]
		r.MangledName = std.Or(r.MangledName, r.Name)
		r.Paradigm, r.Role = std.Or(r.Paradigm, "unknown"), std.Or(r.Role, "unknown")
		line(&r.Begin)
		line(&r.End)
	}
	for i := range all.Cnodes {
		line(&all.Cnodes[i].Line)
	}
	return &all
}

// The rows of the example in the format's description.
func TestRowsFollowTheTwoOrders(t *testing.T) {
	d, _ := sample()
	tree := d.callTree()
	for kind, want := range map[MetricKind][]int32{Exclusive: {0, 1, 3, 6, 5, 2, 4, 7},
		Inclusive: {0, 1, 2, 3, 5, 6, 4, 7}} {
		got := tree.rowOrder(kind)
		testkit.Check(t, slices.Equal(got, want), "%s: %v, want %v", kind, got, want)
	}
}

// The same definitions and values give the bytes that another writer made of them.
func TestMinimalMembersAreThoseOfTheFixture(t *testing.T) {
	p := open(t, "testdata/minimal.cubex")
	v, err := stored(p)
	check(t, err)
	b, err := written(&p.Definitions, v, nil)
	check(t, err)
	again, err := inMemory(b)
	check(t, err)
	for _, name := range []string{"0.index", "0.data", "1.index", "1.data"} {
		want, err := p.ReadFile(name)
		check(t, err)
		got, err := again.ReadFile(name)
		check(t, err)
		testkit.Check(t, bytes.Equal(got, want), "%s is % x, want % x", name, got, want)
	}
}

// Members whose size would be a multiple of 512 are made longer: values of small types, the anchor, files of others.
func TestNoMemberIsAMultipleOfTheBlock(t *testing.T) {
	padded := 0
	sizes := func(b []byte) map[string]int {
		p, err := inMemory(b)
		check(t, err)
		m := make(map[string]int)
		for _, f := range p.Files() {
			if m[f.Name] = int(f.Size); f.Size%512 == 0 && f.Size > 0 {
				t.Errorf("%s has %d bytes", f.Name, f.Size)
			}
			if f.Size%512 == 1 && f.Size > 1 {
				padded++
			}
		}
		_, err = stored(p)
		testkit.Check(t, err == nil, "%v", err)
		return m
	}
	for n := range 512 {
		d := one()
		d.Attributes = []Attribute{{"x", xs(n)}}
		b, err := written(d, nil, nil)
		check(t, err)
		sizes(b)
	}
	if padded != 2 { // one is as long by itself, one was a byte shorter
		t.Errorf("%d anchors are a byte longer than a multiple of 512, of 512 lengths in a row two should be", padded)
	}
	padded = 0
	for n := 1; n < 520; n++ {
		d := one()
		d.Metrics[0].Type = Uint8
		for len(d.Locations) < n {
			d.AddLocation(Location{Group: 0})
		}
		b, err := written(d, values{0: {bytesToBits(xs(n))}}, nil)
		check(t, err)
		readBack(t, b, d, values{0: {bytesToBits(xs(n))}})
		got := sizes(b)["0.data"]
		testkit.Check(t, got == 10+n || (10+n)%512 == 0, "%d bytes of %d values", got, n)
	}
	testkit.Check(t, padded != 0, "no member came to a multiple of 512")
	var m memory
	w, err := newWriter(&m, one(), nil)
	check(t, err)
	for _, n := range []int{0, 1, 511, 512, 513, 1024} {
		check(t, w.WriteFile(fmt.Sprint("f", n), []byte(xs(n))))
	}
	check(t, w.Close())
	for name, size := range sizes(m.data) {
		if n := 0; strings.HasPrefix(name, "f") {
			_, err := fmt.Sscanf(name, "f%d", &n)
			check(t, err)
			testkit.Check(t, size == n || size == n+1 && n%512 == 0, "%s has %d bytes", name, size)
		}
	}
}

func TestNoCompressedAnchorIsAMultipleOfTheBlock(t *testing.T) {
	d := one()
	longer := 0
	random := rand.New(rand.NewPCG(1, 2))
	for text := ""; len(text) < 1000; text += string(rune('0' + random.IntN(70))) {
		d.Attributes = []Attribute{{"x", text}}
		packed, err := d.packedAnchor()
		check(t, err)
		plain, err := anchorText(section{bytes.NewReader(packed), 0, int64(len(packed))})
		check(t, err)
		testkit.Check(t, len(packed)%512 != 0, "%d bytes", len(packed))
		if bytes.HasSuffix(plain, []byte("\n\n")) {
			longer++
		}
	}
	testkit.Check(t, longer != 0, "no anchor came to a multiple of 512")
}

func bytesToBits(s string) (list []uint64) {
	for _, b := range []byte(s) {
		list = append(list, uint64(b))
	}
	return list
}

// Every definition that readers do not take is refused, and the message says which and why.
func TestDefinitionsThatHarmReadersAreRefused(t *testing.T) {
	cases := []struct {
		change func(d *Definitions)
		want   string
	}{
		{func(d *Definitions) { d.Metrics = nil }, `there is no metric "time"`},
		{func(d *Definitions) { d.Metrics[1].UniqueName = "t" }, `there is no metric "time"`},
		{func(d *Definitions) { d.Metrics[0].UniqueName = "time" }, `metric 1 "time": the unique name is there twice`},
		{func(d *Definitions) { d.Metrics[0].UniqueName = "a b" }, "letters, digits and _ : ="},
		{func(d *Definitions) { d.Metrics[0].UniqueName = "" }, "at least one"},
		{func(d *Definitions) { d.Metrics[0].Parent = 0 }, "stands below metric 0 but not behind it"},
		{func(d *Definitions) { d.Metrics[9].Parent = 1 }, "stands below metric 1 but not behind it"},
		{func(d *Definitions) { d.Metrics[0].Hidden = true },
			`metric 1 "time" stands behind the hidden metric 0: tools crash`},
		{func(d *Definitions) { d.Metrics[0].Kind = kindMissing }, "has no kind"},
		{func(d *Definitions) { d.Metrics[0].Kind = 99 }, "has no kind"},
		{func(d *Definitions) { d.Metrics[0].Kind = Simple }, "libraries disagree"},
		{func(d *Definitions) { d.Metrics[0].Type = "double" }, `unknown type "double"`},
		{func(d *Definitions) { d.Metrics[0].Type = TauAtomic }, "cube_info and cube_sanity abort"},
		{func(d *Definitions) { d.Metrics[0].Type = "HISTOGRAM(3)" }, "several numbers"},
		{func(d *Definitions) { d.Metrics[4].Kind = Inclusive }, "readers drop it"},
		{func(d *Definitions) { d.Metrics[7].Expression = "" }, "has no expression"},
		{func(d *Definitions) { d.Metrics[7].Type = Uint64 }, "expressions give doubles"},
		{func(d *Definitions) { d.Metrics[0].Expression = "1" }, "only derived metrics do"},
		{func(d *Definitions) { d.Metrics[7].Plus = "1" }, "says how to add"},
		{func(d *Definitions) { d.Metrics[7].Kind = PreDerivedExclusive }, "cube_remap2 -d crashes"},
		{func(d *Definitions) { d.Metrics[8].Kind = PreDerivedInclusive }, "cube_remap2 -d crashes"},
		{func(d *Definitions) { d.Metrics[0].Val = "VOID" }, "cube_part crashes on headings"},
		{func(d *Definitions) { d.Metrics[0].Description = "a\nb" }, "U+000A"},
		{func(d *Definitions) { d.Regions = nil }, "there is no region"},
		{func(d *Definitions) { d.Regions[0].Name = "" }, "region 0 \"\" has no name"},
		{func(d *Definitions) { d.Regions[0].Name = "a\r" }, "U+000D"},
		{func(d *Definitions) { d.Regions[0].Name = "a\x00" }, "U+0000"},
		{func(d *Definitions) { d.Regions[0].Name = "a\xff" }, "is not UTF-8"},
		{func(d *Definitions) { d.Regions[0].Attributes = []Attribute{{"a", ""}, {"a", ""}} }, `attribute "a" twice`},
		{func(d *Definitions) { d.Cnodes = nil }, "there is no cnode"},
		{func(d *Definitions) { d.Cnodes[1].Parent = 1 }, "parents stand before their children"},
		{func(d *Definitions) { d.Cnodes[1].Parent = -2 }, "parents stand before their children"},
		{func(d *Definitions) { d.Cnodes[1].Callee = 5 }, "calls region 5 of 5"},
		{func(d *Definitions) { d.Cnodes[3].Parameters[0].Value = "1M" }, `parameter "size" = "1M"`},
		{func(d *Definitions) { d.Nodes[1].Class, d.Nodes[2].Class = "Node", "rack" }, "cube_info crashes"},
		{func(d *Definitions) { d.Nodes[0].Parent = 0 }, "parents stand before their children"},
		{func(d *Definitions) { d.Groups = nil }, "there is no location group"},
		{func(d *Definitions) { d.Groups[1].Name = "Rank 0" }, "another process is named"},
		{func(d *Definitions) { d.Groups[1].Rank = -1 }, "has rank -1"},
		{func(d *Definitions) { d.Groups[1].Node = 3 }, "system tree node 3 of 3"},
		{func(d *Definitions) { d.Groups[1].Type = GroupMetrics }, "scorep-score ends on it"},
		{func(d *Definitions) { d.Groups[1].Type = 9 }, "unknown type 9"},
		{func(d *Definitions) { d.Groups[2].Attributes = nil }, `needs the attribute "Creating location group"`},
		{func(d *Definitions) { d.Groups[2].Attributes[0].Value = "Rank 9" },
			`needs the attribute "Creating location group"`},
		{func(d *Definitions) { d.Locations[1].Group = 0 }, `location group 1 "Rank 1" has no location`},
		{func(d *Definitions) { d.Locations[1].Group = 3 }, "location group 3 of 3"},
		{func(d *Definitions) { d.Locations[1].Rank = -1 }, "has rank -1"},
		{func(d *Definitions) { d.Locations[1].Type = 9 }, "unknown type 9"},
		{func(d *Definitions) { d.Topologies[0].Places[0].Of = PlaceOfNode }, "every tool crashes"},
		{func(d *Definitions) { d.Topologies[0].Places[0].ID = 9 }, "there is no locId 9"},
		{func(d *Definitions) { d.Topologies[0].Places[0].Coordinates = []int{0} }, "1 coordinates in 2 dimensions"},
		{func(d *Definitions) { d.Topologies[0].Places[0].Coordinates[0] = 2 }, "outside of dimension 0 of size 2"},
		{func(d *Definitions) { d.Topologies[0].Dimensions = nil }, "no dimension"},
		{func(d *Definitions) { d.Topologies[0].Dimensions[1].Size = 0 }, "has size 0"},
		{func(d *Definitions) { d.Attributes = append(d.Attributes, Attribute{"CLUSTERING", "ON"}) },
			"clustered iterations"},
		{func(d *Definitions) { d.Mirrors[0] = "\x1b" }, "U+001B"},
	}
	for _, c := range cases {
		d, _ := sample()
		check(t, d.Check())
		c.change(d)
		path := filepath.Join(t.TempDir(), "a.cubex")
		_, err := Create(path, d, nil)
		testkit.Check(t, errors.Is(err, ErrInvalid) && strings.Contains(err.Error(), c.want),
			"%v, want %q", err, c.want)
		list, _ := os.ReadDir(filepath.Dir(path))
		testkit.Check(t, len(list) == 0, "%q left %v", c.want, list)
	}
}

// Values that are not of the metric's type, and calls out of turn, are refused; then nothing is left behind.
func TestValuesThatDoNotFitAreRefused(t *testing.T) {
	set := func(metric MetricID, do func(r *Row)) func(w *Writer) error {
		return func(w *Writer) error {
			return w.WriteMetric(metric, func(c CnodeID, r *Row) error {
				if c == 3 {
					do(r)
				}
				return nil
			})
		}
	}
	nothing := func(CnodeID, *Row) error { return nil }
	cases := []struct {
		do   func(w *Writer) error
		want string
	}{
		{set(1, func(r *Row) { r.SetFloat64(0, math.NaN()) }),
			`metric 1 "time": cnode 3: cube: invalid argument: NaN at location 0`},
		{set(1, func(r *Row) { r.SetFloat64(0, math.Inf(-1)) }), "-Inf at location 0"},
		{set(1, func(r *Row) { r.SetUint64(0, 1) }), "use SetFloat64 for doubles"},
		{set(0, func(r *Row) { r.SetFloat64(0, 1) }), "SetUint64 or SetInt64 for integers"},
		{set(0, func(r *Row) { r.SetInt64(0, -1) }), "-1 at location 0 does not fit UINT64"},
		{set(6, func(r *Row) { r.SetInt64(3, -32769) }), "-32769 at location 3 does not fit INT16"},
		{set(6, func(r *Row) { r.SetUint64(3, 32768) }), "32768 at location 3 does not fit INT16"},
		{set(9, func(r *Row) { r.SetUint64(0, 256) }), "256 at location 0 does not fit UINT8"},
		{set(0, func(r *Row) { r.SetUint64(4, 1) }), "there is no location 4 among 4"},
		{set(0, func(r *Row) { r.SetUint64(-1, 1) }), "there is no location -1"},
		{func(w *Writer) error { return w.WriteMetric(7, nothing) }, "it has no values"},
		{func(w *Writer) error { return w.WriteMetric(10, nothing) }, "there is no metric 10 among 10"},
		{func(w *Writer) error { return errors.Join(w.WriteMetric(0, nothing), w.WriteMetric(0, nothing)) },
			"is written twice"},
		{func(w *Writer) error { return w.WriteMetric(0, func(CnodeID, *Row) error { return io.ErrNoProgress }) },
			"cnode 0: " + io.ErrNoProgress.Error()},
		{func(w *Writer) error { return w.WriteFile("anchor.xml", nil) }, "is there twice"},
		{func(w *Writer) error { return w.WriteFile("7.data", nil) }, "named like the values"},
		{func(w *Writer) error { return w.WriteFile("a/b", nil) }, "no folders"},
		{func(w *Writer) error { return w.WriteFile(xs(100), nil) }, "1 to 99 bytes"},
	}
	for _, c := range cases {
		d, _ := sample()
		dir := t.TempDir()
		w, err := Create(filepath.Join(dir, "a.cubex"), d, nil)
		check(t, err)
		first := c.do(w)
		testkit.Check(t, first != nil && strings.Contains(first.Error(), c.want), "%v, want %q", first, c.want)
		testkit.Check(t, w.WriteFile("later", nil) != nil, "%q: the writer goes on", c.want)
		err = w.Close()
		testkit.Check(t, err != nil && strings.Contains(err.Error(), c.want), "Close: %v, want %q", err, c.want)
		list, _ := os.ReadDir(dir)
		testkit.Check(t, len(list) == 0, "%q left %v", c.want, list)
	}
}

// sink is a file that keeps nothing.
type sink struct{ n int64 }

func (s *sink) Write(p []byte) (int, error) { s.n += int64(len(p)); return len(p), nil }

func (s *sink) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

// The values of a metric are not held: memory follows cnodes and locations, not their product.
func TestValuesAreStreamed(t *testing.T) {
	const cnodes, locations = 2000, 4000
	d := one()
	for range cnodes - 1 {
		d.AddCnode(Cnode{Parent: 0, Callee: 0})
	}
	for range locations - 1 {
		d.AddLocation(Location{Group: 0})
	}
	var out sink
	w, err := newWriter(&out, d, nil)
	check(t, err)
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	before := sample[0].Value.Uint64()
	check(t, w.WriteMetric(0, func(c CnodeID, row *Row) error {
		row.SetFloat64(LocationID(c), 1)
		return nil
	}))
	metrics.Read(sample)
	const bound = 1<<20 + 16*cnodes + 4*8*locations
	if used := sample[0].Value.Uint64() - before; used > bound || out.n < 8*cnodes*locations {
		t.Errorf("%d bytes allocated to write %d, want %d at most", used, out.n, bound)
	}
	check(t, w.Close())
}

func TestProfilesAppearWhole(t *testing.T) {
	d, v := sample()
	dir := t.TempDir()
	path := filepath.Join(dir, "p.cubex")
	check(t, os.WriteFile(path, []byte("older"), 0o600))
	w, err := Create(path, d, nil)
	check(t, err)
	testkit.Equal(t, string(readFile(t, path)), "older", "the older file is gone before Close")
	check(t, w.Abandon())
	check(t, w.Abandon())
	if err := w.Close(); !errors.Is(err, ErrClosed) {
		t.Errorf("Close after Abandon: %v", err)
	}
	w, err = Create(path, d, nil)
	check(t, err)
	check(t, w.WriteMetric(0, func(c CnodeID, r *Row) error {
		for l, x := range v[0][c] {
			r.SetUint64(LocationID(l), x)
		}
		return nil
	}))
	check(t, w.Close())
	if err := w.WriteMetric(1, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("WriteMetric after Close: %v", err)
	}
	list, err := os.ReadDir(dir)
	testkit.Check(t, err == nil && len(list) == 1, "%v beside the profile (%v)", list, err)
	want, err := written(d, values{0: v[0]}, nil)
	check(t, err)
	testkit.Check(t, bytes.Equal(readFile(t, path), want), "file and memory have other bytes")
	for _, name := range []string{"p.cube", "p", ".cubex", "p.cubex.gz"} {
		_, err := Create(filepath.Join(dir, name), d, nil)
		testkit.Check(t, errors.Is(err, ErrInvalid), "%s: %v", name, err)
	}
}

// Call trees deeper than any stack are written and read.
func TestDeepCallTrees(t *testing.T) {
	const depth = 100_000
	d := one()
	for i := range depth - 1 {
		d.AddCnode(Cnode{Parent: CnodeID(i), Callee: 0})
	}
	var m memory
	w, err := newWriter(&m, d, nil)
	check(t, err)
	check(t, w.WriteMetric(0, func(c CnodeID, row *Row) error {
		row.SetFloat64(0, depth-float64(c))
		return nil
	}))
	check(t, w.Close())
	p, err := inMemory(m.data)
	check(t, err)
	var row Row
	visited := 0
	p.Walk(func(c CnodeID, at int) {
		_, err := p.Row(0, c, &row)
		check(t, err)
		if int(c) != visited || at != visited || row.At(0).Float64() != depth-float64(c) {
			t.Fatalf("cnode %d at depth %d has %v", c, at, row.At(0))
		}
		visited++
	})
	testkit.Equal(t, visited, depth, "cnodes")
}
