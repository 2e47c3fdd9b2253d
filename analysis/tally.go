// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/experiment"
	"github.com/nccl-otf2/nccl-otf2/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// TallyReport sums up all regions of an archive by name, in the manner of THAPI's iprof: one table for each
// group of regions ("NCCL API", "NCCL collectives", …).
type TallyReport struct {
	Groups   []TallyGroup `json:"groups"` // in the order of the archive's definitions; regions of no group last
	Problems []string     `json:"problems"`
}

// TallyGroup is the regions of one group.
type TallyGroup struct {
	Group     string `json:"group"` // "" for regions of none
	Hosts     int    `json:"hosts"` // on which they were
	Processes int    `json:"processes"`
	Threads   int    `json:"threads"` // locations: threads, and rows of GPUs and networks
	Total     uint64 `json:"total_ns"`
	// Counts says what the group's calls are, in the plural: "launches" of operations by each rank, "channels" that
	// had a part in one, …
	Counts string     `json:"counts"`
	Calls  uint64     `json:"calls"`
	Rows   []TallyRow `json:"rows"` // the most time first
}

// groupChannels holds the regions of rows of channels, which show parts of operations: these are in their groups with the
// rows of ranks already.
const groupChannels = "NCCL channels"

// tallyCounts says what regions of the groups are; those of others are regions.
var tallyCounts = map[string]string{
	regions.GroupAPI: "calls", regions.GroupEnqueue: "calls", regions.GroupCollectives: "launches", regions.GroupPointToPoint: "launches",
	regions.GroupKernel: "phases", regions.GroupNetwork: "stretches", regions.GroupProxy: "stretches", regions.GroupApplication: "phases",
	regions.GroupCUDAKernels: "kernels", groupChannels: "channels",
}

// TallyRow is the regions of one name. Their times are inclusive: from Enter to Leave, with the regions inside.
type TallyRow struct {
	Name string `json:"name"`
	// Device: operations of which a buffer is known to be in a GPU's memory.
	Device  bool    `json:"device"`
	Time    uint64  `json:"time_ns"`
	Share   float64 `json:"share"` // of the group's time, 0 … 1
	Calls   uint64  `json:"calls"` // that have ended
	Average float64 `json:"average_ns"`
	Min     uint64  `json:"min_ns"`
	Max     uint64  `json:"max_ns"`
	// Unfinished were open when the data ended. They are in no time and no number of calls.
	Unfinished uint64 `json:"unfinished"`
}

// Tally reads all events and sums up the regions. Files that cannot be read to their end are named in Problems; what
// was read of them counts.
func Tally(a *otf2.Archive) *TallyReport {
	lanes := lanesOf(a.Defs)
	kinds := facts.RowsOf(a.Defs, facts.Communicators(a.Defs))
	tallies := make([]*tally, len(lanes))
	problems := readRegions(a, lanes, func(i int, r *facts.Reader) {
		tallies[i] = newTally(a.Defs, kinds)
		r.Enter, r.Leave, r.Begun = tallies[i].enter, tallies[i].leave, tallies[i].begun
	})
	sum := newTally(a.Defs, kinds)
	for _, t := range tallies {
		sum.absorb(t)
	}
	r := sum.result()
	r.Problems = append(r.Problems, problems...)
	return r
}

// tally sums up the regions of some locations.
type tally struct {
	defs  *otf2.Definitions
	kinds *facts.Rows
	group map[otf2.RegionRef]int // index into names
	names []string               // of groups
	sums  map[tallyKey]*TallyRow
	rows  map[otf2.LocationRef]*tallyRowState
}

type tallyKey struct {
	region  otf2.RegionRef
	device  bool
	channel bool // on a channel's row
}

// tallyRowState is the open regions of a location, and of which groups it has had any.
type tallyRowState struct {
	open   []tallyFrame // regions
	groups map[int]bool
	last   int // group that was seen last, plus 1
	kind   experiment.LocationKind
}

type tallyFrame struct {
	region otf2.RegionRef
	device bool
}

func newTally(defs *otf2.Definitions, kinds *facts.Rows) *tally {
	t := &tally{
		defs: defs, kinds: kinds, group: make(map[otf2.RegionRef]int), sums: make(map[tallyKey]*TallyRow), rows: make(map[otf2.LocationRef]*tallyRowState),
	}
	for _, g := range defs.Groups {
		if g.Type != otf2.GroupTypeRegions {
			continue
		}
		for _, m := range g.Members {
			if _, known := t.group[otf2.RegionRef(m)]; !known {
				t.group[otf2.RegionRef(m)] = len(t.names)
			}
		}
		t.names = append(t.names, defs.String(g.Name))
	}
	t.names = append(t.names, groupChannels, "") // the last has regions of no group
	return t
}

