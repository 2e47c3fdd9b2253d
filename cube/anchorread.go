// SPDX-License-Identifier: Apache-2.0

package cube

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// anchorReader makes definitions of the elements of an anchor.
type anchorReader struct{ d *Definitions }

func (e *element) failed(format string, args ...any) error {
	return fmt.Errorf("line %d: <%s>: %w", e.line, e.name, corrupt(format, args...))
}

// number reads an integer that an attribute or tag has, not less than least.
func (e *element) number(what, text string, least int) (int, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || int(n) < least {
		return 0, e.failed("%s is %q: a number from %d on is expected", what, text, least)
	}
	return int(n), nil
}

// attributeList reads the attributes of the profile's own.
func (e *element) attributeList() []Attribute {
	var list []Attribute
	for _, c := range e.children {
		if c.name == "attr" {
			list = append(list, Attribute{c.attributes["key"], c.attributes["value"]})
		}
	}
	return list
}

// parseAnchor reads the definitions, and returns the ids that the metrics have in the file.
func (p *Profile) parseAnchor(text []byte) ([]int, error) {
	cube, err := readXML(text)
	if err != nil {
		return nil, err
	}
	p.Version = cube.attributes["version"]
	if !slices.Contains(versions, p.Version) {
		return nil, unsupported("version %q of the format: known are %s", p.Version, strings.Join(versions, ", "))
	}
	r := &anchorReader{&p.Definitions}
	p.Attributes = cube.attributeList()
	if doc := cube.child("doc"); doc != nil && doc.child("mirrors") != nil {
		for _, m := range doc.child("mirrors").children {
			p.Mirrors = append(p.Mirrors, m.text)
		}
	}
	ids, err := r.metrics(cube.child("metrics"))
	if err != nil {
		return nil, err
	}
	program := cube.child("program")
	if err := r.regions(program); err != nil {
		return nil, err
	}
	if p.tree, err = r.callTree(program); err != nil {
		return nil, err
	}
	return ids, r.system(cube.child("system"))
}

// each goes through the elements of some names below e and below each other, depth first. It gives visit what visit
// gave for the element around, None for the first.
func (e *element) each(names []string, visit func(e *element, parent int) (int, error)) error {
	type waiting struct {
		e      *element
		parent int
	}
	stack := []waiting{{e, None}}
	for len(stack) > 0 {
		w := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		id := w.parent
		if w.e != e {
			var err error
			if id, err = visit(w.e, w.parent); err != nil {
				return err
			}
		}
		for _, c := range slices.Backward(w.e.children) {
			if slices.Contains(names, c.name) {
				stack = append(stack, waiting{c, id})
			}
		}
	}
	return nil
}

// aggregation is a type of cubeplaggr elements, with the field that holds its code.
type aggregation struct {
	name string
	code func(m *Metric) *string
}

var aggregations = [...]aggregation{
	{"plus", func(m *Metric) *string { return &m.Plus }},
	{"minus", func(m *Metric) *string { return &m.Minus }},
	{"aggr", func(m *Metric) *string { return &m.Aggregate }},
}

// metrics reads the metrics in the order of the file.
func (r *anchorReader) metrics(metrics *element) ([]int, error) {
	d := r.d
	d.MetricsTitle = metrics.attributes["title"]
	var ids []int
	seen := make(map[int]bool)
	err := metrics.each([]string{"metric"}, func(e *element, parent int) (int, error) {
		id, err := e.number("id", e.attributes["id"], 0)
		if err != nil {
			return 0, err
		}
		if seen[id] {
			return 0, e.failed("id %d is there twice", id)
		}
		seen[id] = true
		ids = append(ids, id)
		m := Metric{Parent: MetricID(parent), Hidden: e.attributes["viztype"] == "GHOST",
			Ratio: e.attributes["convertible"] == "false", Attributes: e.attributeList()}
		for kind, k := range metricKinds {
			if text := e.attributes["type"]; k.name != "" && (k.name == text || k.synonym == text && text != "") {
				m.Kind = MetricKind(kind)
			}
		}
		if m.Kind == kindMissing {
			if text := e.attributes["type"]; text != "" {
				return 0, e.failed("type %q is unknown: readers would take it for %s", text, Exclusive)
			}
			m.Kind = Exclusive
		}
		dtype := ""
		for _, t := range []struct {
			name string
			to   *string
		}{
			{"disp_name", &m.DisplayName}, {"uniq_name", &m.UniqueName}, {"dtype", &dtype}, {"uom", &m.Unit},
			{"val", &m.Val},
			{"url", &m.URL}, {"descr", &m.Description}, {"cubepl", &m.Expression}, {"cubeplinit", &m.Init},
		} {
			*t.to, _ = e.tag(t.name)
		}
		m.Type = DataType(dtype)
		for _, c := range e.children {
			if c.name == "cubeplaggr" {
				i := slices.IndexFunc(aggregations[:],
					func(a aggregation) bool { return a.name == c.attributes["cubeplaggrtype"] })
				if i < 0 {
					return 0, c.failed("cubeplaggrtype %q is unknown", c.attributes["cubeplaggrtype"])
				}
				*aggregations[i].code(&m) = c.text
			}
		}
		return int(d.AddMetric(m)), nil
	})
	return ids, err
}

