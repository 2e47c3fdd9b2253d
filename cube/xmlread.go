// SPDX-License-Identifier: Apache-2.0

// Reading an anchor as CubeLib's own reader does, which is no XML parser, so that what we take is what its tools take:
// it knows five entities and no numbered ones, takes a bare "&" and values without quotes where they are known, refuses
// carriage returns and most "/>", and folds line ends into one blank. Package encoding/xml differs in each of these
// (TestDamagedAnchorsAreRefused, TestAnchorsAsOthersWriteThem).

package cube

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// element is an element of an anchor.
type element struct {
	*grammar
	line       int // where it begins
	attributes map[string]string
	text       string
	children   []*element
}

// grammar describes the allowed content of an element. Source: the grammar of the reference parser; only the elements
// in the table below exist.
type grammar struct {
	name       string
	attributes map[string]bool // required or not; names without regard to the case of "Id"
	text       bool
	children   []phase // in this order
	empty      bool    // may end in "/>"
}

// phase is elements that may follow each other in any order.
type phase struct {
	names    []string
	min, max int // how often each may come; max 0: any number of times
}

var grammars = func() map[string]*grammar {
	some := func(name string) phase { return phase{names: []string{name}} }
	option := func(name string) phase { return phase{names: []string{name}, max: 1} }
	one := func(name string) phase { return phase{names: []string{name}, min: 1, max: 1} }
	many := func(name string) phase { return phase{names: []string{name}, min: 1} }
	tags := func(names ...string) phase { return phase{names: names, max: 1} }
	title := map[string]bool{"title": false}
	id := map[string]bool{"id": true}
	list := []*grammar{
		{name: "cube", attributes: map[string]bool{"version": true},
			children: []phase{some("attr"), option("doc"), one("metrics"), one("program"), one("system"),
				option("severity")}},
		{name: "attr", attributes: map[string]bool{"key": true, "value": true}, empty: true},
		{name: "doc", children: []phase{option("mirrors")}},
		{name: "mirrors", children: []phase{some("murl")}},
		{name: "murl", text: true},
		{name: "metrics", attributes: title, children: []phase{many("metric")}},
		{name: "metric", attributes: map[string]bool{"id": true, "type": false, "viztype": false, "convertible": false,
			"cacheable": false},
			children: []phase{
				tags("disp_name", "uniq_name", "dtype", "uom", "val", "url", "descr", "cubepl", "cubeplinit",
					"cubeplaggr", "attr"),
				some("metric")}},
		{name: "cubepl", attributes: map[string]bool{"rowwise": false, "locationwise": false}, text: true},
		{name: "cubeplaggr", attributes: map[string]bool{"cubeplaggrtype": true}, text: true},
		{name: "program", attributes: title, children: []phase{many("region"), many("cnode")}},
		{name: "region", attributes: map[string]bool{"id": true, "mod": false, "begin": false, "end": false},
			children: []phase{tags("name", "mangled_name", "paradigm", "role", "url", "descr", "attr")}},
		{name: "cnode", attributes: map[string]bool{"id": true, "calleeId": true, "line": false, "mod": false},
			children: []phase{some("parameter"), some("attr"), some("cnode")}},
		{name: "parameter", attributes: map[string]bool{"partype": true, "parkey": true, "parvalue": true},
			empty: true},
		{name: "system", attributes: title, children: []phase{{names: systemRoots, min: 1}, option("topologies")}},
		{name: "systemtreenode", attributes: id,
			children: []phase{one("name"), one("class"), option("descr"), some("attr"), some("locationgroup"),
				some("systemtreenode")}},
		{name: "locationgroup", attributes: id,
			children: []phase{one("name"), one("rank"), one("type"), some("attr"), many("location")}},
		{name: "location", attributes: id, children: []phase{one("name"), one("rank"), one("type"), some("attr")}},
		{name: "machine", attributes: id, children: []phase{tags("name", "descr", "attr"), many("node")}},
		{name: "node", attributes: id, children: []phase{tags("name", "descr", "attr"), many("process")}},
		{name: "process", attributes: id, children: []phase{tags("name", "rank", "attr"), many("thread")}},
		{name: "thread", attributes: id, children: []phase{tags("name", "rank", "attr")}},
		{name: "topologies", children: []phase{some("cart")}},
		{name: "cart", attributes: map[string]bool{"name": false, "ndims": true},
			children: []phase{many("dim"), some("coord")}},
		{name: "dim", attributes: map[string]bool{"size": true, "periodic": true, "name": false}, empty: true},
		{name: "coord", attributes: map[string]bool{"locId": false, "lgId": false, "stnId": false, "thrdId": false,
			"procId": false}, text: true},
		{name: "severity"},
	}
	table := make(map[string]*grammar)
	for _, g := range list {
		table[g.name] = g
	}
	for _, g := range list {
		for _, p := range g.children {
			for _, name := range p.names {
				if table[name] == nil { // all others have text and nothing else
					table[name] = &grammar{name: name, text: true}
				}
			}
		}
	}
	return table
}()

