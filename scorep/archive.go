// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/experiment"
	"github.com/nccl-otf2/nccl-otf2/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// archive is one run on its way into an OTF2 archive.
type archive struct {
	run       *run
	world     *world
	kept      map[*instance][]slot // of ranks without data
	instances []*instance          // those that get definitions: of more than one rank
	opts      *UnifyOptions
	into      *merger // nil: it is an archive of its own

	networks []*network
	windows  map[*part][]*network // of its local window ids
	origins  *origins
	pauses   []pause
	leftOut  map[*part]map[uint32]bool // rows of measurements of a GPU that another process's are taken of

	*definitions
	locations   []*location
	ids         map[*part]map[uint32]*location
	maps        map[*part][]*otf2.MappingTable
	chunk       uint64                       // of event files
	marked      map[*part]*otf2.MappingTable // of regions, for rows whose calls are marked as forwarded, see merger
	first, last uint64                       // of all events, corrected; first > last if there are none
	spans       []span                       // that first and last come from
	markers     []marker
	properties  properties
	differences []Difference
	problems    []string
	damaged     []string // of the problems, and what of the directory was damaged: what should be in the archive, and is not

	sync         *ClockSync // how the hosts' clocks were brought together, nil: they were not
	syncProblems []string
}

// span is a stretch of time on a process's own clock.
type span struct {
	part *part
	lifespan
}

// location is one location of the archive.
type location struct {
	otf2.Location
	number uint32
	part   *part                // nil: of a process without data
	source *experiment.Location // nil: kept for a communicator rank without events
	typ    otf2.LocationType
	name   string
	gpu    int
	marked bool // what was forwarded of it is in another row, too
}

// locationID builds the id of a location: the local number in the upper half, the process's index in
// the lower one, as Score-P does.
func locationID(number uint32, process int) otf2.LocationRef {
	return otf2.LocationRef(uint64(number)<<32 | uint64(process))
}

func (p *part) location(number uint32) otf2.LocationRef { return locationID(p.base+number, p.index) }

// location is the empty location of processes without data.
func (pl *place) location() otf2.LocationRef { return locationID(pl.base, pl.index) }

func newArchive(r *run, opts *UnifyOptions, into *merger) (*archive, error) {
	a := &archive{
		run: r, opts: opts, into: into, definitions: newDefinitions(),
		ids:    make(map[*part]map[uint32]*location),
		maps:   make(map[*part][]*otf2.MappingTable),
		marked: make(map[*part]*otf2.MappingTable),
		first:  math.MaxUint64,
	}
	var others []*instance
	for _, in := range r.instances {
		if in.nranks > 1 && !in.unsized {
			a.instances = append(a.instances, in)
		} else {
			others = append(others, in)
		}
	}
	nameInstances(slices.Concat(a.instances, others))
	a.world, a.kept = arrange(r)
	if into != nil {
		into.begin(a)
	}
	a.origins = findOrigins(r)
	if err := a.planNetworks(); err != nil {
		return nil, err
	}
	a.chooseGPUMetrics()
	a.locate()
	return a, nil
}

// nextGroup is the id of a further PROCESS location group.
func (a *archive) nextGroup() int {
	n := len(a.world.places)
	if a.into != nil {
		n = int(a.from.locationGroup)
		for _, pl := range a.world.places {
			n = max(n, pl.index+1)
		}
	}
	return n
}

