// SPDX-License-Identifier: Apache-2.0

package cube

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The reference writer's profiles hold 10·c + l, sparse and dense.
func TestCubeWFixturesHoldWhatWasWritten(t *testing.T) {
	for _, name := range []string{"cubew-dense", "cubew-sparse"} {
		p := open(t, "testdata/"+name+".cubex")
		var row Row
		for metric, half := range map[MetricID]float64{0: 0, 1: 0.5, 2: 0.5, 3: 0.5, 4: 0} {
			for c := range p.Cnodes {
				stored, err := p.Row(metric, CnodeID(c), &row)
				check(t, err)
				for l := range p.Locations {
					if got, want := row.At(LocationID(l)).Float64(), float64(10*c+l)+half; stored && got != want {
						t.Errorf("%s: %s at cnode %d, location %d is %v, want %v", name, p.Metrics[metric].UniqueName,
							c, l, got, want)
					}
				}
				if name == "cubew-dense" && !stored {
					t.Errorf("no row of metric %d at cnode %d", metric, c)
				}
			}
		}
	}
}

var (
	dumpMetric = regexp.MustCompile(`^Print out the data of the metric (\S+)$`)
	dumpRow    = regexp.MustCompile(`\(id=(\d+)\)\s+(.*)$`)
)

// cube_dump prints the stored rows with six digits, and "0." where no row is stored of a metric that has some.
func TestStoredValuesAreThoseOfCubeDump(t *testing.T) {
	for _, path := range append(fixtures(t), "testdata/sample.cubex") {
		text, err := os.ReadFile(strings.TrimSuffix(path, ".cubex") + ".dump-stored.txt")
		if os.IsNotExist(err) {
			continue // the variants of nccl-2x2 have its values
		}
		check(t, err)
		p := open(t, path)
		metric, compared := MetricID(None), 0
		var row Row
		for line := range strings.Lines(string(text)) {
			line = strings.TrimRight(line, " \n")
			if m := dumpMetric.FindStringSubmatch(line); m != nil {
				metric = MetricID(slices.IndexFunc(p.Metrics, func(x Metric) bool { return x.UniqueName == m[1] }))
				continue
			}
			m := dumpRow.FindStringSubmatch(line)
			if m == nil || p.Metrics[metric].Kind.Derived() {
				continue
			}
			c, err := strconv.Atoi(m[1])
			check(t, err)
			stored, err := p.Row(metric, CnodeID(c), &row)
			check(t, err)
			cells := strings.Fields(strings.ReplaceAll(m[2], ", ", ","))
			if len(cells) != len(p.Locations) {
				t.Fatalf("%s: %d values in %q", path, len(cells), line)
			}
			for l, want := range cells {
				got := dumped(p.Metrics[metric].Type, &row, LocationID(l), stored || p.severity[metric] == nil)
				if !sameText(got, want) {
					t.Errorf("%s: %s at cnode %d, location %d: %s, cube_dump has %s", path,
						p.Metrics[metric].UniqueName, c, l, got, want)
				}
				compared++
			}
		}
		if compared < len(p.Cnodes)*len(p.Locations) {
			t.Errorf("%s: %d values compared", path, compared)
		}
	}
}

// dumped prints a value as cube_dump does.
func dumped(dtype DataType, row *Row, l LocationID, stored bool) string {
	n := func(i int) float64 { return row.NumberAt(l, i).Float64() }
	switch {
	case !stored:
		return "0."
	case dtype == TauAtomic:
		mean := n(3) / n(0)
		return fmt.Sprintf("(%v,%v,%v):%.6g,%.6g", n(0), n(1), n(2), mean, math.Sqrt(max(0, n(4)/n(0)-mean*mean)))
	case strings.HasPrefix(string(dtype), "HISTOGRAM"):
		return fmt.Sprintf("%v:(%v,%v,%v):%v", n(0), n(2), n(3), n(4), n(1))
	case !row.Present(l):
		return "-"
	}
	return row.At(l).String()
}