// systemRoots are the elements that a system tree begins with, those of CUBE 4.0 (machine, node, process, thread)
// behind today's.
var systemRoots = []string{"systemtreenode", "machine"}

// repeated are the elements that may come several times among tags of a phase.
var repeated = []string{"attr", "cubeplaggr"}

// xmlReader reads the elements of an anchor.
type xmlReader struct {
	rest []byte
	line int
}

var (
	startTag  = regexp.MustCompile(`^<([a-z_]+)((?:[ \t\n]+[A-Za-z]+=(?:"[^"<\r]*"|[a-z]+))*)[ \t\n]*(/?)>`)
	endTag    = regexp.MustCompile(`^</([a-z_]+)>`)
	attribute = regexp.MustCompile(`([A-Za-z]+)=(?:"([^"]*)"|([a-z]+))`)
	newlines  = regexp.MustCompile(`\n+`)
	decode    = strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">", "&apos;", "'", "&quot;", `"`)
)

const (
	cdataBegin = "<![CDATA["
	cdataEnd   = "]]>"
	xmlBlanks  = " \t\n"
)

func (x *xmlReader) failed(format string, args ...any) error {
	return fmt.Errorf("line %d: %w", x.line, corrupt(format, args...))
}

func (x *xmlReader) skip(n int) {
	x.line += bytes.Count(x.rest[:n], []byte("\n"))
	x.rest = x.rest[n:]
}

// start returns the first bytes of the input, for messages.
func (x *xmlReader) start() string {
	b := x.rest[:min(len(x.rest), 40)]
	if i := bytes.IndexByte(b, '\n'); i > 0 {
		b = b[:i]
	}
	return string(b)
}

// readXML reads an anchor.
func readXML(text []byte) (*element, error) {
	x := &xmlReader{rest: text, line: 1}
	if !bytes.HasPrefix(text, []byte(xmlHead)) {
		return nil, x.failed("an anchor begins with %s, this one with %q", xmlHead, x.start())
	}
	x.skip(len(xmlHead))
	if i := bytes.IndexByte(text, '\r'); i >= 0 {
		x.skip(max(i-len(xmlHead), 0))
		return nil, x.failed("a carriage return: readers take none")
	}
	root := &element{grammar: &grammar{children: []phase{{names: []string{"cube"}, min: 1, max: 1}}}}
	open := []*element{root}
	for len(root.children) == 0 || len(open) > 1 {
		top := open[len(open)-1]
		if err := x.readText(top); err != nil {
			return nil, err
		}
		if len(x.rest) == 0 {
			return nil, fmt.Errorf("line %d: %w", x.line,
				truncated("the end is missing behind <%s> of line %d", top.name, top.line))
		}
		if m := endTag.FindSubmatch(x.rest); m != nil {
			if string(m[1]) != top.name {
				return nil, x.failed("</%s> ends <%s> of line %d", m[1], top.name, top.line)
			}
			if err := top.checkComplete(); err != nil {
				return nil, err
			}
			x.skip(len(m[0]))
			open = open[:len(open)-1]
			continue
		}
		e, ended, err := x.readStart(top)
		if err != nil {
			return nil, err
		}
		top.children = append(top.children, e)
		if !ended {
			open = append(open, e)
		}
	}
	return root.children[0], nil
}

