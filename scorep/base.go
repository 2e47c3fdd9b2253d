// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// base is what a new archive is added to: nothing (alone), or the archive of a Score-P measurement (merger).
type base interface {
	// begin assigns each process its place in the archive, and sets the first id of each kind of definition.
	begin(r *roster, d *definitions)
	// plant defines, or finds in the base, the system tree's root and the nodes of the machines.
	plant(t *systemTree, w *jobs.World)
	// nextGroup returns the id that one more PROCESS location group would get.
	nextGroup(w *jobs.World) int
	// has reports whether the base already has the process's location group. If so, standsFor returns the base's
	// location that represents the process.
	has(p *jobs.Process) bool
	standsFor(p *jobs.Process) otf2.LocationRef
	// row returns whether, and how, a location is included, and its name in the archive. note counts a decision.
	row(p *jobs.Process, l *description.Location) (treatment, string)
	note(do treatment)
	// marks reports whether any row of the process gets its forwarded calls marked; forwarded reports whether a region
	// consists of such calls.
	marks(p *jobs.Process) bool
	forwarded(r *description.Region) bool
	// calls returns the base's regions for forwarded NCCL calls that are in no group yet.
	calls() []otf2.RegionRef
	// paradigm reports whether the base defines the paradigm.
	paradigm(p otf2.Paradigm) bool
	// empty returns the first and last time of an archive without events.
	empty(r *jobs.Run) (first, last uint64)
	// clock returns the clock properties for events within x, and may widen x. own is false if the base's definition of
	// the clock is kept.
	clock(x *extent) (c otf2.ClockProperties, own bool)
}

// treatment is how a location of ours is included in the archive of a measurement.
type treatment uint8

const (
	keepRow  treatment = iota // unchanged
	markRow                   // with its forwarded calls marked, because it has more than the measurement
	leaveRow                  // left out, because the measurement has all its calls
)

// alone is the base of an archive that is not merged into another one.
type alone struct{}

func (alone) begin(*roster, *definitions) {}

func (alone) plant(t *systemTree, _ *jobs.World) {
	t.machine = t.d.node("Linux", "machine", otf2.UndefinedSystemTreeNode, otf2.SystemTreeDomainMachine)
}

func (alone) nextGroup(w *jobs.World) int              { return len(w.Places) }
func (alone) has(*jobs.Process) bool                   { return false }
func (alone) standsFor(*jobs.Process) otf2.LocationRef { return otf2.UndefinedLocation }
func (alone) note(treatment)                           {}
func (alone) marks(*jobs.Process) bool                 { return false }
func (alone) forwarded(*description.Region) bool       { return false }
func (alone) calls() []otf2.RegionRef                  { return nil }
func (alone) paradigm(otf2.Paradigm) bool              { return false }
func (alone) empty(r *jobs.Run) (first, last uint64)   { return r.Begin(), r.Begin() }

func (alone) row(_ *jobs.Process, l *description.Location) (treatment, string) {
	return keepRow, rowName(l)
}

func (alone) clock(x *extent) (otf2.ClockProperties, bool) {
	return otf2.ClockProperties{Resolution: 1_000_000_000, Offset: x.first, Length: x.last - x.first,
		Realtime: x.first}, true
}
