// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/naming"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Selection is a part of an archive; nil is all of it. It may be used concurrently.
type Selection struct {
	spec  Spec
	begin otf2.Timestamp // of the run

	ranks     map[int]bool                         // of the world; nil: all
	comms     map[otf2.CommRef]bool                // nil: all
	intervals map[otf2.LocationGroupRef][]interval // by process; nil: all times
	ordinals  map[sequence][]ordinals              // by number, those that begin in the intervals
	rows      map[otf2.LocationRef]row             // state of locations
	members   map[otf2.CommRef]bool                // communicators with a member among the ranks
	worldOf   map[otf2.LocationRef]int             // ranks of members
	processes map[otf2.LocationRef]otf2.LocationGroupRef
}

// row is the state of a location.
type row struct {
	outside bool // it belongs to no selected rank, or to a communicator that is not selected
	process otf2.LocationGroupRef
}

// interval is a stretch of time on a process, without its end.
type interval struct{ from, to otf2.Timestamp }

// sequence identifies a sequence in which operations are numbered; for messages that of the pair.
type sequence struct {
	comm otf2.CommRef
	name string
	tag  uint32 // of MPI messages
}

// ordinals is a range of ordinals, from first to before end.
type ordinals struct{ first, end uint64 }

// maxIntervals limits the phases of a selection on each process.
const maxIntervals = 10_000

// Description describes a selection in outputs.
type Description struct {
	Text  string  `json:"text"` // as in flags
	From  *uint64 `json:"from_ns"`
	To    *uint64 `json:"to_ns"` // from the begin of the run; null: no limit
	Ranks string  `json:"ranks"` // of the world; "": all
	Comm  string  `json:"communicators"`
	Phase string  `json:"phase"`
}

// Describe describes the selection; nil: everything is selected.
func (s *Selection) Describe() *Description {
	if s == nil {
		return nil
	}
	d := &Description{Text: s.spec.String(), Ranks: s.spec.Ranks, Comm: s.spec.Comm, Phase: s.spec.Phase}
	since := func(text string) *uint64 {
		p, err := parsePoint(text)
		if text == "" || err != nil {
			return nil
		}
		at := p.on(uint64(s.begin))
		at -= min(at, uint64(s.begin))
		return &at
	}
	d.From, d.To = since(s.spec.From), since(s.spec.To)
	return d
}

// At reports whether something other than an operation is selected, by its begin and location.
func (s *Selection) At(l otf2.LocationRef, t otf2.Timestamp) bool {
	return s == nil || s.includesTime(l, t)
}

func (s *Selection) includesTime(l otf2.LocationRef, t otf2.Timestamp) bool {
	r, known := s.rows[l]
	return known && !r.outside && s.during(r.process, t)
}

// Row reports whether anything on a location can be selected.
func (s *Selection) Row(l otf2.LocationRef) bool {
	if s == nil {
		return true
	}
	r, known := s.rows[l]
	return known && !r.outside
}

// during reports whether a time is in an interval of a process.
func (s *Selection) during(process otf2.LocationGroupRef, t otf2.Timestamp) bool {
	if s.intervals == nil {
		return true
	}
	all := s.intervals[process]
	i := sort.Search(len(all), func(i int) bool { return all[i].to > t })
	return i < len(all) && all[i].from <= t
}

// Operation reports whether an operation is selected: by when its first member began it, its communicator, and whether
// one of the selected ranks is a member, or an end of a message.
func (s *Selection) Operation(o *analysis.Operation) bool {
	if s == nil {
		return true
	}
	comm := o.Communicator.Ref
	if s.comms != nil && !s.comms[comm] {
		return false
	}
	message := facts.IsMessage(o.Function)
	if s.ranks != nil {
		if message {
			if !s.Rank(s.worldOf[o.Location]) && !s.peer(o) {
				return false
			}
		} else if !s.members[comm] {
			return false
		}
	}
	if s.intervals == nil {
		return true
	}
	return slices.ContainsFunc(s.ordinals[sequenceOf(o)],
		func(r ordinals) bool { return r.first <= o.Ordinal && o.Ordinal < r.end })
}

