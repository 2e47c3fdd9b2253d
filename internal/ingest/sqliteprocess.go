// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/regions/cuda"
)

// tracedProcess is what a profiler that traces kernels and calls of NCCL in tables recorded of a process. Its kernels
// are joined with the calls that launched them: by correlation with the launch, and by thread and time with the call.
type tracedProcess struct {
	profile
	monotonic int64          // time 0 on the host's clock that is not set; 0: not known
	kernels   []tracedKernel // of NCCL
	launches  map[int64]timeSpan
	calls     []tracedCall
	threads   map[int32][]*tracedCall // in order of time
	comms     map[uint64]*tracedComm
	advice    *uselessAdvice
	guessed   uint64 // id of the only communicator; 0: none was guessed
}

// tracedKernel is a run of a kernel of NCCL.
type tracedKernel struct {
	timeSpan
	function    string // that its name tells; "": none
	correlation int64
	stream      uint64
}

// tracedCall is a call of NCCL, with what is known of its arguments.
type tracedCall struct {
	timeSpan
	function string // "AllReduce", "GroupEnd", "CommInitRank", …
	comm     uint64 // 0: not known
	bytes    uint64 // or elements, with a datatype
	datatype string
	size     int // ranks of the communicator; 0: not known
	rank     int // in it
	peer     int // of messages; −1: none
	root     int // −1: none
	number   uint64
}

// tracedComm is a process's place in a communicator.
type tracedComm struct {
	size, rank int
	made       bool // while the profiler recorded: all its calls are known
	several    bool // the process has several ranks of it
}

// uselessAdvice says what lacks, and what to do, where operations cannot be told: there are no kernels of NCCL, no
// calls, no communicators of calls, no ranks of communicators.
type uselessAdvice struct{ kernels, calls, comms, ranks string }

// newTraced returns the empty record of a process.
func newTraced(path, from string, lacks []string, advice *uselessAdvice) *tracedProcess {
	return &tracedProcess{advice: advice, launches: make(map[int64]timeSpan), profile: profile{path: path, rank: -1,
		from: from, lacks: lacks, seen: profileSeen{device: -1}, names: make(map[string]uint32)}}
}

// addKernel adds a run of a kernel.
func (p *tracedProcess) addKernel(name string, device int64, k tracedKernel) error {
	switch {
	case k.begin < 0 || k.end < k.begin || k.end > maxSpan:
		p.seen.unreadable++
	case !cuda.IsNCCLKernel(name):
		p.addWork(name, k.stream, k.timeSpan)
	case len(p.kernels) == maxProfileRows:
		return fmt.Errorf("more than %d kernels of NCCL: record a shorter time", maxProfileRows)
	default:
		if device >= 0 && device < maxDevices {
			p.seen.device = int(device)
		}
		k.function = cuda.KernelFunction(name)
		p.kernels = append(p.kernels, k)
	}
	return nil
}

// addLaunch adds the launch of a kernel.
func (p *tracedProcess) addLaunch(correlation int64, span timeSpan) {
	switch {
	case span.begin < 0 || span.end < span.begin || span.end > maxSpan:
		p.seen.unreadable++
	case len(p.launches) >= maxProfileRows:
		p.seen.surplus++
	default:
		p.launches[correlation] = span
	}
}

// addCall adds a call of NCCL.
func (p *tracedProcess) addCall(c *tracedCall) {
	switch {
	case c.begin < 0 || c.end < c.begin || c.end > maxSpan:
		p.seen.unreadable++
	case len(p.calls) == maxProfileRows:
		p.seen.surplus++
	default:
		p.calls = append(p.calls, *c)
	}
}

// fitsCall reports whether a kernel may be of a call, by its name.
func (k *tracedKernel) fitsCall(c *tracedCall) bool {
	switch k.function {
	case c.function, "", "Generic":
		return true
	case "SendRecv":
		return c.isMessage() || c.function == "AlltoAll" || c.function == "Gather" || c.function == "Scatter"
	}
	return false
}

// isMessage reports whether the call is of a message.
func (c *tracedCall) isMessage() bool { return c.function == "Send" || c.function == "Recv" }

// makesComm reports whether the call makes a communicator.
func (c *tracedCall) makesComm() bool {
	return strings.HasPrefix(c.function, "Comm") && slices.ContainsFunc([]string{"Init", "Split", "Shrink", "Grow"},
		func(part string) bool { return strings.HasPrefix(c.function[len("Comm"):], part) })
}

// isOperation reports whether the call is of a collective or a message.
func (c *tracedCall) isOperation() bool {
	return c.isMessage() || regions.CollectiveNamed(c.function) != nil
}

