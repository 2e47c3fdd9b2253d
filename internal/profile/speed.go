// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"encoding/json"
	"maps"
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/facts/timing"
)

// Bandwidths are derived from the number of operations of each size and their durations on one member. As in package
// facts, an operation counts with the median of its size. The medians of several members are added up, so that together
// they give the mean.

// mostSizes bounds the sizes that a cell keeps apart; operations of further sizes count with their own durations, as in
// a mean.
const mostSizes = 64

// Speeds are the operations of a cell that have a bandwidth, by size.
type Speeds struct {
	bySize map[uint64]*speed
	others speedOthers
	sums   *[2]timing.Moved // cached results of Sums; nil after an addition
}

// speed is the operations of one size.
type speed struct {
	Size uint64    `json:"size"`
	Bus  float64   `json:"bus"` // size times nccl-tests' factor for the bus
	Time Histogram `json:"time"`
}

// speedOthers is the operations of all further sizes together.
type speedOthers struct {
	Moved uint64  `json:"moved"`
	Bus   float64 `json:"bus"`
	Busy  float64 `json:"busy"`
}

// addOperation adds an operation. Start-up must not be added.
func (s *Speeds) addOperation(size uint64, bus, took float64) {
	s.sums = nil
	x := s.speedOf(size)
	if x == nil {
		s.others.Moved += size
		s.others.Bus += bus
		s.others.Busy += took
		return
	}
	x.Bus = bus
	x.Time.Add(uint64(math.Round(took)))
}

// speedOf returns the speed of a size; nil if there are too many sizes.
func (s *Speeds) speedOf(size uint64) *speed {
	x := s.bySize[size]
	if x == nil && len(s.bySize) < mostSizes {
		if s.bySize == nil {
			s.bySize = make(map[uint64]*speed)
		}
		x = &speed{Size: size}
		s.bySize[size] = x
	}
	return x
}

// Merge adds o.
func (s *Speeds) Merge(o *Speeds) {
	s.sums = nil
	for _, size := range slices.Sorted(maps.Keys(o.bySize)) {
		y := o.bySize[size]
		if x := s.speedOf(size); x != nil {
			x.Bus = y.Bus
			x.Time.Merge(&y.Time)
			continue
		}
		n := y.Time.Count
		s.others.Moved += n * size
		s.others.Bus += float64(n) * y.Bus
		s.others.Busy += float64(n) * y.Time.Percentile(50)
	}
	s.others.Moved += o.others.Moved
	s.others.Bus += o.others.Bus
	s.others.Busy += o.others.Busy
}

// Sums returns bytes and ns for both bandwidths: bytes as nccl-tests counts sizes, the same times its factor for the
// bus, and each operation's duration as the median of its size. Bandwidths are the ratios.
func (s *Speeds) Sums() (alg, bus timing.Moved) {
	if s.sums != nil {
		return s.sums[0], s.sums[1]
	}
	alg.Bytes, bus.Bytes = float64(s.others.Moved), s.others.Bus
	alg.Time, bus.Time = s.others.Busy, s.others.Busy
	for _, size := range slices.Sorted(maps.Keys(s.bySize)) {
		x := s.bySize[size]
		median := x.Time.Percentile(50)
		alg.Add(x.Time.Count, float64(size), median)
		bus.Add(x.Time.Count, x.Bus, median)
	}
	s.sums = &[2]timing.Moved{alg, bus}
	return alg, bus
}

// Each calls with for each size kept apart: bus is nccl-tests' factor times the size, times are the durations of one
// member's operations in ns.
func (s *Speeds) Each(with func(size uint64, bus float64, times *Histogram)) {
	for _, size := range slices.Sorted(maps.Keys(s.bySize)) {
		x := s.bySize[size]
		with(size, x.Bus, &x.Time)
	}
}

// IsZero reports whether there are no operations.
func (s Speeds) IsZero() bool { return len(s.bySize) == 0 && s.others == speedOthers{} }

// speedsOnDisk is Speeds in a file, sizes ascending.
type speedsOnDisk struct {
	Sizes  []*speed    `json:"sizes"`
	Others speedOthers `json:"others"`
}

// MarshalJSON writes the sums by size.
func (s Speeds) MarshalJSON() ([]byte, error) {
	out := speedsOnDisk{Sizes: []*speed{}, Others: s.others}
	for _, size := range slices.Sorted(maps.Keys(s.bySize)) {
		out.Sizes = append(out.Sizes, s.bySize[size])
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON has written; sizes that come twice are added up.
func (s *Speeds) UnmarshalJSON(b []byte) error {
	var in speedsOnDisk
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*s = Speeds{others: in.Others}
	for _, x := range in.Sizes {
		if x == nil {
			continue
		}
		s.Merge(&Speeds{bySize: map[uint64]*speed{x.Size: x}})
	}
	return nil
}
