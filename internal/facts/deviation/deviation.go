// SPDX-License-Identifier: Apache-2.0

// Package deviation finds, one by one, the operations for which members of a communicator asked differently.
//
// Shards carry a digest of each 64 operations, which shows that members differ but not how. Find takes the
// differences of digests and reads count, datatype and root of each operation from event files. It reads one member of
// each group that agrees, all in step, so that memory does not grow with the number of operations. Processes without a
// difference are not read.
package deviation

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Limits of what is read and reported of one difference.
const (
	maxSides    = 64      // event files that are read at a time
	maxCompared = 1 << 22 // operations, from the first window that differs
	maxRuns     = 64      // stretches of deviating operations
)

// Find returns the differences between members' sequences ([jobs.CompareOrder] and [jobs.CompareSequences]): one for
// each run of operations that deviate or that some members lack. A difference of one function that cannot be compared
// by operation stays as it is.
func Find(instances []*jobs.Communicator, until uint64) (out []jobs.Difference) {
	for _, d := range append(jobs.CompareOrder(instances, until), jobs.CompareSequences(instances)...) {
		narrowed, ok := narrow(&d)
		if !ok {
			narrowed = []jobs.Difference{d}
		}
		for _, n := range narrowed {
			if !slices.ContainsFunc(out, func(o jobs.Difference) bool {
				return o.Name == n.Name && o.Function == n.Function && o.First <= n.First && n.Last <= o.Last
			}) {
				out = append(out, n)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b jobs.Difference) int { return cmp.Compare(a.Comm, b.Comm) })
	return out
}

// narrow fails if the files lack operations of a function that the shards announce.
func narrow(d *jobs.Difference) (out []jobs.Difference, ok bool) {
	inOrder := d.Function == ""
	if len(d.Sides) < 2 || len(d.Sides) > maxSides {
		return nil, inOrder
	}
	streams := make([]*stream, len(d.Sides))
	for i := range d.Sides {
		streams[i] = newStream(&d.Sides[i])
		defer streams[i].close()
	}
	asked := make([]Asked, len(streams))
	var run *disorder
	at := d.First
	for end := min(d.Common, d.First+maxCompared); at < end && len(out) < maxRuns; at++ {
		read := true
		for i, s := range streams {
			asked[i].Ranks = d.Sides[i].Ranks
			asked[i].Request, ok = s.request(at)
			read = read && ok
		}
		if !read && !inOrder {
			return nil, false
		}
		if !read {
			break
		}
		first := &asked[0].Request
		together := !slices.ContainsFunc(asked, func(a Asked) bool {
			return a.Function != first.Function || a.Ordinal != first.Ordinal
		})
		if together && run != nil {
			out, run = append(out, run.differences(d, false)...), nil
		}
		if !together && run != nil {
			run.add(asked)
			continue
		}
		one := d.At(first.Ordinal, first.Ordinal)
		one.Function = cmp.Or(d.Function, first.Function)
		differ := false
		if one.Detail, one.Deviants, differ = describe(one.Function, asked, d.World); !differ {
			continue
		}
		for _, a := range asked {
			one.Among = append(one.Among, a.Ranks...)
		}
		slices.Sort(one.Among)
		n := len(out)
		switch {
		case !together:
			one.Detail = fmt.Sprintf("as collective %d, %s", at, one.Detail)
			run = newDisorder(one, asked)
		case n > 0 && out[n-1].Function == one.Function && out[n-1].Last+1 == one.First &&
			slices.Equal(out[n-1].Deviants, one.Deviants):
			out[n-1].Last = one.Last
		default:
			out = append(out, one)
		}
	}
	if run != nil {
		out = append(out, run.differences(d, true)...)
	}
	// operations that some members lack, or beyond maxCompared
	if !inOrder && at <= d.Last && !(d.Running && at == d.Common) {
		out = append(out, d.At(at, d.Last))
	}
	return out, true
}

// reduces reports whether a function computes with the values.
func reduces(function string) bool {
	f := regions.CollectiveNamed(function)
	return f != nil && f.Reduces
}
