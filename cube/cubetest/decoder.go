// SPDX-License-Identifier: Apache-2.0

// Package cubetest is a second reader of CUBE profiles, for tests: it is made from the description of the format alone,
// and shares no code and no table with package cube. It takes whole files in memory, and panics on what is damaged.
package cubetest

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

// Attr is an element of the anchor.
type Attr struct {
	Key   string `xml:"key,attr"`
	Value string `xml:"value,attr"`
}

// Metric is an element of the anchor.
type Metric struct {
	ID       int      `xml:"id,attr"`
	Kind     string   `xml:"type,attr"`
	Viztype  string   `xml:"viztype,attr"`
	Display  string   `xml:"disp_name"`
	Name     string   `xml:"uniq_name"`
	Type     string   `xml:"dtype"`
	Unit     string   `xml:"uom"`
	Code     string   `xml:"cubepl"`
	Init     string   `xml:"cubeplinit"`
	Children []Metric `xml:"metric"`
}

// Region is an element of the anchor.
type Region struct {
	ID       int    `xml:"id,attr"`
	Mod      string `xml:"mod,attr"`
	Begin    int    `xml:"begin,attr"`
	Name     string `xml:"name"`
	Mangled  string `xml:"mangled_name"`
	Paradigm string `xml:"paradigm"`
	Role     string `xml:"role"`
	Attrs    []Attr `xml:"attr"`
}

// Cnode is an element of the anchor.
type Cnode struct {
	ID         int `xml:"id,attr"`
	Callee     int `xml:"calleeId,attr"`
	Parameters []struct {
		Type  string `xml:"partype,attr"`
		Key   string `xml:"parkey,attr"`
		Value string `xml:"parvalue,attr"`
	} `xml:"parameter"`
	Children []Cnode `xml:"cnode"`
}

// Location is an element of the anchor.
type Location struct {
	ID   int    `xml:"Id,attr"`
	Name string `xml:"name"`
	Rank int    `xml:"rank"`
	Type string `xml:"type"`
}

// Group is an element of the anchor.
type Group struct {
	ID        int        `xml:"Id,attr"`
	Name      string     `xml:"name"`
	Rank      int        `xml:"rank"`
	Type      string     `xml:"type"`
	Attrs     []Attr     `xml:"attr"`
	Locations []Location `xml:"location"`
}

// Node is an element of the anchor.
type Node struct {
	ID       int     `xml:"Id,attr"`
	Name     string  `xml:"name"`
	Class    string  `xml:"class"`
	Groups   []Group `xml:"locationgroup"`
	Children []Node  `xml:"systemtreenode"`
}

// Anchor is an element of the anchor.
type Anchor struct {
	Version string   `xml:"version,attr"`
	Attrs   []Attr   `xml:"attr"`
	Mirrors []string `xml:"doc>mirrors>murl"`
	Metrics []Metric `xml:"metrics>metric"`
	Regions []Region `xml:"program>region"`
	Cnodes  []Cnode  `xml:"program>cnode"`
	Nodes   []Node   `xml:"system>systemtreenode"`
}

// Profile is what the reader finds.
type Profile struct {
	Anchor
	Members      map[string][]byte
	MemberNames  []string
	AllMetrics   []Metric // of the tree
	CnodeByID    map[int]Cnode
	LocationByID map[int]Location
	Preorder     []int
	Wide         []int // the order of rows of inclusive metrics
}

// Decode reads a file.
func Decode(b []byte) (*Profile, error) {
	p := &Profile{Members: map[string][]byte{}, CnodeByID: map[int]Cnode{}, LocationByID: map[int]Location{}}
	for at := 0; at+512 <= len(b); {
		h := b[at : at+512]
		if bytes.Count(h, []byte{0}) == 512 {
			at += 512
			continue
		}
		if string(h[257:262]) != "ustar" {
			return nil, fmt.Errorf("no header at %d", at)
		}
		name := string(h[:bytes.IndexByte(h, 0)])
		size := 0
		for _, c := range h[124:135] {
			size = size*8 + int(c-'0')
		}
		p.Members[name] = b[at+512 : at+512+size]
		p.MemberNames = append(p.MemberNames, name)
		if size == 0 {
			at += 512
		} else {
			at += 512 + (size/512+1)*512
		}
	}
	anchor := p.Members["anchor.xml"]
	if bytes.HasPrefix(anchor, []byte{0x1f, 0x8b}) {
		want := binary.LittleEndian.Uint32(anchor[len(anchor)-4:])
		z, err := gzip.NewReader(bytes.NewReader(anchor))
		if err != nil {
			return nil, err
		}
		if anchor, err = io.ReadAll(z); err != nil || uint32(len(anchor)) != want {
			return nil, fmt.Errorf("anchor of %d bytes, its end says %d (%v)", len(anchor), want, err)
		}
	}
	if err := xml.Unmarshal(anchor, &p.Anchor); err != nil {
		return nil, err
	}
	var metrics func([]Metric)
	metrics = func(list []Metric) {
		for _, m := range list {
			p.AllMetrics = append(p.AllMetrics, m)
			metrics(m.Children)
		}
	}
	metrics(p.Metrics)
	var dfs func(Cnode)
	dfs = func(c Cnode) {
		p.CnodeByID[c.ID] = c
		p.Preorder = append(p.Preorder, c.ID)
		for _, k := range c.Children {
			dfs(k)
		}
	}
	var wide func(Cnode)
	wide = func(c Cnode) {
		for _, k := range c.Children {
			p.Wide = append(p.Wide, k.ID)
		}
		for _, k := range c.Children {
			wide(k)
		}
	}
	for _, c := range p.Cnodes {
		dfs(c)
		p.Wide = append(p.Wide, c.ID)
		wide(c)
	}
	p.EachGroup(func(_ Node, g Group) {
		for _, l := range g.Locations {
			p.LocationByID[l.ID] = l
		}
	})
	return p, nil
}

