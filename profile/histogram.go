// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
)

// PercentileError is the most that a percentile is off by, relatively: classes are 1/32 of a power of two wide, and their
// middles are given.
const PercentileError = 1.0 / 64

// Histogram counts values in classes that grow with them: one for each value below 64, then 32 for every power of two. It has at
// most some 1900 classes, whatever is counted.
type Histogram struct {
	classes  map[uint16]uint64
	Count    uint64
	Sum      uint64
	Min, Max uint64
}

// Add counts a value.
func (h *Histogram) Add(v uint64) {
	if h.classes == nil {
		h.classes = make(map[uint16]uint64)
	}
	if h.Count == 0 || v < h.Min {
		h.Min = v
	}
	h.Max = max(h.Max, v)
	h.Count++
	h.Sum += v
	h.classes[histogramClass(v)]++
}

// Merge adds all of o.
func (h *Histogram) Merge(o *Histogram) {
	if o.Count == 0 {
		return
	}
	if h.classes == nil {
		h.classes = make(map[uint16]uint64)
	}
	if h.Count == 0 || o.Min < h.Min {
		h.Min = o.Min
	}
	h.Max = max(h.Max, o.Max)
	h.Count += o.Count
	h.Sum += o.Sum
	for c, n := range o.classes {
		h.classes[c] += n
	}
}

// Percentile is the nearest-rank percentile, 0 < p ≤ 100, right to PercentileError; 0 of nothing.
func (h *Histogram) Percentile(p float64) float64 {
	left := uint64(math.Ceil(p / 100 * float64(h.Count)))
	for _, c := range slices.Sorted(maps.Keys(h.classes)) {
		if n := h.classes[c]; n < left {
			left -= n
			continue
		}
		return min(max(histogramMiddle(c), float64(h.Min)), float64(h.Max))
	}
	return float64(h.Max)
}

const histogramBits = 5 // classes of a power of two: 1 << histogramBits

func histogramClass(v uint64) uint16 {
	shift := max(bits.Len64(v)-histogramBits-1, 0)
	return uint16(shift<<histogramBits) + uint16(v>>shift)
}

func histogramMiddle(class uint16) float64 {
	const first = 2 << histogramBits
	if class < first {
		return float64(class)
	}
	shift := class>>histogramBits - 1
	least := float64(uint64(class) - uint64(shift)<<histogramBits)
	return math.Ldexp(least+0.5, int(shift)) - 0.5
}

// histogramJSON is a Histogram on disk: classes ascending, each with its count.
type histogramJSON struct {
	Count   uint64      `json:"count"`
	Sum     uint64      `json:"sum"`
	Min     uint64      `json:"min"`
	Max     uint64      `json:"max"`
	Classes [][2]uint64 `json:"classes"`
}

// MarshalJSON writes the counts by class.
func (h Histogram) MarshalJSON() ([]byte, error) {
	out := histogramJSON{h.Count, h.Sum, h.Min, h.Max, [][2]uint64{}}
	for _, c := range slices.Sorted(maps.Keys(h.classes)) {
		out.Classes = append(out.Classes, [2]uint64{uint64(c), h.classes[c]})
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON has written.
func (h *Histogram) UnmarshalJSON(b []byte) error {
	var in histogramJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*h = Histogram{Count: in.Count, Sum: in.Sum, Min: in.Min, Max: in.Max}
	for _, c := range in.Classes {
		if c[0] > uint64(histogramClass(math.MaxUint64)) {
			return fmt.Errorf("a histogram has class %d of %d", c[0], histogramClass(math.MaxUint64)+1)
		}
		if h.classes == nil {
			h.classes = make(map[uint16]uint64)
		}
		h.classes[uint16(c[0])] += c[1]
	}
	return nil
}