func (t *tally) groupOf(region otf2.RegionRef, channel bool) int {
	if channel {
		return len(t.names) - 2
	}
	if g, ok := t.group[region]; ok {
		return g
	}
	return len(t.names) - 1
}

// enter takes a region that begins.
func (t *tally) enter(region *facts.Region) {
	r := t.rows[region.Location]
	if r == nil {
		r = &tallyRowState{groups: make(map[int]bool), kind: t.kinds.Kind(region.Location)}
		t.rows[region.Location] = r
	}
	r.open = append(r.open, tallyFrame{region.Region, region.Device})
	if g := t.groupOf(region.Region, r.kind == experiment.KindChannel); r.last != g+1 {
		r.groups[g] = true
		r.last = g + 1
	}
}

// begun takes what is told of an operation in a region.
func (t *tally) begun(d *facts.Details, in *facts.Region) {
	if in != nil && d.Device {
		open := t.rows[in.Location].open
		open[len(open)-1].device = true
	}
}

// leave takes a region that ends.
func (t *tally) leave(region *facts.Region) {
	r := t.rows[region.Location]
	f := r.open[len(r.open)-1]
	r.open = r.open[:len(r.open)-1]
	row := t.row(r, &f)
	if region.Unfinished || region.Lost || region.End < region.Begin {
		row.Unfinished++
		return
	}
	took := uint64(region.End - region.Begin)
	if row.Calls == 0 || took < row.Min {
		row.Min = took
	}
	row.Max = max(row.Max, took)
	row.Time += took
	row.Calls++
}

func (t *tally) row(r *tallyRowState, f *tallyFrame) *TallyRow {
	key := tallyKey{f.region, f.device, r.kind == experiment.KindChannel}
	row := t.sums[key]
	if row == nil {
		row = new(TallyRow)
		t.sums[key] = row
	}
	return row
}

// absorb adds another lane's locations.
func (t *tally) absorb(o *tally) {
	for l, r := range o.rows {
		for i := range r.open {
			o.row(r, &r.open[i]).Unfinished++
		}
		r.open = nil
		t.rows[l] = r
	}
	for key, row := range o.sums {
		sum := t.sums[key]
		if sum == nil {
			t.sums[key] = row
			continue
		}
		sum.add(row)
	}
}

func (r *TallyRow) add(o *TallyRow) {
	if o.Calls > 0 && (r.Calls == 0 || o.Min < r.Min) {
		r.Min = o.Min
	}
	r.Max = max(r.Max, o.Max)
	r.Time += o.Time
	r.Calls += o.Calls
	r.Unfinished += o.Unfinished
}

func (t *tally) result() *TallyReport {
	type named struct {
		group  int
		name   string
		device bool
	}
	sums := make(map[named]*TallyRow) // regions of several processes have one name
	for key, row := range t.sums {
		name := ""
		if d := t.defs.Region(key.region); d != nil {
			name = t.defs.String(d.Name)
		}
		k := named{t.groupOf(key.region, key.channel), name, key.device}
		if sums[k] == nil {
			sums[k] = &TallyRow{Name: name, Device: key.device}
		}
		sums[k].add(row)
	}
	groups := make([]TallyGroup, len(t.names))
	for k, row := range sums {
		g := &groups[k.group]
		if row.Calls > 0 {
			row.Average = float64(row.Time) / float64(row.Calls)
		}
		g.Rows = append(g.Rows, *row)
		g.Total += row.Time
		g.Calls += row.Calls
	}
	of := processes(t.defs)
	r := &TallyReport{Groups: []TallyGroup{}, Problems: []string{}}
	for i := range groups {
		g := &groups[i]
		if len(g.Rows) == 0 {
			continue
		}
		g.Group = t.names[i]
		if g.Counts = tallyCounts[g.Group]; g.Counts == "" {
			g.Counts = "regions"
		}
		hosts, procs := make(map[string]bool), make(map[otf2.LocationGroupRef]bool)
		for l, row := range t.rows {
			if row.groups[i] {
				g.Threads++
				procs[of[l]] = true
				hosts[hostOf(t.defs, of[l])] = true
			}
		}
		g.Processes, g.Hosts = len(procs), len(hosts)
		for k := range g.Rows {
			if g.Total > 0 {
				g.Rows[k].Share = float64(g.Rows[k].Time) / float64(g.Total)
			}
		}
		slices.SortFunc(g.Rows, func(a, b TallyRow) int {
			return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Name, b.Name), cmp.Compare(boolCount(a.Device), boolCount(b.Device)))
		})
		r.Groups = append(r.Groups, *g)
	}
	return r
}

// tallyNotes say what is easily mistaken.
var tallyNotes = map[string]string{
	regions.GroupCollectives: "Launches are of each rank: a collective of 4 ranks is 4, several operations that NCCL launched together are one.",
	regions.GroupNetwork:     "Stretches are of a row, in which the oldest transfer under way was in that phase: not transfers, of which report --matrix has the number.",
	groupChannels:            "Channels show the parts of operations that are in the other tables.",
}

