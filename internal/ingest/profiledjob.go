// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// torchLacks lists what such data does not contain.
var torchLacks = []string{"operations outside of what was profiled", "network", "algorithms, protocols and channels",
	"copies of GPUs", "which message of one rank is " +
		"which of another", "API version", "library", "when communicators were made",
	"how exact the times of GPUs are: 10 µs are assumed"}

// gpuSlack is the uncertainty of GPU times, ns. CUPTI maps them to the host's clock with an error of some
// microseconds, which it does not state.
const gpuSlack = 10_000

// groupMember is a process's part of a group: its collectives in the order of its calls.
type groupMember struct {
	trace      *profile
	operations []*profiledOperation
}

// profiledJob is what the traces of a job tell together.
type profiledJob struct {
	*importer
	ids     []uint64 // of groups
	groups  map[uint64]*profiledGroup
	members map[uint64][]*groupMember
	world   int
	hosts   map[*profile]string
}

// writeTraces writes the shards of the traces.
func (im *importer) writeTraces() error {
	if len(im.profiles) == 0 {
		return nil
	}
	slices.SortFunc(im.profiles, func(a, b *profile) int { return cmp.Compare(a.rank, b.rank) })
	j := &profiledJob{importer: im, groups: make(map[uint64]*profiledGroup), members: make(map[uint64][]*groupMember),
		hosts: make(map[*profile]string)}
	for _, t := range im.profiles {
		j.addTrace(t)
	}
	j.ids = slices.Sorted(maps.Keys(j.groups))
	for _, id := range j.ids {
		j.numberCalls(id)
		forgetPartialSizes(j.members[id])
	}
	j.findHosts()
	for i, t := range im.profiles {
		im.progress(t.from, i, len(im.profiles))
		if err := j.writeTrace(t); err != nil {
			return fmt.Errorf("%s: %w", t.path, err)
		}
		t.operations, t.work = nil, gpuWork{}
	}
	return nil
}

// addTrace adds the groups of a trace. Those whose ranks nothing says, or that do not have the trace's rank, have no
// members.
func (j *profiledJob) addTrace(t *profile) {
	j.world = max(j.world, t.rank+1, t.world)
	parts := make(map[uint64]*groupMember)
	for _, g := range t.order {
		if !slices.Contains(g.ranks, t.rank) {
			continue
		}
		id := g.id
		j.world = max(j.world, slices.Max(g.ranks)+1)
		if j.groups[id] == nil {
			j.groups[id] = g
		}
		if parts[id] == nil {
			parts[id] = &groupMember{trace: t}
			j.members[id] = append(j.members[id], parts[id])
		}
	}
	for i := range t.operations {
		o := &t.operations[i]
		if part := parts[o.group.id]; part != nil && !o.isMessage() {
			part.operations = append(part.operations, o)
		}
	}
}

// numberCalls gives the collectives of a group their ordinals: PyTorch's numbers, or where they have none, their places
// in the order of calls, if it is certain which call of one rank is which of another.
func (j *profiledJob) numberCalls(id uint64) {
	members := j.members[id]
	unnumbered := func(m *groupMember) bool {
		return slices.ContainsFunc(m.operations, func(o *profiledOperation) bool { return !o.numbered })
	}
	switch {
	case slices.ContainsFunc(members, unnumbered) && !alignOrders(members):
		j.unmatched(j.groups[id], members)
	case len(members) == len(j.groups[id].ranks):
		j.trimSteps(j.groups[id], members)
	}
}

// trimSteps leaves out the collectives of a group outside the range that was profiled on all of its ranks: profiles
// begin and end at different steps. Waits in these collectives are unknown, and the length of the run is that of the
// common steps.
func (j *profiledJob) trimSteps(g *profiledGroup, members []*groupMember) {
	first, last := uint64(0), uint64(math.MaxUint64)
	for _, m := range members {
		if len(m.operations) == 0 {
			return
		}
		begin, end := uint64(math.MaxUint64), uint64(0)
		for _, o := range m.operations {
			begin, end = min(begin, o.number), max(end, o.number)
		}
		first, last = max(first, begin), min(last, end)
	}
	if first > last {
		return // no operation is in all traces: what each has stays
	}
	outside := 0
	for _, m := range members {
		for _, o := range m.operations {
			if o.outside = o.number < first || o.number > last; o.outside {
				outside++
			}
		}
	}
	if outside > 0 {
		j.problem("group %q: the traces begin or end at different operations; %d that are not in all of them are not "+
			"used", g.name, outside)
	}
}

