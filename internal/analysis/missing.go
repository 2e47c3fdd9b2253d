// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// MPI collectives that some members of an archive lack. All members of a communicator call its collectives in one
// order, so a missing call shows in the functions and roots of the other members' calls, and in their times: nobody
// leaves an Allreduce before the last member has entered it.

// calledOnce is a member's call of a collective.
type calledOnce struct {
	function   string
	root       uint32
	begin, end otf2.Timestamp
	together   bool // nobody leaves it before all have come
}

func (c *calledOnce) same(o *calledOnce) bool { return c.function == o.function && c.root == o.root }

// Open opens an archive for analysis, and finds calls that some members lack, see FindMissingCalls. If the archive's
// definitions are damaged, it returns what could be read, and an error.
func Open(path string, opts *otf2.ReadOptions) (*otf2.Archive, error) {
	a, err := otf2.Open(path, opts)
	if a != nil {
		FindMissingCalls(a)
	}
	return a, err
}

// FindMissingCalls finds the MPI collectives that some members of an archive lack, and adds them to the archive's
// definitions and properties: they are counted on all members and compared on none. The same holds for calls that
// cannot be decided. Call it before anything else is read from the archive's events. It does not report files that
// cannot be read to their end; the next reader of the events does.
func FindMissingCalls(a *otf2.Archive) []property.Stretch {
	comms := membership.Communicators(a.Defs)
	members := make(map[otf2.CommRef][][]calledOnce)
	for ref, c := range comms {
		if c.Calls && !c.Self && len(c.Members) > 1 {
			members[ref] = make([][]calledOnce, len(c.Members))
		}
	}
	if len(members) == 0 {
		return nil
	}
	lanes := LanesOf(a.Defs)
	readers := make([]*OperationReader, len(lanes))
	for i := range lanes {
		readers[i] = NewOperationReader(a.Defs, comms, func(o *Operation) {
			if of := members[o.Comm]; of != nil && !o.Message {
				of[o.Rank] = append(of[o.Rank], calledOnce{o.Function, o.Root, o.Begin, o.End, isTogether(o)})
			}
		})
	}
	_ = ReadLanes(a, lanes, func(i int, ev *otf2.Event, none []struct{}) []struct{} {
		readers[i].Event(ev)
		return none
	}, func(*struct{}) {})

	var missing []membership.Missing
	var stretches []property.Stretch
	for _, d := range a.Defs.Comms {
		if of := members[d.Self]; of != nil {
			m := matchCalls(of)
			missing = append(missing, m.missing(comms[d.Self])...)
			stretches = append(stretches, m.stretches(comms[d.Self])...)
		}
	}
	if len(stretches) == 0 {
		return nil
	}
	membership.DefineMissing(a.Defs, missing)
	addStretches(a.Anchor, stretches)
	return stretches
}

// isHandling reports whether a collective creates or frees a handle, in which not all members need to take part.
func isHandling(function string) bool {
	return strings.Contains(function, "HANDLE") || strings.Contains(function, "ALLOCATE")
}

// isTogether reports whether nobody leaves a collective before all members have come to it.
func isTogether(o *Operation) bool {
	return o.Root == otf2.CollectiveRootNone && o.Source == facts.SourceCall &&
		!strings.HasSuffix(o.Function, "SCAN") && !strings.HasPrefix(o.Function, "DE")
}

// addStretches adds stretches to those that the archive's properties report as recorded differently.
func addStretches(a *otf2.Anchor, all []property.Stretch) {
	ps := property.Read(a)
	known := len(ps.Numbered(property.Differ))
	n, _ := ps.Number(property.Differ)
	replaced := []string{property.Differ.Key(), property.Complete}
	a.Properties = slices.DeleteFunc(slices.Clone(a.Properties),
		func(p otf2.Property) bool { return slices.Contains(replaced, p.Name) })
	a.Properties = append(a.Properties, otf2.Property{Name: property.Complete, Value: "false"},
		otf2.Property{Name: property.Differ.Key(), Value: strconv.FormatUint(n+uint64(len(all)), 10)})
	for i, s := range all {
		text := fmt.Sprintf("comm %d %s %d-%d %q: %s", s.Comm, s.Function, s.First, s.Last, s.Name, s.Detail)
		a.Properties = append(a.Properties, otf2.Property{Name: property.Differ.Nth(known + i).Key(), Value: text})
	}
}

