// SPDX-License-Identifier: Apache-2.0

package cube

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

var (
	dumpMetric = regexp.MustCompile(`^Print out the data of the metric (\S+)$`)
	dumpRow    = regexp.MustCompile(`\(id=(\d+)\)\s+(.*)$`)
)

// cube_dump prints the stored rows with six digits, and "0." where no row is stored of a metric that has some.
func TestStoredValuesAreThoseOfCubeDump(t *testing.T) {
	for _, path := range append(fixtures(t), "testdata/sample.cubex") {
		name, _, variant := strings.Cut(strings.TrimSuffix(path, ".cubex"), "nccl-2x2-")
		if variant { // has the values of nccl-2x2
			name += "nccl-2x2"
		}
		text := readFile(t, name+".dump-stored.txt")
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
			testkit.Require(t, len(cells) == len(p.Locations), "%s: %d values in %q", path, len(cells), line)
			for l, want := range cells {
				got := dumped(p.Metrics[metric].Type, &row, LocationID(l), stored || p.severity[metric] == nil)
				if dense := strings.HasSuffix(path, "2x2-dense.cubex"); !sameText(got, want, dense) {
					t.Errorf("%s: %s at cnode %d, location %d: %s, cube_dump has %s", path,
						p.Metrics[metric].UniqueName, c, l, got, want)
				}
				compared++
			}
		}
		testkit.Check(t, compared >= len(p.Cnodes)*len(p.Locations), "%s: %d values compared", path, compared)
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

// sameText compares numbers to the digits that are printed. With dense, rows are stored that are not in what is wanted.
func sameText(got, want string, dense bool) bool {
	g, err1 := strconv.ParseFloat(got, 64)
	w, err2 := strconv.ParseFloat(want, 64)
	if err1 != nil || err2 != nil {
		return got == want
	}
	return (dense || (want == "0.") == (got == "0.")) && math.Abs(g-w) <= 1e-5*math.Abs(w)+1e-12
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
			testkit.Check(t, slices.ContainsFunc(want, func(w string) bool { return strings.Contains(w, line) }),
				"%s: cube_dump has no %q", name, line)
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
		testkit.Check(t, i == len(lines) && i == len(p.Cnodes),
			"%s: %d of %d cnodes, cube_dump has %d", name, i, len(p.Cnodes), len(lines))
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