func sequenceOf(o *analysis.Operation) sequence {
	if facts.IsMessage(o.Function) {
		return sequence{o.Communicator.Ref, o.Sequence(), uint32(o.Ordinal >> 32)} // see facts.Operation
	}
	return sequence{comm: o.Communicator.Ref, name: o.Function}
}

// peer reports whether the other end of a message is a selected rank.
func (s *Selection) peer(o *analysis.Operation) bool {
	c := o.Communicator
	if o.Peer < 0 || o.Peer >= len(c.Members) {
		return false
	}
	at, ok := c.WorldIndex(s.worldOf, o.Peer)
	return ok && s.ranks[at]
}

// Shown reports whether a part of a selected operation belongs to one of the selected ranks. Rows of other ranks are
// not shown.
func (s *Selection) Shown(l otf2.LocationRef) bool {
	if s == nil || s.ranks == nil {
		return true
	}
	at, known := s.worldOf[l]
	return known && s.ranks[at]
}

// Rank reports whether rows of a rank of the world are shown.
func (s *Selection) Rank(rank int) bool { return s == nil || s.ranks == nil || s.ranks[rank] }

// Regions restricts the hooks already set in a reader to regions that are selected.
func (s *Selection) Regions(r *facts.Reader) {
	if s == nil {
		return
	}
	for _, hook := range []*func(*facts.Region){&r.Enter, &r.Leave} {
		if of := *hook; of != nil {
			*hook = func(region *facts.Region) {
				if s.At(region.Location, region.Begin) {
					of(region)
				}
			}
		}
	}
	if of := r.Sums; of != nil {
		r.Sums = func(sums *facts.NetSums) {
			if s.At(sums.Location, sums.Time) {
				of(sums)
			}
		}
	}
	if of := r.Begun; of != nil {
		r.Begun = func(d *facts.Details, in *facts.Region) {
			if in == nil || s.At(in.Location, in.Begin) {
				of(d, in)
			}
		}
	}
}

// Resolve finds a selection in an archive. An unknown name or an empty selection is an error, which lists the possible
// values. If times are limited it reads the archive once.
func Resolve(a *otf2.Archive, spec Spec) (*Selection, error) {
	if spec.Empty() {
		return nil, nil
	}
	comms := membership.Communicators(a.Defs)
	world, of := placement.Ranks(a.Defs, comms)
	s := &Selection{spec: spec, begin: analysis.FirstEvent(a), worldOf: of, processes: placement.Processes(a.Defs),
		rows: make(map[otf2.LocationRef]row)}
	if err := cmp.Or(s.chooseRanks(world), s.chooseComms(comms)); err != nil {
		return nil, err
	}
	s.chooseRows(a.Defs, comms, world)
	if err := s.chooseTimes(a); err != nil {
		return nil, err
	}
	if s.intervals == nil {
		return s, nil
	}
	return s, s.number(a, comms)
}

func (s *Selection) chooseRanks(world []placement.Rank) error {
	stretches, err := parseRanks(s.spec.Ranks)
	if err != nil || stretches == nil {
		return err
	}
	s.ranks = make(map[int]bool)
	for _, r := range stretches {
		if r.last >= len(world) {
			return fmt.Errorf("--rank %s: there is no rank %d, the job has ranks 0-%d", s.spec.Ranks,
				max(r.first, len(world)), len(world)-1)
		}
		for i := r.first; i <= r.last; i++ {
			s.ranks[i] = true
		}
	}
	return nil
}

// fitting returns the names that a pattern selects: the identical name, or otherwise those that it matches.
func fitting(pattern string, names []string) (fit []string, err error) {
	if slices.Contains(names, pattern) {
		return []string{pattern}, nil
	}
	for _, name := range names {
		matches, err := path.Match(pattern, name)
		if err != nil {
			return nil, err
		}
		if matches {
			fit = append(fit, name)
		}
	}
	return fit, nil
}

