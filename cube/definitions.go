// SPDX-License-Identifier: Apache-2.0

package cube

import (
	"strings"
	"unicode/utf8"
)

// Ids are places in the tables of [Definitions].
type (
	MetricID         int32
	RegionID         int32
	CnodeID          int32
	SystemTreeNodeID int32
	LocationGroupID  int32
	LocationID       int32 // also the column of the location in every row
)

// None is the parent of roots.
const None = -1

// Definitions are all of a profile but its values.
type Definitions struct {
	Attributes []Attribute // of the profile
	Mirrors    []string    // places of help pages: replace "@mirror@" in Metric.URL

	Metrics   []Metric // in the order of the tree: a metric, then what is below it
	Regions   []Region
	Cnodes    []Cnode // parents before their children
	Nodes     []SystemTreeNode
	Groups    []LocationGroup
	Locations []Location

	Topologies []Topology

	// Headings of the dimensions, usually empty.
	MetricsTitle, ProgramTitle, SystemTitle string
}

// Attribute is a named text that tools show, and some look for.
type Attribute struct {
	Key, Value string
}

// Attributes of the profile that tools know.
const (
	AttributeCreator       = "Creator"
	AttributeCubePLVersion = "CubePL Version"                 // written by itself
	AttributeAnchorVersion = "Cube anchor.xml syntax version" // written by itself
	// the number of parameter definitions, for scorep-score
	AttributeParameterCounters = "Score-P::DefinitionCounters::Parameter"
	attributeClustering        = "CLUSTERING" // ON makes readers join iterations
)

func add[ID ~int32, D any](all *[]D, d D) ID {
	*all = append(*all, d)
	return ID(len(*all) - 1)
}

// AddMetric appends a definition and returns its id, as the other Add functions do.
func (d *Definitions) AddMetric(m Metric) MetricID { return add[MetricID](&d.Metrics, m) }

// AddRegion appends a region.
func (d *Definitions) AddRegion(r Region) RegionID { return add[RegionID](&d.Regions, r) }

// AddCnode appends a node of the call tree.
func (d *Definitions) AddCnode(c Cnode) CnodeID { return add[CnodeID](&d.Cnodes, c) }

// AddNode appends a node of the system tree.
func (d *Definitions) AddNode(n SystemTreeNode) SystemTreeNodeID {
	return add[SystemTreeNodeID](&d.Nodes, n)
}

// AddGroup appends a location group.
func (d *Definitions) AddGroup(g LocationGroup) LocationGroupID {
	return add[LocationGroupID](&d.Groups, g)
}

// AddLocation appends a location.
func (d *Definitions) AddLocation(l Location) LocationID {
	return add[LocationID](&d.Locations, l)
}

// Check says what of the definitions readers of the format do not take, read as something else, or crash on; the error
// wraps [ErrInvalid]. [Create] refuses such definitions. Beside references to what is not there these are:
//
//   - names with line breaks or control characters, or that are not UTF-8
//   - metrics of the kinds Simple and PreDerived, of types with more than one number, minima and maxima that are not
//     exclusive; hidden metrics before others; no metric "time"; headings (VOID); expressions where none belong, or
//     none where one does
//   - no system tree node of class "node"; location groups of type metrics or without locations; processes of one name;
//     accelerators that do not say which process created them
//   - coordinates of system tree nodes, or outside their topology
//   - iteration clustering (CLUSTERING=ON)
func (d *Definitions) Check() error {
	for _, check := range []func(*Definitions) error{
		(*Definitions).checkHead,
		(*Definitions).checkMetrics,
		(*Definitions).checkRegions,
		(*Definitions).checkCallTree,
		(*Definitions).checkSystem,
		(*Definitions).checkTopologies,
	} {
		if err := check(d); err != nil {
			return err
		}
	}
	return nil
}

func (d *Definitions) checkHead() error {
	if err := checkAttributes("the profile", d.Attributes); err != nil {
		return err
	}
	for _, a := range d.Attributes {
		if a.Key == attributeClustering && strings.EqualFold(a.Value, "ON") {
			return invalid(
				"attribute %s=%s makes readers look for clustered iterations, which are not written here: leave it out",
				a.Key, a.Value)
		}
	}
	texts := []string{d.MetricsTitle, d.ProgramTitle, d.SystemTitle}
	for _, text := range append(texts, d.Mirrors...) {
		if err := checkText("a title or mirror", text); err != nil {
			return err
		}
	}
	return nil
}

func checkAttributes(owner string, list []Attribute) error {
	seen := make(map[string]bool, len(list))
	for _, a := range list {
		if a.Key == "" || seen[a.Key] {
			return invalid("%s has attribute %q twice or without a name", owner, a.Key)
		}
		seen[a.Key] = true
		if err := checkTexts(owner, a.Key, a.Value); err != nil {
			return err
		}
	}
	return nil
}

func checkTexts(owner string, texts ...string) error {
	for _, text := range texts {
		if err := checkText(owner, text); err != nil {
			return err
		}
	}
	return nil
}

// checkText rejects text that does not survive writing and reading: readers turn runs of newlines into a blank, stop at
// a carriage return, and XML has no other control characters.
func checkText(owner, text string) error {
	for i, r := range text {
		switch {
		case r < ' ' && r != '\t', r == 0xfffe, r == 0xffff:
			return invalid("%s: the text %q has the character %U, which the format cannot hold: replace it", owner,
				text, r)
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			return invalid("%s: the text %q is not UTF-8: make it so, strings.ToValidUTF8 does", owner, text)
		}
	}
	return nil
}
