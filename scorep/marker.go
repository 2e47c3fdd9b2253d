// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// marker is an OTF2 marker: a text about a time range.
type marker struct {
	time, duration uint64
	severity       otf2.MarkerSeverity
	category, text string
	scope          otf2.MarkerScope
	ref            uint64 // the object that scope refers to
}

// markers holds an archive's markers, sorted by time.
type markers []marker

// markerGroup is the group of all marker definitions of an archive.
const markerGroup = "nccl-otf2"

// Categories of the markers that Unify adds to those of the processes.
const (
	categoryMissing    = "Missing data"
	categoryIncomplete = "Incomplete process"
	categoryDied       = "Process died"
	categoryDiffer     = "Sequences differ"
	categoryPaused     = "Recording paused"
	categoryPXN        = "Unknown originator"
	categoryWithheld   = "Withheld"
)

// maxDifferences limits how many differences markers and properties list; properties always state the total.
const maxDifferences = 200

// remarks makes the markers of an archive.
type remarks struct {
	*roster
	*extent
	*findings
	rows    *rows
	markers markers
}

// sortedMarkers returns the processes' own markers and those for problems that unifying found, sorted by time.
func (r *remarks) sortedMarkers() markers {
	for _, p := range r.ordered() {
		for _, m := range p.Shard.Markers {
			r.markers = append(r.markers, r.markerOf(p, &m))
		}
		r.markEnd(p)
	}
	r.markCommunicators()
	r.markPauses()
	r.markOrigins()
	slices.SortStableFunc(r.markers, func(x, y marker) int { return cmp.Compare(x.time, y.time) })
	return r.markers
}

// markerOf converts a process's own marker to the archive's time. It is clipped to the range of events, because readers
// draw markers only there.
func (r *remarks) markerOf(p *jobs.Process, m *description.Marker) marker {
	out := marker{
		time: p.At(m.Time), duration: m.Duration, severity: m.Severity, category: m.Category, text: m.Text,
		scope: otf2.MarkerScopeLocationGroup, ref: uint64(p.Index),
	}
	if (p.Knots != nil || p.Onto != nil) && m.Duration < 1<<62 {
		out.duration = p.At(m.Time+m.Duration) - out.time
	}
	if m.Location >= 0 {
		if l := r.rows.ids[p][uint32(m.Location)]; l != nil {
			out.scope, out.ref = otf2.MarkerScopeLocation, uint64(l.Self)
		}
	}
	out.time = min(max(out.time, r.first), r.last)
	out.duration = min(out.duration, r.last-out.time)
	return out
}

// markEnd adds a marker where a process died, and one if its recording was not finished.
func (r *remarks) markEnd(p *jobs.Process) {
	group := uint64(p.Index)
	if how := jobs.HowEnded(p.Shard); how != "" {
		r.markers = append(r.markers, marker{
			time: min(max(p.At(p.Shard.LastTime), p.Ended(), r.first), r.last), severity: otf2.MarkerSeverityHigh,
			category: categoryDied, text: fmt.Sprintf("%s (%s): %s", p.Name, p.ID(), how),
			scope: otf2.MarkerScopeLocationGroup, ref: group,
		})
	}
	if p.State == jobs.Finished {
		return
	}
	text := fmt.Sprintf("%s (%s): its recording was not finished; what it had written is here", p.Name, p.ID())
	severity := otf2.MarkerSeverityHigh
	if p.State == jobs.Running {
		text = fmt.Sprintf("%s (%s): still running when the archive was made", p.Name, p.ID())
		severity = otf2.MarkerSeverityLow
	}
	r.markers = append(r.markers, marker{
		time: min(max(p.At(p.Shard.LastTime), r.first), r.last), severity: severity,
		category: categoryIncomplete, text: text, scope: otf2.MarkerScopeLocationGroup, ref: group,
	})
}

// wholeRun returns a marker that covers the archive's whole time.
func (x *extent) wholeRun(severity otf2.MarkerSeverity, category, text string, scope otf2.MarkerScope,
	ref uint64) marker {
	return marker{time: x.first, duration: x.last - x.first, severity: severity, category: category, text: text,
		scope: scope, ref: ref}
}

