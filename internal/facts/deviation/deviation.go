// SPDX-License-Identifier: Apache-2.0

// Package deviation finds, one by one, the operations for which members of a communicator asked differently.
//
// Shards carry a digest of each 64 operations, which shows that members differ but not how. Narrow takes the
// differences of digests and reads count, datatype and root of each operation from event files. It reads one member of
// each group that agrees, all in step, so that memory does not grow with the number of operations. Processes without a
// difference are not read.
package deviation

import (
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

// Narrow replaces each difference of digests by one for each run of operations that deviate or that some members lack.
// A difference that cannot be compared by operation stays as it is.
func Narrow(all []jobs.Difference) []jobs.Difference {
	var out []jobs.Difference
	for i := range all {
		if narrowed, ok := narrow(&all[i]); ok {
			out = append(out, narrowed...)
		} else {
			out = append(out, all[i])
		}
	}
	return out
}

// narrow fails if the files lack operations that the shards announce.
func narrow(d *jobs.Difference) (out []jobs.Difference, ok bool) {
	if len(d.Sides) < 2 || len(d.Sides) > maxSides {
		return nil, false
	}
	streams := make([]*stream, len(d.Sides))
	for i := range d.Sides {
		streams[i] = newStream(&d.Sides[i])
		defer streams[i].close()
	}
	computes := reduces(d.Function)
	requests := make([]Request, len(streams))
	at := d.First
	for end := min(d.Common, d.First+maxCompared); at < end && len(out) < maxRuns; at++ {
		for i, s := range streams {
			if requests[i], ok = s.request(at); !ok {
				return nil, false
			}
		}
		if equal(requests, computes) {
			continue
		}
		one := d.At(at, at)
		asked := make([]Asked, len(requests))
		for i := range asked {
			asked[i] = Asked{d.Sides[i].Ranks, requests[i]}
		}
		one.Detail, one.Deviants, _ = Describe(d.Function, asked, d.World)
		if n := len(out); n > 0 && out[n-1].Last+1 == at && slices.Equal(out[n-1].Deviants, one.Deviants) {
			out[n-1].Last = at
			continue
		}
		out = append(out, one)
	}
	if at <= d.Last && !(d.Running && at == d.Common) { // operations that some members lack, or beyond maxCompared
		out = append(out, d.At(at, d.Last))
	}
	return out, true
}

func equal(requests []Request, reduces bool) bool {
	return !slices.ContainsFunc(requests, func(r Request) bool { return !r.agrees(&requests[0], reduces) })
}

// reduces reports whether a function computes with the values.
func reduces(function string) bool {
	f := regions.CollectiveNamed(function)
	return f != nil && f.Reduces
}
