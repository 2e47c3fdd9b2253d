// SPDX-License-Identifier: Apache-2.0

package cube

import (
	"fmt"
	"strconv"
)

// Cnode is a node of the call tree: a region, called along one path.
type Cnode struct {
	Parent     CnodeID // None for a root; less than the cnode's own id
	Callee     RegionID
	Module     string // of the call site, usually empty
	Line       int    // of the call site, below 1 unknown
	Parameters []Parameter
	Attributes []Attribute
}

// Parameter distinguishes call paths of one region, by a message size for instance.
type Parameter struct {
	Key, Value string
	Numeric    bool // Value is a number
}

// partypes are the spellings of Parameter.Numeric.
var partypes = map[bool]string{false: "string", true: "numeric"}

func (d *Definitions) checkCallTree() error {
	if len(d.Cnodes) == 0 {
		return invalid("there is no cnode: readers refuse such a profile")
	}
	for i := range d.Cnodes {
		c := &d.Cnodes[i]
		owner := fmt.Sprintf("cnode %d", i)
		switch {
		case c.Parent < None || int(c.Parent) >= i:
			return invalid(
				"%s has parent %d: parents stand before their children or tools show the children as roots, and "+
					"roots have parent None", owner, c.Parent)
		case c.Callee < 0 || int(c.Callee) >= len(d.Regions):
			return invalid("%s calls region %d of %d", owner, c.Callee, len(d.Regions))
		}
		if err := checkText(owner, c.Module); err != nil {
			return err
		}
		for _, p := range c.Parameters {
			if err := checkTexts(owner, p.Key, p.Value); err != nil {
				return err
			}
			if _, err := strconv.ParseFloat(p.Value, 64); p.Key == "" || p.Numeric && err != nil {
				return invalid("%s: parameter %q = %q needs a name, and a number if it is numeric", owner, p.Key,
					p.Value)
			}
		}
		if err := checkAttributes(owner, c.Attributes); err != nil {
			return err
		}
	}
	return nil
}

// callTree is the call tree with children by ascending id, as it is written.
func (d *Definitions) callTree() *forest {
	parents, order := make([]int32, len(d.Cnodes)), make([]int32, len(d.Cnodes))
	for i := range d.Cnodes {
		parents[i], order[i] = int32(d.Cnodes[i].Parent), int32(i)
	}
	return newForest(parents, order)
}

func (d *Definitions) writeCallTree(x *xmlWriter) {
	d.callTree().walk(func(id int32, _ int) {
		c := &d.Cnodes[id]
		attributes := []Attribute{{"id", fmt.Sprint(id)}}
		if c.Line > 0 {
			attributes = append(attributes, Attribute{"line", fmt.Sprint(c.Line)})
		}
		if c.Module != "" {
			attributes = append(attributes, Attribute{"mod", c.Module})
		}
		x.open("cnode", append(attributes, Attribute{"calleeId", fmt.Sprint(c.Callee)})...)
		for _, p := range c.Parameters {
			x.empty("parameter", Attribute{"partype", partypes[p.Numeric]}, Attribute{"parkey", p.Key},
				Attribute{"parvalue", p.Value})
		}
		x.attributes(c.Attributes)
	}, func(int32) { x.close("cnode") })
}
