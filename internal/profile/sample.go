// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"hash/fnv"
	"slices"
)

// Which rank waited for which can only be derived from the times of several processes, and these do not communicate. So
// each keeps begin and end of some collectives: of each kind, on each communicator, those with the smallest hashes of
// function and ordinal. All members choose the same collectives, and merging them later gives an estimate of all waits.

// Sizes of samples per communicator rank and call path: while there are few call paths, and beyond.
const (
	sampleSize      = 64
	smallSampleSize = 8
	fewStrata       = 256
)

// Sample is one collective on one rank.
type Sample struct {
	Function string `json:"f"`
	Ordinal  uint64 `json:"o"`           // on the communicator
	Root     int64  `json:"r,omitempty"` // rank; −1: none
	Begin    uint64 `json:"b"`
	End      uint64 `json:"e"`
	Source   string `json:"s"` // of the times

	hash uint64
}

// Stratum is the samples of one call path on a communicator rank.
type Stratum struct {
	Node    int32    `json:"node"`
	Count   uint64   `json:"count"` // collectives that the samples represent
	Samples []Sample `json:"samples"`

	size  int
	worst int // index of the greatest hash
}

// sampling holds the samples of a communicator rank.
type sampling struct {
	strata map[int32]*Stratum
	first  *FirstSample
}

// FirstSample is the first collective of a communicator, in which processes start up, and its call path.
type FirstSample struct {
	Node int32 `json:"node"`
	Sample
}

// addSample offers a collective to the samples.
func (g *Aggregator) addSample(r *row, node int32, s Sample) {
	if r.sampling == nil {
		r.sampling = &sampling{strata: make(map[int32]*Stratum)}
	}
	if r.sampling.first == nil {
		r.sampling.first = &FirstSample{node, s}
	}
	st := r.sampling.strata[node]
	if st == nil {
		st = &Stratum{Node: node, size: sampleSize}
		if g.strata++; g.strata > fewStrata {
			st.size = smallSampleSize
		}
		r.sampling.strata[node] = st
	}
	st.add(s)
}

func (st *Stratum) add(s Sample) {
	st.Count++
	h := fnv.New64a()
	var b [8]byte
	for i := range b {
		b[i] = byte(s.Ordinal >> (8 * i))
	}
	h.Write([]byte(s.Function))
	h.Write(b[:])
	s.hash = mix(h.Sum64())
	switch {
	case len(st.Samples) < st.size:
		st.Samples = append(st.Samples, s)
	case s.hash < st.Samples[st.worst].hash:
		st.Samples[st.worst] = s
	default:
		return
	}
	for i := range st.Samples {
		if st.Samples[i].hash > st.Samples[st.worst].hash {
			st.worst = i
		}
	}
}

// mix spreads a hash: the upper bits of FNV hardly depend on the last bytes.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// snapshot returns the strata by node, their samples by ordinal.
func (s *sampling) snapshot() []Stratum {
	list := make([]Stratum, 0, len(s.strata))
	for _, st := range s.strata {
		out := *st
		out.Samples = slices.Clone(st.Samples)
		slices.SortFunc(out.Samples, func(x, y Sample) int {
			return cmp.Or(cmp.Compare(x.Function, y.Function), cmp.Compare(x.Ordinal, y.Ordinal))
		})
		list = append(list, out)
	}
	slices.SortFunc(list, func(x, y Stratum) int { return cmp.Compare(x.Node, y.Node) })
	return list
}