// callMatch is the result of matching the calls of a communicator.
type callMatch struct {
	members [][]calledOnce
	next    []int // index of each member's next call
	// vague counts, for each member, its latest calls of one function that could each be the one that the others made
	// next.
	vague   []uint64
	steps   []callStep
	stopped bool // further calls cannot be matched

	counted map[string]uint64 // calls, by function
	lost    []lostCall
	unsure  []property.Stretch // it is uncertain which members' calls belong together
}

// callStep is one call with the members that made it and those that did not.
type callStep struct {
	call          *calledOnce
	with, without []int
	vague         uint64 // number of calls before it, one of which may be the missing one
	early         bool   // some members ended it before others began it: clocks differ, or each lacks the other's call
}

// lostCall is a call that some members lack.
type lostCall struct {
	function string
	ordinal  uint64
	ranks    []int
}

// Limits on missing calls.
const (
	// mostLost: at most one call in this many may be missing, and two more. With more, the times are not trusted,
	// because clocks may differ.
	mostLost   = 4
	mostInARow = 8 // for one member

	mostStretches = 256 // listed individually for a communicator
)

// matchCalls finds which calls of the members belong together. A member without calls counts as not recorded. If all
// made the same calls, none is reported missing unless the times clearly show that different ones are missing.
func matchCalls(members [][]calledOnce) *callMatch {
	m := &callMatch{members: members, next: make([]int, len(members)), vague: make([]uint64, len(members)),
		counted: make(map[string]uint64)}
	for m.step() {
	}
	m.mergeSteps()
	all, lost, early := 0, 0, 0
	segment := make(map[string]*property.Stretch) // calls since the last one that is made together, by function
	lacking := make(map[string]bool)              // functions in segment with calls that some members lack
	for _, s := range m.steps {
		function, n := s.call.function, m.counted[s.call.function]
		m.counted[function]++
		all += len(s.with)
		switch {
		case !s.call.together && segment[function] == nil:
			segment[function] = &property.Stretch{Function: function, First: n, Last: n,
				Detail: "ranks did not record as many, and which they lack cannot be told"}
		case !s.call.together:
			segment[function].Last = n
		case s.early:
			early++
			m.unsure = append(m.unsure, property.Stretch{Function: function, First: n, Last: n,
				Detail: "ranks' times contradict each other", Unsure: true})
		case len(s.without) == 0:
			m.endSegment(segment, lacking, false)
		case s.vague > 0:
			m.unsure = append(m.unsure, property.Stretch{Function: function, First: n - min(n, s.vague), Last: n,
				Detail: "one of these is " + detailOf(s.without)})
		}
		if len(s.without) > 0 {
			m.lost = append(m.lost, lostCall{function, n, s.without})
			lacking[function] = true
		}
		if !isHandling(function) {
			lost += len(s.without)
		}
	}
	m.endSegment(segment, lacking, m.stopped)
	strange := lost > 2+all/mostLost || lost > 0 && early > 0 || len(m.lost)+len(m.unsure) > mostStretches
	switch {
	case m.equal() && len(m.lost) > 0 && (m.isShifted() || len(m.unsure) > 0): // clocks differ, rather than two losses
		m.lost, m.unsure = nil, nil
	case !strange && !m.stopped && early <= 2+len(m.steps)/mostLost:
	case m.equal():
		m.lost, m.unsure = nil, nil
	default:
		m.giveUp(strange)
	}
	return m
}