// locate lists the locations of all processes, and those kept for ranks without events.
func (a *archive) locate() {
	next := make(map[*part]uint32)
	for _, p := range a.run.parts {
		a.ids[p] = make(map[uint32]*location)
		threads := 0
		for i := range p.process.Locations {
			l := &p.process.Locations[i]
			next[p] = max(next[p], l.Number+1)
			if a.leftOut[p][l.Number] {
				continue
			}
			do, name := keepRow, rowName(l)
			if a.into != nil {
				do, name = a.into.row(p, l)
			}
			switch do {
			case leaveRow:
				a.into.threadsLeftOut++
				continue
			case markRow:
				a.into.threadsMarked++
			}
			row := a.add(p, l.Number, name, l.Type, gpuOfLocation(p, l))
			row.source, row.marked = l, do == markRow
			if l.Type == otf2.LocationTypeCPUThread {
				threads++
			}
		}
		if threads == 0 && (a.into == nil || a.into.pairs[p] == nil) { // readers expect one in every process
			a.add(p, next[p], "Thread 0", otf2.LocationTypeCPUThread, 0)
			next[p]++
		}
	}
	idle := make(map[device][]*location) // of communicator ranks without operations
	for _, in := range a.instances {
		taken := make(map[device]int)
		for m := range in.present() {
			c := m.shard()
			if c.Location >= 0 {
				m.location = a.ids[m.part][uint32(c.Location)].Self
				continue
			}
			// One row of a GPU stands for all of them, whatever their number: each row needs files.
			dev := device{m.part, gpuOf(m.part, m.comm)}
			nth := taken[dev]
			taken[dev]++
			if nth == len(idle[dev]) {
				idle[dev] = append(idle[dev], a.add(m.part, next[m.part], fmt.Sprintf("%s"+regions.RankRow+"%d", in.name, c.Rank), otf2.LocationTypeAcceleratorStream, dev.gpu))
				next[m.part]++
			} else {
				idle[dev][nth].name = noOperations
			}
			m.location = idle[dev][nth].Self
		}
	}
	for _, n := range a.networks {
		if n.of == nil {
			continue
		}
		for m := range n.of.present() {
			if c := m.shard(); c.Location >= 0 {
				m.location = a.ids[m.part][uint32(c.Location)].Self
			} else if m.location == 0 { // it has no operations to show: its process stands for it
				m.location = a.firstLocation(m.part)
			}
		}
	}
	for _, pl := range a.world.places {
		if pl.part == nil {
			a.locations = append(a.locations, &location{
				Location: otf2.Location{Self: pl.location(), Group: otf2.LocationGroupRef(pl.index)},
				name:     "no data", typ: otf2.LocationTypeCPUThread,
			})
		}
	}
	slices.SortFunc(a.locations, func(x, y *location) int { return cmp.Compare(x.Self, y.Self) })
}

// noOperations names the row of a GPU that stands for several communicator ranks which have nothing to show.
const noOperations = "no operations"

func (a *archive) add(p *part, number uint32, name string, typ otf2.LocationType, gpu int) *location {
	l := &location{
		Location: otf2.Location{Self: p.location(number), Group: otf2.LocationGroupRef(p.index)},
		number:   number, part: p, typ: typ, name: name, gpu: gpu,
	}
	a.locations = append(a.locations, l)
	a.ids[p][number] = l
	return l
}

// rowName is the name of a row: who has it, or, where several communicator ranks had it, that it is theirs. Threads are
// numbered, whoever they are.
func rowName(l *experiment.Location) string {
	if !l.Shared() || l.Kind == experiment.KindThread {
		return l.Name
	}
	shared := fmt.Sprintf("shared %d", l.Number)
	switch l.Kind {
	case experiment.KindEnqueue:
		return regions.EnqueueRow + shared
	case experiment.KindNetSend:
		return shared + regions.SendRow
	case experiment.KindNetRecv:
		return shared + regions.RecvRow
	case experiment.KindChannel:
		return shared + l.Name[max(0, strings.LastIndex(l.Name, regions.ChannelRow)):]
	}
	return shared
}

// firstLocation is the process's location of the lowest number: its first application thread.
func (a *archive) firstLocation(p *part) otf2.LocationRef {
	var first *location
	for _, l := range a.ids[p] {
		if first == nil || l.number < first.number {
			first = l
		}
	}
	if first == nil { // all that the process has are threads that the other archive has
		return a.into.pairs[p].threads[0].location
	}
	return first.Self
}

// define builds all definitions. The event files must have been placed: their counts and times are
// part of the definitions.
func (a *archive) define() {
	a.setClock()
	a.text("")
	a.attributes()
	tree := newSystemTree(a.definitions, a.world, a.into)
	a.defineLocations(tree)
	a.defineRegions()
	a.defineMetrics(tree)
	a.defineParadigms()
	a.defineComms()
	a.nameRanks()
	a.mapIDs()
	a.pauses = findPauses(a.instances)
	a.differences = compareSequences(a.instances)
	a.describe()
	a.mark()
}

// setClock says what range the times are in.
func (a *archive) setClock() {
	if a.first > a.last {
		a.first, a.last = a.run.begin(), a.run.begin()
	}
	if a.into != nil {
		a.into.setClock(a)
		return
	}
	a.Clock = otf2.ClockProperties{Resolution: 1_000_000_000, Offset: a.first, Length: a.last - a.first, Realtime: a.first}
}

