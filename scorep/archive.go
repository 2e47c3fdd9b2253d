// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"hash/fnv"
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang/waitfor"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs/progress"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/deviation"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// archive is the OTF2 archive of one run while it is built. It puts the parts' work in order.
type archive struct {
	*roster
	*rows
	*definitions
	*extent
	*findings
	opts       *UnifyOptions
	on         target
	tables     *localTables
	chunk      uint64 // chunk size of event files, in bytes
	markers    markers
	properties properties
}

// findings is what was found out about a run beyond its events.
type findings struct {
	origins     *origins
	pauses      []jobs.Pause
	differences []jobs.Difference
	stopped     []verdict.Culprit // members that kept the job from making progress
	silent      string            // since when ranks were silent, if nothing was under way
	problems    []string
	// the problems, and damage to the directory, because of which data are missing from the archive
	damaged      []string
	sync         *ClockSync // how the hosts' clocks were synchronized; nil: they were not
	syncProblems []string
	movedEnds    uint64 // operations whose ends were moved, by evidence of other members
}

func newArchive(run *jobs.Run, opts *UnifyOptions, on target) (*archive, error) {
	job := progress.Describe(run)
	found := &findings{stopped: waitfor.Culprits(job, waitfor.Find(job, opts.now()))}
	if len(found.stopped) == 0 {
		found.silent = waitfor.Silence(job, opts.now())
	}
	a := &archive{
		roster: newRoster(run), definitions: newDefinitions(), extent: &extent{first: math.MaxUint64}, findings: found,
		opts: opts, on: on,
		tables: &localTables{of: make(map[*jobs.Process][]*otf2.MappingTable),
			marked: make(map[*jobs.Process]*otf2.MappingTable)},
	}
	on.assignPlaces(a.roster, a.definitions)
	found.origins = findOrigins(run)
	ns := &networks{roster: a.roster, origins: found.origins}
	if err := ns.plan(on); err != nil {
		return nil, err
	}
	a.rows = &rows{roster: a.roster, on: on, networks: ns, repeated: repeatedMetrics(a.roster),
		ids: make(map[*jobs.Process]map[uint32]*location)}
	a.locate()
	return a, nil
}

// define builds all definitions, properties and markers. The event files must have been placed, because the definitions
// contain their event counts and times.
func (a *archive) define() {
	a.setClock()
	d := &definer{roster: a.roster, definitions: a.definitions, rows: a.rows, tables: a.tables,
		ownParadigm: a.opts.ownParadigm}
	d.define()
	// FindPauses marks communicators whose members paused differently: their sequences cannot be compared.
	a.pauses = jobs.FindPauses(a.instances)
	a.differences = deviation.Find(a.instances, uint64(max(a.opts.now().UnixNano()-waitfor.Young, 0)))
	a.describe()
}

// describe turns the findings into properties and markers.
func (a *archive) describe() {
	d := &jobText{roster: a.roster, findings: a.findings, repeated: a.repeated}
	a.properties = d.properties()
	r := &remarks{roster: a.roster, extent: a.extent, findings: a.findings, rows: a.rows}
	a.markers = r.sortedMarkers()
}

// setClock sets the archive's clock properties from the times of its events.
func (a *archive) setClock() {
	if a.first > a.last {
		a.first, a.last = a.on.emptyTimeRange(a.run)
	}
	if clock, is := a.on.clock(a.extent); is {
		a.Clock = clock
	}
}

// traceID returns the archive's trace id, never 0, which depends only on the set of processes.
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