// table checks that the ids of a table's entries are 0 to n−1, each once: tools crash on gaps.
type table struct {
	what string
	of   []*element
}

func (t *table) add(e *element, n int) error {
	id, err := e.number("id", e.attributes["id"], 0)
	if err != nil {
		return err
	}
	if id >= n {
		return e.failed("id %d among %d %ss: ids have no gaps", id, n, t.what)
	}
	if t.of == nil {
		t.of = make([]*element, n)
	}
	if t.of[id] != nil {
		return e.failed("%s id %d is there twice, as in line %d", t.what, id, t.of[id].line)
	}
	t.of[id] = e
	return nil
}

func (r *anchorReader) regions(program *element) error {
	d := r.d
	d.ProgramTitle = program.attributes["title"]
	n := 0
	for _, e := range program.children {
		if e.name == "region" {
			n++
		}
	}
	t := table{what: "region"}
	for _, e := range program.children[:n] {
		if err := t.add(e, n); err != nil {
			return err
		}
	}
	for _, e := range t.of {
		region := Region{Module: e.attributes["mod"], Paradigm: unknown, Role: unknown, Attributes: e.attributeList()}
		for _, line := range []struct {
			name string
			to   *int
		}{{"begin", &region.Begin}, {"end", &region.End}} {
			*line.to = -1
			if text, there := e.attributes[line.name]; there {
				var err error
				if *line.to, err = e.number(line.name, text, -1); err != nil {
					return err
				}
			}
		}
		for _, tag := range []struct {
			name string
			to   *string
		}{{"name", &region.Name}, {"mangled_name", &region.MangledName}, {"paradigm", &region.Paradigm},
			{"role", &region.Role},
			{"url", &region.URL}, {"descr", &region.Description}} {
			if text, there := e.tag(tag.name); there {
				*tag.to = text
			}
		}
		region.MangledName = orElse(region.MangledName, region.Name)
		d.AddRegion(region)
	}
	return nil
}

// callTree reads the cnodes into the order of their ids, and returns their tree in the order of the file.
func (r *anchorReader) callTree(program *element) (*forest, error) {
	d := r.d
	var order, parents []int32
	var elements []*element
	err := program.each([]string{"cnode"}, func(e *element, parent int) (int, error) {
		id, err := e.number("id", e.attributes["id"], 0)
		order, parents, elements = append(order, int32(id)), append(parents, int32(parent)), append(elements, e)
		return id, err
	})
	if err != nil {
		return nil, err
	}
	t := table{what: "cnode"}
	for _, e := range elements {
		if err := t.add(e, len(elements)); err != nil {
			return nil, err
		}
	}
	byID := make([]int32, len(order))
	for i, id := range order {
		byID[id] = parents[i]
	}
	for id, e := range t.of {
		c, err := r.cnode(e)
		if err != nil {
			return nil, err
		}
		c.Parent = CnodeID(byID[id])
		d.AddCnode(c)
	}
	return newForest(byID, order), nil
}

func (r *anchorReader) cnode(e *element) (Cnode, error) {
	c := Cnode{Module: e.attributes["mod"], Attributes: e.attributeList(), Line: -1}
	callee, err := e.number("calleeId", e.attributes["calleeId"], 0)
	if err == nil && callee >= len(r.d.Regions) {
		err = e.failed("it calls region %d of %d", callee, len(r.d.Regions))
	}
	if err != nil {
		return c, err
	}
	c.Callee = RegionID(callee)
	if text, there := e.attributes["line"]; there {
		if c.Line, err = e.number("line", text, -1); err != nil {
			return c, err
		}
	}
	for _, p := range e.children {
		if p.name != "parameter" {
			continue
		}
		partype := p.attributes["partype"]
		if partype != partypes[true] && partype != partypes[false] {
			return c, p.failed("partype %q is neither %s nor %s", partype, partypes[true], partypes[false])
		}
		c.Parameters = append(c.Parameters, Parameter{p.attributes["parkey"], p.attributes["parvalue"],
			partype == partypes[true]})
	}
	return c, nil
}

// systemNodes are the elements that nodes of the system tree are.
var systemNodes = append([]string{"node"}, systemRoots...)