// defineLocations makes the PROCESS groups, 0…P−1, then the ACCELERATOR groups, and puts every
// location into its group.
func (a *archive) defineLocations(t *systemTree) {
	for _, pl := range a.world.places {
		if a.into != nil && a.into.pairs[pl.part] != nil {
			continue
		}
		node := t.unknown
		if pl.part != nil {
			node = t.host(pl.part)
		}
		group := a.locationGroup(pl.name, otf2.LocationGroupTypeProcess, node, otf2.UndefinedLocationGroup)
		if pl.part != nil {
			a.LocationGroupProperties = append(a.LocationGroupProperties, otf2.LocationGroupProperty{
				LocationGroup: group, Name: a.text(facts.PropPID.Key()), Type: otf2.TypeUint64, Value: otf2.Value(pl.part.process.PID),
			})
			continue
		}
		ranks := facts.UnknownRanks
		if pl.ranks != nil {
			ranks = formatRanks(pl.ranks)
		}
		a.LocationGroupProperties = append(a.LocationGroupProperties, otf2.LocationGroupProperty{
			LocationGroup: group, Name: a.text(facts.PropNoData.Key()), Type: otf2.TypeString, Value: otf2.Value(a.text(ranks)),
		})
	}
	used := make(map[device]bool)
	for _, l := range a.locations {
		if l.typ == otf2.LocationTypeAcceleratorStream {
			used[device{l.part, l.gpu}] = true
		}
	}
	groups := make(map[device]otf2.LocationGroupRef)
	for _, pl := range a.world.places {
		if pl.part == nil {
			continue
		}
		for _, g := range gpusOf(pl.part) {
			dev := device{pl.part, g.index}
			if !used[dev] {
				continue
			}
			ordinal := g.shard.Device
			if ordinal < 0 {
				ordinal = g.index
			}
			groups[dev] = a.locationGroup(fmt.Sprintf("%s GPU %d", pl.name, ordinal), otf2.LocationGroupTypeAccelerator,
				t.devices[dev], otf2.LocationGroupRef(pl.index))
		}
	}
	a.tellRanksApart()
	for _, l := range a.locations {
		if g, ok := groups[device{l.part, l.gpu}]; ok && (l.typ == otf2.LocationTypeAcceleratorStream || l.typ == otf2.LocationTypeMetric) {
			l.Group = g
		}
		l.Type = l.typ
		l.Name = a.text(l.name)
		a.Locations = append(a.Locations, l.Location)
		a.identify(l)
	}
}

// tellRanksApart names the rows beside those of communicator ranks, of its network and of what its threads enqueue, after the
// rank where a process has several on a communicator: their rows would have one name.
func (a *archive) tellRanksApart() {
	type row struct {
		part *part
		name string
	}
	rank := func(l *location) (at row, rank int, ok bool) {
		s := l.source
		if s == nil || s.Comm < 0 || s.Comm >= len(l.part.process.Comms) {
			return row{}, 0, false
		}
		switch s.Kind {
		case experiment.KindNetSend, experiment.KindNetRecv, experiment.KindEnqueue:
			return row{l.part, l.name}, l.part.process.Comms[s.Comm].Rank, true
		}
		return row{}, 0, false
	}
	rows := make(map[row]int)
	for _, l := range a.locations {
		if at, _, ok := rank(l); ok {
			rows[at]++
		}
	}
	for _, l := range a.locations {
		if at, rank, ok := rank(l); ok && rows[at] > 1 {
			l.name = facts.OwnedRow(l.name, rank)
		}
	}
}