func (s *Selection) chooseComms(comms map[otf2.CommRef]*membership.Communicator) error {
	if s.spec.Comm != "" {
		id, noID := strconv.ParseUint(s.spec.Comm, 10, 32)
		s.comms = make(map[otf2.CommRef]bool)
		var names []string
		for _, ref := range slices.Sorted(maps.Keys(comms)) {
			if c := comms[ref]; !c.Self {
				names = append(names, c.Name)
			}
		}
		fit, err := fitting(s.spec.Comm, names)
		if err != nil {
			return fmt.Errorf("--comm: %q is not a pattern: * stands for any characters, ? for one", s.spec.Comm)
		}
		for ref, c := range comms {
			if !c.Self && (slices.Contains(fit, c.Name) || noID == nil && uint64(ref) == id) {
				s.comms[ref] = true
			}
		}
		if len(s.comms) == 0 {
			return fmt.Errorf("--comm %s: there is no such communicator; there are %s", s.spec.Comm, list(names))
		}
	}
	if s.ranks == nil {
		return nil
	}
	s.members = make(map[otf2.CommRef]bool)
	for ref, c := range comms {
		for rank := range c.Members {
			if at, ok := c.WorldIndex(s.worldOf, rank); ok && s.ranks[at] {
				s.members[ref] = true
			}
		}
	}
	return nil
}

// mostNames limits the names listed in an error.
const mostNames = 8

func list(names []string) string {
	slices.Sort(names)
	names = slices.Compact(names)
	switch n := len(names); {
	case n == 0:
		return "none"
	case n > mostNames:
		return strings.Join(names[:mostNames], ", ") + fmt.Sprintf(" and %d more", n-mostNames)
	}
	return strings.Join(names, ", ")
}

// chooseRows determines the locations of selected ranks and communicators. Threads, kernels and sensors belong to no
// communicator.
func (s *Selection) chooseRows(defs *otf2.Definitions, comms map[otf2.CommRef]*membership.Communicator,
	world []placement.Rank) {
	chosen := make(map[otf2.LocationGroupRef]bool)
	for i, r := range world {
		chosen[r.Process] = chosen[r.Process] || s.Rank(i)
	}
	owners, networks := membership.ByLocation(defs, comms), placement.NetworkRows(defs)
	type labeled struct {
		process otf2.LocationGroupRef
		label   string
	}
	of := make(map[labeled]otf2.CommRef)
	for l, all := range owners {
		if d := defs.Location(l); d != nil {
			label, _ := naming.Label(defs.String(d.Name))
			of[labeled{s.processes[l], label}] = all[0].Ref
		}
	}
	for i := range defs.Locations {
		d := &defs.Locations[i]
		r := row{process: s.processes[d.Self]}
		at, member := s.worldOf[d.Self]
		if member {
			r.outside = !s.Rank(at)
		} else {
			r.outside = s.ranks != nil && !chosen[r.process]
		}
		if s.comms != nil {
			label, _ := naming.Label(defs.String(d.Name))
			beside, known := of[labeled{r.process, label}]
			switch network, isNetwork := networks[d.Self]; {
			case member:
				r.outside = r.outside || !slices.ContainsFunc(
					owners[d.Self], func(c *membership.Communicator) bool { return s.comms[c.Ref] })
			case isNetwork:
				r.outside = r.outside || !s.comms[network.Comm]
			case known:
				r.outside = r.outside || !s.comms[beside]
			}
		}
		s.rows[d.Self] = r
	}
}

// chooseTimes determines the intervals of the processes.
func (s *Selection) chooseTimes(a *otf2.Archive) error {
	whole := interval{0, math.MaxUint64}
	for _, f := range []struct {
		name, text string
		to         *otf2.Timestamp
	}{{"--from", s.spec.From, &whole.from}, {"--to", s.spec.To, &whole.to}} {
		if f.text == "" {
			continue
		}
		p, err := parsePoint(f.text)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		*f.to = otf2.Timestamp(p.on(uint64(s.begin)))
	}
	if whole.to <= whole.from {
		return fmt.Errorf("--from %s --to %s: nothing is between them", s.spec.From, s.spec.To)
	}
	if s.spec.Phase == "" {
		if s.spec.From == "" && s.spec.To == "" {
			return nil
		}
		s.intervals = make(map[otf2.LocationGroupRef][]interval)
		for _, process := range s.processes {
			s.intervals[process] = []interval{whole}
		}
		return nil
	}
	return s.choosePhases(a, whole)
}

