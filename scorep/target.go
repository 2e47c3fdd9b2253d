// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// target is what a new archive is added to: nothing (alone), or the archive of a Score-P measurement (merger).
type target interface {
	// assignPlaces assigns each process its place in the archive, and sets the first id of each kind of definition.
	assignPlaces(r *roster, d *definitions)
	// defineSystemTree defines, or finds in the target, the system tree's root and the nodes of the machines.
	defineSystemTree(t *systemTree, w *jobs.World)
	// nextGroup returns the id that one more PROCESS location group would get.
	nextGroup(w *jobs.World) int
	// hasProcess reports whether the target already has the process's location group. If so, standsFor returns the
	// target's location that represents the process.
	hasProcess(p *jobs.Process) bool
	standsFor(p *jobs.Process) otf2.LocationRef
	// row returns whether, and how, a location is included, and its name in the archive. countTreatment counts
	// a decision.
	row(p *jobs.Process, l *description.Location) (treatment, string)
	countTreatment(do treatment)
	// marksCallsOf reports whether any row of the process gets its forwarded calls marked; isForwarded reports whether
	// a region consists of such calls.
	marksCallsOf(p *jobs.Process) bool
	isForwarded(r *description.Region) bool
	// calls returns the target's regions for forwarded NCCL calls that are in no group yet.
	calls() []otf2.RegionRef
	// paradigm reports whether the target defines the paradigm.
	paradigm(p otf2.Paradigm) bool
	// emptyTimeRange returns the first and last time of an archive without events.
	emptyTimeRange(r *jobs.Run) (first, last uint64)
	// clock returns the clock properties for events within x, and may widen x. own is false if the target's definition
	// of the clock is kept.
	clock(x *extent) (c otf2.ClockProperties, own bool)
}

// treatment is how a location of ours is included in the archive of a measurement.
type treatment uint8

const (
	keepRow  treatment = iota // unchanged
	markRow                   // with its forwarded calls marked, because it has more than the measurement
	leaveRow                  // left out, because the measurement has all its calls
)

// emptyTarget is the target of an archive that is not merged into another one.
type emptyTarget struct{}

func (emptyTarget) assignPlaces(*roster, *definitions) {}

func (emptyTarget) defineSystemTree(t *systemTree, _ *jobs.World) {
	t.machine = t.d.node("Linux", "machine", otf2.UndefinedSystemTreeNode, otf2.SystemTreeDomainMachine)
}

func (emptyTarget) nextGroup(w *jobs.World) int                     { return len(w.Places) }
func (emptyTarget) hasProcess(*jobs.Process) bool                   { return false }
func (emptyTarget) standsFor(*jobs.Process) otf2.LocationRef        { return otf2.UndefinedLocation }
func (emptyTarget) countTreatment(treatment)                        {}
func (emptyTarget) marksCallsOf(*jobs.Process) bool                 { return false }
func (emptyTarget) isForwarded(*description.Region) bool            { return false }
func (emptyTarget) calls() []otf2.RegionRef                         { return nil }
func (emptyTarget) paradigm(otf2.Paradigm) bool                     { return false }
func (emptyTarget) emptyTimeRange(r *jobs.Run) (first, last uint64) { return r.Begin(), r.Begin() }

func (emptyTarget) row(_ *jobs.Process, l *description.Location) (treatment, string) {
	return keepRow, rowName(l)
}

func (emptyTarget) clock(x *extent) (otf2.ClockProperties, bool) {
	return otf2.ClockProperties{Resolution: 1_000_000_000, Offset: x.first, Length: x.last - x.first,
		Realtime: x.first}, true
}