// forgetPartialSizes makes the size of a collective unknown on all members if it is unknown on one: members that ask
// for different sizes are an error of the job, but one whose size was not recorded is not.
func forgetPartialSizes(members []*groupMember) {
	type collective struct {
		number   uint64
		function string
	}
	unknown := make(map[collective]bool)
	for _, m := range members {
		for _, o := range m.operations {
			if o.elements == 0 {
				unknown[collective{o.number, o.function}] = true
			}
		}
	}
	for _, m := range members {
		for _, o := range m.operations {
			if unknown[collective{o.number, o.function}] {
				o.elements, o.datatype = 0, ""
			}
		}
	}
}

// unmatched notes that the collectives of a group are not matched.
func (j *profiledJob) unmatched(g *profiledGroup, members []*groupMember) {
	g.loose = true
	for _, m := range members {
		for i, o := range m.operations {
			o.number = uint64(i)
		}
	}
	advice := ""
	if members[0].trace.from == description.FromTorch {
		advice = " (newer PyTorch writes \"Seq\")"
	}
	j.problem("the traces do not number the collectives of group %q, and begin or end at different ones, or their "+
		"times fit several orders: who waited in them is not known%s", g.name, advice)
}

// matched reports whether the calls of a group can be told apart in all traces.
func (j *profiledJob) matched(id uint64) bool { return !j.groups[id].loose }

// Bounds of alignOrders: how far the first call of a trace may be from that of another; how far real-time clocks may be
// apart, ns.
const (
	maxProfileShift = 1000
	mostClockStep   = 10_000_000
)

// alignOrders numbers the collectives of all members by their places in one order. A member's calls are moved so far
// that they ask for the same as the first member's, and that none ended before all had begun; clocks of hosts may have
// to be moved for that. It returns false if that is so for no move, or if another move needs a similar step of the
// clocks.
func alignOrders(members []*groupMember) bool {
	shifts, least := make([]int, len(members)), 0
	reference := members[0]
	for k, m := range members {
		if k == 0 || len(m.operations)*len(reference.operations) == 0 {
			continue
		}
		best, next, at := int64(math.MaxInt64), int64(math.MaxInt64), 0
		for shift := -maxProfileShift; shift <= maxProfileShift; shift++ {
			step, fits := clockStep(reference, m, shift)
			switch {
			case !fits:
			case step < best:
				best, next, at = step, best, shift
			default:
				next = min(next, step)
			}
		}
		if best > mostClockStep || next < 4*best+2*gpuSlack {
			return false
		}
		shifts[k], least = at, min(least, at)
	}
	for k, m := range members {
		for i, o := range m.operations {
			o.number, o.numbered = uint64(i+shifts[k]-least), true
		}
	}
	return true
}

// clockStep returns by how much the clock of b must be moved, at least, so that no collective ends on one member before
// it begins on the other, if the calls of b are that many places further back than those of a. It does not fit if the
// calls ask for different things, if no step suffices, or if less than half of the calls meet.
func clockStep(a, b *groupMember, shift int) (ns int64, fits bool) {
	lower, upper, met := int64(math.MinInt64), int64(math.MaxInt64), 0
	for i, y := range b.operations {
		if i+shift < 0 || i+shift >= len(a.operations) {
			continue
		}
		x := a.operations[i+shift]
		if x.function != y.function || x.elements != y.elements || x.datatype != y.datatype {
			return 0, false
		}
		met++
		if f := regions.CollectiveNamed(x.function); f == nil || f.Rooted() {
			continue
		}
		lower = max(lower, a.trace.base+x.begin-b.trace.base-y.end)
		upper = min(upper, a.trace.base+x.end-b.trace.base-y.begin)
		if lower > upper+2*gpuSlack {
			return 0, false
		}
	}
	return max(lower, -upper, 0), 2*met >= min(len(a.operations), len(b.operations)) && met > 0
}

// torchHostName matches the host in the name that PyTorch's tensorboard_trace_handler gives a trace.
var torchHostName = regexp.MustCompile(`^(.+)_\d+\.\d{10,}\.pt\.trace\.json`)