// tallyLine is a row of a table, with its group; the last of each is the total.
type tallyLine struct {
	group *TallyGroup
	TallyRow
	total bool
}

func tallyColumns(counts string) []column[tallyLine] {
	known := func(l *tallyLine, ns float64) string {
		if l.Calls == 0 {
			return "–"
		}
		return formatTime(ns)
	}
	return []column[tallyLine]{
		label("group", "", func(l *tallyLine) string { return l.group.Group }),
		{"name", "<Name", func(l *tallyLine) string {
			if l.Device {
				return l.Name + "*"
			}
			return l.Name
		}, func(l *tallyLine) any { return l.Name }},
		{"device", "", nil, func(l *tallyLine) any { return l.Device }},
		duration("time_ns", "Time", func(l *tallyLine) uint64 { return l.Time }),
		{"share", "Time(%)", func(l *tallyLine) string { return formatPercent(float64(l.Time), float64(l.group.Total)) }, func(l *tallyLine) any { return l.Share }},
		number("calls", counts, func(l *tallyLine) uint64 { return l.Calls }),
		{"average_ns", "Average", func(l *tallyLine) string { return known(l, l.Average) }, func(l *tallyLine) any { return l.Average }},
		{"min_ns", "Min", func(l *tallyLine) string { return known(l, float64(l.Min)) }, func(l *tallyLine) any { return l.Min }},
		{"max_ns", "Max", func(l *tallyLine) string { return known(l, float64(l.Max)) }, func(l *tallyLine) any { return l.Max }},
		number("unfinished", "Unfinished", func(l *tallyLine) uint64 { return l.Unfinished }),
	}
}

// Document gives the report as tables: one of CSV, one for each group for people.
func (r *TallyReport) Document() *Document {
	d := &Document{Title: "Time by name"}
	var all []tallyLine
	marked := false
	for i := range r.Groups {
		g := &r.Groups[i]
		sum := tallyLine{group: g, total: true, TallyRow: TallyRow{Name: "Total"}}
		for k := range g.Rows {
			row := &g.Rows[k]
			all = append(all, tallyLine{group: g, TallyRow: *row})
			marked = marked || row.Device
			sum.add(row)
		}
		if g.Calls > 0 {
			sum.Average = float64(g.Total) / float64(g.Calls)
		}
		all = append(all, sum)
	}
	columns := append(tallyColumns("Calls"), label("counts", "", func(l *tallyLine) string { return l.group.Counts }))
	d.sheets = []sheet{sheetOf("tally", "", withoutTotals(all), columns)}
	d.sheets[0].text = nil // its rows are in the tables that follow, which are not in CSV
	d.sheets = append(d.sheets, sheetOf("tally_groups", "", r.Groups, []column[TallyGroup]{
		label("group", "", func(g *TallyGroup) string { return g.Group }),
		{"hosts", "", nil, func(g *TallyGroup) any { return g.Hosts }},
		{"processes", "", nil, func(g *TallyGroup) any { return g.Processes }},
		{"threads", "", nil, func(g *TallyGroup) any { return g.Threads }},
		number("time_ns", "", func(g *TallyGroup) uint64 { return g.Total }),
		number("calls", "", func(g *TallyGroup) uint64 { return g.Calls }),
		label("counts", "", func(g *TallyGroup) string { return g.Counts }),
	}))
	d.sheets[1].text = nil
	for i := range r.Groups {
		g := &r.Groups[i]
		var lines []tallyLine
		for _, l := range all {
			if l.group == g {
				lines = append(lines, l)
			}
		}
		name := g.Group
		if name == "" {
			name = "(no group)"
		}
		s := sheetOf("", fmt.Sprintf("%s | %s | %s | %s", name, count(g.Hosts, "host", "hosts"), count(g.Processes, "process", "processes"), count(g.Threads, "thread", "threads")), lines, tallyColumns(strings.ToUpper(g.Counts[:1])+g.Counts[1:]))
		s.fields, s.values = nil, nil
		d.sheets = append(d.sheets, s)
	}
	if len(r.Groups) == 0 {
		d.say("There are no regions.")
	}
	if marked {
		d.note("* of an operation: a buffer is in GPU memory")
	}
	for i := range r.Groups {
		if note := tallyNotes[r.Groups[i].Group]; note != "" {
			d.note("%s", note)
		}
	}
	d.note("Times are from enter to leave, with what is inside. Threads are rows of the timeline: also those of GPUs and networks.")
	return d
}

func withoutTotals(all []tallyLine) []tallyLine {
	return slices.DeleteFunc(slices.Clone(all), func(l tallyLine) bool { return l.total })
}
