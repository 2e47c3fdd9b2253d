// SPDX-License-Identifier: Apache-2.0

// Package check determines whether an archive is sound: its definitions, each event by itself, and whether the records
// of the ranks are consistent. It decodes events itself instead of using package facts, so that it does not share
// errors of that package. Only missing MPI calls are found by package analysis, for all users.
package check

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selfreport"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Options configure a check; nil means the zero value.
type Options struct {
	// Limit is the number of findings kept for each rule and severity; further ones are only counted. 0: 20.
	Limit int
}

// OpenForCheck opens an archive, which the caller must close. The first findings are damaged definitions, and calls
// that the archive lacks on some ranks, so that these are not mistaken for other errors later.
func OpenForCheck(anchorPath string, opts *Options) (*otf2.Archive, *Findings, error) {
	opts = cmp.Or(opts, new(Options))
	limit := cmp.Or(uint64(opts.Limit), 20)
	fs := &Findings{count: make(map[kind]uint64), limit: limit}
	a, err := otf2.Open(anchorPath, nil)
	if a == nil {
		return nil, nil, err
	}
	if err != nil {
		fs.General(RuleFile, "global definitions: %v", err)
	}
	fs.said = selfreport.PropertiesOf(a.Anchor)
	fs.lenient = fs.said.Incomplete()
	fs.apart = selfreport.StretchesOf(a.Anchor)
	for _, s := range analysis.FindMissingCalls(a) {
		if !s.Unsure {
			fs.apart = append(fs.apart, s)
			fs.Add(Finding{Severity: fs.pairing(), Rule: RuleCollectiveMate, Text: s.String()})
		}
	}
	return a, fs, nil
}

// Archive looks for anything in the archive that its readers would fail on: in the definitions, in every location's
// events, and between locations (collectives and messages that do not match). It reads all events once.
//
// If the archive states that its communication is incomplete (OTF2::MPI_COMMUNICATION_COMPLETE false), missing
// counterparts are notes instead of errors.
//
// An error is returned only if the archive cannot be opened. A damaged file is a finding; what it lacks is then not
// reported as missing elsewhere.
func Archive(anchorPath string, opts *Options) (*Result, error) {
	a, fs, err := OpenForCheck(anchorPath, opts)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	ps := fs.said
	(&definitionCheck{Findings: fs, anchor: a.Anchor, defs: a.Defs}).run()

	for _, died := range ps.Numbered(property.Died) {
		fs.Add(Finding{Severity: Note, Rule: RuleProcess, Text: died})
	}

	for _, damaged := range ps.Numbered(property.Damaged) {
		fs.Add(Finding{Severity: Error, Rule: RuleFile, Text: "when the archive was made: " + damaged})
	}

	for _, differ := range ps.Numbered(property.Differ) { // matching leaves these operations out
		rule := RuleCollectiveMate
		if strings.Contains(differ, " Send ") {
			rule = RuleMessage
		}
		fs.Add(Finding{Severity: Note, Rule: rule, Text: saidToDiffer + differ})
	}

	for _, uncounted := range ps.Numbered(property.Uncounted) {
		fs.Add(Finding{Severity: Note, Rule: RuleLoss, Text: "missing, an unknown number: " + uncounted})
	}

	if lost := ps.Below(property.Lost); len(lost) > 0 {
		fs.Add(Finding{Severity: Note, Rule: RuleLoss, Text: "missing: " + selfreport.CountersText(lost)})
	}

	c := newEventCheck(a, fs)
	c.markers()
	c.run()
	c.counters(ps)

	return fs.Result(c.events), nil
}

// saidToDiffer begins findings that the archive reports about itself.
const saidToDiffer = "not compared, as members differ: "

// counters compares the archive's counters with its contents.
func (c *eventCheck) counters(ps selfreport.Properties) {
	compare := func(name property.Name, want uint64, what string) {
		if n, ok := ps.Number(name); ok && n != want {
			c.Add(Finding{Severity: c.pairing(), Rule: RuleCounter,
				Text: fmt.Sprintf("%s is %d, but there are %d %s", name.Key(), n, want, what)})
		}
	}
	processes := uint64(0)
	for _, g := range c.defs.LocationGroups {
		if g.Type == otf2.LocationGroupTypeProcess {
			processes++
		}
	}
	if missing, ok := ps.Number(property.ProcessesMissing); ok && !ps.Merged() {
		compare(property.Processes, processes-selfreport.AbsentGroups(c.defs, missing), "processes with data")
	}
	networks := 0
	for _, comm := range membership.AllCommunicators(c.defs) {
		networks += int(analysis.BoolCount(comm.Network))
	}
	if !ps.Merged() {
		compare(property.Communicators, uint64(len(c.defs.Comms)-networks), "communicators")
	}
	if _, ok := ps.Number(property.Processes); !ok {
		return // another tool wrote the archive
	}
	timing := ps.Below(property.Timing)
	names := slices.AppendSeq(slices.Collect(maps.Keys(timing)), maps.Keys(c.timed))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if timing[name] != c.timed[name] {
			c.Add(Finding{Severity: c.pairing(), Rule: RuleCounter,
				Text: fmt.Sprintf("%s is %d, but %d operations have that timing source",
					property.Timing.Below(name).Key(), timing[name], c.timed[name])})
		}
	}
}

// markers checks the references of markers.
func (c *eventCheck) markers() {
	defs, markers, err := c.archive.Markers()
	if err != nil {
		c.General(RuleFile, "markers: %v", err)
	}
	kinds := make(map[otf2.MarkerRef]bool)
	for _, d := range defs {
		kinds[d.Self] = true
	}
	spaces := map[otf2.MarkerScope]otf2.MappingType{
		otf2.MarkerScopeLocation: otf2.MappingLocation, otf2.MarkerScopeLocationGroup: otf2.MappingLocationGroup,
		otf2.MarkerScopeGroup: otf2.MappingGroup, otf2.MarkerScopeComm: otf2.MappingComm,
	}
	for i, m := range markers {
		if !kinds[m.Marker] {
			c.General(RuleReference, "marker %d: its kind %d is not defined", i, m.Marker)
		}
		if space, ok := spaces[m.ScopeType]; ok && !c.refs.defined(space, m.Scope) {
			c.General(RuleReference, "marker %d: its scope, %v %d, is not defined", i, m.ScopeType, m.Scope)
		}
		if !c.isInClockRange(m.Time) {
			c.General(RuleTimeRange, "marker %d at %d is outside the clock properties", i, m.Time)
		} else if end := m.Time + otf2.Timestamp(m.Duration); end < m.Time || !c.isInClockRange(end) {
			c.General(RuleTimeRange, "marker %d at %d lasts %d, beyond the clock properties", i, m.Time, m.Duration)
		}
	}
}

// headerEvents reads the number of the last event from the header of an event file's last chunk.
func headerEvents(path string, chunkSize uint64) (uint64, error) {
	f, err := regular.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	const headerSize, lastEvent, bigEndian = 18, 10, 0x23
	if info.Size() < headerSize {
		return 0, errors.New("no chunk header")
	}
	var header [headerSize]byte
	chunk := (info.Size() - 1) / int64(chunkSize) * int64(chunkSize)
	if _, err := f.ReadAt(header[:], chunk); err != nil {
		return 0, err
	}
	if header[1] == bigEndian {
		return binary.BigEndian.Uint64(header[lastEvent:]), nil
	}
	return binary.LittleEndian.Uint64(header[lastEvent:]), nil
}
