// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/nccl-otf2/nccl-otf2/internal/stats"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// benchCase is something that both implementations do, each in a process of its own.
type benchCase struct {
	name      string
	does      string // write, local (reader), global (reader), print
	kind      string // of events
	locations uint64
	events    uint64 // of each location
	// chunk is the size of the event file's chunks in an archive that is read; 0: the archive is one that libotf2 wrote
	// with its defaults. Archives of many locations are written by package otf2, libotf2 takes long for them.
	chunk  uint64
	files  uint64 // limit of open files for ours, 0: none
	rounds int    // at most, 0: as asked for
	rows   []row
}

// row is a figure of a case.
type row struct {
	title string
	unit  string
	of    func(*outcome) span // a time; or
	count func(*outcome) float64
	aim   float64 // largest ratio to libotf2 that is aimed at, 0: none
	limit float64 // largest value aimed at, 0: none
}

func phase(name string) func(*outcome) span {
	return func(o *outcome) span { return o.Phases[name] }
}

// plain returns what the system takes for ours, to be compared with everything that libotf2 does: no writer of the same
// format gets below that ratio.
func plain(o *outcome) span {
	if s, ok := o.Phases["plain"]; ok {
		return s
	}
	return o.Phases["archive"]
}

// Units.
const perEvent, milliseconds, mebibytes, fileCount = "ns/event", "ms", "MiB", "files"

// in converts nanoseconds to the row's unit.
func (r *row) in(ns int64, o *outcome) float64 {
	if r.unit == perEvent {
		return float64(ns) / float64(o.Events)
	}
	return float64(ns) / 1e6
}

// values are the row's of outcomes, by the clock and by the processors.
func (r *row) values(outcomes []*outcome) (wall, cpu []float64) {
	for _, o := range outcomes {
		if r.count != nil {
			wall = append(wall, r.count(o))
			continue
		}
		s := r.of(o)
		wall, cpu = append(wall, r.in(s.Wall, o)), append(cpu, r.in(s.CPU, o))
	}
	return wall, cpu
}

// write writes the smallest value and, in brackets, the median; of files the largest.
func (r *row) write(values []float64) string {
	switch {
	case len(values) == 0:
		return none
	case r.unit == fileCount:
		return whole(slices.Max(values))
	}
	return fmt.Sprintf("%s (%s)", digits(slices.Min(values)), digits(stats.Median(values)))
}

// cells are the row's texts. An aim is met if the ratio of the best times and that of the processors' best times are, a
// limit if no round was above it.
func (r *row) cells(samples []sample) []string {
	var ours, libotf2 []*outcome
	for _, s := range samples {
		ours = append(ours, s.ours)
		if s.libotf2 != nil {
			libotf2 = append(libotf2, s.libotf2)
		}
	}
	wall, cpu := r.values(ours)
	theirs, theirCPU := r.values(libotf2)
	cells := []string{r.title, r.unit, r.write(wall), r.write(theirs), none, none, none, ""}
	worst := 0.0
	if len(theirs) > 0 {
		worst = slices.Min(wall) / slices.Min(theirs)
		cells[4] = someRatio(worst)
		if len(theirCPU) > 0 && slices.Min(theirCPU) > 0 {
			ratio := slices.Min(cpu) / slices.Min(theirCPU)
			cells[5], worst = someRatio(ratio), max(worst, ratio)
		}
	}
	switch {
	case r.limit > 0:
		cells[6], cells[7] = fmt.Sprintf("≤ %g %s", r.limit, r.unit), verdict(slices.Max(wall), r.limit)
	case r.aim > 0:
		cells[6], cells[7] = fmt.Sprintf("≤ %g×", r.aim), "not measured"
		if len(theirs) > 0 {
			cells[7] = verdict(worst, r.aim)
		}
	}
	return cells
}

func rss(o *outcome) float64       { return float64(o.RSS) / 1024 }
func mostFiles(o *outcome) float64 { return float64(o.OpenFiles) }

