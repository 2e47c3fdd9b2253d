// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"math"
	"math/bits"
	"slices"
)

// maxExact is how many durations are kept one by one; more are only counted by size.
const maxExact = 4096

// durations are statistics of any number of durations in bounded memory. Once there are more than
// maxExact, percentiles come from classes that are at most 1/64 of their durations wide.
type durations struct {
	exact   []float64
	classes map[uint16]uint64
	n       uint64
	total   float64
	least   float64
	most    float64
}

func (d *durations) add(ns float64) {
	if d.n == 0 || ns < d.least {
		d.least = ns
	}
	d.most = max(d.most, ns)
	d.n++
	d.total += ns
	if d.classes != nil {
		d.classes[classOf(uint64(ns))]++
		return
	}
	d.exact = append(d.exact, ns)
	d.limit()
}

// limit begins to count by size if there are too many to keep.
func (d *durations) limit() {
	if len(d.exact) <= maxExact {
		return
	}
	d.classes = make(map[uint16]uint64)
	for _, v := range d.exact {
		d.classes[classOf(uint64(v))]++
	}
	d.exact = nil
}

// merge adds all of o.
func (d *durations) merge(o *durations) {
	if o.n == 0 {
		return
	}
	if d.n == 0 || o.least < d.least {
		d.least = o.least
	}
	d.most = max(d.most, o.most)
	d.n += o.n
	d.total += o.total
	if d.classes == nil && o.classes != nil {
		d.classes = make(map[uint16]uint64)
		for _, v := range d.exact {
			d.classes[classOf(uint64(v))]++
		}
		d.exact = nil
	}
	for c, n := range o.classes {
		d.classes[c] += n
	}
	if d.classes == nil {
		d.exact = append(d.exact, o.exact...)
		d.limit()
		return
	}
	for _, v := range o.exact {
		d.classes[classOf(uint64(v))]++
	}
}

// result gives the statistics, and whether their percentiles are approximate.
func (d *durations) result() (t Times, approximate bool) {
	if d.classes == nil {
		return timesOf(d.exact), false
	}
	return Times{
		Total: d.total, Avg: d.total / float64(d.n), Min: d.least, Max: d.most,
		P50: d.percentile(50), P99: d.percentile(99),
	}, true
}

// percentile is the middle of the class that holds the nearest-rank percentile.
func (d *durations) percentile(p float64) float64 {
	classes := make([]uint16, 0, len(d.classes))
	for c := range d.classes {
		classes = append(classes, c)
	}
	slices.Sort(classes)
	left := uint64(math.Ceil(p / 100 * float64(d.n)))
	for _, c := range classes {
		if n := d.classes[c]; n < left {
			left -= n
			continue
		}
		return min(max(middleOf(c), d.least), d.most)
	}
	return d.most
}

// classOf numbers the classes in the order of their durations: one for each below 128, then 64 for
// every power of two.
func classOf(ns uint64) uint16 {
	shift := max(bits.Len64(ns)-7, 0)
	return uint16(shift*64) + uint16(ns>>shift)
}

func middleOf(class uint16) float64 {
	if class < 128 {
		return float64(class)
	}
	shift := class/64 - 1
	return math.Ldexp(float64(class%64+64)+0.5, int(shift))
}