// sameText compares numbers to the digits that are printed.
func sameText(got, want string) bool {
	g, err1 := strconv.ParseFloat(got, 64)
	w, err2 := strconv.ParseFloat(want, 64)
	if err1 != nil || err2 != nil {
		return got == want
	}
	return (want == "0.") == (got == "0.") && math.Abs(g-w) <= 1e-5*math.Abs(w)+1e-12
}

// Sums along the call tree, by the rules of the format, are those that cube_dump prints.
func TestExclusiveAndInclusiveValuesAreThoseOfCubeDump(t *testing.T) {
	cases := map[string]string{"minimal": "minimal", "nccl-2x2": "nccl-2x2", "nccl-2x2-dense": "nccl-2x2",
		"nccl-2x2-zdata":     "nccl-2x2",
		"nccl-2x2-bigendian": "nccl-2x2", "scorep-mpi3": "scorep-mpi3", "scorep-serial": "scorep-serial",
		"sample": "sample"}
	for name, expected := range cases {
		for _, flavor := range []string{"excl", "incl"} {
			p := open(t, "testdata/"+name+".cubex")
			f, err := os.Open("testdata/" + expected + ".dump-" + flavor + ".csv")
			check(t, err)
			lines, err := csv.NewReader(f).ReadAll()
			check(t, err)
			check(t, f.Close())
			if len(lines) != 1+len(p.Cnodes)*len(p.Locations) {
				t.Fatalf("%s: %d lines", f.Name(), len(lines))
			}
			for column, unique := range lines[0][2:] {
				id := MetricID(slices.IndexFunc(p.Metrics, func(m Metric) bool { return m.UniqueName == unique }))
				if p.Metrics[id].Kind.Derived() {
					continue
				}
				values := along(t, p, id, flavor == "incl")
				for _, line := range lines[1:] {
					c, _ := strconv.Atoi(line[0])
					l, _ := strconv.Atoi(line[1])
					got, want := values[c][l], line[2+column]
					if math.Abs(got) == math.MaxFloat64 {
						if want != "-" {
							t.Errorf("%s: %s %s at %d, %d: none, want %s", name, flavor, unique, c, l, want)
						}
						continue
					}
					// Small differences of large times lose digits.
					if w, err := strconv.ParseFloat(want, 64); err != nil || math.Abs(got-w) > 1e-5*math.Abs(w)+1e-9 {
						t.Errorf("%s: %s %s at %d, %d: %v, want %s", name, flavor, unique, c, l, got, want)
					}
				}
			}
		}
	}
}

// along computes the inclusive or exclusive values of a metric.
func along(t *testing.T, p *Profile, id MetricID, inclusive bool) [][]float64 {
	t.Helper()
	m := &p.Metrics[id]
	add := map[DataType]func(a, b float64) float64{MinDouble: math.Min, MaxDouble: math.Max}[m.Type]
	if add == nil {
		add = func(a, b float64) float64 { return a + b }
	}
	own := make([][]float64, len(p.Cnodes))
	var row Row
	for c := range own {
		_, err := p.Row(id, CnodeID(c), &row)
		check(t, err)
		for l := range p.Locations {
			own[c] = append(own[c], row.At(LocationID(l)).Float64())
		}
	}
	if inclusive == (m.Kind == Inclusive) {
		return own
	}
	result := make([][]float64, len(own))
	for c := range own {
		result[c] = slices.Clone(own[c])
	}
	for c := len(own) - 1; c > 0; c-- { // children have larger ids here
		parent := p.Cnodes[c].Parent
		if parent == None {
			continue
		}
		for l := range p.Locations {
			if inclusive {
				result[parent][l] = add(result[parent][l], result[c][l])
			} else {
				result[parent][l] -= own[c][l]
			}
		}
	}
	return result
}

