// SPDX-License-Identifier: Apache-2.0

package cube

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

// A second reader, made from the description of the format alone: it shares no code and no table with the package.

type plainAttr struct {
	Key   string `xml:"key,attr"`
	Value string `xml:"value,attr"`
}

type plainMetric struct {
	ID       int           `xml:"id,attr"`
	Kind     string        `xml:"type,attr"`
	Viztype  string        `xml:"viztype,attr"`
	Display  string        `xml:"disp_name"`
	Name     string        `xml:"uniq_name"`
	Type     string        `xml:"dtype"`
	Unit     string        `xml:"uom"`
	Code     string        `xml:"cubepl"`
	Init     string        `xml:"cubeplinit"`
	Children []plainMetric `xml:"metric"`
}

type plainRegion struct {
	ID       int         `xml:"id,attr"`
	Mod      string      `xml:"mod,attr"`
	Begin    int         `xml:"begin,attr"`
	Name     string      `xml:"name"`
	Mangled  string      `xml:"mangled_name"`
	Paradigm string      `xml:"paradigm"`
	Role     string      `xml:"role"`
	Attrs    []plainAttr `xml:"attr"`
}

type plainCnode struct {
	ID         int `xml:"id,attr"`
	Callee     int `xml:"calleeId,attr"`
	Parameters []struct {
		Type  string `xml:"partype,attr"`
		Key   string `xml:"parkey,attr"`
		Value string `xml:"parvalue,attr"`
	} `xml:"parameter"`
	Children []plainCnode `xml:"cnode"`
}

type plainLocation struct {
	ID   int    `xml:"Id,attr"`
	Name string `xml:"name"`
	Rank int    `xml:"rank"`
	Type string `xml:"type"`
}

type plainGroup struct {
	ID        int             `xml:"Id,attr"`
	Name      string          `xml:"name"`
	Rank      int             `xml:"rank"`
	Type      string          `xml:"type"`
	Attrs     []plainAttr     `xml:"attr"`
	Locations []plainLocation `xml:"location"`
}

type plainNode struct {
	ID       int          `xml:"Id,attr"`
	Name     string       `xml:"name"`
	Class    string       `xml:"class"`
	Groups   []plainGroup `xml:"locationgroup"`
	Children []plainNode  `xml:"systemtreenode"`
}

type plainAnchor struct {
	Version string        `xml:"version,attr"`
	Attrs   []plainAttr   `xml:"attr"`
	Mirrors []string      `xml:"doc>mirrors>murl"`
	Metrics []plainMetric `xml:"metrics>metric"`
	Regions []plainRegion `xml:"program>region"`
	Cnodes  []plainCnode  `xml:"program>cnode"`
	Nodes   []plainNode   `xml:"system>systemtreenode"`
}

// plainProfile is what the second reader finds.
type plainProfile struct {
	plainAnchor
	members   map[string][]byte
	order     []string // of the members
	metrics   []plainMetric
	cnodes    map[int]plainCnode
	locations map[int]plainLocation
	preorder  []int
	wide      []int
}

func plainDecode(b []byte) (*plainProfile, error) {
	p := &plainProfile{members: map[string][]byte{}, cnodes: map[int]plainCnode{}, locations: map[int]plainLocation{}}
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
		p.members[name] = b[at+512 : at+512+size]
		p.order = append(p.order, name)
		if size == 0 {
			at += 512
		} else {
			at += 512 + (size/512+1)*512
		}
	}
	anchor := p.members["anchor.xml"]
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
	if err := xml.Unmarshal(anchor, &p.plainAnchor); err != nil {
		return nil, err
	}
	var metrics func([]plainMetric)
	metrics = func(list []plainMetric) {
		for _, m := range list {
			p.metrics = append(p.metrics, m)
			metrics(m.Children)
		}
	}
	metrics(p.Metrics)
	var dfs func(plainCnode)
	dfs = func(c plainCnode) {
		p.cnodes[c.ID] = c
		p.preorder = append(p.preorder, c.ID)
		for _, k := range c.Children {
			dfs(k)
		}
	}
	var wide func(plainCnode)
	wide = func(c plainCnode) {
		for _, k := range c.Children {
			p.wide = append(p.wide, k.ID)
		}
		for _, k := range c.Children {
			wide(k)
		}
	}
	for _, c := range p.Cnodes {
		dfs(c)
		p.wide = append(p.wide, c.ID)
		wide(c)
	}
	p.eachGroup(func(_ plainNode, g plainGroup) {
		for _, l := range g.Locations {
			p.locations[l.ID] = l
		}
	})
	return p, nil
}

func (p *plainProfile) eachGroup(do func(plainNode, plainGroup)) {
	var walk func([]plainNode)
	walk = func(list []plainNode) {
		for _, n := range list {
			for _, g := range n.Groups {
				do(n, g)
			}
			walk(n.Children)
		}
	}
	walk(p.Nodes)
}

// plainSizes are the sizes of the numbers of a value; what is stored where nothing is.
func plainSizes(dtype string) (sizes []int, signed bool, absent []uint64) {
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

// values gives the numbers of a metric at [cnode id][location id][number], and which cnodes have a row.
func (p *plainProfile) values(m plainMetric) ([][][]uint64, []bool, error) {
	prefix := fmt.Sprint(m.ID)
	if m.Viztype == "GHOST" {
		prefix = "ghost_" + prefix
	}
	index, data := p.members[prefix+".index"], p.members[prefix+".data"]
	sizes, signed, absent := plainSizes(m.Type)
	width := 0
	for _, s := range sizes {
		width += s
	}
	values := make([][][]uint64, len(p.cnodes))
	stored := make([]bool, len(p.cnodes))
	for c := range values {
		values[c] = make([][]uint64, len(p.locations))
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
		for r := range p.preorder {
			rows = append(rows, r)
		}
	} else {
		for i := range int(order.Uint32(index[18:])) {
			rows = append(rows, int(order.Uint32(index[22+4*i:])))
		}
	}
	enumeration := p.preorder
	if m.Kind != "EXCLUSIVE" {
		enumeration = p.wide
	}
	for k, r := range rows {
		var row []byte
		switch size := width * len(p.locations); {
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
		for l := range len(p.locations) {
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
