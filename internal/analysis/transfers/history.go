// SPDX-License-Identifier: Apache-2.0

package transfers

import (
	"maps"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/internal/stats"
)

// resource is a link or a GPU.
type resource struct {
	kind       Kind
	rank, peer int // in the world
}

// kindOf is what resources that are compared across several operations have in common.
type kindOf struct {
	kind     Kind
	function string // of GPUs only: their work depends on the function
	class    int    // of sizes
	near     bool   // of links: within a node
}

const (
	enoughOthers = 2       // others in one operation that are needed for a median
	enoughBefore = 3       // earlier operations of another resource that are needed
	keptBefore   = 9       // latest operations of a resource that are kept
	maxResources = 1 << 12 // resources of one kind that are kept
	fewResources = 16      // up to so many, the median is recomputed each time
)

// history holds the times that resources took for a step in their latest operations.
type history map[kindOf]*kindHistory

type kindHistory struct {
	recent map[resource]*recent
	rates  []float64
	// With many resources, the median of all, computed some operations ago, approximates the one without the resource
	// itself.
	all   float64
	known bool
	added int // values added since
}

// recent holds the latest values of a figure.
type recent struct {
	values [keptBefore]float64
	n      int // number of values ever added
}

func (r *recent) add(v float64) {
	r.values[r.n%keptBefore] = v
	r.n++
}

func (r *recent) median() float64 {
	values := r.values
	return stats.Median(values[:min(r.n, keptBefore)])
}

func (h history) add(s *suspect) {
	k := keyed.EntryMade(h, s.sort, func() *kindHistory { return &kindHistory{recent: make(map[resource]*recent)} })
	r := k.recent[s.resource]
	if r == nil {
		if len(k.recent) >= maxResources {
			return
		}
		r = new(recent)
		k.recent[s.resource] = r
	}
	r.add(s.rate())
	k.added++
}

// others returns the median time for a step of the other resources of a suspect's kind.
func (h history) others(s *suspect) (usual float64, known bool) {
	k := h[s.sort]
	switch {
	case k == nil:
		return 0, false
	case len(k.recent) <= fewResources:
		return k.median(s.resource)
	case k.added >= len(k.recent):
		k.all, k.known = k.median(resource{})
		k.added = 0
	}
	return k.all, k.known
}

// median returns the median of the medians of all resources but one.
func (k *kindHistory) median(but resource) (m float64, known bool) {
	k.rates = k.rates[:0]
	for r, before := range k.recent {
		if r != but && before.n >= enoughBefore {
			k.rates = append(k.rates, before.median())
		}
	}
	return stats.Median(k.rates), len(k.rates) >= enoughOthers
}

// usual holds how long operations of one sort took.
type usual struct {
	recent
}

// longer returns by how much an operation took longer than twice the usual time of its sort, 0 if it did not.
func (u *usual) longer(transfer uint64) uint64 {
	if u.n < enoughBefore {
		return 0
	}
	if usually := u.median(); float64(transfer) >= longFactor*usually {
		return transfer - uint64(usually)
	}
	return 0
}

// sortedResources returns the keys of a map in a fixed order.
func sortedResources[V any](all map[resource]V) []resource {
	return slices.SortedFunc(maps.Keys(all), resource.compare)
}
