// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selection"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/naming"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// rowKind is the kind of a row of the page.
type rowKind string

// Kinds of rows, from the outermost on.
const (
	kindHost    rowKind = "host"
	kindProcess rowKind = "process"
	kindDevice  rowKind = "device" // a GPU, in processes with several
	kindThread  rowKind = "thread"
	kindRank    rowKind = "rank" // of a communicator
	kindChannel rowKind = "channel"
	kindNetwork rowKind = "network"
	kindEvent   rowKind = "event"
	kindStream  rowKind = "stream"
	kindSensors rowKind = "sensors" // a location with metrics only
	kindMetric  rowKind = "metric"
)

// row is a row of the page. Rows with a location have bars.
type row struct {
	name     string
	kind     rowKind
	parent   int // index, −1
	location otf2.LocationRef
	group    otf2.LocationGroupRef
	*bars    // nil: no location
}

// makeRows arranges the locations of an archive: hosts, their processes, and in these threads, each communicator rank
// with its channels and network rows below it, then all others.
func makeRows(defs *otf2.Definitions) []row {
	t := tree{defs: defs, kinds: naming.RowsOf(defs, membership.Communicators(defs)),
		ranks: make(map[otf2.LocationRef]string), seen: make(map[otf2.LocationRef]bool)}
	for l, rank := range property.NetworkRanks(defs) {
		t.ranks[l] = strconv.Itoa(rank)
	}
	byProcess := make(map[otf2.LocationGroupRef][]*otf2.Location)
	var processes []otf2.LocationGroupRef
	for i := range defs.Locations {
		l := &defs.Locations[i]
		if t.seen[l.Self] || l.Type == otf2.LocationTypeMetric {
			continue
		}
		t.seen[l.Self] = true
		p := t.process(l.Group)
		if byProcess[p] == nil {
			processes = append(processes, p)
		}
		byProcess[p] = append(byProcess[p], l)
	}
	slices.Sort(processes)
	var hosts []string
	byHost := make(map[string][]otf2.LocationGroupRef)
	for _, p := range processes {
		h := t.host(p)
		if byHost[h] == nil {
			hosts = append(hosts, h)
		}
		byHost[h] = append(byHost[h], p)
	}
	for _, h := range hosts {
		at := t.add(row{name: h, kind: kindHost, parent: -1})
		for _, p := range byHost[h] {
			t.addProcess(at, p, byProcess[p])
		}
	}
	return t.rows
}

// selectRows removes the rows of locations outside the selection, and rows that are empty without these.
func selectRows(rows []row, selected *selection.Selection) []row {
	if selected == nil {
		return rows
	}
	keep := make([]bool, len(rows))
	for i := len(rows) - 1; i >= 0; i-- { // parents come first
		r := &rows[i]
		keep[i] = keep[i] || r.bars != nil && selected.Row(r.location)
		if keep[i] && r.parent >= 0 {
			keep[r.parent] = true
		}
	}
	var left []row
	moved := make([]int, len(rows))
	for i, r := range rows {
		if !keep[i] {
			continue
		}
		moved[i] = len(left)
		if r.parent >= 0 {
			r.parent = moved[r.parent]
		}
		left = append(left, r)
	}
	return left
}

type tree struct {
	defs  *otf2.Definitions
	kinds *naming.Rows
	rows  []row
	ranks map[otf2.LocationRef]string // of network locations
	seen  map[otf2.LocationRef]bool
	only  map[rankOfComm]string // made when it is asked for
}

func (t *tree) add(r row) int {
	t.rows = append(t.rows, r)
	return len(t.rows) - 1
}

func (t *tree) addLocation(parent int, l *otf2.Location, kind rowKind) int {
	name := cmp.Or(t.defs.String(l.Name), "(no name)")
	if kind == kindEvent {
		name = t.eventName(name, l)
	}
	return t.add(row{name: name, kind: kind, parent: parent, location: l.Self, group: l.Group, bars: new(bars)})
}

// eventName names a row of events: the kind of events, then communicator and rank if the process has one rank in the
// communicator or the location's name states it.
func (t *tree) eventName(name string, l *otf2.Location) string {
	label, what, _ := strings.Cut(name, regions.EventRow)
	comm, rank := naming.Label(label)
	if rank == "" {
		rank = t.rankIn(t.process(l.Group), comm)
	}
	if rank != "" {
		rank = regions.RankRow + rank
	}
	return what + " · " + comm + rank
}

// rankOfComm identifies a process's rank in the communicators of a label.
type rankOfComm struct {
	process otf2.LocationGroupRef
	comm    string
}

// rankIn returns that rank; "" if it is unknown or not the only one.
func (t *tree) rankIn(process otf2.LocationGroupRef, comm string) string {
	if t.only == nil {
		t.only = make(map[rankOfComm]string)
		for i := range t.defs.Locations {
			l := &t.defs.Locations[i]
			kind, comm, rank := t.placeOf(l)
			if kind != kindRank {
				continue
			}
			key := rankOfComm{t.process(l.Group), comm}
			if _, several := t.only[key]; several {
				rank = ""
			}
			t.only[key] = rank
		}
	}
	return t.only[rankOfComm{process, comm}]
}