// identify gives a row the properties by which rows are found again in what others say of the job: of processes and threads the system's ids (in
// their own pid namespace), of a communicator rank's row NCCL's commId, and the number of nodes that NCCL has the communicator on. A row that
// several have had in turn tells how many instead.
//
// facts.PropNoData tells of a location group that it stands for processes without data, and of which ranks of the world:
// "4-15,20", or facts.UnknownRanks. Their communicator ranks have one location, which is in the list of all locations (COMM_LOCATIONS)
// once for each: for each rank of the world, ascending, as many times.
func (a *archive) identify(l *location) {
	switch s := l.source; {
	case s == nil:
	case s.Shared():
		a.locationProperty(l, facts.PropOwners, uint64(s.Owners))
	case s.Kind == experiment.KindThread && s.TID != 0:
		a.locationProperty(l, facts.PropTID, uint64(s.TID))
	case s.Kind == experiment.KindRank && s.Comm >= 0 && s.Comm < len(l.part.process.Comms):
		c := &l.part.process.Comms[s.Comm]
		a.locationProperty(l, facts.PropCommID, c.ID)
		if c.NNodes > 0 {
			a.locationProperty(l, facts.PropNNodes, uint64(c.NNodes))
		}
	}
}

func (a *archive) locationProperty(l *location, name facts.Property, value uint64) {
	a.LocationProperties = append(a.LocationProperties, otf2.LocationProperty{
		Location: l.Self, Name: a.text(name.Key()), Type: otf2.TypeUint64, Value: otf2.Value(value),
	})
}

// defineRegions defines every region once, whichever processes have it, and the groups they are in.
func (a *archive) defineRegions() {
	known := make(map[experiment.Region]otf2.RegionRef)
	grouped := make(map[string][]uint64)
	var order []string
	define := func(r experiment.Region) uint64 {
		ref, ok := known[r]
		if !ok {
			ref = a.from.region + otf2.RegionRef(len(a.Regions))
			known[r] = ref
			a.Regions = append(a.Regions, otf2.Region{
				Self: ref, Name: a.text(r.Name), CanonicalName: a.text(r.Canonical), Description: a.text(r.Description),
				Role: r.Role, Paradigm: r.Paradigm, SourceFile: otf2.UndefinedString,
			})
			if r.Group != "" {
				if grouped[r.Group] == nil {
					order = append(order, r.Group)
				}
				grouped[r.Group] = append(grouped[r.Group], uint64(ref))
			}
		}
		return uint64(ref)
	}
	for _, p := range a.ordered() {
		global := make([]uint64, len(p.process.Regions))
		for i, r := range p.process.Regions {
			global[i] = define(r)
		}
		a.mapping(p, otf2.MappingRegion, global)
		if a.into == nil || !a.into.marks(p) {
			continue
		}
		for i, r := range p.process.Regions {
			if a.into.forwarded(&r) {
				r.Name += forwardedMark
				global[i] = define(r)
			}
		}
		a.marked[p] = otf2.OptimalMapping(otf2.MappingRegion, global)
	}
	slices.Sort(order)
	for _, name := range order {
		a.group(name, otf2.GroupTypeRegions, otf2.ParadigmUnknown, grouped[name])
	}
}

func (a *archive) commParadigm() otf2.Paradigm {
	if a.opts.Paradigm200 {
		return regions.ParadigmNCCL
	}
	return otf2.ParadigmMPI
}

func (a *archive) defineParadigms() {
	defer func() { // what the other archive has defined is not defined again
		a.Paradigms = slices.DeleteFunc(a.Paradigms, func(p otf2.ParadigmDef) bool {
			return a.into != nil && a.into.archive.Defs.ParadigmDef(p.Paradigm) != nil
		})
	}()
	comm := a.commParadigm()
	a.Paradigms = append(a.Paradigms, otf2.ParadigmDef{Paradigm: comm, Name: a.text("NCCL"), Class: otf2.ParadigmClassProcess})
	a.ParadigmProperties = append(a.ParadigmProperties, otf2.ParadigmPropertyDef{
		Paradigm: comm, Property: otf2.ParadigmPropertyCommNameTemplate, Type: otf2.TypeString, Value: otf2.Value(a.text("ncclComm ${id}")),
	})
	if len(a.networks) > 0 {
		a.ParadigmProperties = append(a.ParadigmProperties, otf2.ParadigmPropertyDef{
			Paradigm: comm, Property: otf2.ParadigmPropertyRmaWinNameTemplate, Type: otf2.TypeString, Value: otf2.Value(a.text("ncclComm network ${id}")),
		})
	}
	for _, device := range []otf2.Paradigm{otf2.ParadigmCUDA, otf2.ParadigmHIP} {
		if slices.ContainsFunc(a.Regions, func(r otf2.Region) bool { return r.Paradigm == device }) {
			a.Paradigms = append(a.Paradigms, otf2.ParadigmDef{Paradigm: device, Name: a.text(device.String()), Class: otf2.ParadigmClassAccelerator})
		}
	}
	if slices.ContainsFunc(a.Regions, func(r otf2.Region) bool { return r.Paradigm == otf2.ParadigmUser }) {
		a.Paradigms = append(a.Paradigms, otf2.ParadigmDef{Paradigm: otf2.ParadigmUser, Name: a.text(regions.GroupApplication), Class: otf2.ParadigmClassProcess})
	}
}

