// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selfreport"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/attribute"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/timing"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Compare keeps the operations of a run by kind, and thins each kind out to a bounded number.

const (
	// mostSamples limits the operations kept for each kind. Ordinals alone decide which are kept, so that they are the
	// same ones in two runs.
	mostSamples = 1 << 14
	// mostSizes limits the sizes of a function on communicators of one shape. Beyond it, sizes are put into classes.
	mostSizes = 32
)

// shape is what matching communicators of two runs have in common: the number of ranks, and their distribution over
// hosts.
type shape struct {
	ranks, hosts int
	layout       string // ranks per host, the most first: "4+2", "8×1" for 8 hosts with one each
}

// layoutOf formats the ranks per host.
func layoutOf(perHost []int) string {
	slices.SortFunc(perHost, func(a, b int) int { return b - a })
	var parts []string
	for i := 0; i < len(perHost); {
		j := i
		for j < len(perHost) && perHost[j] == perHost[i] {
			j++
		}
		if j-i > 1 {
			parts = append(parts, fmt.Sprintf("%d×%d", j-i, perHost[i]))
		} else {
			parts = append(parts, fmt.Sprint(perHost[i]))
		}
		i = j
	}
	return strings.Join(parts, "+")
}

// sampleFamily is a function on communicators of one shape, with times of one kind.
type sampleFamily struct {
	shape
	function string
	grouped  bool
	equal    int // operations in a launch if all are equal: each has its part of the time
	source   facts.Source
}

// sampleKey identifies a kind of operations: a family and a size or size class.
type sampleKey struct {
	sampleFamily
	size  uint64 // the least size of a class
	class bool   // size ≤ … < 2·size
}

// classified returns the key of the size class.
func (k sampleKey) classified() sampleKey {
	if !k.class {
		k.class = true
		if k.size > 0 {
			k.size = 1 << (bits.Len64(k.size) - 1)
		}
	}
	return k
}

// identity identifies an operation of a run, so that it can be found in another run: the number of its communicator
// among those of its shape, its ordinal, and for messages the pair.
type identity struct {
	comm     int32
	from, to int32 // −1: a collective
	ordinal  uint64
}

// Figure identifies one of the times of an operation that are compared.
type Figure uint8

// The figures.
const (
	FigureTime     Figure = iota // from begin to end, mean of the members
	FigureEnqueue                // in the call on the application's thread, mean
	figureSkew                   // from a member's begin to the last member's, mean
	figureTransfer               // the rest of the time
	NumFigures
)

// FigureNames has the names of the figures in results.
var FigureNames = [NumFigures]string{"time", "enqueue", "skew", "transfer"}

// observation is one operation. Times are in nanoseconds; unknown times are NaN.
type observation struct {
	identity
	begin  otf2.Timestamp
	values [NumFigures]float64
	// uncertainty is that of skew and transfer, 0 if not stated.
	uncertainty float64
}

// sampleSet is what is kept of a kind.
type sampleSet struct {
	operations uint64 // all of them
	level      int    // only operations are kept whose hashed ordinal ends in this many zero bits
	all        []observation
	ways       map[string]bool // "RING/SIMPLE/4": algorithm, protocol, channels
	last       map[int]uint64  // how often each rank of the run came last
	arrivals   uint64          // operations counted in last
}

func newSampleSet() *sampleSet {
	return &sampleSet{ways: make(map[string]bool), last: make(map[int]uint64)}
}

// scatter hashes an ordinal (finalizer of MurmurHash3), so that operations that alternate are thinned out evenly.
func scatter(n uint64) uint64 {
	n = (n ^ n>>33) * 0xff51afd7ed558ccd
	n = (n ^ n>>33) * 0xc4ceb9fe1a85ec53
	return n ^ n>>33
}

func (s *sampleSet) keeps(ordinal uint64) bool {
	return bits.TrailingZeros64(scatter(ordinal)) >= s.level
}

func (s *sampleSet) add(x observation) {
	if !s.keeps(x.ordinal) {
		return
	}
	s.all = append(s.all, x)
	for len(s.all) > mostSamples {
		s.thin(s.level + 1)
	}
}

// thin raises the level, and drops the operations that it excludes.
func (s *sampleSet) thin(level int) {
	if level <= s.level {
		return
	}
	s.level = level
	s.all = slices.DeleteFunc(s.all, func(x observation) bool { return !s.keeps(x.ordinal) })
}