// pageKinds maps kinds of locations to kinds of rows; all others are threads.
var pageKinds = map[description.LocationKind]rowKind{
	description.KindRank: kindRank, description.KindChannel: kindChannel, description.KindNetSend: kindNetwork,
	description.KindNetRecv: kindNetwork, description.KindStream: kindStream,
	description.KindEvent: kindEvent,
}

// placeOf returns a location's kind of row, and the label and rank of its communicator as far as its name states them.
func (t *tree) placeOf(l *otf2.Location) (kind rowKind, comm, rank string) {
	kind = cmp.Or(pageKinds[t.kinds.Kind(l.Self)], kindThread)
	switch name := t.defs.String(l.Name); kind {
	case kindRank, kindChannel, kindNetwork:
		comm, rank = naming.Label(name)
	}
	return kind, comm, rank
}

// order is the order of kinds within a process.
var order = map[rowKind]int{kindThread: 0, kindRank: 1, kindNetwork: 2, kindChannel: 3, kindStream: 4, kindEvent: 5}

func (t *tree) addProcess(host int, process otf2.LocationGroupRef, locations []*otf2.Location) {
	at := t.add(row{name: cmp.Or(t.groupName(process), "(no process)"), kind: kindProcess, parent: host,
		group: process})
	slices.SortStableFunc(locations, func(a, b *otf2.Location) int {
		ka, _, _ := t.placeOf(a)
		kb, _, _ := t.placeOf(b)
		return cmp.Or(cmp.Compare(order[ka], order[kb]), cmp.Compare(a.Self, b.Self))
	})
	devices := make(map[otf2.LocationGroupRef]bool)
	for _, l := range locations {
		if l.Group != process {
			devices[l.Group] = true
		}
	}
	parts, owned := t.ownedBy(locations)
	add := func(parent int, l *otf2.Location) {
		kind, _, _ := t.placeOf(l)
		at := t.addLocation(parent, l, kind)
		for _, part := range parts[l] {
			k, _, _ := t.placeOf(part)
			t.addLocation(at, part, k)
		}
	}
	for _, l := range locations {
		if !owned[l] && (l.Group == process || len(devices) < 2) {
			add(at, l)
		}
	}
	if len(devices) < 2 {
		return
	}
	for _, g := range slices.Sorted(maps.Keys(devices)) {
		name := "(no name)"
		if t.defs.LocationGroup(g) != nil {
			name = t.groupName(g)
		}
		device := t.add(row{name: name, kind: kindDevice, parent: at, group: g})
		for _, l := range locations {
			if !owned[l] && l.Group == g {
				add(device, l)
			}
		}
	}
}

// groupName returns a location group's name, "" if it has none.
func (t *tree) groupName(group otf2.LocationGroupRef) string {
	if g := t.defs.LocationGroup(group); g != nil {
		return t.defs.String(g.Name)
	}
	return ""
}

// ownedBy finds the channels and network rows of each communicator rank, which appear below it, and the set of all of
// these. Those without a rank appear by themselves.
func (t *tree) ownedBy(locations []*otf2.Location) (
	parts map[*otf2.Location][]*otf2.Location, owned map[*otf2.Location]bool) {
	parts, owned = make(map[*otf2.Location][]*otf2.Location), make(map[*otf2.Location]bool)
	byComm := make(map[string][]*otf2.Location)
	for _, l := range locations {
		if k, comm, _ := t.placeOf(l); k == kindChannel || k == kindNetwork {
			byComm[comm] = append(byComm[comm], l)
		}
	}
	for _, owner := range locations {
		kind, comm, rank := t.placeOf(owner)
		if kind != kindRank {
			continue
		}
		for _, l := range byComm[comm] {
			k, _, _ := t.placeOf(l)
			if owned[l] {
				continue
			}
			if k == kindChannel && l.Group == owner.Group || k == kindNetwork && rank != "" && t.ranks[l.Self] == rank {
				parts[owner] = append(parts[owner], l)
				owned[l] = true
			}
		}
	}
	return parts, owned
}

// process returns the process that a location group is or belongs to.
func (t *tree) process(group otf2.LocationGroupRef) otf2.LocationGroupRef {
	return processOf(t.defs, group)
}

func processOf(defs *otf2.Definitions, group otf2.LocationGroupRef) otf2.LocationGroupRef {
	if g := defs.LocationGroup(group); g != nil && g.Type == otf2.LocationGroupTypeAccelerator &&
		defs.LocationGroup(g.Creator) != nil {
		return g.Creator
	}
	return group
}

// host returns the name of a process's machine: the nearest node of class "node", otherwise the nearest node.
func (t *tree) host(process otf2.LocationGroupRef) string {
	nearest := ""
	if g := t.defs.LocationGroup(process); g != nil {
		for ref, steps := g.SystemTreeParent, 0; steps < len(t.defs.SystemTreeNodes); steps++ {
			n := t.defs.SystemTreeNode(ref)
			if n == nil {
				break
			}
			name := t.defs.String(n.Name)
			if t.defs.String(n.Class) == "node" {
				return name
			}
			nearest = cmp.Or(nearest, name)
			ref = n.Parent
		}
	}
	return cmp.Or(strings.TrimSpace(nearest), "(no host)")
}
