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

// Request is what a member asked NCCL for in one operation, as far as all members must agree.
type Request struct {
	Function string // "AllReduce"; "" where all are of one function, or one message
	Ordinal  uint64 // in the sequence of the function
	Count    uint64 // elements
	Datatype string // as NCCL names it: "ncclFloat32"
	Root     int    // of the communicator, −1 without one
	Graph    bool   // requested by a replayed graph
}

// bytes returns the size of the data, 0 if the datatype is unknown.
func (r *Request) bytes() uint64 { return r.Count * regions.DatatypeSize(r.Datatype) }

// agrees reports whether two members ask for the same. A function that only moves bytes may have NCCL's byte count
// where the application's call was not seen: count and datatype must agree only if the function reduces.
func (r *Request) agrees(o *Request, reduces bool) bool {
	if r.Function != o.Function || (r.Datatype == "") != (o.Datatype == "") { // NCCL has not said the rest
		return r.Function == o.Function
	}
	return r.bytes() == o.bytes() && r.Root == o.Root && r.Graph == o.Graph &&
		(!reduces || r.Datatype == o.Datatype && r.Count == o.Count)
}

// Asked is the request of some ranks of the world.
type Asked struct {
	Ranks []int
	Request
}

// describe puts into words which ranks asked for what, the smallest group first, and returns the ranks that deviate
// from the majority; nil if there is no majority. world maps ranks of the communicator to ranks of the world. differ is
// false if all ask for the same.
func describe(function string, all []Asked, world []int) (text string, deviants []int, differ bool) {
	computes := reduces(function)
	var camps []Asked
	members := 0
	for _, a := range all {
		at := slices.IndexFunc(camps, func(c Asked) bool { return c.agrees(&a.Request, computes) })
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
		parts = append(parts, units.RankNames(c.Ranks)+" "+c.inWords(&camps[(i+1)%len(camps)].Request, world))
	}
	slices.Sort(deviants)
	return strings.Join(parts[:min(len(parts), maxCamps)], ", "), deviants, true
}

// maxCamps bounds the groups that a sentence names.
const maxCamps = 4

// inWords describes how a request differs from another one. world maps ranks of the communicator to ranks of
// the world.
func (r *Request) inWords(other *Request, world []int) string {
	var parts []string
	switch {
	case r.Function != other.Function:
		return fmt.Sprintf("called %s %d", r.Function, r.Ordinal)
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