// system reads the system tree: nodes and groups in the order of the file, as readers number them, locations by their
// ids.
func (r *anchorReader) system(system *element) error {
	d := r.d
	d.SystemTitle = system.attributes["title"]
	var locations []Location
	var elements []*element
	err := system.each(systemNodes, func(e *element, parent int) (int, error) {
		n := SystemTreeNode{Parent: SystemTreeNodeID(parent), Attributes: e.attributeList()}
		n.Name, _ = e.tag("name")
		n.Class = e.name // a machine, or a node of it
		if class, there := e.tag("class"); there {
			n.Class = class
		}
		n.Description, _ = e.tag("descr")
		id := d.AddNode(n)
		for _, g := range e.children {
			if g.name != "locationgroup" && g.name != "process" {
				continue
			}
			group := LocationGroup{Node: id, Attributes: g.attributeList()}
			kind, err := g.ranked(&group.Name, &group.Rank, groupTypes[:])
			if err != nil {
				return 0, err
			}
			group.Type = LocationGroupType(kind)
			groupID := d.AddGroup(group)
			for _, l := range g.children {
				if l.name != "location" && l.name != "thread" {
					continue
				}
				location := Location{Group: groupID, Attributes: l.attributeList()}
				kind, err := l.ranked(&location.Name, &location.Rank, locationTypes[:])
				if err != nil {
					return 0, err
				}
				location.Type = LocationType(kind)
				locations, elements = append(locations, location), append(elements, l)
			}
		}
		return int(id), nil
	})
	if err != nil {
		return err
	}
	if len(elements) == 0 {
		return system.failed("there is no location")
	}
	t := table{what: "location"}
	byID := make([]Location, len(locations))
	for i, e := range elements {
		if err := t.add(e, len(elements)); err != nil {
			return err
		}
		id, _ := e.number("id", e.attributes["id"], 0)
		byID[id] = locations[i]
	}
	d.Locations = byID
	return r.topologies(system.child("topologies"))
}

// ranked reads what location groups and locations have, and returns the place of the type among types.
func (e *element) ranked(name *string, rank *int, types []string) (int, error) {
	*name, _ = e.tag("name")
	text, _ := e.tag("rank")
	var err error
	if *rank, err = e.number("rank", text, 0); err != nil {
		return 0, err
	}
	text, there := e.tag("type")
	if !there { // a process or thread of CUBE 4.0, which need not have a name
		text = e.name
		*name = orElse(*name, strings.ToUpper(text[:1])+text[1:]+" "+strconv.Itoa(*rank))
	}
	if text == locationTypeGPU {
		text = locationTypes[LocationStream]
	}
	kind := slices.Index(types, text)
	if kind < 0 {
		return 0, e.failed("type %q is none of %s", text, strings.Join(types, ", "))
	}
	return kind, nil
}

func (r *anchorReader) topologies(list *element) error {
	if list == nil {
		return nil
	}
	for _, e := range list.children {
		t := Topology{Name: e.attributes["name"]}
		for _, c := range e.children {
			var err error
			if c.name == "dim" {
				dim := Dimension{Name: c.attributes["name"], Periodic: c.attributes["periodic"] == "true"}
				if dim.Size, err = c.number("size", c.attributes["size"], 1); err != nil {
					return err
				}
				if text := c.attributes["periodic"]; !dim.Periodic && text != "false" {
					return c.failed("periodic is %q: true or false", text)
				}
				t.Dimensions = append(t.Dimensions, dim)
				continue
			}
			place, err := c.place()
			if err != nil {
				return err
			}
			t.Places = append(t.Places, place)
		}
		if n, err := e.number("ndims", e.attributes["ndims"], 1); err != nil || n != len(t.Dimensions) {
			return e.failed("ndims is %q, there are %d dimensions", e.attributes["ndims"], len(t.Dimensions))
		}
		if problem := r.d.topologyProblem(&t); problem != "" {
			return e.failed("%s", problem)
		}
		r.d.Topologies = append(r.d.Topologies, t)
	}
	return nil
}

// olderPlaces are the names that CUBE 4.0 has for attributes of places.
var olderPlaces = map[string]string{"thrdId": placeAttributes[PlaceOfLocation], "procId": placeAttributes[PlaceOfGroup]}

func (e *element) place() (Place, error) {
	var p Place
	if len(e.attributes) != 1 {
		return p, e.failed("it is of one thing, not of %d", len(e.attributes))
	}
	for name, text := range e.attributes {
		id, err := e.number(name, text, 0)
		if err != nil {
			return p, err
		}
		if today := olderPlaces[name]; today != "" {
			name = today
		}
		p.Of, p.ID = PlaceOf(slices.Index(placeAttributes[:], name)), int32(id)
	}
	for _, text := range strings.Fields(e.text) {
		n, err := e.number("a coordinate", text, 0)
		if err != nil {
			return p, err
		}
		p.Coordinates = append(p.Coordinates, n)
	}
	return p, nil
}