// findHosts finds which traces have a clock in common: those of one host by their names, or those whose GPUs are
// different ones of one list, if no collective contradicts that.
func (j *profiledJob) findHosts() {
	named, together, first := true, !j.opts.SeparateClocks, j.profiles[0]
	for _, t := range j.profiles {
		host := t.host
		if match := torchHostName.FindStringSubmatch(filepath.Base(t.path)); host == "" && match != nil {
			host = match[1]
		}
		named = named && host != ""
		j.hosts[t] = host
		// ROCm's tracer numbers GPUs behind processors.
		together = together && t.devices > 1 && t.devices == first.devices && t.seen.device >= 0 &&
			t.seen.device-t.rank%t.devices == first.seen.device-first.rank%first.devices
	}
	switch {
	case named:
	case together:
		for _, t := range j.profiles {
			j.hosts[t] = units.UnknownHost
			if node := t.rank / t.devices; node > 0 {
				j.hosts[t] = fmt.Sprintf("%s %d", units.UnknownHost, node+1)
			}
		}
	default:
		j.separateHosts("the traces do not name hosts")
		return
	}
	switch {
	case j.contradicted():
		j.separateHosts("collectives contradict that ranks share a clock, as their traces suggest")
	case !named && len(j.profiles) > 1:
		j.problem("the traces do not name hosts: ranks that use different ones of %d GPUs are taken to share a clock, "+
			"which no collective contradicts (import --separate-clocks gives each its own)", j.profiles[0].devices)
	}
}

// separateHosts gives each trace a clock of its own.
func (j *profiledJob) separateHosts(why string) {
	for _, t := range j.profiles {
		j.hosts[t] = fmt.Sprintf("%s of rank %d", units.UnknownHost, t.rank)
	}
	if len(j.profiles) > 1 {
		j.problem("%s: each has a clock of its own, and the clocks are aligned by collectives", why)
	}
}

// contradicted reports whether collectives of ranks that are taken to share a clock, more than a few, ended on one rank
// before they began on another.
func (j *profiledJob) contradicted() bool {
	type place struct {
		id, number uint64
		function   string
		host       string
	}
	type met struct{ begin, end int64 }
	all := make(map[place]*met)
	for id, members := range j.members {
		if !j.matched(id) {
			continue
		}
		for _, m := range members {
			for _, o := range m.operations {
				if f := regions.CollectiveNamed(o.function); f == nil || f.Rooted() {
					continue
				}
				at := keyed.EntryMade(all, place{id, o.number, o.function, j.hosts[m.trace]},
					func() *met { return &met{math.MinInt64, math.MaxInt64} })
				at.begin, at.end = max(at.begin, m.trace.base+o.begin), min(at.end, m.trace.base+o.end)
			}
		}
	}
	against := 0
	for _, m := range all {
		if m.begin > m.end+2*gpuSlack {
			against++
		}
	}
	return 50*against > len(all)
}

// Counts of what cannot be used of traces.
const (
	kernelsBefore       = "KERNELS_CALLED_BEFORE_PROFILING"
	outsideSteps        = "OPERATIONS_OUTSIDE_OF_COMMON_STEPS"
	eventsUnknown       = "EVENTS_OF_UNKNOWN_FORM"
	eventsBeyond        = "EVENTS_BEYOND_BOUNDS"
	functionsUnknown    = "OPERATIONS_OF_UNKNOWN_FUNCTIONS"
	messagesWithoutPeer = "MESSAGES_WITHOUT_PEER"
)

var profileUnused = []string{description.KernelsWithoutGroup, kernelsBefore, outsideSteps, eventsUnknown, eventsBeyond,
	functionsUnknown, messagesWithoutPeer}

// profileWriter makes the records of a trace.
type profileWriter struct {
	*minimal
	trace    *profile
	comms    map[uint64]commKey
	next     map[commKey]uint64
	last     address // of an event
	rootless uint64  // collectives whose root is not told
}