// seat is an entry of the list of all locations: a location, which has several if it stands for ranks without data.
type seat struct {
	location otf2.LocationRef
	n        int
}

// defineComms defines the communicators and the windows of their networks. COMM_LOCATIONS lists the
// locations of all communicator ranks by world rank and number in the process, then those that only
// networks have; a COMM_GROUP lists indices into it.
func (a *archive) defineComms() {
	members := make([][]seat, 0, len(a.instances)+len(a.networks)+1)
	var idle []seat
	for _, pl := range a.world.places {
		if pl.part == nil && pl != a.world.unknown {
			idle = append(idle, pl.seats()...)
		}
	}
	for _, in := range a.instances {
		members = append(members, a.seatsOf(in))
	}
	list := appendNew(nil, append(members, idle))
	for _, n := range a.networks {
		members = append(members, a.networkMembers(n))
	}
	if len(members) == 0 {
		return
	}
	list = appendNew(list, members[len(a.instances):])
	index := make(map[seat]uint64, len(list))
	ids := make([]uint64, len(list))
	for i, l := range list {
		index[l], ids[i] = uint64(i), uint64(l.location)
	}
	paradigm := a.commParadigm()
	a.group("", otf2.GroupTypeCommLocations, paradigm, ids)
	known := make(map[string]otf2.GroupRef)
	comm := func(name string, members []seat, parent otf2.CommRef, flags otf2.CommFlag) otf2.CommRef {
		ranks := make([]uint64, len(members))
		var key []byte
		for r, l := range members {
			ranks[r] = index[l]
			key = strconv.AppendUint(append(key, ' '), ranks[r], 36)
		}
		g, ok := known[string(key)]
		if !ok {
			g = a.group(name, otf2.GroupTypeCommGroup, paradigm, ranks)
			known[string(key)] = g
		}
		ref := a.from.comm + otf2.CommRef(len(a.Comms))
		a.Comms = append(a.Comms, otf2.Comm{Self: ref, Name: a.text(name), Group: g, Parent: parent, Flags: flags})
		return ref
	}
	for i, in := range a.instances {
		in.ref = comm(in.name, members[i], otf2.UndefinedComm, otf2.CommFlagCreateDestroyEvents)
	}
	for i, n := range a.networks {
		parent := otf2.UndefinedComm
		if n.of != nil && slices.Contains(a.instances, n.of) {
			parent = n.of.ref
		}
		ref := comm(n.name, members[len(a.instances)+i], parent, otf2.CommFlagNone)
		n.ref = a.from.rmaWin + otf2.RmaWinRef(len(a.RmaWins))
		a.RmaWins = append(a.RmaWins, otf2.RmaWin{Self: n.ref, Name: a.text(n.name), Comm: ref, Flags: otf2.RmaWinFlagNone})
	}
}

// seats are all entries of a place without data.
func (pl *place) seats() []seat {
	all := make([]seat, pl.idle)
	for n := range all {
		all[n] = seat{pl.location(), n}
	}
	return all
}

// seatsOf lists the entries of a communicator's ranks.
func (a *archive) seatsOf(in *instance) []seat {
	all := make([]seat, in.nranks)
	for rank := range all {
		all[rank] = a.seatOf(in, rank)
	}
	return all
}

func (a *archive) seatOf(in *instance, rank int) seat {
	if m := in.members[rank]; m != nil {
		return seat{m.location, 0}
	}
	s := a.kept[in][rank]
	return seat{s.place.location(), s.n}
}

// appendNew appends the entries that are not in the list, each once, by process and number.
func appendNew(list []seat, more [][]seat) []seat {
	known := make(map[seat]bool, len(list))
	for _, l := range list {
		known[l] = true
	}
	n := len(list)
	for _, group := range more {
		for _, l := range group {
			if !known[l] {
				known[l] = true
				list = append(list, l)
			}
		}
	}
	slices.SortFunc(list[n:], func(x, y seat) int {
		return cmp.Or(cmp.Compare(uint32(x.location), uint32(y.location)), cmp.Compare(x.location, y.location), cmp.Compare(x.n, y.n))
	})
	return list
}