// markCommunicators adds markers for ranks without data, and for operations in which members of a communicator differ.
func (r *remarks) markCommunicators() {
	for _, in := range r.instances {
		if missing := in.Missing(); len(missing) > 0 {
			text := fmt.Sprintf("%s: no data of %s of %d", in.Name, units.RankWords(missing), in.Nranks)
			r.markers = append(r.markers, r.wholeRun(
				otf2.MarkerSeverityHigh, categoryMissing, text, otf2.MarkerScopeComm, uint64(in.Ref)))
		}
	}
	for _, d := range r.differences[:min(len(r.differences), maxDifferences)] {
		text := fmt.Sprintf("%s: %s %d-%d: %s", d.Name, d.Function, d.First, d.Last, d.Detail)
		r.markers = append(r.markers, r.wholeRun(otf2.MarkerSeverityHigh, categoryDiffer, text, otf2.MarkerScopeComm,
			uint64(d.Comm)))
	}
}

// markPauses adds markers for operations that were not recorded, and for communicators whose members paused
// differently.
func (r *remarks) markPauses() {
	for i := range r.pauses[:min(len(r.pauses), maxDifferences)] {
		p := &r.pauses[i]
		m := marker{
			time: min(max(p.Begin, r.first), r.last), severity: otf2.MarkerSeverityLow, category: categoryPaused,
			text:  fmt.Sprintf("%s: operations %s were not recorded", p.In.Name, p.Operations()),
			scope: otf2.MarkerScopeComm, ref: uint64(p.In.Ref),
		}
		m.duration = r.last - m.time
		if p.To != 0 {
			m.duration = min(max(p.End, m.time), r.last) - m.time
		}
		r.markers = append(r.markers, m)
	}
	for _, in := range r.instances {
		if in.Parted != nil {
			r.markers = append(r.markers, r.wholeRun(
				otf2.MarkerSeverityHigh, categoryPaused, in.Name+": "+in.Parted.Detail, otf2.MarkerScopeComm,
				uint64(in.Ref)))
		}
	}
}

// markOrigins adds markers for transfers with an unknown originator, and one for event types that were not requested
// from NCCL because that was unsafe.
func (r *remarks) markOrigins() {
	for _, u := range r.origins.unknown[:min(len(r.origins.unknown), maxDifferences)] {
		f := u.part.Shard.Foreign[u.foreign]
		text := fmt.Sprintf("%s (%s) sent for communicator %d, rank %d of the process with tag %04x (its pid: %d): %s",
			u.part.Name, u.part.ID(), f.Index, f.Rank, f.Tag, f.PID, u.why)
		r.markers = append(r.markers, r.wholeRun(otf2.MarkerSeverityHigh, categoryPXN, text,
			otf2.MarkerScopeLocationGroup, uint64(u.part.Index)))
	}
	if i := slices.IndexFunc(r.ordered(), func(p *jobs.Process) bool { return p.Shard.Masks.Withheld != 0 }); i >= 0 {
		r.markers = append(r.markers, r.wholeRun(otf2.MarkerSeverityMedium, categoryWithheld,
			withheld(r.ordered()[i].Shard), otf2.MarkerScopeGlobal, math.MaxUint64))
	}
}

// write writes the marker file at path, with the given chunk size in bytes.
func (all markers) write(path string, chunkSize uint64) error {
	w, err := otf2.CreateMarkerWriter(path, chunkSize)
	if err != nil {
		return err
	}
	all.addTo(w, 0)
	if err := w.Close(); err != nil {
		return fmt.Errorf("write markers: %w", err)
	}
	return nil
}

// addTo writes the definitions of the markers, with ids from first on, then the markers. A (group, category) pair
// identifies a definition, so each further severity of a category gets the severity added to its name. w keeps its
// first error and returns it from Close.
func (all markers) addTo(w *otf2.MarkerWriter, first otf2.MarkerRef) {
	type kind struct {
		category string
		severity otf2.MarkerSeverity
	}
	refs := make(map[kind]otf2.MarkerRef)
	named := make(map[string]bool)
	for _, m := range all {
		k := kind{m.category, m.severity}
		if _, ok := refs[k]; ok {
			continue
		}
		name := m.category
		if named[name] {
			name += " (" + strings.ToLower(m.severity.String()) + ")"
		}
		named[name] = true
		refs[k] = first + otf2.MarkerRef(len(refs))
		_ = w.DefMarker(refs[k], markerGroup, clean(name), m.severity)
	}
	for _, m := range all {
		_ = w.Marker(otf2.Timestamp(m.time), m.duration, refs[kind{m.category, m.severity}], m.scope, m.ref,
			clean(m.text))
	}
}

// clean removes NULs, which would end the string on disk.
func clean(s string) string { return strings.ReplaceAll(s, "\x00", "") }
