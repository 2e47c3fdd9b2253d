// SPDX-License-Identifier: Apache-2.0

package transfers

import (
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/stats"
)

// resource is a link or a GPU.
type resource struct {
	kind       Kind
	rank, peer int // in the world
}

// kindOf is what resources must have in common to be held against each other over several operations.
type kindOf struct {
	kind     Kind
	function string // of GPUs: what they do in an operation depends on it
	class    int    // of sizes
	near     bool   // of links: within a node
}

const (
	enoughOthers = 2       // others in one operation that make a median
	enoughBefore = 3       // operations of which one of the others is known from before
	keptBefore   = 9       // and of how many of its last ones
	maxResources = 1 << 12 // that are remembered of one kind
	fewResources = 16      // as many are looked at anew each time
)

// history is what resources took for a step in their last operations.
type history map[kindOf]*kindHistory

type kindHistory struct {
	recent map[resource]*recent
	rates  []float64
	// Where there are many, the median of all is good enough for each, and that of some operations ago.
	all   float64
	known bool
	added int // since then
}

// recent are the last values of something.
type recent struct {
	values [keptBefore]float64
	n      int // all that have been
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
	k := h[s.sort]
	if k == nil {
		k = &kindHistory{recent: make(map[resource]*recent)}
		h[s.sort] = k
	}
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

// others is the median of what the others of a suspect's kind took for a step.
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

// median is that of the medians of all resources but one.
func (k *kindHistory) median(but resource) (m float64, known bool) {
	k.rates = k.rates[:0]
	for r, before := range k.recent {
		if r != but && before.n >= enoughBefore {
			k.rates = append(k.rates, before.median())
		}
	}
	return stats.Median(k.rates), len(k.rates) >= enoughOthers
}

// usual is how long operations of one sort took.
type usual struct {
	recent
}

// longer is by how much an operation took longer than twice what ones of its sort usually take, 0 if it did not.
func (u *usual) longer(transfer uint64) uint64 {
	if u.n < enoughBefore {
		return 0
	}
	if usually := u.median(); float64(transfer) >= longFactor*usually {
		return transfer - uint64(usually)
	}
	return 0
}

// sortedResources are the keys of a map in one order.
func sortedResources[V any](all map[resource]V) []resource {
	keys := make([]resource, 0, len(all))
	for r := range all {
		keys = append(keys, r)
	}
	slices.SortFunc(keys, resource.compare)
	return keys
}
