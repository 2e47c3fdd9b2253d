// SPDX-License-Identifier: Apache-2.0

package transfers

import (
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// always is the part of its operations from which on a link or GPU is called always slow.
const always = 0.9

// Pattern describes how often it was slow: "always", or in how many of how many operations.
func (f *Finding) Pattern() string {
	if float64(f.Slow) >= always*float64(f.Operations) {
		return "always"
	}
	return fmt.Sprintf("%d of %d operations", f.Slow, f.Operations)
}

// Because describes in one sentence what was slow; name returns the name of a rank of the world.
func (f *Finding) Because(name func(rank int) string) string {
	what := "The GPU of " + name(f.Rank) + " held transfers up for"
	switch {
	case f.Kind != Link:
	case f.Peer != Nobody:
		what = fmt.Sprintf("What %s sent to %s was on the way for", name(f.Rank), name(f.Peer))
	case f.Into:
		what = fmt.Sprintf("What others sent to %s was on the way for", name(f.Rank))
	default:
		what = fmt.Sprintf("What %s sent was on the way for", name(f.Rank))
	}
	return fmt.Sprintf("%s %s where others take %s, in %d of %d operations.", what, units.Time(f.Took),
		units.Time(f.Usual), f.Slow, f.Operations)
}