// EachGroup calls do with each location group and its node.
func (p *Profile) EachGroup(do func(Node, Group)) {
	var walk func([]Node)
	walk = func(list []Node) {
		for _, n := range list {
			for _, g := range n.Groups {
				do(n, g)
			}
			walk(n.Children)
		}
	}
	walk(p.Nodes)
}

// sizesOf are the sizes of the numbers of a value; what is stored where nothing is.
func sizesOf(dtype string) (sizes []int, signed bool, absent []uint64) {
	lowest, highest := math.Float64bits(-math.MaxFloat64), math.Float64bits(math.MaxFloat64)
	switch dtype {
	case "DOUBLE", "FLOAT", "UINT64":
		return []int{8}, false, []uint64{0}
	case "INT64":
		return []int{8}, true, []uint64{0}
	case "UINT32":
		return []int{4}, false, []uint64{0}
	case "INT32":
		return []int{4}, true, []uint64{0}
	case "UINT16":
		return []int{2}, false, []uint64{0}
	case "INT16":
		return []int{2}, true, []uint64{0}
	case "UINT8":
		return []int{1}, false, []uint64{0}
	case "INT8":
		return []int{1}, true, []uint64{0}
	case "MINDOUBLE":
		return []int{8}, false, []uint64{highest}
	case "MAXDOUBLE":
		return []int{8}, false, []uint64{lowest}
	case "TAU_ATOMIC":
		return []int{4, 8, 8, 8, 8}, false, []uint64{0, highest, lowest, 0, 0}
	case "COMPLEX", "RATE":
		return []int{8, 8}, false, []uint64{0, 0}
	case "HISTOGRAM(3)":
		return []int{8, 8, 8, 8, 8}, false, make([]uint64, 5)
	}
	panic("type " + dtype)
}

// Values gives the numbers of a metric at [cnode id][location id][number], and which cnodes have a row.
func (p *Profile) Values(m Metric) ([][][]uint64, []bool, error) {
	prefix := fmt.Sprint(m.ID)
	if m.Viztype == "GHOST" {
		prefix = "ghost_" + prefix
	}
	index, data := p.Members[prefix+".index"], p.Members[prefix+".data"]
	sizes, signed, absent := sizesOf(m.Type)
	width := 0
	for _, s := range sizes {
		width += s
	}
	values := make([][][]uint64, len(p.CnodeByID))
	stored := make([]bool, len(p.CnodeByID))
	for c := range values {
		values[c] = make([][]uint64, len(p.LocationByID))
		for l := range values[c] {
			values[c][l] = append([]uint64(nil), absent...)
		}
	}
	if index == nil || data == nil {
		return values, stored, nil
	}
	var order binary.ByteOrder = binary.LittleEndian
	if order.Uint32(index[11:]) != 1 {
		order = binary.BigEndian
	}
	var rows []int // row numbers as they are stored
	if index[17] == 3 {
		for r := range p.Preorder {
			rows = append(rows, r)
		}
	} else {
		for i := range int(order.Uint32(index[18:])) {
			rows = append(rows, int(order.Uint32(index[22+4*i:])))
		}
	}
	enumeration := p.Preorder
	if m.Kind != "EXCLUSIVE" {
		enumeration = p.Wide
	}
	for k, r := range rows {
		var row []byte
		switch size := width * len(p.LocationByID); {
		case strings.HasPrefix(string(data), "CUBEX.DATA"):
			row = data[10+k*size : 10+(k+1)*size]
		case strings.HasPrefix(string(data), "ZCUBEX.DATA"):
			n := int(order.Uint64(data[11:]))
			entry := data[19+24*k:]
			if order.Uint64(entry) != uint64(k*size) {
				return nil, nil, errors.New("offset of a row")
			}
			from := 19 + 24*n + int(order.Uint64(entry[8:]))
			z, err := zlib.NewReader(bytes.NewReader(data[from : from+int(order.Uint64(entry[16:]))]))
			if err != nil {
				return nil, nil, err
			}
			if row, err = io.ReadAll(z); err != nil || len(row) != size {
				return nil, nil, fmt.Errorf("row of %d bytes: %v", len(row), err)
			}
		default:
			return nil, nil, errors.New("marker")
		}
		stored[enumeration[r]] = true
		for l := range len(p.LocationByID) {
			for i, s := range sizes {
				var v uint64
				for j := range s {
					at := j
					if order == binary.BigEndian {
						at = s - 1 - j
					}
					v |= uint64(row[at]) << (8 * j)
				}
				if signed && s < 8 && v>>(8*s-1) == 1 {
					v |= ^uint64(0) << (8 * s)
				}
				values[enumeration[r]][l][i] = v
				row = row[s:]
			}
		}
	}
	return values, stored, nil
}