// arrangeCalls sorts the calls, numbers the collectives of each communicator, and finds the communicators' ranks.
func (p *tracedProcess) arrangeCalls() {
	slices.SortStableFunc(p.calls, func(a, b tracedCall) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(b.end, a.end))
	})
	p.threads, p.comms = make(map[int32][]*tracedCall), make(map[uint64]*tracedComm)
	next := make(map[uint64]uint64)
	for i := range p.calls {
		c := &p.calls[i]
		p.threads[c.tid] = append(p.threads[c.tid], c)
		if c.comm == 0 {
			continue
		}
		if regions.CollectiveNamed(c.function) != nil {
			c.number = next[c.comm]
			next[c.comm]++
		}
		if c.size < 1 || c.rank < 0 || c.rank >= c.size || c.size > description.MaxRanks {
			continue
		}
		known := keyed.EntryMade(p.comms, c.comm, func() *tracedComm {
			return &tracedComm{size: c.size, rank: c.rank, made: next[c.comm] == 0 && c.makesComm()}
		})
		known.several = known.several || known.rank != c.rank || known.size != c.size
	}
}

// findEnclosing returns the innermost call of a thread that was under way at a time, and its place among the thread's;
// nil if there is none.
func (p *tracedProcess) findEnclosing(tid int32, time int64) (int, *tracedCall) {
	const deepest = 16
	all := p.threads[tid]
	at := sort.Search(len(all), func(i int) bool { return all[i].begin > time })
	for i := at - 1; i >= max(at-deepest, 0); i-- {
		if all[i].end >= time {
			return i, all[i]
		}
	}
	return 0, nil
}

// findGrouped returns the operations that the group call at a place of a thread has ended.
func (p *tracedProcess) findGrouped(tid int32, at int) (calls []*tracedCall) {
	all := p.threads[tid]
	for i, depth := at-1, 1; i >= 0; i-- {
		switch c := all[i]; {
		case c.function == "GroupEnd":
			depth++
		case c.function == "GroupStart":
			if depth--; depth == 0 {
				slices.Reverse(calls)
				return calls
			}
		case c.isOperation():
			calls = append(calls, c)
		}
	}
	return nil
}

// joinKernels makes operations of kernels. What cannot be told to be of one call of a known communicator counts as
// without group.
func (p *tracedProcess) joinKernels(groups map[uint64]*profiledGroup) {
	slices.SortStableFunc(p.kernels, func(a, b tracedKernel) int {
		return cmp.Or(cmp.Compare(p.launches[a.correlation].begin, p.launches[b.correlation].begin),
			cmp.Compare(a.begin, b.begin))
	})
	type place struct {
		tid int32
		at  int
	}
	launched := make(map[place][]*tracedKernel)
	var nameless []int64
	var order []place
	for i := range p.kernels {
		k := &p.kernels[i]
		launch, known := p.launches[k.correlation]
		at, call := p.findEnclosing(launch.tid, launch.begin)
		if !known || call == nil {
			nameless = append(nameless, k.begin)
			continue
		}
		where := place{launch.tid, at}
		if launched[where] == nil {
			order = append(order, where)
		}
		launched[where] = append(launched[where], k)
	}
	for _, where := range order {
		kernels := launched[where]
		call := p.threads[where.tid][where.at]
		calls := []*tracedCall{call}
		if !call.isOperation() {
			calls = p.findGrouped(where.tid, where.at)
		}
		if !p.assignKernels(kernels, calls, groups) {
			for _, k := range kernels {
				nameless = append(nameless, k.begin)
			}
		}
	}
	p.countNameless(nameless)
	for _, g := range groups {
		if slices.ContainsFunc(p.operations, func(o profiledOperation) bool { return o.group == g }) {
			p.order = append(p.order, g)
		}
	}
	slices.SortFunc(p.order, func(a, b *profiledGroup) int { return cmp.Compare(a.id, b.id) })
	slices.SortStableFunc(p.operations, func(a, b profiledOperation) int { return cmp.Compare(a.called(), b.called()) })
}

// assignKernels gives the calls that were launched together their kernels: all to a single one, one to each, or one to
// messages of one communicator. It returns false if it is not certain which are whose.
func (p *tracedProcess) assignKernels(kernels []*tracedKernel, calls []*tracedCall,
	groups map[uint64]*profiledGroup) bool {

	fit := len(calls) > 0
	for i, c := range calls {
		k, own := kernels[min(i, len(kernels)-1)], p.comms[c.comm]
		fit = fit && k.fitsCall(c) && groups[c.comm] != nil && own != nil && !own.several && c.comm == calls[0].comm
	}
	messages := !slices.ContainsFunc(calls, func(c *tracedCall) bool { return !c.isMessage() })
	if !fit || len(calls) > 1 && len(kernels) != len(calls) && !(messages && len(kernels) == 1) {
		return false
	}
	for i, c := range calls {
		own := kernels[min(i, len(kernels)-1):]
		if len(calls) > 1 {
			own = own[:1]
		}
		g := groups[c.comm]
		o := profiledOperation{group: g, function: c.function, datatype: c.datatype, elements: c.bytes, partner: -1,
			root: c.root, number: c.number, numbered: p.comms[c.comm].made, call: c.timeSpan,
			launch: p.launches[own[0].correlation], begin: own[0].begin, end: own[0].end, stream: own[0].stream}
		for _, k := range own {
			o.begin, o.end = min(o.begin, k.begin), max(o.end, k.end)
		}
		if c.isMessage() && c.peer >= 0 && c.peer < len(g.ranks) {
			o.partner = g.ranks[c.peer]
		}
		p.operations = append(p.operations, o)
	}
	return true
}

