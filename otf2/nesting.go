// SPDX-License-Identifier: Apache-2.0

package otf2

// nesting follows the open regions of a location.
type nesting struct{ open []RegionRef }

func (n *nesting) enter(region RegionRef) { n.open = append(n.open, region) }

func (n *nesting) checkLeave(t Timestamp, region RegionRef) error {
	if top := n.innermost(); top != region || len(n.open) == 0 {
		return &NestingError{Time: t, Region: region, Open: top, Depth: len(n.open)}
	}
	return nil
}

func (n *nesting) leaveRegion() { n.open = n.open[:len(n.open)-1] }

func (n *nesting) checkClose() error {
	if len(n.open) == 0 {
		return nil
	}
	return &NestingError{Region: UndefinedRegion, Open: n.innermost(), Depth: len(n.open)}
}

func (n *nesting) innermost() RegionRef {
	if len(n.open) == 0 {
		return UndefinedRegion
	}
	return n.open[len(n.open)-1]
}