// isShifted reports whether the members made no call together before the first one that some lack, and none after the
// last one. That is the picture if all made the same calls, and clocks differ by more than the time between two calls.
func (m *callMatch) isShifted() bool {
	lacks := func(s callStep) bool { return len(s.without) > 0 }
	together := func(s callStep) bool { return s.call.together && !s.early && len(s.without) == 0 }
	first := slices.IndexFunc(m.steps, lacks)
	if first < 0 || slices.ContainsFunc(m.steps[:first], together) {
		return false
	}
	last := first
	for i, s := range m.steps {
		if lacks(s) {
			last = i
		}
	}
	return !slices.ContainsFunc(m.steps[last:], together)
}

// endSegment ends a segment of calls that are not made together. If members lack one of several calls of a function,
// all these calls are unsure; with all, the calls of every function are.
func (m *callMatch) endSegment(segment map[string]*property.Stretch, lacking map[string]bool, all bool) {
	for _, function := range slices.Sorted(maps.Keys(segment)) {
		if s := segment[function]; all || lacking[function] && s.First < s.Last {
			m.unsure = append(m.unsure, *s)
		}
	}
	clear(segment)
	clear(lacking)
}

// mergeSteps merges two adjacent steps that complement each other: either all members made the call and some clocks
// differ, or two groups each lack the other's call.
func (m *callMatch) mergeSteps() {
	merged := m.steps[:0]
	for _, s := range m.steps {
		if n := len(merged); n > 0 {
			before := &merged[n-1]
			if before.call.same(s.call) && slices.Equal(before.with, s.without) &&
				slices.Equal(before.without, s.with) {
				*before = callStep{call: before.call, with: slices.Concat(before.with, s.with), early: true}
				continue
			}
		}
		merged = append(merged, s)
	}
	m.steps = merged
}

// head returns the call that a member makes further calls after its next one, nil if there is none.
func (m *callMatch) head(rank, further int) *calledOnce {
	if i := m.next[rank] + further; i < len(m.members[rank]) {
		return &m.members[rank][i]
	}
	return nil
}

// step matches the call that ended first with the other members' calls of it. It returns false if there are no more
// calls, or they cannot be matched.
func (m *callMatch) step() bool {
	var first *calledOnce
	for rank := range m.members {
		if h := m.head(rank, 0); h != nil && (first == nil || h.end < first.end) {
			first = h
		}
	}
	if first == nil {
		return false
	}
	var with, without []int
	for rank, calls := range m.members {
		switch h := m.head(rank, 0); {
		case len(calls) == 0:
		case h != nil && h.same(first) && (!first.together || h.begin <= first.end):
			with = append(with, rank)
		default:
			without = append(without, rank)
		}
	}
	missed := len(without)
	later := slices.DeleteFunc(without, func(rank int) bool {
		h := m.head(rank, 0)
		early := h != nil && h.same(first) && !m.isLater(h, with, false)
		if early { // clocks differ
			with = append(with, rank)
		}
		return early
	})
	for _, rank := range later {
		if h := m.head(rank, 0); h != nil && !isHandling(first.function) && !m.mayLack(rank, first, with) {
			m.stopped = true
			return false
		}
	}
	slices.Sort(with)
	s := callStep{call: first, with: with, without: later, early: len(later) < missed}
	for _, rank := range later {
		s.vague = max(s.vague, m.vague[rank])
		if m.vague[rank] > 0 { // others of these calls may be missing, too
			m.vague[rank]++
		}
	}
	for _, rank := range with {
		if m.isLater(m.head(rank, 0), with, true) {
			m.vague[rank]++
		} else {
			m.vague[rank] = 0
		}
	}
	for _, rank := range with {
		m.next[rank]++
	}
	m.steps = append(m.steps, s)
	return true
}

// isLater reports whether c may be the call that the members in with make after the current one. With sameOnly, that
// call must also have the same function and root.
func (m *callMatch) isLater(c *calledOnce, with []int, sameOnly bool) bool {
	return slices.ContainsFunc(with, func(rank int) bool {
		next := m.head(rank, 1)
		return next != nil && c.end >= next.begin && (!sameOnly || c.together && next.same(c))
	})
}