func writing(name, kind string, events uint64, aim float64) benchCase {
	return benchCase{name: name, does: "write", kind: kind, locations: 1, events: events, rows: []row{
		{title: name + ", calls only", unit: perEvent, of: phase("calls"), aim: aim},
		{title: name + ", with flush and close", unit: perEvent, of: phase("archive"), aim: aim},
		{title: "– ours: write(2) of the same bytes, nothing else", unit: perEvent, of: plain},
	}}
}

func reading(name, does, kind string, events uint64) benchCase {
	return benchCase{name: name, does: does, kind: kind, locations: 1, events: events, rows: []row{
		{title: name, unit: perEvent, of: phase("all"), aim: 0.5},
	}}
}

func readingMany(name string, locations, events, chunk uint64) benchCase {
	return benchCase{name: name, does: "global", kind: enterLeave, locations: locations, events: events, chunk: chunk,
		rows: []row{
			{title: name + ": open to first event", unit: milliseconds, of: phase("open")},
			{title: name + ": after that", unit: perEvent, of: phase("events")},
			{title: name + ": together", unit: perEvent, of: phase("all"), aim: 0.25},
			{title: name + ": peak RSS", unit: mebibytes, count: rss, aim: 0.15},
		}}
}

func printing(name, kind string, events uint64) benchCase {
	return benchCase{name: name, does: "print", kind: kind, locations: 1, events: events, rows: []row{
		{title: name, unit: perEvent, of: phase("all")},
	}}
}

// cases returns all cases. scale multiplies the numbers of events.
func cases(scale float64) []benchCase {
	const libotf2Chunk, ourChunk = 1 << 20, otf2.DefaultEventChunkSize
	all := []benchCase{
		writing("write Enter/Leave", enterLeave, 4_000_000, 0.4),
		writing("write collectives", collectives, 2_000_000, 0),
		writing("write Enter with 5 attributes", attributes, 1_000_000, 0.25),
		reading("read Enter/Leave, global reader", "global", enterLeave, 4_000_000),
		reading("read Enter/Leave, local reader", "local", enterLeave, 4_000_000),
		reading("read collectives, global reader", "global", collectives, 2_000_000),
		reading("read collectives, local reader", "local", collectives, 2_000_000),
		reading("read Enter with 5 attributes, global reader", "global", attributes, 1_000_000),
		reading("read Enter with 5 attributes, local reader", "local", attributes, 1_000_000),
		readingMany("1000 locations × 2000 events, 1 MiB chunks", 1000, 2000, libotf2Chunk),
		readingMany("1000 locations × 2000 events, 256 KiB chunks", 1000, 2000, ourChunk),
		{name: "10 000 locations × 20 events, 256 KiB chunks", does: "global", kind: enterLeave, locations: 10_000,
			events: 20,
			chunk:  ourChunk, files: 256, rounds: 3, rows: []row{
				{title: "10 000 locations × 20 events: open to first event", unit: milliseconds, of: phase("open")},
				{title: "10 000 locations × 20 events: together", unit: milliseconds, of: phase("all")},
				{title: "10 000 locations × 20 events: peak RSS", unit: mebibytes, count: rss},
				{title: "10 000 locations × 20 events: open files", unit: fileCount, count: mostFiles, limit: 256},
			}},
		printing("print Enter/Leave", enterLeave, 1_000_000),
		printing("print collectives", collectives, 1_000_000),
		printing("print Enter with 5 attributes", attributes, 400_000),
	}
	for i := range all {
		c := &all[i]
		c.events = max(2, uint64(float64(c.events)*scale)/2*2)
	}
	return all
}

// archive names the archive that the case reads; cases that read the same have the same name.
func (c *benchCase) archive() string {
	return fmt.Sprintf("%s-%d-%d-%d", c.kind, c.locations, c.events, c.chunk)
}

// arguments returns those of the programs, see ourCase. path is the archive's anchor, for writing its folder.
func (c *benchCase) arguments(limit uint64, path string) []string {
	args := []string{strconv.FormatUint(limit, 10), c.does, c.kind, strconv.FormatUint(c.locations, 10)}
	if c.does == "write" {
		args = append(args, strconv.FormatUint(c.events, 10))
	}
	return append(args, path)
}
