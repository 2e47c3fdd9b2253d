// SPDX-License-Identifier: Apache-2.0

package cubex

import "github.com/nccl-otf2/nccl-otf2/internal/profile"

// wholeJob is the kind of the root that SingleRoot puts above the trees.
const wholeJob profile.Kind = "job"

// SingleRoot puts one root, job, above the trees, for readers that take no more than one. It has no values of its own;
// its time on a location is that of the location's tree, so of a sum over locations times of hosts, GPUs and networks
// are added up.
func (p *Profile) SingleRoot() {
	root := &node{Node: profile.Node{Parent: profile.None, Kind: wholeJob}, parent: profile.None, tree: wholeJob}
	for _, n := range p.nodes {
		if n.parent == profile.None {
			root.total = mergeSeconds(root.total, n.total)
		}
		n.parent++ // the root is in front of all; trees, whose parent was -1, come below it
	}
	p.nodes = append([]*node{root}, p.nodes...)
}