// choosePhases determines the intervals of phases, process by process.
func (s *Selection) choosePhases(a *otf2.Archive, whole interval) error {
	name, nth := parsePhase(s.spec.Phase)
	regions := naming.PhaseRegions(a.Defs)
	names := slices.Collect(maps.Values(regions))
	fit, _ := fitting(name, names) // an invalid pattern matches nothing
	wanted := make(map[otf2.RegionRef]bool)
	for ref, n := range regions {
		wanted[ref] = slices.Contains(fit, n)
	}
	if len(fit) == 0 {
		if len(names) == 0 {
			return fmt.Errorf("--phase %s: the program marked no phases", s.spec.Phase)
		}
		return fmt.Errorf("--phase %s: there is no such phase; there are %s", s.spec.Phase, list(names))
	}
	lanes := analysis.LanesOf(a.Defs)
	found := make([]map[otf2.LocationGroupRef][]interval, len(lanes))
	seen := make([]map[otf2.LocationGroupRef]uint64, len(lanes))
	most := uint64(0)
	analysis.ReadRegions(a, lanes, func(i int, r *facts.Reader) {
		found[i], seen[i] = make(map[otf2.LocationGroupRef][]interval), make(map[otf2.LocationGroupRef]uint64)
		inside := make(map[otf2.LocationRef]int) // depth of phases nested in one of their kind
		r.Enter = func(region *facts.Region) {
			if wanted[region.Region] {
				inside[region.Location]++
			}
		}
		r.Leave = func(region *facts.Region) {
			if !wanted[region.Region] {
				return
			}
			if inside[region.Location]--; inside[region.Location] > 0 {
				return
			}
			process := s.processes[region.Location]
			seen[i][process]++
			if nth != 0 && seen[i][process] != nth || len(found[i][process]) > maxIntervals {
				return
			}
			found[i][process] = append(found[i][process],
				interval{max(region.Begin, whole.from), min(max(region.End, region.Begin+1), whole.to)})
		}
	})
	s.intervals = make(map[otf2.LocationGroupRef][]interval)
	for i := range found {
		for process, all := range found[i] {
			if len(all) > maxIntervals {
				return fmt.Errorf(
					"--phase %s: a rank has more than %d of them: say which by --phase %s:N, or by --from and --to",
					s.spec.Phase, maxIntervals, name)
			}
			s.intervals[process] = all // overlapping ones, of several threads, are searched in the order of their ends
		}
		for _, n := range seen[i] {
			most = max(most, n)
		}
	}
	if len(s.intervals) == 0 {
		return fmt.Errorf("--phase %s: no rank has it; the most that one has is %d", s.spec.Phase, most)
	}
	return nil
}

// bounds counts, by interval, the operations of a sequence that some member began before the interval, and before its
// end.
type bounds struct{ first, end []uint64 }

// addOperation takes an operation that a member began at t. What is before one interval is before all later ones as
// well: ordinalsOf adds that.
func (b *bounds) addOperation(all []interval, t otf2.Timestamp, ordinal uint64) {
	if missing := len(all) - len(b.first); missing > 0 {
		b.first, b.end = append(b.first, make([]uint64, missing)...), append(b.end, make([]uint64, missing)...)
	}
	if k := sort.Search(len(all), func(k int) bool { return all[k].from > t }); k < len(all) {
		b.first[k] = max(b.first[k], ordinal+1)
	}
	if k := sort.Search(len(all), func(k int) bool { return all[k].to > t }); k < len(all) {
		b.end[k] = max(b.end[k], ordinal+1)
	}
}

