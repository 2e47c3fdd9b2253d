// SPDX-License-Identifier: Apache-2.0

// Package tally sums up all regions of an archive by name, in the manner of THAPI's iprof.
package tally

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selection"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/naming"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Report sums up all regions of an archive by name, in the manner of THAPI's iprof: one table for each group of
// regions ("NCCL API", "NCCL collectives", …).
type Report struct {
	Groups   []Group  `json:"groups"` // in the order of the archive's definitions; regions without a group come last
	Problems []string `json:"problems"`
}

// Group sums up the regions of one group.
type Group struct {
	Group     string `json:"group"` // "" for regions without a group
	Hosts     int    `json:"hosts"` // hosts on which the regions occurred
	Processes int    `json:"processes"`
	Threads   int    `json:"threads"` // number of locations: threads, and rows of GPUs and networks
	Total     uint64 `json:"total_ns"`
	// LaunchedOnly is the part of Total spent in operations for which only the launch is known.
	LaunchedOnly uint64 `json:"launched_only_ns"`
	// Counts says what Calls counts, in the plural: "launches" of operations by each rank, "channels" that took part
	// in an operation, …
	Counts string `json:"counts"`
	Calls  uint64 `json:"calls"`
	Rows   []Row  `json:"rows"` // the longest total time first
}

// GroupChannels is the group of the regions on channels' rows. They show parts of operations that the groups of the
// ranks' rows already contain.
const GroupChannels = "NCCL channels"

// tallyCounts maps groups to what their regions are called; in other groups they are "regions".
var tallyCounts = map[string]string{
	regions.GroupAPI: "calls", regions.GroupEnqueue: "calls", regions.GroupCollectives: "launches",
	regions.GroupPointToPoint: "launches",
	regions.GroupKernel:       "phases", regions.GroupNetwork: "stretches", regions.GroupProxy: "stretches",
	regions.GroupApplication: "phases",
	regions.GroupCUDAKernels: "kernels", GroupChannels: "channels",
}

// Row sums up the regions of one name. Times are inclusive: from Enter to Leave, with all regions inside.
type Row struct {
	Name string `json:"name"`
	// Device marks operations with a buffer known to be in a GPU's memory, or in memory that a GPU shares (managed),
	// and calls that led to such operations.
	Device bool `json:"device"`
	// Launched marks operations for which only the launch is known. Their times are the times to enqueue them, not how
	// long they ran.
	Launched bool    `json:"launched_only"`
	Time     uint64  `json:"time_ns"`
	Share    float64 `json:"share"` // of the group's time, 0 … 1
	Calls    uint64  `json:"calls"` // regions that have ended
	Average  float64 `json:"average_ns"`
	Min      uint64  `json:"min_ns"`
	Max      uint64  `json:"max_ns"`
	// Unfinished counts the regions that were open when the data ended. They are not in the times and not in Calls.
	Unfinished uint64 `json:"unfinished"`
	// Summed reports that for some regions only a sum was recorded, so Min and Max are unknown (0).
	Summed bool `json:"summed"`
}

// Read reads all events and sums up the selected regions. Files that cannot be read to their end are named in
// Problems; what was read from them counts.
func Read(a *otf2.Archive, selected *selection.Selection) *Report {
	lanes := analysis.LanesOf(a.Defs)
	kinds := naming.RowsOf(a.Defs, membership.Communicators(a.Defs))
	tallies := make([]*tally, len(lanes))
	processes := placement.Processes(a.Defs)
	problems := analysis.ReadRegions(a, lanes, func(i int, r *facts.Reader) {
		tallies[i] = newTally(a.Defs, kinds, processes)
		r.Enter, r.Leave, r.Begun, r.Sums = tallies[i].enter, tallies[i].leave, tallies[i].begun, tallies[i].netSums
		selected.Regions(r)
	})
	sum := newTally(a.Defs, kinds, processes)
	for _, t := range tallies {
		sum.addLane(t)
	}
	r := sum.result(processes)
	r.Problems = append(r.Problems, problems...)
	return r
}

// tally sums up the regions of some locations.
type tally struct {
	defs  *otf2.Definitions
	kinds *naming.Rows
	group map[otf2.RegionRef]int // index into names
	names []string               // names of groups
	sums  map[tallyKey]*Row
	rows  map[otf2.LocationRef]*tallyRowState
	calls *joined

	phases [naming.NumNetPhases]otf2.RegionRef // of transfers
	netSum map[otf2.RegionRef]bool             // regions that are records of sums
}

type tallyKey struct {
	region  otf2.RegionRef
	device  bool
	channel bool // on a channel's row
	// launched: only the launch of the operation is known, see Row
	launched bool
}

// tallyRowState is the open regions of a location, and the groups that have had a region on it.
type tallyRowState struct {
	open   []tallyFrame // open regions
	groups map[int]bool
	last   int // group of the last region, plus 1
	kind   description.LocationKind
}

type tallyFrame struct {
	region   otf2.RegionRef
	entered  uint64 // see facts.Region
	device   bool
	launched bool
}

