// SPDX-License-Identifier: Apache-2.0

package cubex

import "github.com/nccl-otf2/nccl-otf2/internal/profile"

// wholeJob is the kind of the root that SingleRoot puts above the trees.
const wholeJob profile.Kind = "job"

// SingleRoot puts one root, job, above the trees, for readers that accept only one. The root has no values of its own.
// Its time on a location is that of the location's tree, so a sum over locations adds times of hosts, GPUs and
// networks.
func (p *Profile) SingleRoot() {
	root := &node{Node: profile.Node{Parent: profile.None, Kind: wholeJob}, parent: profile.None, tree: wholeJob}
	for _, n := range p.nodes {
		if n.parent == profile.None {
			root.total = mergeSeconds(root.total, n.total)
		}
		n.parent++ // the root comes first; trees, whose parent was -1, are now below it
	}
	p.nodes = append([]*node{root}, p.nodes...)
}