func (s *sampleSet) merge(o *sampleSet) {
	s.operations += o.operations
	s.thin(o.level)
	for _, x := range o.all {
		s.add(x)
	}
	maps.Copy(s.ways, o.ways)
	for rank, n := range o.last {
		s.last[rank] += n
	}
	s.arrivals += o.arrivals
}

// samples is one run.
type samples struct {
	defs      *otf2.Definitions
	comms     map[otf2.CommRef]*membership.Communicator
	number    map[otf2.CommRef]int32 // number among those of its shape, in the order of creation
	shapes    map[otf2.CommRef]shape
	counted   map[shape]int // communicators of a shape
	expected  map[otf2.CommRef]int
	stretches []property.Stretch
	untimed   bool // there is no TIMING_SOURCE: times are taken as they are
	warmUp    int
	assembly  *analysis.Assembly
	ranks     []placement.Rank
	of        map[otf2.LocationRef]int

	sets   map[sampleKey]*sampleSet
	sizes  map[sampleFamily]int
	folded map[sampleFamily]bool
	begun  map[warmKey]int                  // operations of a kind on a communicator so far, up to warmUp
	plans  map[otf2.LocationRef]messagesKey // of the last launch with a message that has been counted

	operations, unfinished, leftOut, coupled uint64
}

type warmKey struct {
	sampleKey
	comm, from, to int32
}

type messagesKey struct {
	plan uint64
	comm otf2.CommRef
}

// readSamples reads all events of an archive.
func readSamples(a *otf2.Archive, warmUp int) (*samples, []string) {
	comms := membership.Communicators(a.Defs)
	s := &samples{
		defs: a.Defs, comms: comms, number: make(map[otf2.CommRef]int32), shapes: make(map[otf2.CommRef]shape),
		counted:  make(map[shape]int),
		expected: analysis.MembersWithData(a.Defs, comms), stretches: selfreport.StretchesOf(a.Anchor),
		untimed: !attribute.Find(a.Defs).Has(regions.AttrTimingSource), warmUp: warmUp,
		sets: make(map[sampleKey]*sampleSet), sizes: make(map[sampleFamily]int), folded: make(map[sampleFamily]bool),
		begun: make(map[warmKey]int), plans: make(map[otf2.LocationRef]messagesKey),
	}
	s.ranks, s.of = placement.Ranks(a.Defs, comms)
	s.describe()
	s.assembly = analysis.NewAssembly(s.finish, func([]analysis.Operation) { s.unfinished++ })
	problems := analysis.ReadOperations(a, comms, s.add)
	s.assembly.End()
	return s, problems
}

// describe determines the shapes of the communicators.
func (s *samples) describe() {
	for _, ref := range slices.Sorted(maps.Keys(s.comms)) {
		c := s.comms[ref]
		if c.Size() < 2 {
			continue
		}
		perHost := make(map[string]int)
		for _, l := range c.Members {
			host := ""
			if d := s.defs.Location(l); d != nil {
				host = placement.HostOf(s.defs, placement.ProcessOf(s.defs, d.Group))
			}
			perHost[host]++
		}
		sh := shape{c.Size(), len(perHost), layoutOf(slices.Collect(maps.Values(perHost)))}
		s.shapes[ref], s.number[ref] = sh, int32(s.counted[sh])
		s.counted[sh]++
	}
}

func (s *samples) add(op *analysis.Operation) {
	if op.Communicator.Size() < 2 {
		return
	}
	sequence, expected := op.Function, s.expected[op.Communicator.Ref]
	message := op.Collective == nil && facts.IsMessage(op.Function)
	if message {
		sequence, expected = op.Sequence(), 2
	}
	if property.Excluded(s.stretches, op.Communicator.Ref, sequence, op.Ordinal) {
		s.leftOut++
		return
	}
	s.assembly.Add(analysis.PartKey{Comm: op.Communicator.Ref, Sequence: sequence, Ordinal: op.Ordinal}, op, expected)
}

