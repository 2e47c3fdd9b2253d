// SPDX-License-Identifier: Apache-2.0

package cube

import (
	"fmt"
	"strings"
)

// Topology is a Cartesian grid in which locations or location groups have places. Not all need one.
type Topology struct {
	Name       string
	Dimensions []Dimension
	Places     []Place
}

// Dimension is one of a topology's.
type Dimension struct {
	Name     string
	Size     int
	Periodic bool
}

// Place is where something stands in a topology.
type Place struct {
	Of          PlaceOf
	ID          int32 // LocationID, LocationGroupID or SystemTreeNodeID
	Coordinates []int // one per dimension, less than its size
}

// PlaceOf is the subject of a place.
type PlaceOf uint8

// What places can be of.
const (
	PlaceOfLocation PlaceOf = iota
	PlaceOfGroup
	PlaceOfNode // not written: readers crash on it
)

// placeAttributes is indexed by PlaceOf.
var placeAttributes = [...]string{PlaceOfLocation: "locId", PlaceOfGroup: "lgId", PlaceOfNode: "stnId"}

// String returns the name of the attribute in the anchor.
func (p PlaceOf) String() string { return spelled(placeAttributes[:], int(p), "PlaceOf") }

// tableSize is the number of things that places of a kind can be of.
func (d *Definitions) tableSize(of PlaceOf) int {
	return [...]int{PlaceOfLocation: len(d.Locations), PlaceOfGroup: len(d.Groups), PlaceOfNode: len(d.Nodes)}[of]
}

func (d *Definitions) checkTopologies() error {
	for i := range d.Topologies {
		t := &d.Topologies[i]
		owner := fmt.Sprintf("topology %d %q", i, t.Name)
		if err := checkText(owner, t.Name); err != nil {
			return err
		}
		for _, dim := range t.Dimensions {
			if err := checkText(owner, dim.Name); err != nil {
				return err
			}
		}
		for _, p := range t.Places {
			if p.Of >= PlaceOfNode {
				return invalid(
					"%s has a place of %s: every tool crashes on others than of locations and location groups", owner,
					p.Of)
			}
		}
		if problem := d.topologyProblem(t); problem != "" {
			return invalid("%s: %s", owner, problem)
		}
	}
	return nil
}

// topologyProblem describes what is wrong with the numbers of a topology.
func (d *Definitions) topologyProblem(t *Topology) string {
	if len(t.Dimensions) == 0 {
		return "it has no dimension"
	}
	for j, dim := range t.Dimensions {
		if dim.Size < 1 {
			return fmt.Sprintf("dimension %d has size %d", j, dim.Size)
		}
	}
	for _, p := range t.Places {
		if p.ID < 0 || int(p.ID) >= d.tableSize(p.Of) {
			return fmt.Sprintf("there is no %s %d", p.Of, p.ID)
		}
		if len(p.Coordinates) != len(t.Dimensions) {
			return fmt.Sprintf("%s %d has %d coordinates in %d dimensions", p.Of, p.ID, len(p.Coordinates),
				len(t.Dimensions))
		}
		for j, c := range p.Coordinates {
			if c < 0 || c >= t.Dimensions[j].Size {
				return fmt.Sprintf("coordinate %d of %s %d is outside of dimension %d of size %d", c, p.Of, p.ID, j,
					t.Dimensions[j].Size)
			}
		}
	}
	return ""
}

func (d *Definitions) writeTopologies(x *xmlWriter, groupNumber []int) {
	x.open("topologies")
	for i := range d.Topologies {
		t := &d.Topologies[i]
		attributes := []Attribute{{"ndims", fmt.Sprint(len(t.Dimensions))}}
		if t.Name != "" {
			attributes = append([]Attribute{{"name", t.Name}}, attributes...)
		}
		x.open("cart", attributes...)
		for _, dim := range t.Dimensions {
			attributes := []Attribute{{"size", fmt.Sprint(dim.Size)}, {"periodic", fmt.Sprint(dim.Periodic)}}
			if dim.Name != "" {
				attributes = append([]Attribute{{"name", dim.Name}}, attributes...)
			}
			x.empty("dim", attributes...)
		}
		for _, p := range t.Places {
			id := int(p.ID)
			if p.Of == PlaceOfGroup {
				id = groupNumber[id]
			}
			x.raw(fmt.Sprintf("<coord %s=\"%d\">", p.Of, id))
			x.text(strings.Trim(fmt.Sprint(p.Coordinates), "[]"))
			x.close("coord")
		}
		x.close("cart")
	}
	x.close("topologies")
}
