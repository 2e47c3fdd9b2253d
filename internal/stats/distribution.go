// SPDX-License-Identifier: Apache-2.0

// Package stats summarizes values: number, sum and extremes, and percentiles in bounded memory. All products show these
// figures from here, so that each has one definition.
package stats

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
)

// PercentileError is the greatest relative error of a percentile from classes: they are 1/32 of a power of two wide,
// and the middle is returned.
const PercentileError = 1.0 / 64

// Distribution describes a set of nonnegative values. Count, Sum, Min and Max are exact; Min and Max of no values are
// 0.
//
// The first Keep values are stored, and percentiles of up to Keep values are exact. Beyond that values are counted in
// classes that grow with the value: one for each integer below 64, then 32 per power of two, at most about 1900. Keep
// must be set before the first Add.
type Distribution[T uint64 | float64] struct {
	Keep     int
	Count    uint64
	Sum      T
	Min, Max T

	exact   []T
	classes map[uint16]uint64
}

// Add adds a value.
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

// classify replaces the stored values by classes.
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

// Merge adds all values of o.
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

// Since returns what was added after earlier, an older state of the same distribution, in classes and with extremes of
// that precision. If earlier is not an older state, it returns all of d.
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

// Total returns the sum; stored values are added in sorted order, so that it does not depend on the order of Add.
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

// Mean returns the average; 0 for no values.
func (d *Distribution[T]) Mean() float64 {
	if d.Count == 0 {
		return 0
	}
	return float64(d.Total()) / float64(d.Count)
}

// Approximate reports whether percentiles come from classes.
func (d *Distribution[T]) Approximate() bool { return d.classes != nil }

// Percentile returns the nearest-rank percentile, 0 < p ≤ 100, with an error of up to PercentileError if it is
// approximate; 0 for no values.
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

const classBits = 5 // there are 1 << classBits classes per power of two

// classOf returns the number of a value's class; numbers ascend with values.
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

// onDisk is the JSON form of a Distribution: classes ascending, each with its count.
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