// readText reads up to the next tag.
func (x *xmlReader) readText(e *element) error {
	var text []byte
	for {
		i := bytes.IndexByte(x.rest, '<')
		if i < 0 {
			i = len(x.rest)
		}
		text = append(text, decode.Replace(string(x.rest[:i]))...)
		x.skip(i)
		if !e.grammar.text || !bytes.HasPrefix(x.rest, []byte(cdataBegin)) {
			break
		}
		n := bytes.Index(x.rest, []byte(cdataEnd))
		if n < 0 {
			return x.failed("%s without its end", cdataBegin)
		}
		text = append(text, x.rest[len(cdataBegin):n]...)
		x.skip(n + len(cdataEnd))
	}
	if e.grammar.text {
		e.text += newlines.ReplaceAllString(string(text), " ")
	} else if s := strings.Trim(string(text), xmlBlanks); s != "" {
		return x.failed("text %q in <%s>, which has none", s[:min(len(s), 40)], e.name)
	}
	return nil
}

// readStart reads the tag that begins an element below top.
func (x *xmlReader) readStart(top *element) (*element, bool, error) {
	m := startTag.FindSubmatch(x.rest)
	if m == nil {
		return nil, false, x.failed("%q is no tag of an anchor", x.start())
	}
	g := grammars[string(m[1])]
	if g == nil || !top.mayHave(g.name) {
		return nil, false, x.failed("<%s> is not expected here, in <%s> of line %d", m[1], top.name, top.line)
	}
	e := &element{grammar: g, line: x.line, attributes: make(map[string]string)}
	for _, a := range attribute.FindAllSubmatch(m[2], -1) {
		name := string(a[1])
		if name == "Id" {
			name = "id"
		}
		_, known := g.attributes[name]
		if _, twice := e.attributes[name]; twice || !known {
			return nil, false, x.failed("attribute %s of <%s> is unknown or there twice", name, g.name)
		}
		if len(a[3]) > 0 && !strings.HasPrefix(g.name, "cubepl") {
			return nil, false, x.failed("attribute %s of <%s> is not in double quotes", name, g.name)
		}
		e.attributes[name] = newlines.ReplaceAllString(decode.Replace(string(a[2])), " ") + string(a[3])
	}
	for name, required := range g.attributes {
		if _, there := e.attributes[name]; required && !there {
			return nil, false, x.failed("<%s> has no attribute %s", g.name, name)
		}
	}
	ended := len(m[3]) > 0
	if ended && !g.empty {
		return nil, false, x.failed("<%s/>: readers want an end tag", g.name)
	}
	x.skip(len(m[0]))
	return e, ended, nil
}

// mayHave reports whether a child of that name may follow the present children.
func (e *element) mayHave(name string) bool {
	at := -1
	for i, p := range e.grammar.children {
		if slices.Contains(p.names, name) {
			at = i
		}
	}
	if at < 0 {
		return false
	}
	p := e.grammar.children[at]
	if p.max == 1 && !slices.Contains(repeated, name) {
		for i := len(e.children) - 1; i >= 0; i-- {
			if e.children[i].name == name {
				return false
			}
		}
	}
	if len(e.children) == 0 {
		return true
	}
	last := e.children[len(e.children)-1].name
	return !slices.ContainsFunc(e.grammar.children[at+1:], func(p phase) bool { return slices.Contains(p.names, last) })
}

// checkComplete checks, when an element ends, that nothing is missing.
func (e *element) checkComplete() error {
	for _, p := range e.grammar.children {
		if p.min > 0 && !slices.ContainsFunc(p.names, func(name string) bool { return e.child(name) != nil }) {
			return fmt.Errorf("line %d: %w", e.line, corrupt("<%s> has no <%s>", e.name, p.names[0]))
		}
	}
	return nil
}

// child finds the first child of a name.
func (e *element) child(name string) *element {
	for _, c := range e.children {
		if c.name == name {
			return c
		}
	}
	return nil
}

// tag returns the text of a child, and whether it exists.
func (e *element) tag(name string) (string, bool) {
	if c := e.child(name); c != nil {
		return c.text, true
	}
	return "", false
}
