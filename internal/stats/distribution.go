// SPDX-License-Identifier: Apache-2.0

// Package stats sums up values: their number, sum and extremes, and percentiles from a bounded memory. Whoever shows
// such figures has them from here, so that one word means one number.
package stats

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
)

// PercentileError is the most that a percentile is off by, relatively, if it comes from classes: these are 1/32 of a
// power of two wide, and their middles are given.
const PercentileError = 1.0 / 64

// Distribution describes any number of values that are not negative. Count, Sum, Min and Max are exact; Min and Max are
// 0 of nothing.
//
// The first Keep values are kept one by one, and percentiles of no more than that are exact. More are counted in
// classes that grow with them: one for each below 64, then 32 for every power of two, some 1900 at most. Keep is set
// before the first value.
type Distribution[T uint64 | float64] struct {
	Keep     int
	Count    uint64
	Sum      T
	Min, Max T

	exact   []T
	classes map[uint16]uint64
}

// Add counts a value.
func (d *Distribution[T]) Add(v T) {
	if d.Count == 0 || v < d.Min {
		d.Min = v
	}
	d.Max = max(d.Max, v)
	d.Count++
	d.Sum += v
	if d.classes == nil && len(d.exact) < d.Keep {
		d.exact = append(d.exact, v)
		return
	}
	d.classify()
	d.classes[classOf(uint64(v))]++
}

// classify counts in classes from now on.
func (d *Distribution[T]) classify() {
	if d.classes != nil {
		return
	}
	d.classes = make(map[uint16]uint64)
	for _, v := range d.exact {
		d.classes[classOf(uint64(v))]++
	}
	d.exact = nil
}

// Merge adds all of o.
func (d *Distribution[T]) Merge(o *Distribution[T]) {
	if o.Count == 0 {
		return
	}
	if d.Count == 0 || o.Min < d.Min {
		d.Min = o.Min
	}
	d.Max = max(d.Max, o.Max)
	d.Count += o.Count
	d.Sum += o.Sum
	if o.classes == nil && d.classes == nil && len(d.exact)+len(o.exact) <= d.Keep {
		d.exact = append(d.exact, o.exact...)
		return
	}
	d.classify()
	for _, v := range o.exact {
		d.classes[classOf(uint64(v))]++
	}
	for c, n := range o.classes {
		d.classes[c] += n
	}
}

// Since is what has been counted after earlier, the same distribution as it was then: in classes, with extremes that
// are as good as those. If it was not the same, all of d is.
func (d *Distribution[T]) Since(earlier *Distribution[T]) Distribution[T] {
	later, before := Distribution[T]{}, Distribution[T]{}
	later.Merge(d)
	later.classify()
	before.Merge(earlier)
	before.classify()
	whole := later
	whole.classes = maps.Clone(later.classes)
	for c, n := range before.classes {
		if later.classes[c] < n || later.Sum < before.Sum {
			return whole
		}
		if later.classes[c] -= n; later.classes[c] == 0 {
			delete(later.classes, c)
		}
	}
	later.Count, later.Sum = later.Count-before.Count, later.Sum-before.Sum
	later.Min, later.Max = 0, 0
	if of := slices.Sorted(maps.Keys(later.classes)); len(of) > 0 {
		later.Min, later.Max = max(whole.Min, T(middleOf(of[0]))), min(whole.Max, T(middleOf(of[len(of)-1])))
	}
	return later
}

// Total is the sum, of values that are kept one by one in their order: it is the same in whatever order they came.
func (d *Distribution[T]) Total() (sum T) {
	if d.classes != nil {
		return d.Sum
	}
	slices.Sort(d.exact)
	for _, v := range d.exact {
		sum += v
	}
	return sum
}

// Mean is the average; 0 of nothing.
func (d *Distribution[T]) Mean() float64 {
	if d.Count == 0 {
		return 0
	}
	return float64(d.Total()) / float64(d.Count)
}

// Approximate tells whether percentiles come from classes.
func (d *Distribution[T]) Approximate() bool { return d.classes != nil }

// Percentile is the nearest-rank percentile, 0 < p ≤ 100, right to PercentileError if it is approximate; 0 of nothing.
func (d *Distribution[T]) Percentile(p float64) float64 {
	left := uint64(math.Ceil(p / 100 * float64(d.Count)))
	if d.classes == nil {
		if len(d.exact) == 0 {
			return 0
		}
		slices.Sort(d.exact)
		return float64(d.exact[max(left, 1)-1])
	}
	for _, c := range slices.Sorted(maps.Keys(d.classes)) {
		if n := d.classes[c]; n < left {
			left -= n
			continue
		}
		return min(max(middleOf(c), float64(d.Min)), float64(d.Max))
	}
	return float64(d.Max)
}

const classBits = 5 // classes of a power of two: 1 << classBits

// classOf numbers the classes in the order of their values.
func classOf(v uint64) uint16 {
	shift := max(bits.Len64(v)-classBits-1, 0)
	return uint16(shift<<classBits) + uint16(v>>shift)
}

func middleOf(class uint16) float64 {
	const first = 2 << classBits
	if class < first {
		return float64(class)
	}
	shift := class>>classBits - 1
	least := float64(uint64(class) - uint64(shift)<<classBits)
	return math.Ldexp(least+0.5, int(shift)) - 0.5
}

// onDisk is a Distribution in a file: classes ascending, each with its count.
type onDisk[T uint64 | float64] struct {
	Count   uint64      `json:"count"`
	Sum     T           `json:"sum"`
	Min     T           `json:"min"`
	Max     T           `json:"max"`
	Classes [][2]uint64 `json:"classes"`
}

// MarshalJSON writes the counts by class.
func (d Distribution[T]) MarshalJSON() ([]byte, error) {
	d.classify()
	out := onDisk[T]{d.Count, d.Sum, d.Min, d.Max, [][2]uint64{}}
	for _, c := range slices.Sorted(maps.Keys(d.classes)) {
		out.Classes = append(out.Classes, [2]uint64{uint64(c), d.classes[c]})
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON has written.
func (d *Distribution[T]) UnmarshalJSON(b []byte) error {
	var in onDisk[T]
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*d = Distribution[T]{Count: in.Count, Sum: in.Sum, Min: in.Min, Max: in.Max}
	d.classify()
	for _, c := range in.Classes {
		if c[0] > uint64(classOf(math.MaxUint64)) {
			return fmt.Errorf("a distribution has class %d of %d", c[0], classOf(math.MaxUint64)+1)
		}
		d.classes[uint16(c[0])] += c[1]
	}
	return nil
}
