// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// base is what an archive is built on: nothing, or the archive of a measurement that it is added to.
type base interface {
	// begin assigns the processes of a roster their places, and definitions their first ids.
	begin(r *roster, d *definitions)
	// plant puts the machines of a world into the system tree.
	plant(t *systemTree, w *jobs.World)
	// nextGroup is the id of a further PROCESS location group.
	nextGroup(w *jobs.World) int
	// has reports whether a process's location group is there; then standsFor is a location that stands for the
	// process.
	has(p *jobs.Process) bool
	standsFor(p *jobs.Process) otf2.LocationRef
	// row decides the treatment of a location, and its name; note counts the result.
	row(p *jobs.Process, l *experiment.Location) (treatment, string)
	note(do treatment)
	// marks reports whether a row of a process has its forwarded calls marked, and forwarded which regions these are.
	marks(p *jobs.Process) bool
	forwarded(r *experiment.Region) bool
	// calls are the regions there of NCCL's calls that were forwarded, and are in no group.
	calls() []otf2.RegionRef
	// paradigm reports whether it is defined there.
	paradigm(p otf2.Paradigm) bool
	// empty is the extent of an archive without events.
	empty(r *jobs.Run) (first, last uint64)
	// clock is the clock of an archive of some extent, which it may widen; false if that of the ground holds.
	clock(x *extent) (c otf2.ClockProperties, own bool)
}

// treatment is what becomes of one of our rows among those of a measurement.
type treatment uint8

const (
	keepRow  treatment = iota // as it is
	markRow                   // its forwarded calls are marked: there is more in it than the measurement has
	leaveRow                  // out: the measurement has all its calls
)

// alone is the ground of an archive of its own.
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
func (alone) forwarded(*experiment.Region) bool        { return false }
func (alone) calls() []otf2.RegionRef                  { return nil }
func (alone) paradigm(otf2.Paradigm) bool              { return false }
func (alone) empty(r *jobs.Run) (first, last uint64)   { return r.Begin(), r.Begin() }

func (alone) row(_ *jobs.Process, l *experiment.Location) (treatment, string) {
	return keepRow, rowName(l)
}

func (alone) clock(x *extent) (otf2.ClockProperties, bool) {
	return otf2.ClockProperties{Resolution: 1_000_000_000, Offset: x.first, Length: x.last - x.first,
		Realtime: x.first}, true
}
