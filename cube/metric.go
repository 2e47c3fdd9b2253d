// SPDX-License-Identifier: Apache-2.0

package cube

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Metric is a measured quantity. The values of a metric include those of the metrics below it: tools show the
// difference.
type Metric struct {
	Parent      MetricID // None for a root
	UniqueName  string   // by which tools and expressions find it: letters, digits and _ : =
	DisplayName string   // empty: UniqueName
	Type        DataType
	Unit        string // "sec", "occ", "bytes", ...
	Kind        MetricKind
	Hidden      bool // a ghost: for expressions only. Behind all others, or readers crash
	URL         string
	Description string
	Val         string // "VOID": a heading, readers take its values for zeros. Not written: cube_part crashes on it
	Attributes  []Attribute
	Ratio       bool // of a derived one: its values cannot be added up, and cube_remap2 -d is not to store them

	// CubePL of derived metrics. Expression gives the value, Init is run once before. Plus, Minus and Aggregate replace
	// how values are added along the call tree, subtracted, and added over the system: only PreDerived metrics have
	// them.
	Expression, Init       string
	Plus, Minus, Aggregate string
}

// MetricKind states what a value of a metric stands for.
type MetricKind uint8

const (
	kindMissing MetricKind = iota
	Exclusive              // of the cnode itself
	Inclusive              // of the cnode and all below it
	Simple                 // read as Inclusive; not written, as the libraries disagree about its rows
	PostDerived            // from the expression, after adding up: ratios
	// from the expression, per cnode and location, then added up. Not written: cube_remap2 -d crashes
	PreDerivedExclusive
	PreDerivedInclusive // the same
)

// metricKinds is indexed by MetricKind. Names as in the anchor.
var metricKinds = [...]struct {
	name    string
	synonym string
	derived bool // has an expression and no values
}{
	Exclusive:           {name: "EXCLUSIVE"},
	Inclusive:           {name: "INCLUSIVE"},
	Simple:              {name: "SIMPLE"},
	PostDerived:         {name: "POSTDERIVED", synonym: "DERIVED", derived: true},
	PreDerivedExclusive: {name: "PREDERIVED_EXCLUSIVE", derived: true},
	PreDerivedInclusive: {name: "PREDERIVED_INCLUSIVE", derived: true},
}

// String returns the name in the anchor.
func (k MetricKind) String() string {
	if int(k) < len(metricKinds) && metricKinds[k].name != "" {
		return metricKinds[k].name
	}
	return fmt.Sprintf("MetricKind(%d)", uint8(k))
}

// Derived reports whether metrics of the kind have an expression instead of values.
func (k MetricKind) Derived() bool { return int(k) < len(metricKinds) && metricKinds[k].derived }

// memberPrefix returns the prefix of the names of a metric's members.
func memberPrefix(id int, hidden bool) string {
	if hidden {
		return fmt.Sprintf("ghost_%d", id)
	}
	return fmt.Sprintf("%d", id)
}

// metricTime is the unique name of a metric without which scorep-score crashes.
const metricTime = "time"

func (d *Definitions) checkMetrics() error {
	if !slices.ContainsFunc(d.Metrics, func(m Metric) bool { return m.UniqueName == metricTime }) {
		return invalid("there is no metric %q: scorep-score crashes without it", metricTime)
	}
	seen := make(map[string]bool, len(d.Metrics))
	var open []MetricID // the metrics around the one before
	hidden := -1
	for i := range d.Metrics {
		m := &d.Metrics[i]
		owner := fmt.Sprintf("metric %d %q", i, m.UniqueName)
		for len(open) > 0 && open[len(open)-1] != m.Parent {
			open = open[:len(open)-1]
		}
		if len(open) == 0 && m.Parent != None {
			return invalid(
				"%s stands below metric %d but not behind it: list metrics in the order of their tree, roots with "+
					"parent None", owner, m.Parent)
		}
		open = append(open, MetricID(i))
		switch {
		case !isUniqueName(m.UniqueName):
			return invalid("%s: the unique name may have letters, digits and _ : = only, and at least one", owner)
		case seen[m.UniqueName]:
			return invalid("%s: the unique name is there twice", owner)
		case hidden >= 0 && !m.Hidden:
			return invalid("%s stands behind the hidden metric %d: tools crash on that, put hidden metrics last", owner,
				hidden)
		}
		seen[m.UniqueName] = true
		if m.Hidden {
			hidden = i
		}
		if err := checkTexts(owner, m.DisplayName, m.Unit, m.URL, m.Description, m.Val, m.Expression, m.Init, m.Plus,
			m.Minus, m.Aggregate); err != nil {
			return err
		}
		if err := checkAttributes(owner, m.Attributes); err != nil {
			return err
		}
		if err := m.checkValues(owner); err != nil {
			return err
		}
	}
	return nil
}

