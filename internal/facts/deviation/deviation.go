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
	for _, d := range jobs.CompareOrder(instances, until) {
		out = append(out, inOrder(&d)...)
	}
	ordered := out
	for _, d := range jobs.CompareSequences(instances) {
		narrowed, ok := narrow(&d)
		if !ok {
			narrowed = []jobs.Difference{d}
		}
		for _, n := range narrowed {
			if !slices.ContainsFunc(ordered, func(o jobs.Difference) bool {
				return o.Comm == n.Comm && o.Function == n.Function && o.First <= n.First && n.Last <= o.Last
			}) {
				out = append(out, n)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b jobs.Difference) int { return cmp.Compare(a.Comm, b.Comm) })
	return out
}

// narrow fails if the files lack operations that the shards announce.
func narrow(d *jobs.Difference) (out []jobs.Difference, ok bool) {
	if len(d.Sides) < 2 || len(d.Sides) > maxSides {
		return nil, false
	}
	read, closed := requestsOf(d)
	defer closed()
	computes := reduces(d.Function)
	at := d.First
	for end := min(d.Common, d.First+maxCompared); at < end && len(out) < maxRuns; at++ {
		requests, ok := read(at)
		if !ok {
			return nil, false
		}
		if equal(requests, computes) {
			continue
		}
		one := describe(d, d.Function, at, at, requests)
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

// requestsOf returns a function that reads what each side of a difference asked for in an operation, see
// stream.request, and one that ends the reading.
func requestsOf(d *jobs.Difference) (read func(number uint64) ([]Request, bool), closed func()) {
	streams := make([]*stream, len(d.Sides))
	for i := range d.Sides {
		streams[i] = newStream(&d.Sides[i])
	}
	requests := make([]Request, len(streams))
	return func(number uint64) (all []Request, ok bool) {
			for i, s := range streams {
				if requests[i], ok = s.request(number); !ok {
					return nil, false
				}
			}
			return requests, true
		}, func() {
			for _, s := range streams {
				s.close()
			}
		}
}

// describe returns the difference between what the sides asked for in one operation.
func describe(d *jobs.Difference, function string, first, last uint64, requests []Request) jobs.Difference {
	one := d.At(first, last)
	one.Function = function
	asked := make([]Asked, len(requests))
	for i := range asked {
		asked[i] = Asked{d.Sides[i].Ranks, requests[i]}
		one.Among = append(one.Among, d.Sides[i].Ranks...)
	}
	slices.Sort(one.Among)
	one.Detail, one.Deviants, _ = Describe(function, asked, d.World)
	return one
}

func equal(requests []Request, reduces bool) bool {
	return !slices.ContainsFunc(requests, func(r Request) bool { return !r.agrees(&requests[0], reduces) })
}

// reduces reports whether a function computes with the values.
func reduces(function string) bool {
	f := regions.CollectiveNamed(function)
	return f != nil && f.Reduces
}
