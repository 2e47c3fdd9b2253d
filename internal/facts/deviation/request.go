// SPDX-License-Identifier: Apache-2.0

package deviation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Request is what a member asked NCCL for in one operation, as far as all members must ask for the same.
type Request struct {
	Count    uint64 // elements
	Datatype string // as NCCL names it: "ncclFloat32"
	Root     int    // of the communicator, −1 of functions without
	Graph    bool   // a replayed graph did
}

// bytes is 0 where the type is not known.
func (r *Request) bytes() uint64 { return r.Count * regions.DatatypeSize(r.Datatype) }

// fits tells whether two members ask for the same. Of what only moves bytes NCCL itself may say bytes, where the
// application's call has not been seen: types matter where values are computed with.
func (r *Request) fits(o *Request, reduces bool) bool {
	return r.bytes() == o.bytes() && r.Root == o.Root && r.Graph == o.Graph &&
		(!reduces || r.Datatype == o.Datatype && r.Count == o.Count)
}

// Asked is what some ranks of the world asked for.
type Asked struct {
	Ranks []int
	Request
}

// Describe says in words who asked for what of a function where they differ, those that are fewest first, and who
// departs from most; nobody where no more than half agree. world gives the ranks of the world by those of the
// communicator. differ is false where all ask for the same.
func Describe(function string, all []Asked, world []int) (text string, deviants []int, differ bool) {
	computes := reduces(function)
	var camps []Asked
	members := 0
	for _, a := range all {
		at := slices.IndexFunc(camps, func(c Asked) bool { return c.fits(&a.Request, computes) })
		if at < 0 {
			camps, at = append(camps, Asked{Request: a.Request}), len(camps)
		}
		camps[at].Ranks = append(camps[at].Ranks, a.Ranks...)
		members += len(a.Ranks)
	}
	if len(camps) < 2 {
		return "", nil, false
	}
	slices.SortStableFunc(camps, func(a, b Asked) int { return cmp.Compare(len(a.Ranks), len(b.Ranks)) })
	most := &camps[len(camps)-1]
	var parts []string
	for i := range camps {
		c := &camps[i]
		slices.Sort(c.Ranks)
		if c != most && 2*len(most.Ranks) > members {
			deviants = append(deviants, c.Ranks...)
		}
		parts = append(parts, units.RankNames(c.Ranks)+" "+c.words(&camps[(i+1)%len(camps)].Request, world))
	}
	slices.Sort(deviants)
	return strings.Join(parts[:min(len(parts), maxCamps)], ", "), deviants, true
}

// maxCamps bounds what a sentence tells.
const maxCamps = 4

// words says what of a request differs from another one. world gives the ranks of the world by those of the
// communicator.
func (r *Request) words(other *Request, world []int) string {
	var parts []string
	switch {
	case r.Datatype != other.Datatype:
		parts = append(parts, fmt.Sprintf("asked for %s of %s", units.Plural(r.Count, "element"),
			strings.TrimPrefix(r.Datatype, "nccl")))
	case r.Count != other.Count:
		parts = append(parts, "asked for "+units.Plural(r.Count, "element"))
	}
	if r.Root != other.Root {
		root := fmt.Sprintf("rank %d", r.Root)
		if r.Root >= 0 && r.Root < len(world) && world[r.Root] >= 0 {
			root = units.RankNames([]int{world[r.Root]})
		}
		parts = append(parts, fmt.Sprintf("named %s as root", root))
	}
	if r.Graph != other.Graph {
		how := "called it"
		if r.Graph {
			how = "replayed it from a graph"
		}
		parts = append(parts, how)
	}
	return strings.Join(parts, " and ")
}
