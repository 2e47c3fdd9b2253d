// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"hash/fnv"
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/analysis/hang/waitfor"
	"github.com/nccl-otf2/nccl-otf2/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/facts/deviation"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// archive is one run on its way into an OTF2 archive.
type archive struct {
	run       *jobs.Run
	world     *jobs.World
	seats     seats
	instances []*jobs.Communicator // those that get definitions: of more than one rank
	opts      *UnifyOptions
	into      *merger // nil: it is an archive of its own

	networks []*network
	windows  map[*jobs.Process][]*network // of its local window ids
	origins  *origins
	pauses   []jobs.Pause
	leftOut  map[*jobs.Process]map[uint32]bool // rows of measurements of a GPU that another process's are taken of

	*definitions
	rows
	extent
	tables      localTables
	chunk       uint64 // of event files
	markers     markers
	properties  properties
	differences []jobs.Difference
	stopped     []verdict.Culprit // who kept the job from going on
	problems    []string
	damaged     []string // of the problems, and what of the directory was damaged: what should be in the archive, and is not

	sync         *ClockSync // how the hosts' clocks were brought together, nil: they were not
	syncProblems []string
}

func newArchive(r *jobs.Run, opts *UnifyOptions, into *merger) (*archive, error) {
	a := &archive{
		run: r, opts: opts, into: into, definitions: newDefinitions(),
		rows: rows{ids: make(map[*jobs.Process]map[uint32]*location)}, extent: extent{first: math.MaxUint64},
		tables: localTables{of: make(map[*jobs.Process][]*otf2.MappingTable), marked: make(map[*jobs.Process]*otf2.MappingTable)},
	}
	job := jobs.JobOf(r)
	a.stopped = waitfor.Culprits(job, waitfor.Find(job, opts.now()))
	var others []*jobs.Communicator
	for _, in := range r.Communicators {
		if in.Nranks > 1 && !in.Unsized {
			a.instances = append(a.instances, in)
		} else {
			others = append(others, in)
		}
	}
	jobs.FindParents(r.Communicators)
	a.instances = jobs.ParentsFirst(a.instances)
	jobs.NameInstances(slices.Concat(a.instances, others))
	a.world, a.seats = jobs.Arrange(r)
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
	n := len(a.world.Places)
	if a.into != nil {
		n = int(a.from.locationGroup)
		for _, pl := range a.world.Places {
			n = max(n, pl.Index+1)
		}
	}
	return n
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
	a.pauses = jobs.FindPauses(a.instances)
	a.differences = deviation.Narrow(jobs.CompareSequences(a.instances))
	a.describe()
	a.mark()
}

// setClock says what range the times are in.
func (a *archive) setClock() {
	if a.first > a.last {
		a.first, a.last = a.run.Begin(), a.run.Begin()
	}
	if a.into != nil {
		a.into.setClock(a)
		return
	}
	a.Clock = otf2.ClockProperties{Resolution: 1_000_000_000, Offset: a.first, Length: a.last - a.first, Realtime: a.first}
}

// mapIDs makes the tables from each process's string and communicator ids to the archive's.
func (a *archive) mapIDs() {
	comms := make(map[*jobs.Process][]uint64)
	for _, p := range a.run.Processes {
		table := make([]uint64, len(p.Shard.Comms))
		for i := range table {
			table[i] = math.MaxUint64 // undefined: no events of single ranks refer to theirs
		}
		comms[p] = table
	}
	for _, in := range a.instances {
		for m := range in.Present() {
			comms[m.Process][m.Index] = uint64(in.Ref)
		}
	}
	attributes := make([]uint64, len(regions.Attributes))
	for _, at := range regions.Attributes { // their ids count from 0
		attributes[at.Ref] = uint64(a.from.attribute + at.Ref)
	}
	for _, p := range a.ordered() {
		a.tables.add(p, otf2.MappingAttribute, attributes)
		a.tables.add(p, otf2.MappingComm, comms[p])
		global := make([]uint64, len(p.Shard.Strings))
		for i, s := range p.Shard.Strings {
			global[i] = uint64(a.text(s))
		}
		a.tables.add(p, otf2.MappingString, global)
		wins := make([]uint64, len(a.windows[p]))
		for i, n := range a.windows[p] {
			wins[i] = uint64(n.ref)
		}
		a.tables.add(p, otf2.MappingRmaWin, wins)
	}
}

// ordered lists the processes with data in world order.
func (a *archive) ordered() []*jobs.Process {
	var parts []*jobs.Process
	for _, pl := range a.world.Places {
		if pl.Process != nil {
			parts = append(parts, pl.Process)
		}
	}
	return parts
}

// traceID is the same for the same set of processes.
func traceID(r *jobs.Run) uint64 {
	uuids := make([]string, 0, len(r.Processes))
	for _, p := range r.Processes {
		uuids = append(uuids, p.Shard.UUID)
	}
	slices.Sort(uuids)
	h := fnv.New64a()
	for _, u := range uuids {
		h.Write([]byte(u))
		h.Write([]byte{0})
	}
	return max(h.Sum64(), 1)
}