// mapIDs makes the tables from each process's string and communicator ids to the archive's.
func (a *archive) mapIDs() {
	comms := make(map[*part][]uint64)
	for _, p := range a.run.parts {
		table := make([]uint64, len(p.process.Comms))
		for i := range table {
			table[i] = math.MaxUint64 // undefined: no events of single ranks refer to theirs
		}
		comms[p] = table
	}
	for _, in := range a.instances {
		for m := range in.present() {
			comms[m.part][m.comm] = uint64(in.ref)
		}
	}
	attributes := make([]uint64, len(regions.Attributes))
	for _, at := range regions.Attributes { // their ids count from 0
		attributes[at.Ref] = uint64(a.from.attribute + at.Ref)
	}
	for _, p := range a.ordered() {
		a.mapping(p, otf2.MappingAttribute, attributes)
		a.mapping(p, otf2.MappingComm, comms[p])
		global := make([]uint64, len(p.process.Strings))
		for i, s := range p.process.Strings {
			global[i] = uint64(a.text(s))
		}
		a.mapping(p, otf2.MappingString, global)
		wins := make([]uint64, len(a.windows[p]))
		for i, n := range a.windows[p] {
			wins[i] = uint64(n.ref)
		}
		a.mapping(p, otf2.MappingRmaWin, wins)
	}
}

func (a *archive) mapping(p *part, t otf2.MappingType, global []uint64) {
	if table := otf2.OptimalMapping(t, global); table != nil {
		a.maps[p] = append(a.maps[p], table)
	}
}

// ordered lists the processes with data in world order.
func (a *archive) ordered() []*part {
	var parts []*part
	for _, pl := range a.world.places {
		if pl.part != nil {
			parts = append(parts, pl.part)
		}
	}
	return parts
}

// writeLocalDefs writes each location's mapping tables and clock offsets: once per process, as its
// locations have the same, but for those whose forwarded calls are marked.
func (a *archive) writeLocalDefs(dir string, chunkSize uint64) error {
	type like struct {
		part   *part
		marked bool
	}
	files := make(map[like][]string)
	var all []like
	for _, l := range a.locations {
		k := like{l.part, l.marked}
		if files[k] == nil {
			all = append(all, k)
		}
		files[k] = append(files[k], filepath.Join(dir, fileName(l.Self, ".def")))
	}
	return forEach(len(all), a.opts.workers(), func(i int) error {
		k := all[i]
		var maps []*otf2.MappingTable
		var clocks []otf2.ClockOffset
		if k.part != nil {
			maps, clocks = a.maps[k.part], k.part.clockOffsets()
		}
		if k.marked {
			maps = slices.DeleteFunc(slices.Clone(maps), func(m *otf2.MappingTable) bool { return m.Type == otf2.MappingRegion })
			maps = append(maps, a.marked[k.part])
		}
		for j, path := range files[k] {
			if j > 0 && linkFile(files[k][0], path) == nil {
				continue
			}
			if err := otf2.WriteLocalDefs(path, maps, clocks, chunkSize); err != nil {
				return fmt.Errorf("write local definitions of %s: %w", filepath.Base(path), err)
			}
		}
		return nil
	})
}

// removeLocalDefs makes way for others.
func (a *archive) removeLocalDefs(dir string) error {
	for _, l := range a.locations {
		if err := removeFile(filepath.Join(dir, fileName(l.Self, ".def"))); err != nil {
			return err
		}
	}
	return nil
}

func fileName(id otf2.LocationRef, suffix string) string {
	return strconv.FormatUint(uint64(id), 10) + suffix
}

// traceID is the same for the same set of processes.
func (a *archive) traceID() uint64 {
	uuids := make([]string, 0, len(a.run.parts))
	for _, p := range a.run.parts {
		uuids = append(uuids, p.process.UUID)
	}
	slices.Sort(uuids)
	h := fnv.New64a()
	for _, u := range uuids {
		h.Write([]byte(u))
		h.Write([]byte{0})
	}
	return max(h.Sum64(), 1)
}
