// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/experiment"
	"github.com/nccl-otf2/nccl-otf2/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// marker is a remark on an interval of the archive's time.
type marker struct {
	time, duration uint64
	severity       otf2.MarkerSeverity
	category, text string
	scope          otf2.MarkerScope
	ref            uint64 // of the scope
}

// markers are those of an archive, by time.
type markers []marker

// markerGroup is the group of all marker definitions of an archive.
const markerGroup = "nccl-otf2"

// Categories of the markers that unifying adds to those of the processes.
const (
	categoryMissing    = "Missing data"
	categoryIncomplete = "Incomplete process"
	categoryDied       = "Process died"
	categoryDiffer     = "Sequences differ"
	categoryPaused     = "Recording paused"
	categoryPXN        = "Unknown originator"
	categoryWithheld   = "Withheld"
)

// maxDifferences bounds the list of differences in markers and properties; the number is always told.
const maxDifferences = 200

// mark collects the processes' markers and adds what unifying has found.
func (a *archive) mark() {
	for _, p := range a.ordered() {
		for _, m := range p.Shard.Markers {
			a.markers = append(a.markers, a.markerOf(p, &m))
		}
		a.markEnd(p)
	}
	a.markCommunicators()
	a.markPauses()
	a.markOrigins()
	slices.SortStableFunc(a.markers, func(x, y marker) int { return cmp.Compare(x.time, y.time) })
}

// markerOf is a process's own marker on the archive's time. Readers draw markers between the first and the last event, so none may
// lie outside.
func (a *archive) markerOf(p *jobs.Process, m *experiment.Marker) marker {
	out := marker{
		time: p.At(m.Time), duration: m.Duration, severity: m.Severity, category: m.Category, text: m.Text,
		scope: otf2.MarkerScopeLocationGroup, ref: uint64(p.Index),
	}
	if (p.Knots != nil || p.Onto != nil) && m.Duration < 1<<62 {
		out.duration = p.At(m.Time+m.Duration) - out.time
	}
	if m.Location >= 0 {
		if l := a.ids[p][uint32(m.Location)]; l != nil {
			out.scope, out.ref = otf2.MarkerScopeLocation, uint64(l.Self)
		}
	}
	out.time = min(max(out.time, a.first), a.last)
	out.duration = min(out.duration, a.last-out.time)
	return out
}

// markEnd tells where a process died, or that its recording was not finished.
func (a *archive) markEnd(p *jobs.Process) {
	group := uint64(p.Index)
	if how := jobs.HowEnded(p.Shard); how != "" {
		a.markers = append(a.markers, marker{
			time: min(max(p.At(p.Shard.LastTime), p.Ended(), a.first), a.last), severity: otf2.MarkerSeverityHigh,
			category: categoryDied, text: fmt.Sprintf("%s (%s): %s", p.Name, p.ID(), how), scope: otf2.MarkerScopeLocationGroup, ref: group,
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
	a.markers = append(a.markers, marker{
		time: min(max(p.At(p.Shard.LastTime), a.first), a.last), severity: severity,
		category: categoryIncomplete, text: text, scope: otf2.MarkerScopeLocationGroup, ref: group,
	})
}

// whole is a marker over all of the archive's time.
func (x *extent) whole(severity otf2.MarkerSeverity, category, text string, scope otf2.MarkerScope, ref uint64) marker {
	return marker{time: x.first, duration: x.last - x.first, severity: severity, category: category, text: text, scope: scope, ref: ref}
}

// markCommunicators names the ranks without data, and the operations in which members differ.
func (a *archive) markCommunicators() {
	for _, in := range a.instances {
		if missing := in.Missing(); len(missing) > 0 {
			text := fmt.Sprintf("%s: no data of %s of %d", in.Name, jobs.RankWords(missing), in.Nranks)
			a.markers = append(a.markers, a.whole(otf2.MarkerSeverityHigh, categoryMissing, text, otf2.MarkerScopeComm, uint64(in.Ref)))
		}
	}
	for _, d := range a.differences[:min(len(a.differences), maxDifferences)] {
		text := fmt.Sprintf("%s: %s %d-%d: %s", d.Name, d.Function, d.First, d.Last, d.Detail)
		a.markers = append(a.markers, a.whole(otf2.MarkerSeverityHigh, categoryDiffer, text, otf2.MarkerScopeComm, uint64(d.Comm)))
	}
}

// markPauses tells which operations were not recorded, and where it is not known.
func (a *archive) markPauses() {
	for i := range a.pauses[:min(len(a.pauses), maxDifferences)] {
		p := &a.pauses[i]
		m := marker{
			time: min(max(p.Begin, a.first), a.last), severity: otf2.MarkerSeverityLow, category: categoryPaused,
			text:  fmt.Sprintf("%s: operations %s were not recorded", p.In.Name, p.Operations()),
			scope: otf2.MarkerScopeComm, ref: uint64(p.In.Ref),
		}
		m.duration = a.last - m.time
		if p.To != 0 {
			m.duration = min(max(p.End, m.time), a.last) - m.time
		}
		a.markers = append(a.markers, m)
	}
	for _, in := range a.instances {
		if in.Parted != nil {
			a.markers = append(a.markers, a.whole(otf2.MarkerSeverityHigh, categoryPaused, in.Name+": "+in.Parted.Detail, otf2.MarkerScopeComm, uint64(in.Ref)))
		}
	}
}

// markOrigins names transfers of which it is not known whose they were, and what NCCL was not asked for.
func (a *archive) markOrigins() {
	for _, u := range a.origins.unknown[:min(len(a.origins.unknown), maxDifferences)] {
		f := u.part.Shard.Foreign[u.foreign]
		text := fmt.Sprintf("%s (%s) sent for communicator %d, rank %d of the process with tag %04x (its pid: %d): %s",
			u.part.Name, u.part.ID(), f.Index, f.Rank, f.Tag, f.PID, u.why)
		a.markers = append(a.markers, a.whole(otf2.MarkerSeverityHigh, categoryPXN, text, otf2.MarkerScopeLocationGroup, uint64(u.part.Index)))
	}
	if i := slices.IndexFunc(a.ordered(), func(p *jobs.Process) bool { return p.Shard.Masks.Withheld != 0 }); i >= 0 {
		a.markers = append(a.markers, a.whole(otf2.MarkerSeverityMedium, categoryWithheld, withheld(a.ordered()[i].Shard), otf2.MarkerScopeGlobal, math.MaxUint64))
	}
}

// write writes the marker file. A category that comes in several severities is defined once
// for each, the further ones with the severity in the name, because (group, category) names a marker.
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

// addTo writes the markers; their definitions' ids begin with first.
func (all markers) addTo(w *otf2.MarkerWriter, first otf2.MarkerRef) {
	type kind struct {
		category string
		severity otf2.MarkerSeverity
	}
	refs := make(map[kind]otf2.MarkerRef)
	named := make(map[string]bool)
	for _, m := range all { // the writer keeps its first error for Close
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
		_ = w.Marker(otf2.Timestamp(m.time), m.duration, refs[kind{m.category, m.severity}], m.scope, m.ref, clean(m.text))
	}
}

// clean removes what ends strings on disk.
func clean(s string) string { return strings.ReplaceAll(s, "\x00", "") }
