// SPDX-License-Identifier: Apache-2.0

package bandwidth

// counts has a number for each rank. Ranks with a count tend to be neighbors, so counts are kept in pages.
type counts struct{ pages []*countPage }

const ranksOfPage = 64

type countPage [ranksOfPage]uint64

func (c *counts) page(n int) *countPage {
	for n >= len(c.pages) {
		c.pages = append(c.pages, nil)
	}
	if c.pages[n] == nil {
		c.pages[n] = new(countPage)
	}
	return c.pages[n]
}

// add adds 1 to the count of a rank.
func (c *counts) add(rank int) { c.page(rank / ranksOfPage)[rank%ranksOfPage]++ }

func (c *counts) merge(o *counts) {
	for n, theirs := range o.pages {
		if theirs == nil {
			continue
		}
		mine := c.page(n)
		for i := range theirs {
			mine[i] += theirs[i]
		}
	}
}

// sum returns the sum over all ranks.
func (c *counts) sum() (all uint64) {
	c.each(func(n uint64) { all += n })
	return all
}

// each calls f with each count above 0.
func (c *counts) each(f func(n uint64)) {
	for _, p := range c.pages {
		if p == nil {
			continue
		}
		for _, n := range p {
			if n > 0 {
				f(n)
			}
		}
	}
}