// mayLack reports whether a member may lack the current call c, as opposed to the others lacking the call that the
// member makes now.
func (m *callMatch) mayLack(rank int, c *calledOnce, with []int) bool {
	h := m.head(rank, 0)
	if !h.same(c) && h.begin <= c.begin && m.comes(c, rank) {
		return false
	}
	return c.together && h.begin > c.end || slices.ContainsFunc(with, func(other int) bool { return m.comes(h, other) })
}

// comes reports whether a member makes a call soon after its next one.
func (m *callMatch) comes(c *calledOnce, rank int) bool {
	for further := 1; further <= mostInARow; further++ {
		if next := m.head(rank, further); next != nil && next.same(c) {
			return true
		}
	}
	return false
}

// giveUp excludes the calls that have not been matched from comparison; with all, every call.
func (m *callMatch) giveUp(all bool) {
	if all {
		m.lost, m.unsure, m.counted = nil, nil, make(map[string]uint64)
		clear(m.next)
	} else if steps := len(m.steps); steps > 0 {
		function := m.steps[steps-1].call.function
		n := m.counted[function]
		m.unsure = append(m.unsure, property.Stretch{Function: function, First: n - min(n, slices.Max(m.vague)),
			Last: n, Detail: "which of these ranks lack cannot be told"})
	}
	most := make(map[string]uint64)
	for rank, calls := range m.members {
		left := make(map[string]uint64)
		for i := m.next[rank]; i < len(calls); i++ {
			left[calls[i].function]++
			most[calls[i].function] = max(most[calls[i].function], left[calls[i].function])
		}
	}
	for function, n := range most {
		first := m.counted[function]
		m.unsure = append(m.unsure, property.Stretch{
			Function: function, First: first, Last: first + min(2*n, math.MaxUint32),
			Detail: "members made different calls: from here on none are compared",
		})
	}
	slices.SortFunc(m.unsure, func(a, b property.Stretch) int {
		return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Function, b.Function))
	})
}

// equal reports whether all members made the same calls.
func (m *callMatch) equal() bool {
	var first []calledOnce
	for _, calls := range m.members {
		switch {
		case len(calls) == 0:
		case first == nil:
			first = calls
		case !slices.EqualFunc(first, calls, func(a, b calledOnce) bool { return a.same(&b) }):
			return false
		}
	}
	return true
}

// missing lists the calls that members lack.
func (m *callMatch) missing(c *membership.Communicator) (all []membership.Missing) {
	type sequence struct {
		rank     int
		function string
	}
	at := make(map[sequence]int)
	for _, l := range m.lost {
		for _, rank := range l.ranks {
			of := sequence{rank, l.function}
			if _, known := at[of]; !known {
				at[of] = len(all)
				all = append(all, membership.Missing{Location: c.Members[rank], Comm: c.Ref, Function: l.function})
			}
			all[at[of]].Ordinals = append(all[at[of]].Ordinals, l.ordinal)
		}
	}
	return all
}

// stretches lists the calls that are not to be compared, with the reason.
func (m *callMatch) stretches(c *membership.Communicator) (all []property.Stretch) {
	for _, l := range m.lost {
		all = append(all, property.Stretch{Function: l.function, First: l.ordinal, Last: l.ordinal,
			Detail: detailOf(l.ranks)})
	}
	all = append(all, m.unsure...)
	for i := range all {
		all[i].Comm, all[i].Name = c.Ref, c.Name
	}
	return all
}

// detailOf says which ranks lack a call.
func detailOf(ranks []int) string {
	shown := make([]string, min(len(ranks), 8))
	for i := range shown {
		shown[i] = strconv.Itoa(ranks[i])
	}
	more := ""
	if n := len(ranks) - len(shown); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return "not in the archive of rank " + strings.Join(shown, ", ") + more
}