func (b *bounds) addBounds(o *bounds) {
	for k := range o.first {
		if k == len(b.first) {
			b.first, b.end = append(b.first, 0), append(b.end, 0)
		}
		b.first[k], b.end[k] = max(b.first[k], o.first[k]), max(b.end[k], o.end[k])
	}
}

// ordinalsOf returns the ordinals in the intervals.
func (b *bounds) ordinalsOf() (all []ordinals) {
	var first, end uint64
	for k := range b.first {
		first, end = max(first, b.first[k]), max(end, b.end[k])
		if end > first {
			all = append(all, ordinals{first, end})
		}
	}
	return all
}

// callBegins remembers when operations were called.
type callBegins struct {
	regions   map[otf2.RegionRef]string
	processes map[otf2.LocationRef]otf2.LocationGroupRef
	table     analysis.CallTable[otf2.Timestamp]
}

func (c *callBegins) enter(r *facts.Region) {
	if _, called := c.regions[r.Region]; called && r.Event != 0 && !r.Graph {
		c.table.Put(analysis.CallKey{Process: c.processes[r.Location], Event: r.Event}, r.Begin)
	}
}

// of returns when an operation was called, or when it began if that is unknown, as for replayed ones.
func (c *callBegins) of(process otf2.LocationGroupRef, o *analysis.Operation) otf2.Timestamp {
	if o.Parent != 0 {
		if at := c.table.Take(analysis.CallKey{Process: process, Event: o.Parent}); at != 0 {
			return at
		}
	}
	return o.Begin
}

// number finds the ordinals of the operations whose first member begins them in an interval. Members begin a
// sequence's operations in order, so the operations that some member began before a point in time are all those up to
// one ordinal.
func (s *Selection) number(a *otf2.Archive, comms map[otf2.CommRef]*membership.Communicator) error {
	lanes := analysis.LanesOf(a.Defs)
	sums := make([]map[sequence]*bounds, len(lanes))
	readers := make([]*analysis.OperationReader, len(lanes))
	calls := make([]callBegins, len(lanes))
	firsts, lasts := make([]otf2.Timestamp, len(lanes)), make([]otf2.Timestamp, len(lanes))
	for i := range lanes {
		sums[i], firsts[i] = make(map[sequence]*bounds), otf2.UndefinedTimestamp
		readers[i] = analysis.NewOperationReader(a.Defs, comms, func(o *analysis.Operation) {
			firsts[i], lasts[i] = min(firsts[i], o.Begin), max(lasts[i], o.Begin)
			process := s.processes[o.Location]
			if all := s.intervals[process]; len(all) > 0 {
				keyed.Entry(sums[i], sequenceOf(o)).addOperation(all, calls[i].of(process, o), o.Ordinal)
			}
		})
		calls[i].regions, calls[i].processes = naming.CallRegions(a.Defs), s.processes
		if s.spec.Phase != "" { // the phase's operations may run later
			readers[i].Enter = calls[i].enter
		}
	}
	analysis.ReadLanes(a, lanes, func(i int, ev *otf2.Event, none []struct{}) []struct{} {
		readers[i].Event(ev)
		return none
	}, func(*struct{}) {})
	joined := make(map[sequence]*bounds)
	for _, lane := range sums {
		for of, b := range lane {
			keyed.Entry(joined, of).addBounds(b)
		}
	}
	s.ordinals = make(map[sequence][]ordinals, len(joined))
	found := false
	for of, b := range joined {
		s.ordinals[of] = b.ordinalsOf()
		found = found || len(s.ordinals[of]) > 0 && (s.comms == nil || s.comms[of.comm])
	}
	if first, last := slices.Min(append(firsts, otf2.UndefinedTimestamp)),
		slices.Max(append(lasts, 0)); !found && last > 0 {
		return fmt.Errorf("%s: no operation begins in that time: the first begins after %s, the last after %s",
			s.spec.String(), units.Time(float64(first-s.begin)), units.Time(float64(last-s.begin)))
	}
	return nil
}
