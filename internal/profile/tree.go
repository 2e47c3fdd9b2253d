// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"strings"

	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Kind is the kind of a node of the call tree.
type Kind string

// The roots, and the kinds of nodes below them.
const (
	Host       Kind = "host"
	Kernels    Kind = "kernels"
	ByNetwork  Kind = "by-network"
	ByEnqueue  Kind = "by-enqueue"
	ByDuration Kind = "by-duration"
	Network    Kind = "network"

	Phase     Kind = "phase"     // of the application
	Call      Kind = "call"      // of NCCL, and other work of its threads
	Other     Kind = "other"     // region of a thread outside NCCL
	Size      Kind = "size"      // class of sizes of calls or operations
	Operation Kind = "operation" // function
	Variant   Kind = "variant"   // algorithm and protocol
	Launch    Kind = "launch"    // of several operations
	Kernel    Kind = "kernel"    // of the application, and other work of its GPU
	Direction Kind = "direction" // of transfers
	NetPhase  Kind = "net-phase" // of the oldest transfer under way
	Transfer  Kind = "transfer"
	Proxy     Kind = "proxy" // work of a proxy thread besides transfers
)

// roots are the trees in the order of profiles.
var roots = []Kind{Host, Kernels, ByNetwork, ByDuration, ByEnqueue, Network}

// Roots lists the kinds of trees in their order.
func Roots() []Kind { return append([]Kind(nil), roots...) }

// None is the parent of roots.
const None = -1

// Node is one call path: the node above it, and what it is.
type Node struct {
	Parent int32           `json:"parent"` // index; None for a root
	Kind   Kind            `json:"kind"`
	Name   string          `json:"name"`
	Role   otf2.RegionRole `json:"role,omitempty"`
	// Paradigm is that of regions of the kind Other, in Score-P's word.
	Paradigm string `json:"paradigm,omitempty"`
}

// TreeOf returns the kind of the root above a node.
func TreeOf(nodes []Node, at int32) Kind {
	for nodes[at].Parent != None {
		at = nodes[at].Parent
	}
	return nodes[at].Kind
}

// OperationOf returns the function of a node's operations, and how they were carried out: "RING/LL", or "" if unknown.
// The function of other nodes is "".
func OperationOf(nodes []Node, at int32) (function, variant string) {
	for ; at != None; at = nodes[at].Parent {
		switch n := &nodes[at]; n.Kind {
		case Variant:
			variant = n.Name
		case Operation:
			return n.Name, strings.TrimPrefix(strings.TrimPrefix(variant, n.Name), " ")
		}
	}
	return "", ""
}

// Bounds of the tree, so that a program that makes up names for weeks does not fill memory. Names beyond them share a
// node, or count for the node around them.
const (
	maxChildren = 1000    // of one node
	maxNodes    = 1 << 14 // below this each name gets its own
)

// tree is the call tree under construction. Parents have smaller indices than their children.
type tree struct {
	nodes    []Node
	index    map[Node]int32
	children []int // of each node
	folded   uint64
}

func newTree() *tree { return &tree{index: make(map[Node]int32)} }

func (t *tree) root(k Kind) int32 { return t.node(Node{Parent: None, Kind: k}) }

// child returns a node, which it makes if need be. Beyond the bounds it returns the node that further names share, or
// the parent itself.
func (t *tree) child(parent int32, k Kind, name string, role otf2.RegionRole) int32 {
	return t.childOf(Node{Parent: parent, Kind: k, Name: name, Role: role})
}

// childOf is child for a complete node.
func (t *tree) childOf(n Node) int32 {
	parent, k := n.Parent, n.Kind
	if id, ok := t.index[n]; ok {
		return id
	}
	if t.children[parent] >= maxChildren {
		t.folded++
		n.Name, n.Role, n.Paradigm = regions.FurtherNames, 0, ""
		if id, ok := t.index[n]; ok {
			return id
		}
	}
	if len(t.nodes) >= maxNodes && (k == Phase || k == Call || k == Other || k == Kernel) {
		t.folded++
		return parent
	}
	return t.node(n)
}

func (t *tree) node(n Node) int32 {
	id, ok := t.index[n]
	if !ok {
		id = int32(len(t.nodes))
		t.nodes = append(t.nodes, n)
		t.children = append(t.children, 0)
		t.index[n] = id
		if n.Parent != None {
			t.children[n.Parent]++
		}
	}
	return id
}