// checkValues checks that kind, type and expressions go together.
func (m *Metric) checkValues(owner string) error {
	l, known := m.Type.layout()
	code := m.Expression + m.Init + m.Plus + m.Minus + m.Aggregate
	switch {
	case strings.HasPrefix(m.Kind.String(), "MetricKind"):
		return invalid("%s has no kind: Exclusive or Inclusive, or a derived one", owner)
	case m.Kind == Simple:
		return invalid(
			"%s is of kind SIMPLE: libraries disagree about the rows of its values, use Inclusive or Exclusive", owner)
	case !known:
		return invalid("%s has the unknown type %q", owner, string(m.Type))
	case !l.written:
		return invalid(
			"%s is of type %s: cube_info and cube_sanity abort on values of several numbers, use several metrics",
			owner, m.Type)
	case l.only != kindMissing && m.Kind != l.only:
		return invalid("%s is %s of type %s: readers drop it, such metrics must be %s", owner, m.Kind, m.Type, l.only)
	case m.Kind.Derived() && m.Expression == "":
		return invalid("%s is %s and has no expression", owner, m.Kind)
	case m.Kind.Derived() && m.Type != Double:
		return invalid("%s is %s of type %s: expressions give doubles", owner, m.Kind, m.Type)
	case !m.Kind.Derived() && code != "":
		return invalid("%s is %s and has an expression: only derived metrics do", owner, m.Kind)
	case m.Kind.Derived() && m.Kind != PostDerived:
		return invalid("%s is %s: cube_remap2 -d crashes on any such metric, use %s or write values", owner, m.Kind,
			PostDerived)
	case m.Ratio && !m.Kind.Derived():
		return invalid("%s is %s and a ratio: only derived metrics are", owner, m.Kind)
	case m.Plus+m.Minus+m.Aggregate != "":
		return invalid("%s is %s and says how to add: its expression is evaluated behind that", owner, m.Kind)
	case m.Val != "":
		return invalid("%s has val %q: cube_part crashes on headings (VOID), nothing else means something", owner,
			m.Val)
	}
	return nil
}

func isUniqueName(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		if !(c >= 'a' && c <= 'z') && !(s[i] >= '0' && s[i] <= '9') && !strings.ContainsRune("_:=", rune(s[i])) {
			return false
		}
	}
	return s != ""
}

func (d *Definitions) writeMetrics(x *xmlWriter) {
	x.metrics(d.Metrics, d.MetricsTitle, func(i int, m *Metric) []Attribute {
		return []Attribute{{"id", fmt.Sprint(i)}, {"type", m.Kind.String()}}
	})
}

// metrics writes metrics as the elements of their tree; attributes are those of a metric's element.
func (x *xmlWriter) metrics(list []Metric, title string, attributes func(i int, m *Metric) []Attribute) {
	x.open("metrics", titled(title)...)
	depth := make([]int, len(list))
	level := 0
	for i := range list {
		m := &list[i]
		if m.Parent != None {
			depth[i] = depth[m.Parent] + 1
		}
		for ; level > depth[i]; level-- {
			x.close("metric")
		}
		level = depth[i] + 1
		of := attributes(i, m)
		if m.Hidden {
			of = append(of, Attribute{"viztype", "GHOST"})
		}
		if m.Ratio {
			of = append(of, Attribute{"convertible", "false"})
		}
		x.open("metric", of...)
		display := cmp.Or(m.DisplayName, m.UniqueName)
		x.leaf("disp_name", display)
		x.leaf("uniq_name", m.UniqueName)
		x.leaf("dtype", string(m.Type))
		x.leaf("uom", m.Unit)
		x.leaf("url", m.URL)
		x.leaf("descr", m.Description)
		if m.Expression != "" {
			x.leaf("cubepl", m.Expression)
		}
		if m.Init != "" {
			x.leaf("cubeplinit", m.Init)
		}
		x.attributes(m.Attributes)
	}
	for ; level > 0; level-- {
		x.close("metric")
	}
	x.close("metrics")
}
