// SPDX-License-Identifier: Apache-2.0

// Package deviation finds the operations that members of a communicator did not ask for alike, one by one.
//
// Shards carry digests of 64 operations, which tell that members differ and not in what. Where they do, this reads what
// the members asked for from their event files: count, datatype and root of each operation by its ordinal. One member
// of each kind is read, all at one pace, so that memory does not grow with the operations; processes that did not
// differ are not read at all.
package deviation

import (
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Limits of what is read and told of one difference.
const (
	maxSides    = 64      // event files that are read at a time
	maxCompared = 1 << 22 // operations, from the first window that differs
	maxRuns     = 64      // stretches of deviating operations
)

// Narrow replaces each difference that can be compared operation by operation by those of the operations that deviate,
// and of those that not all members have. Others stay as they are.
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

// narrow fails where files do not have what the shards say.
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
	if at <= d.Last && !(d.Running && at == d.Common) { // what is not there on all, and what is not looked at
		out = append(out, d.At(at, d.Last))
	}
	return out, true
}

func equal(requests []Request, reduces bool) bool {
	return !slices.ContainsFunc(requests, func(r Request) bool { return !r.fits(&requests[0], reduces) })
}

// reduces tells whether the operations of a function compute with values.
func reduces(function string) bool {
	f := regions.CollectiveNamed(function)
	return f != nil && f.Reduces
}