// writeTrace writes the shard of a trace.
func (j *profiledJob) writeTrace(t *profile) error {
	w := &profileWriter{trace: t, comms: make(map[uint64]commKey), next: make(map[commKey]uint64), minimal: &minimal{
		identity: fmt.Sprintf("%s, rank %d", t.from, t.rank), pid: t.seen.pid, host: j.hosts[t],
		epoch: micros{t.base, true},
		work:  &t.work, format: &format{from: t.from, lacks: t.lacks, unpaired: true},
		world: provenance.Launcher{Name: "imported", Rank: t.rank, Size: j.world}}}
	for _, id := range j.ids {
		if slices.ContainsFunc(j.members[id], func(m *groupMember) bool { return m.trace == t }) {
			w.addGroup(id, j.groups[id], j.matched(id))
		}
	}
	t.work.device = uint32(max(t.seen.device, 0))
	slices.SortFunc(t.work.kernels, func(a, b workKernel) int { return cmp.Compare(a.end, b.end) })
	counts := map[string]uint64{description.KernelsWithoutGroup: t.seen.nameless, kernelsBefore: t.seen.before,
		eventsUnknown: t.seen.unreadable,
		eventsBeyond:  t.seen.surplus}
	for i := range t.operations {
		if why := w.addOperation(&t.operations[i]); why != "" {
			counts[why]++
		}
	}
	counts[withoutRoot] = w.rootless
	if n := counts[unknownGroups]; n > 0 {
		j.problem("%s: %d operations are of groups whose ranks it does not list: PyTorch shortens long lists "+
			"(\"[0, 1, ...]\"), and distributedInfo does not have them", t.path, n)
	}
	return j.writeMinimal(w.minimal, hostClock{}, counts)
}

// addGroup adds the beginning of a communicator rank.
func (w *profileWriter) addGroup(id uint64, g *profiledGroup, matched bool) {
	rank := slices.Index(g.ranks, w.trace.rank)
	key := commKey{id, int32(rank), true}
	w.comms[id] = key
	d := &details{CommName: g.name, Ranks: new(len(g.ranks))}
	if g.description != "" && g.description != "undefined" {
		d.CommName = fmt.Sprintf("%s (%s)", g.description, g.name)
	}
	if g.description == "default_pg" {
		d.CommName = g.description
	}
	if !matched {
		d.Ranks = nil
	}
	if w.trace.seen.device >= 0 {
		d.Device = &w.trace.seen.device
	}
	first := w.trace.operations[0].begin
	for i := range w.trace.operations {
		o := &w.trace.operations[i]
		first = min(first, o.begin, o.called())
	}
	w.events = append(w.events, event{life: lifeInit, start: first, stop: first, comm: key, details: d, index: -1})
}

// addOperation adds the call, the launch and the times of an operation. It returns why it cannot be used, or "".
func (w *profileWriter) addOperation(o *profiledOperation) (unused string) {
	key, known := w.comms[o.group.id]
	switch {
	case !known:
		return unknownGroups
	case o.function == "":
		return functionsUnknown
	case o.outside:
		return outsideSteps
	}
	peer := int32(slices.Index(o.group.ranks, o.partner))
	if o.isMessage() && (peer < 0 || peer == key.rank) {
		return messagesWithoutPeer
	}
	if f := regions.CollectiveNamed(o.function); f != nil && f.Rooted() && o.root < 0 {
		w.rootless++
	}
	if !o.isMessage() {
		if o.number < w.next[key] {
			return repeatedOperations
		}
		w.next[key] = o.number + 1
	}
	call, operation := shm.EventCollApi, shm.EventColl
	d := &details{Func: o.function, Count: &o.elements, Datatype: cmp.Or(o.datatype, bytesType),
		Stream: address(o.stream)}
	if o.isMessage() {
		call, operation, d.Peer = shm.EventP2pApi, shm.EventP2p, &peer
	}
	if o.root >= 0 && o.root < len(o.group.ranks) {
		d.Root = new(int32(o.root))
	}
	ran := *d
	ran.Source, ran.Uncertainty, ran.Ordinal = regions.TimingGPU, new(uint64(gpuSlack)), &o.number
	parent := address(0)
	if span := cmp.Or(o.call, o.launch); span != (timeSpan{}) {
		group := w.addEvent(shm.EventGroupApi, span, 0, commKey{}, &details{Depth: new(int32(1))})
		parent = w.addEvent(call, span, group, key, d)
		if o.launch != (timeSpan{}) {
			w.addEvent(shm.EventKernelLaunch, o.launch, group, key, &details{Stream: address(o.stream)})
		}
	}
	w.addEvent(operation, timeSpan{begin: o.begin, end: o.end}, parent, key, &ran)
	return ""
}

// addEvent adds an event and returns its address.
func (w *profileWriter) addEvent(typ shm.EventType, span timeSpan, parent address, comm commKey, d *details) address {
	w.last++
	w.seen |= 1 << typ
	w.events = append(w.events, event{typ: typ, start: span.begin, stop: span.end, tids: [2]int32{span.tid, span.tid},
		comm: comm, parent: parent, address: w.last, function: d.Func, details: d, index: -1})
	return w.last
}
