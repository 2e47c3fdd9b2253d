// SPDX-License-Identifier: Apache-2.0

// Package cubeprint makes text of CUBE profiles: definitions as trees, and the stored values.
package cubeprint

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/cube"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
)

// Options say what is printed; the zero value is everything.
type Options struct {
	NoValues bool // definitions only
}

// printer writes lines; errors are kept by the buffer until Flush.
type printer struct {
	*bufio.Writer
	p *cube.Profile
}

// Print writes a profile as text. Values are those stored: of a cnode alone for exclusive metrics, with all below it
// for inclusive ones. Rows that are not stored are left out, and "-" is a minimum or maximum of nothing.
func Print(w io.Writer, p *cube.Profile, o *Options) error {
	var damage []error
	out := &printer{bufio.NewWriter(w), p}
	out.line(0, "profile, format %s: %d metrics, %d regions, %d cnodes, %d locations", p.Version, len(p.Metrics),
		len(p.Regions), len(p.Cnodes), len(p.Locations))
	out.attributes(0, p.Attributes)
	for _, m := range p.Mirrors {
		out.line(0, "mirror %q", m)
	}
	out.metrics()
	out.regions()
	out.callTree()
	out.system()
	out.topologies()
	out.line(0, "files")
	for _, f := range p.Files() {
		out.line(1, "%s %d bytes", f.Name, f.Size)
	}
	if o == nil || !o.NoValues {
		for m := range p.Metrics {
			if err := out.values(cube.MetricID(m)); err != nil {
				damage = append(damage, err)
			}
		}
	}
	return errors.Join(append(damage, out.Flush())...)
}

func (o *printer) line(depth int, format string, args ...any) {
	printable.Fprintf(o, "%s%s\n", strings.Repeat("  ", depth), strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

func (o *printer) attributes(depth int, list []cube.Attribute) {
	for _, a := range list {
		o.line(depth, "attribute %q = %q", a.Key, a.Value)
	}
}

// named lists the fields that are not empty.
func named(pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			fmt.Fprintf(&b, " %s %q", pairs[i], pairs[i+1])
		}
	}
	return b.String()
}

func titled(what, title string) string { return what + named("title", title) }

func (o *printer) metrics() {
	o.line(0, "%s", titled("metrics", o.p.MetricsTitle))
	depth := make([]int, len(o.p.Metrics))
	for i, m := range o.p.Metrics {
		depth[i] = 1
		if m.Parent != cube.None {
			depth[i] = depth[m.Parent] + 1
		}
		hidden := map[bool]string{true: " hidden"}[m.Hidden]
		o.line(depth[i], "%d %s %q %s %s%s%s", i, m.UniqueName, m.DisplayName, m.Kind, m.Type, hidden,
			named("unit", m.Unit, "url", m.URL, "description", m.Description,
				"val", m.Val, "expression", m.Expression, "init", m.Init, "plus", m.Plus, "minus", m.Minus, "aggregate",
				m.Aggregate))
		o.attributes(depth[i]+1, m.Attributes)
	}
}

func (o *printer) regions() {
	o.line(0, "regions")
	for i, r := range o.p.Regions {
		mangled := r.MangledName
		if mangled == r.Name {
			mangled = ""
		}
		o.line(1, "%d %q %s %s lines %d to %d%s", i, r.Name, r.Paradigm, r.Role, r.Begin, r.End,
			named("mangled", mangled, "module", r.Module, "url", r.URL, "description", r.Description))
		o.attributes(2, r.Attributes)
	}
}

func (o *printer) callTree() {
	o.line(0, "%s", titled("call tree", o.p.ProgramTitle))
	o.p.Walk(func(id cube.CnodeID, depth int) {
		c := o.p.Cnodes[id]
		site := named("module", c.Module)
		if c.Line > 0 {
			site += fmt.Sprintf(" line %d", c.Line)
		}
		o.line(depth+1, "%d %q%s", id, o.p.Regions[c.Callee].Name, site)
		for _, p := range c.Parameters {
			kind := map[bool]string{true: "number", false: "text"}[p.Numeric]
			o.line(depth+2, "parameter %q = %s %q", p.Key, kind, p.Value)
		}
		o.attributes(depth+2, c.Attributes)
	})
}

func (o *printer) system() {
	p := o.p
	o.line(0, "%s", titled("system", p.SystemTitle))
	groups := make([][]int, len(p.Nodes))
	for i, g := range p.Groups {
		groups[g.Node] = append(groups[g.Node], i)
	}
	locations := make([][]int, len(p.Groups))
	for i, l := range p.Locations {
		locations[l.Group] = append(locations[l.Group], i)
	}
	depth := make([]int, len(p.Nodes))
	for i, n := range p.Nodes { // in the order of the file, which is that of the tree
		depth[i] = 1
		if n.Parent != cube.None {
			depth[i] = depth[n.Parent] + 1
		}
		o.line(depth[i], "node %d %q class %s%s", i, n.Name, n.Class, named("description", n.Description))
		o.attributes(depth[i]+1, n.Attributes)
		for _, g := range groups[i] {
			group := p.Groups[g]
			o.line(depth[i]+1, "group %d %q %s rank %d", g, group.Name, group.Type, group.Rank)
			o.attributes(depth[i]+2, group.Attributes)
			for _, l := range locations[g] {
				location := p.Locations[l]
				o.line(depth[i]+2, "location %d %q %s rank %d", l, location.Name, location.Type, location.Rank)
				o.attributes(depth[i]+3, location.Attributes)
			}
		}
	}
}

func (o *printer) topologies() {
	for i, t := range o.p.Topologies {
		o.line(0, "topology %d%s", i, named("name", t.Name))
		for _, d := range t.Dimensions {
			o.line(1, "dimension of %d%s%s", d.Size, map[bool]string{true: " periodic"}[d.Periodic],
				named("name", d.Name))
		}
		for _, place := range t.Places {
			o.line(1, "%s %d at %v", place.Of, place.ID, place.Coordinates)
		}
	}
}

// values prints a line for each stored row of a metric, in the order of the call tree.
func (o *printer) values(id cube.MetricID) error {
	m := &o.p.Metrics[id]
	if m.Kind.Derived() {
		return nil
	}
	o.line(0, "values of %s", m.UniqueName)
	var row cube.Row
	var failed error
	o.p.Walk(func(c cube.CnodeID, _ int) {
		if failed != nil {
			return
		}
		stored, err := o.p.Row(id, c, &row)
		if failed = err; err != nil || !stored {
			return
		}
		fmt.Fprintf(o.Writer, "  %d %q:", c, o.p.Regions[o.p.Cnodes[c].Callee].Name)
		for l := range cube.LocationID(row.Locations()) {
			o.WriteByte(' ')
			o.value(&row, l)
		}
		o.WriteByte('\n')
	})
	switch {
	case failed == nil:
		return nil
	case errors.Is(failed, cube.ErrNotSupported):
		o.line(1, "not read: %v", failed)
		return nil
	}
	o.line(1, "damaged: %v", failed)
	return failed
}

func (o *printer) value(row *cube.Row, l cube.LocationID) {
	if !row.Present(l) {
		o.WriteByte('-')
		return
	}
	for i := range row.Numbers() {
		if i > 0 {
			o.WriteByte('/')
		}
		o.WriteString(row.NumberAt(l, i).String())
	}
}
