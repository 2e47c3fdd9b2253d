// SPDX-License-Identifier: Apache-2.0

package cube

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// texts are names as programs have them, and as nobody would.
var texts = rapid.OneOf(rapid.StringMatching(`[A-Za-z_:~<>&"'\[\]; \t!/.-]{0,20}`),
	rapid.SampledFrom([]string{"", "&amp;", "&#65;", "]]>", "<![CDATA[x]]>", "</name>", "  ", "é→𝄞", "\ufffd",
		"a\u0085b"}))

// drawDefinitions makes definitions that Check takes.
func drawDefinitions(t *rapid.T) *Definitions {
	d := new(Definitions)
	text := func(label string) string { return texts.Draw(t, label) }
	attributes := func(owner string) (list []Attribute) {
		for i := range rapid.IntRange(0, 2).Draw(t, owner+" attributes") {
			list = append(list, Attribute{fmt.Sprint(i, text("key")), text("value")})
		}
		return list
	}
	below := func(n int, label string) int32 { return int32(rapid.IntRange(None, n-1).Draw(t, label)) }

	d.Attributes = attributes("profile")
	for range rapid.IntRange(0, 2).Draw(t, "mirrors") {
		d.Mirrors = append(d.Mirrors, text("mirror"))
	}
	d.MetricsTitle, d.ProgramTitle, d.SystemTitle = text("title"), text("title"), text("title")

	types := []DataType{Double, Uint64, Int64, Uint32, Int32, Uint16, Int16, Uint8, Int8, MinDouble, MaxDouble}
	metrics := rapid.IntRange(1, 8).Draw(t, "metrics")
	hidden := rapid.IntRange(1, metrics).Draw(t, "hidden from")
	var open []MetricID
	for i := range metrics {
		open = open[:rapid.IntRange(0, len(open)).Draw(t, "depth")]
		m := Metric{Parent: None, UniqueName: fmt.Sprintf("m%d", i), DisplayName: text("display"),
			Type: rapid.SampledFrom(types).Draw(t, "type"), Unit: text("unit"),
			Kind: rapid.SampledFrom([]MetricKind{Exclusive, Inclusive}).Draw(t, "kind"), Hidden: i >= hidden,
			URL: text("url"), Description: text("descr"), Attributes: attributes("metric")}
		if i == 0 {
			m.UniqueName = metricTime
		}
		if len(open) > 0 {
			m.Parent = open[len(open)-1]
		}
		if m.Type == MinDouble || m.Type == MaxDouble {
			m.Kind = Exclusive
		}
		if m.Type == Double && rapid.Bool().Draw(t, "derived") {
			m.Kind, m.Expression, m.Init = PostDerived, "1"+text("expression"), text("init")
		}
		open = append(open, d.AddMetric(m))
	}
	regions := rapid.IntRange(1, 5).Draw(t, "regions")
	for range regions {
		d.AddRegion(Region{Name: "r" + text("region"), MangledName: text("mangled"), Paradigm: text("paradigm"),
			Role: text("role"), Module: text("mod"),
			Begin: rapid.IntRange(-1, 9).Draw(t, "begin"), End: rapid.IntRange(-1, 9).Draw(t, "end"), URL: text("url"),
			Description: text("descr"), Attributes: attributes("region")})
	}
	for i := range rapid.IntRange(1, 12).Draw(t, "cnodes") {
		c := Cnode{Parent: CnodeID(below(i, "parent")),
			Callee: RegionID(rapid.IntRange(0, regions-1).Draw(t, "callee")), Attributes: attributes("cnode"),
			Module: text("mod"), Line: rapid.IntRange(-1, 5).Draw(t, "line")}
		for range rapid.IntRange(0, 2).Draw(t, "parameters") {
			c.Parameters = append(c.Parameters, rapid.SampledFrom(
				[]Parameter{{"n", "1e3", true}, {"s" + text("key"), text("value"), false}}).Draw(t, "parameter"))
		}
		d.AddCnode(c)
	}
	nodes := rapid.IntRange(1, 4).Draw(t, "nodes")
	for i := range nodes {
		class := ClassNode
		if i > 0 {
			class = text("class")
		}
		d.AddNode(SystemTreeNode{Parent: SystemTreeNodeID(below(i, "parent")), Name: text("node"), Class: class,
			Description: text("descr"), Attributes: attributes("node")})
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "groups") {
		g := LocationGroup{Node: SystemTreeNodeID(rapid.IntRange(0, nodes-1).Draw(t, "node")),
			Name: fmt.Sprint(i, text("group")), Rank: i, Attributes: attributes("group")}
		if i > 0 && rapid.Bool().Draw(t, "accelerator") {
			g.Type = GroupAccelerator
			g.Attributes = append(g.Attributes, Attribute{AttributeCreatingGroup, d.Groups[0].Name})
		}
		d.AddLocation(Location{Group: d.AddGroup(g), Name: text("location")})
	}
	for range rapid.IntRange(0, 3).Draw(t, "more locations") {
		d.AddLocation(Location{Group: LocationGroupID(rapid.IntRange(0, len(d.Groups)-1).Draw(t, "group")),
			Name: text("location"), Rank: rapid.IntRange(0, 3).Draw(t, "rank"),
			Type: LocationType(rapid.IntRange(0, 2).Draw(t, "location type")), Attributes: attributes("location")})
	}
	return d
}

// drawValues makes values for some of the metrics.
func drawValues(t *rapid.T, d *Definitions) values {
	v := make(values)
	for id := range d.Metrics {
		m := &d.Metrics[id]
		if m.Kind.Derived() || !rapid.Bool().Draw(t, "written") {
			continue
		}
		p := newRow(m, 1).layout.parts[0]
		for range d.Cnodes {
			some := rapid.Bool().Draw(t, "row")
			row := make([]uint64, len(d.Locations))
			for l := range row {
				row[l] = p.absent
				if !some || !rapid.Bool().Draw(t, "value") {
					continue
				}
				width := 8 * p.size
				switch p.number {
				case numberFloat:
					row[l] = math.Float64bits(rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64).Draw(t, "double"))
				case numberSigned:
					row[l] = uint64(rapid.Int64Range(math.MinInt64>>(64-width), math.MaxInt64>>(64-width)).Draw(
						t, "signed"))
				default:
					row[l] = rapid.Uint64Range(0, math.MaxUint64>>(64-width)).Draw(t, "unsigned")
				}
			}
			v[MetricID(id)] = append(v[MetricID(id)], row)
		}
	}
	return v
}

// Any profile, in any form, is read back as it was meant, and is written again the same.
func TestAnyProfileReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawDefinitions(t)
		check(t, d.Check())
		v := drawValues(t, d)
		o := &Options{Dense: rapid.Bool().Draw(t, "dense"), Compress: rapid.Bool().Draw(t, "compress")}
		b, err := written(d, v, o)
		check(t, err)
		writtenMetrics := len(v)
		p, got := readBack(t, b, d, v)
		if writtenMetrics == len(v) { // nodes and groups are in the order of the file by then
			again, err := written(&p.Definitions, got, o)
			check(t, err)
			q, err := inMemory(again)
			check(t, err)
			testkit.Same(t, p.Definitions, q.Definitions)
			third, err := written(&q.Definitions, got, o)
			check(t, err)
			testkit.Check(t, bytes.Equal(again, third), "written again, the profile has other bytes")
		}
	})
}