// finish takes an operation that all members have ended. Of operations launched together, which have one time, only
// the first on each communicator counts.
func (s *samples) finish(members []analysis.Operation) {
	op := &members[0]
	for i := range members {
		if members[i].Function == "Send" {
			op = &members[i]
		}
	}
	var t timing.Whole
	x := observation{identity: identity{s.number[op.Communicator.Ref], -1, -1, op.Ordinal}, begin: op.Begin}
	key := sampleKey{sampleFamily: sampleFamily{shape: s.shapes[op.Communicator.Ref], function: op.Function,
		source: op.Source}}
	message := facts.IsMessage(op.Function)
	if message {
		x.from, x.to, key.function = int32(op.Rank), int32(op.Peer), analysis.SendRecv
	}
	for i := range members {
		m := &members[i]
		t.Add(&m.Operation)
		key.size = max(key.size, m.Size)
		x.begin = min(x.begin, m.Begin)
	}
	t.Close(s.untimed)
	key.source, key.grouped, key.equal = t.Source, t.Grouped, t.Equal
	s.operations++
	if !s.leads(members, op, message) {
		s.coupled++
		return
	}
	set := s.set(&key)
	set.operations++
	set.ways[s.way(op)] = true
	if warm := (warmKey{key, x.comm, x.from, x.to}); s.begun[warm] < s.warmUp {
		s.begun[warm]++
		return
	}
	if t.StartUp || t.Mixed { // they are in no time, as in the report
		return
	}
	s.measure(&x, set, members, &t)
	set.add(x)
}

// leads reports whether the operation represents its launch.
func (s *samples) leads(members []analysis.Operation, op *analysis.Operation, message bool) bool {
	if !message {
		return !slices.ContainsFunc(members, func(m analysis.Operation) bool { return !m.Leads })
	}
	if slices.ContainsFunc(members, func(m analysis.Operation) bool { return m.Follows }) {
		return false
	}
	key := messagesKey{op.Launch, op.Communicator.Ref}
	if !op.Grouped || s.plans[op.Location] != key {
		s.plans[op.Location] = key
		return true
	}
	return false
}

// set returns the set of a kind. If there are too many sizes it puts them into classes.
func (s *samples) set(key *sampleKey) *sampleSet {
	if s.folded[key.sampleFamily] {
		*key = key.classified()
	}
	set := s.sets[*key]
	if set != nil {
		return set
	}
	if !key.class {
		if s.sizes[key.sampleFamily] >= mostSizes {
			s.fold(key.sampleFamily)
			return s.set(key)
		}
		s.sizes[key.sampleFamily]++
	}
	set = newSampleSet()
	s.sets[*key] = set
	return set
}

// fold puts the sizes of a family into classes.
func (s *samples) fold(f sampleFamily) {
	if s.folded[f] {
		return
	}
	s.folded[f] = true
	var of []sampleKey
	for k := range s.sets {
		if k.sampleFamily == f {
			of = append(of, k)
		}
	}
	slices.SortFunc(of, compareKeys)
	for _, k := range of {
		set := s.sets[k]
		delete(s.sets, k)
		c := k.classified()
		s.set(&c).merge(set)
	}
}

func (s *samples) way(o *analysis.Operation) string {
	name := func(ref otf2.StringRef) string { return units.OrDash(s.defs.String(ref)) }
	if s.defs.String(o.Algo) == "" && s.defs.String(o.Proto) == "" && o.Channels == 0 {
		return ""
	}
	return fmt.Sprintf("%s/%s/%d", name(o.Algo), name(o.Proto), o.Channels)
}

// measure adds the figures of an operation to its set.
func (s *samples) measure(x *observation, set *sampleSet, members []analysis.Operation, t *timing.Whole) {
	var last otf2.Timestamp
	var calls, skew float64
	called, comparable, by := 0, (t.Source.HasPlace() || s.untimed) && !t.Mixed, 0
	for i := range members {
		m := &members[i]
		if m.Called {
			calls += float64(m.CallTime)
			called++
		}
		if i == 0 || m.Begin > last || m.Begin == last && s.of[m.Location] < s.of[members[by].Location] {
			last, by = m.Begin, i
		}
	}
	n := float64(len(members))
	x.values = [NumFigures]float64{t.Time, math.NaN(), math.NaN(), math.NaN()}
	if called == len(members) {
		x.values[FigureEnqueue] = calls / n
	}
	if !comparable {
		return
	}
	stated := 0.0
	for i := range members {
		m := &members[i]
		skew += float64(min(last, m.End) - min(m.Begin, m.End))
		if i != by && m.Stated && members[by].Stated {
			stated += float64(m.Uncertainty + members[by].Uncertainty)
		}
	}
	skew /= n * float64(max(t.Equal, 1))
	x.values[figureSkew], x.values[figureTransfer] = skew, t.Time-skew
	x.uncertainty = stated / n
	set.last[s.of[members[by].Location]]++
	set.arrivals++
}