func newTally(defs *otf2.Definitions, kinds *naming.Rows, processes map[otf2.LocationRef]otf2.LocationGroupRef) *tally {
	t := &tally{
		defs: defs, kinds: kinds, group: make(map[otf2.RegionRef]int), sums: make(map[tallyKey]*Row),
		rows:  make(map[otf2.LocationRef]*tallyRowState),
		calls: newJoined(defs, processes), netSum: naming.NetSumRegions(defs),
	}
	for ref, phase := range naming.NetPhaseRegions(defs) {
		t.phases[phase] = ref
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
	t.names = append(t.names, GroupChannels, "") // the last one is for regions without a group
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
	r := keyed.EntryMade(t.rows, region.Location, func() *tallyRowState {
		return &tallyRowState{groups: make(map[int]bool), kind: t.kinds.Kind(region.Location)}
	})
	r.open = append(r.open, tallyFrame{region.Region, region.Entered, region.Device,
		region.Source == facts.SourceEnqueue})
	if region.Device {
		t.calls.works(region.Location, region.Parent)
	}
	if g := t.groupOf(region.Region, r.kind == description.KindChannel); r.last != g+1 {
		r.groups[g] = true
		r.last = g + 1
	}
}

// begun takes the details of an operation in an open region.
func (t *tally) begun(d *facts.Details, in *facts.Region) {
	if in != nil && d.Device {
		open := t.rows[in.Location].open
		open[len(open)-1].device = true
		t.calls.works(in.Location, d.Parent)
	}
}

// leave takes a region that ends.
func (t *tally) leave(region *facts.Region) {
	r := t.rows[region.Location]
	at := facts.IndexOpen(r.open, region, func(f *tallyFrame) uint64 { return f.entered })
	f := r.open[at]
	r.open = slices.Delete(r.open, at, at+1)
	if region.Unfinished || region.Lost || region.End < region.Begin {
		t.row(r, &f).Unfinished++
		return
	}
	if t.netSum[region.Region] {
		return // see netSums
	}
	if !t.calls.keeps(region) {
		t.row(r, &f).ended(uint64(region.End - region.Begin))
	}
}

// netSums takes the phases of transfers that were recorded as sums.
func (t *tally) netSums(s *facts.NetSums) {
	for phase, n := range s.Phases {
		if n > 0 {
			row := t.sum(tallyKey{region: t.phases[phase]})
			row.Time += s.Times[phase]
			row.Calls += n
			row.Summed = true
		}
	}
	if s.Unfinished {
		t.sum(tallyKey{region: t.phases[s.OpenPhase]}).Unfinished++
	}
}

// ended adds a region with its duration in ns.
func (r *Row) ended(took uint64) {
	if r.Calls == 0 || took < r.Min {
		r.Min = took
	}
	r.Max = max(r.Max, took)
	r.Time += took
	r.Calls++
}

func (t *tally) row(r *tallyRowState, f *tallyFrame) *Row {
	return t.sum(tallyKey{f.region, f.device, r.kind == description.KindChannel, f.launched})
}

func (t *tally) sum(key tallyKey) *Row {
	return keyed.Entry(t.sums, key)
}

// addLane adds another lane's locations.
func (t *tally) addLane(o *tally) {
	t.calls.addLane(o.calls)
	for l, r := range o.rows {
		for i := range r.open {
			o.row(r, &r.open[i]).Unfinished++
		}
		r.open = nil
		t.rows[l] = r
	}
	for key, row := range o.sums {
		t.sum(key).Add(row)
	}
}

// Add adds another row of the same name.
func (r *Row) Add(o *Row) {
	if o.Calls > 0 && (r.Calls == 0 || o.Min < r.Min) {
		r.Min = o.Min
	}
	r.Max = max(r.Max, o.Max)
	r.Time += o.Time
	r.Calls += o.Calls
	r.Unfinished += o.Unfinished
	if r.Summed = r.Summed || o.Summed; r.Summed {
		r.Min, r.Max = 0, 0
	}
}

func (t *tally) result(of map[otf2.LocationRef]otf2.LocationGroupRef) *Report {
	t.calls.passCalls(func(region otf2.RegionRef, device bool, took uint64) {
		t.sum(tallyKey{region: region, device: device}).ended(took)
	})
	type named struct {
		group            int
		name             string
		device, launched bool
	}
	sums := make(map[named]*Row) // regions of several processes can have one name
	for key, row := range t.sums {
		name := t.defs.RegionName(key.region)
		k := named{t.groupOf(key.region, key.channel), name, key.device, key.launched}
		sum := keyed.EntryMade(sums, k,
			func() *Row { return &Row{Name: name, Device: key.device, Launched: key.launched} })
		sum.Add(row)
	}
	groups := make([]Group, len(t.names))
	for k, row := range sums {
		g := &groups[k.group]
		if row.Calls > 0 {
			row.Average = float64(row.Time) / float64(row.Calls)
		}
		g.Rows = append(g.Rows, *row)
		g.Total += row.Time
		if row.Launched {
			g.LaunchedOnly += row.Time
		}
		g.Calls += row.Calls
	}
	r := &Report{Groups: []Group{}, Problems: []string{}}
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
				hosts[placement.HostOf(t.defs, of[l])] = true
			}
		}
		g.Processes, g.Hosts = len(procs), len(hosts)
		for k := range g.Rows {
			if g.Total > 0 {
				g.Rows[k].Share = float64(g.Rows[k].Time) / float64(g.Total)
			}
		}
		slices.SortFunc(g.Rows, func(a, b Row) int {
			return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Name, b.Name),
				cmp.Compare(analysis.BoolCount(a.Device), analysis.BoolCount(b.Device)),
				cmp.Compare(analysis.BoolCount(a.Launched), analysis.BoolCount(b.Launched)))
		})
		r.Groups = append(r.Groups, *g)
	}
	return r
}
