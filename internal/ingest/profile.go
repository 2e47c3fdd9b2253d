// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// profile is what a profiler of GPUs recorded of one process of a job, whichever its format is.
type profile struct {
	path       string
	from       string // the format
	lacks      []string
	host       string // "" if the profiler does not state it
	rank       int    // of the world
	world      int    // ranks; 0: not known
	base       int64  // ns since 1970 of time 0
	devices    int    // GPUs that the process sees; 0: not known
	work       gpuWork
	names      map[string]uint32 // of the kernels in work
	seen       profileSeen
	order      []*profiledGroup
	operations []profiledOperation
}

// profileSeen is what else a profile shows.
type profileSeen struct {
	device     int    // GPU of its NCCL kernels; −1: unknown
	pid        int    // of the process, as its calls have it; 0: unknown
	unreadable uint64 // events
	surplus    uint64 // events beyond the bounds, besides kernels of NCCL
	nameless   uint64 // kernels of NCCL without a group
	before     uint64 // those that ran before the first one with a group: they were called before profiling began
}

// timeSpan is when something ran, in ns from the profile's time 0, and on which thread. An empty one is not known.
type timeSpan struct {
	begin, end int64
	tid        int32
}

// profiledOperation is a collective or a message of a process.
type profiledOperation struct {
	group        *profiledGroup
	function     string // "AllReduce", …; "Send" or "Recv"
	datatype     string
	elements     uint64
	partner      int // of a message, rank of the world; −1: not known
	root         int // in the group; −1: not known, or none
	number       uint64
	numbered     bool  // by the profiler
	outside      bool  // not profiled on all ranks
	begin, end   int64 // on the GPU
	call, launch timeSpan
	external     int64
	stream       uint64
}

// isMessage reports whether it is a message.
func (o *profiledOperation) isMessage() bool { return o.function == "Send" || o.function == "Recv" }

// called is when the host called the operation, or what is known of that.
func (o *profiledOperation) called() int64 {
	return cmp.Or(o.call.begin, o.launch.begin, o.begin)
}

// profiledGroup is a group of ranks, as a process names it.
type profiledGroup struct {
	name, description string
	ranks             []int  // of the world, negative where they are not known; nil: none is
	id                uint64 // of its communicator
	loose             bool   // which call of one rank is which of another is not known
}

// Bounds of a profile, many times what is usually profiled: of a value in it; of events of a kind that are kept; of the
// ranks of all its groups; of the names of kernels; of GPUs.
const (
	maxProfileValue   = 16 << 20
	maxProfileRows    = 1 << 20
	maxProfileRanks   = 1 << 22
	maxProfileNames   = 8192
	maxProfileDevices = 1024
)

// addWork adds a kernel of the application.
func (p *profile) addWork(kernel string, stream uint64, span timeSpan) {
	name, known := p.names[kernel]
	switch {
	case len(p.work.kernels) == maxProfileRows || !known && len(p.names) == maxProfileNames:
		p.seen.surplus++
		return
	case !known:
		name = uint32(len(p.names))
		p.names[kernel], p.work.names = name, append(p.work.names, kernel)
	}
	p.work.kernels = append(p.work.kernels, workKernel{span.begin, span.end, uint32(stream), name})
}

// countNameless counts kernels of NCCL without a group, given when they began.
func (p *profile) countNameless(begins []int64) {
	first := int64(math.MaxInt64)
	for i := range p.operations {
		first = min(first, p.operations[i].begin)
	}
	for _, begin := range begins {
		if begin < first {
			p.seen.before++
		} else {
			p.seen.nameless++
		}
	}
}

// uselessTrace says why a whole file of profiles has nothing to import, and the next step.
type uselessTrace struct{ why string }

func (u *uselessTrace) Error() string { return u.why }

// addProfiles adds the profiles that a file holds, to be written when all files have been read, or says why it is not
// used. Damaged files are not: they could lack any call.
func (im *importer) addProfiles(path string, err error, profiles ...*profile) {
	var useless *uselessTrace
	switch {
	case errors.As(err, &useless):
		im.notUsed("TRACES_WITHOUT_USE")
		im.useless = cmp.Or(im.useless, fmt.Sprintf("%s: %v", path, err))
		return
	case err != nil:
		im.result.Malformed++
		im.result.First = cmp.Or(im.result.First, fmt.Sprintf("%s: %v", path, err))
		return
	}
	for _, p := range profiles {
		if slices.ContainsFunc(im.profiles, func(o *profile) bool { return o.rank == p.rank }) {
			im.notUsed("FURTHER_TRACES_OF_A_RANK")
			continue
		}
		im.profiles = append(im.profiles, p)
	}
}