// joinTraced makes profiles of the processes of all files: their ranks and groups are known from each other's.
func (im *importer) joinTraced() {
	world := 0
	im.checkGuesses()
	for _, p := range im.traced {
		p.arrangeCalls()
		for _, c := range p.comms {
			world = max(world, c.size)
		}
	}
	numbered := im.findRanks(&world)
	groups, listed := make(map[uint64]*profiledGroup), 0
	for _, p := range im.traced {
		for _, id := range slices.Sorted(maps.Keys(p.comms)) {
			c := p.comms[id]
			g := groups[id]
			if g == nil && !c.several && listed+c.size <= maxProfileRanks {
				listed += c.size
				g = &profiledGroup{name: fmt.Sprintf("%#x", id), id: id, ranks: make([]int, c.size)}
				for i := range g.ranks {
					g.ranks[i] = -2 - i
					if c.size == world && numbered {
						g.ranks[i] = i
					}
				}
				if id == p.guessed {
					g.name = "only"
				}
				groups[id] = g
			}
			if g != nil && c.size == len(g.ranks) && p.rank >= 0 {
				g.ranks[c.rank] = p.rank
			}
		}
	}
	maps.DeleteFunc(groups, func(_ uint64, g *profiledGroup) bool {
		sorted := slices.Sorted(slices.Values(g.ranks))
		return len(slices.Compact(sorted)) < len(g.ranks) // files contradict each other
	})
	for _, p := range im.traced {
		if p.rank >= 0 {
			p.joinKernels(groups)
		}
		p.joinedKernels(im)
	}
	im.traced = nil
}

// findRanks finds the processes' ranks in the job: those in the largest communicator, if they have the same one, or
// those in the files' names. Otherwise it numbers them, and returns false.
func (im *importer) findRanks(world *int) bool {
	of := make(map[uint64]bool)
	for _, p := range im.traced {
		for _, id := range slices.Sorted(maps.Keys(p.comms)) {
			if c := p.comms[id]; c.size == *world && !c.several && p.rank < 0 {
				p.rank, of[id] = c.rank, true
			}
		}
		name := torchRankName.FindAllStringSubmatch(filepath.Base(p.path), -1)
		alone := !slices.ContainsFunc(im.traced, func(o *tracedProcess) bool { return o != p && o.path == p.path })
		if p.rank < 0 && len(name) == 1 && alone {
			p.rank, _ = strconv.Atoi(name[0][1])
			im.problem("%s does not say its rank: it is taken to be %d, by the file's name", p.path, p.rank)
		}
	}
	if len(of) > 1 {
		im.problem("the files do not have one communicator of all ranks: their processes are numbered in order")
		*world = max(*world, len(im.traced))
		for i, p := range im.traced {
			p.rank = i
		}
	}
	for _, p := range im.traced {
		p.world = *world
	}
	return len(of) <= 1
}

// joinedKernels adds the profile of a process, or says why it is of no use.
func (p *tracedProcess) joinedKernels(im *importer) {
	var err error
	what := fmt.Sprintf("%d kernels of NCCL", len(p.kernels))
	switch {
	case len(p.operations) > 0:
	case len(p.kernels) == 0:
		err = &uselessTrace{p.advice.kernels}
	case len(p.calls) == 0:
		err = &uselessTrace{fmt.Sprintf("has %s, but %s", what, p.advice.calls)}
	case !slices.ContainsFunc(p.calls, func(c tracedCall) bool { return c.comm != 0 }):
		err = &uselessTrace{fmt.Sprintf("has %s, but %s", what, p.advice.comms)}
	case len(p.comms) == 0 || p.rank < 0:
		err = &uselessTrace{fmt.Sprintf("has %s, but %s", what, p.advice.ranks)}
	default:
		err = &uselessTrace{fmt.Sprintf("has %s, but none of them can be told to be of one call: NCCL called by "+
			"several GPUs of a process, from graphs, or several collectives in a group call", what)}
	}
	im.addProfiles(p.path, err, &p.profile)
}