// The definitions are those that cube_dump prints.
func TestDefinitionsAreThoseOfCubeDump(t *testing.T) {
	for _, name := range []string{"minimal", "nccl-2x2", "cubew-dense", "cubew-sparse", "scorep-mpi3", "scorep-serial",
		"sample"} {
		p := open(t, "testdata/"+name+".cubex")
		text := string(readFile(t, "testdata/"+name+".dump-structure.txt"))
		var want []string
		for line := range strings.Lines(text) {
			want = append(want, strings.TrimRight(line, " \n"))
		}
		has := func(format string, args ...any) {
			t.Helper()
			line := fmt.Sprintf(format, args...)
			if !slices.ContainsFunc(want, func(w string) bool { return strings.Contains(w, line) }) {
				t.Errorf("%s: cube_dump has no %q", name, line)
			}
		}
		for _, a := range p.Attributes {
			if !regexp.MustCompile(regexp.QuoteMeta(a.Key) + ` +: ` + regexp.QuoteMeta(a.Value)).MatchString(text) {
				t.Errorf("%s: cube_dump has no attribute %v", name, a)
			}
		}
		for i, m := range p.Mirrors {
			has("Mirror %d : %s", i+1, m)
		}
		for i, m := range p.Metrics {
			kind := m.Kind
			if m.Hidden {
				continue // is not listed
			}
			if kind == Simple {
				kind = Inclusive
			}
			dtype, _, _ := strings.Cut(string(m.Type), "(")
			has("%s  ( id=%d, %s, %s, %s, %s, %s, %s", m.DisplayName, i, m.UniqueName, m.Unit, dtype, m.URL,
				m.Description, kind)
			if m.Expression != "" {
				has(`"%s", "%s"`, m.Expression, m.Init)
			}
		}
		for i, r := range p.Regions {
			has("%s:%s\t   ( id=%d, %d, %d, paradigm=%s, role=%s, url=%s, descr=%s, mod=%s)", r.Name, r.MangledName, i,
				r.Begin, r.End,
				r.Paradigm, r.Role, r.URL, r.Description, r.Module)
			for _, a := range r.Attributes {
				has(`Attribute: "%s"->"%s"`, a.Key, a.Value)
			}
		}
		treeLine := regexp.MustCompile(`(?m)^([ |-]*)(\S.*?)  \[ \( id=(\d+),   mod=(.*?)\),`)
		lines := treeLine.FindAllStringSubmatch(text, -1)
		i := 0
		p.Walk(func(c CnodeID, depth int) {
			region := p.Regions[p.Cnodes[c].Callee]
			if m := lines[i]; m[2] != region.Name || m[3] != fmt.Sprint(c) || strings.Count(m[1], " ") != 2*depth ||
				m[4] != p.Cnodes[c].Module {
				t.Errorf("%s: cnode %d %q at depth %d, cube_dump has %q", name, c, region.Name, depth, m)
			}
			i++
			for _, parameter := range p.Cnodes[c].Parameters {
				kind := map[bool]string{true: "num", false: "str"}[parameter.Numeric]
				has(`Parameter (%s): "%s"->"%s"`, kind, parameter.Key, parameter.Value)
			}
		})
		if i != len(lines) || i != len(p.Cnodes) {
			t.Errorf("%s: %d of %d cnodes, cube_dump has %d", name, i, len(p.Cnodes), len(lines))
		}
		for i, n := range p.Nodes {
			has("%s (id=%d, class=%s, description=%s )", n.Name, i, n.Class, n.Description)
		}
		for i, g := range p.Groups {
			has("%s (id=%d, type=%s, rank=%d )", g.Name, i, g.Type, g.Rank)
			for _, a := range g.Attributes {
				has(`Attribute: "%s"->"%s"`, a.Key, a.Value)
			}
		}
		for i, l := range p.Locations {
			has("%s (id=%d, type=%s, rank=%d)", l.Name, i, l.Type, l.Rank)
		}
		for _, topology := range p.Topologies {
			has("Topology name: %s", topology.Name)
			for i, d := range topology.Dimensions {
				has("Dimension %d: %d\t\t%s", i, d.Size,
					map[bool]string{true: "periodic", false: "non periodic"}[d.Periodic])
			}
		}
		for _, f := range p.Files() {
			has(": %s", f.Name)
		}
	}
}
