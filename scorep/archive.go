// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"hash/fnv"
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang/waitfor"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/deviation"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// archive is one run on its way into an OTF2 archive: its parts, and in which order they do their work.
type archive struct {
	*roster
	*rows
	*definitions
	*extent
	*findings
	opts       *UnifyOptions
	on         base
	tables     *localTables
	chunk      uint64 // of event files
	markers    markers
	properties properties
}

// findings is what was found about a run beside its events.
type findings struct {
	origins     *origins
	pauses      []jobs.Pause
	differences []jobs.Difference
	stopped     []verdict.Culprit // who kept the job from going on
	problems    []string
	// of the problems, and what of the directory was damaged: what should be in the archive, and is not
	damaged      []string
	sync         *ClockSync // how the hosts' clocks were brought together, nil: they were not
	syncProblems []string
	movedEnds    uint64 // operations whose ends were brought to where others show that they were
}

func newArchive(run *jobs.Run, opts *UnifyOptions, on base) (*archive, error) {
	job := jobs.JobOf(run)
	found := &findings{stopped: waitfor.Culprits(job, waitfor.Find(job, opts.now()))}
	a := &archive{
		roster: newRoster(run), definitions: newDefinitions(), extent: &extent{first: math.MaxUint64}, findings: found,
		opts: opts, on: on,
		tables: &localTables{of: make(map[*jobs.Process][]*otf2.MappingTable),
			marked: make(map[*jobs.Process]*otf2.MappingTable)},
	}
	on.begin(a.roster, a.definitions)
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

// define builds all but the event files. These must have been placed: their counts and times are part of the
// definitions.
func (a *archive) define() {
	a.setClock()
	d := &definer{roster: a.roster, definitions: a.definitions, rows: a.rows, tables: a.tables,
		ownParadigm: a.opts.ownParadigm}
	d.define()
	// marks communicators whose members paused differently, so that their sequences cannot be compared
	a.pauses = jobs.FindPauses(a.instances)
	a.differences = deviation.Narrow(jobs.CompareSequences(a.instances))
	a.describe()
}

// describe describes the findings in properties and markers.
func (a *archive) describe() {
	d := &description{roster: a.roster, findings: a.findings, repeated: a.repeated}
	a.properties = d.properties()
	r := &remarks{roster: a.roster, extent: a.extent, findings: a.findings, rows: a.rows}
	a.markers = r.all()
}

// setClock sets the range of the times.
func (a *archive) setClock() {
	if a.first > a.last {
		a.first, a.last = a.on.empty(a.run)
	}
	if clock, is := a.on.clock(a.extent); is {
		a.Clock = clock
	}
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
