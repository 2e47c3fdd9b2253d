// SPDX-License-Identifier: Apache-2.0

package export

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/attribute"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// rows holds the processes, rows and communicators that an archive defines.
type rows struct {
	defs       *otf2.Definitions
	attributes *attribute.Table
	processes  []*process // in world order
	of         map[otf2.LocationRef]*row
	members    map[memberKey]*row // see rowOn
	comms      map[otf2.CommRef]*comm
	world      []placement.Rank
	worldOf    map[otf2.LocationRef]int
	size       int                       // number of processes, including those without data
	group      map[otf2.RegionRef]string // name of the region group
	clock      clock
}

type process struct {
	number int // place in world order
	name   string
	host   string
	pid    uint64 // 0: unknown
	rows   []*row // by id
}

type row struct {
	location otf2.LocationRef
	name     string
	process  *process
	gpu      string // name of the device; "" on the CPU
	uuid     string // UUID of the GPU; "" if unknown
	tid      uint64 // 0: unknown
	comm     *comm  // the communicator of a rank's own row; otherwise nil
	rank     int    // in comm
	several  bool   // the row belongs to further communicators, see rowOn
	commID   uint64
	hasID    bool // commID is known
	events   uint64
	proxyOf  *row // for a proxy's row: the row of the rank that it works for; nil if unknown
}

// unnamed replaces the missing name of a process or row.
const unnamed = "unnamed"

func (l *row) label() string { return cmp.Or(l.name, unnamed) }

type comm struct {
	placement.Communicator
	parent *comm          // nil if none is known
	birth  property.Birth // how it was created from its parent; zero if unknown
	nodes  int            // number of nodes, as NCCL reports it; 0: unknown
}

func newRows(defs *otf2.Definitions, births map[otf2.CommRef]property.Birth) *rows {
	r := &rows{
		defs: defs, attributes: attribute.Find(defs), of: make(map[otf2.LocationRef]*row),
		members: make(map[memberKey]*row), comms: make(map[otf2.CommRef]*comm),
		group: make(map[otf2.RegionRef]string),
		clock: clock(defs.Clock),
	}
	r.world, r.worldOf = placement.WorldRanks(defs)
	for _, g := range defs.Groups {
		if g.Type == otf2.GroupTypeRegions {
			for _, m := range g.Members {
				r.group[otf2.RegionRef(m)] = defs.String(g.Name)
			}
		}
	}
	r.addProcesses()
	nodes := property.NodesOf(defs)
	for _, c := range placement.Communicators(defs) {
		one := &comm{Communicator: c}
		for rank, l := range c.Members {
			one.nodes = max(one.nodes, nodes[l])
			row := r.of[l]
			if row == nil || row.events == 0 {
				continue
			}
			if row.comm == nil {
				row.comm, row.rank = one, rank
			} else {
				row.several = true
			}
		}
		if d := defs.Comm(c.Ref); d != nil && r.comms[d.Parent] != nil {
			one.parent, one.birth = r.comms[d.Parent], births[c.Ref]
		}
		r.comms[c.Ref] = one
	}
	for l, n := range placement.NetworkRows(defs) {
		if c := r.comms[n.Comm]; c != nil && n.Rank >= 0 && n.Rank < len(c.Members) && r.of[l] != nil &&
			r.of[l].comm == nil {
			r.of[l].proxyOf = r.of[c.Members[n.Rank]]
		}
	}
	return r
}

// rowOn returns a row with the communicator ref and the rank in it. Communicators whose lives do not overlap can share
// a row.
func (r *rows) rowOn(l otf2.LocationRef, ref otf2.CommRef) *row {
	row, c := r.of[l], r.comms[ref]
	if row == nil || !row.several || c == nil {
		return row
	}
	key := memberKey{l, ref}
	if one := r.members[key]; one != nil {
		return one
	}
	rank := slices.Index(c.Members, l)
	if rank < 0 {
		return row
	}
	one := *row
	one.comm, one.rank = c, rank
	one.commID, one.hasID = idInName(c.Name)
	r.members[key] = &one
	return &one
}

type memberKey struct {
	location otf2.LocationRef
	comm     otf2.CommRef
}

// idInName returns NCCL's commId from the name of a communicator that is named after it.
func idInName(name string) (id uint64, ok bool) {
	_, err := fmt.Sscanf(name, "ncclComm 0x%x", &id)
	return id, err == nil
}

func (r *rows) addProcesses() {
	index := make(map[otf2.LocationGroupRef]*process)
	pids := make(map[otf2.LocationGroupRef]uint64)
	for _, p := range r.defs.LocationGroupProperties {
		if r.defs.String(p.Name) == property.PID.Key() && p.Type == otf2.TypeUint64 {
			pids[p.LocationGroup] = uint64(p.Value)
		}
	}
	uuids := make(map[otf2.SystemTreeNodeRef]string)
	for _, p := range r.defs.SystemTreeNodeProperties {
		if r.defs.String(p.Name) == "UUID" && p.Type == otf2.TypeString {
			uuids[p.Node] = r.defs.String(otf2.StringRef(p.Value))
		}
	}
	for i := range r.defs.Locations {
		l := &r.defs.Locations[i]
		if r.of[l.Self] != nil {
			continue
		}
		place := placement.PlaceOf(r.defs, l.Self)
		p := index[place.Process]
		if p == nil {
			p = &process{number: int(place.Process), host: place.Host, pid: pids[place.Process]}
			if g := r.defs.LocationGroup(place.Process); g != nil {
				p.name = r.defs.String(g.Name)
			}
			index[place.Process] = p
			r.processes = append(r.processes, p)
		}
		one := &row{location: l.Self, name: r.defs.String(l.Name), process: p, gpu: place.GPU, events: l.Events,
			uuid: uuids[place.Device]}
		r.of[l.Self] = one
		p.rows = append(p.rows, one)
	}
	for _, p := range r.defs.LocationProperties {
		row := r.of[p.Location]
		if row == nil || p.Type != otf2.TypeUint64 {
			continue
		}
		switch r.defs.String(p.Name) {
		case property.TID.Key():
			row.tid = uint64(p.Value)
		case property.CommID.Key():
			row.commID, row.hasID = uint64(p.Value), true
		}
	}
	r.size = len(r.processes)
	for _, ranks := range property.AbsentRanks(r.defs) {
		r.size += max(len(ranks), 1) - 1
	}
	slices.SortFunc(r.processes, func(a, b *process) int { return cmp.Compare(a.number, b.number) })
	for i, p := range r.processes {
		p.number = i
		slices.SortFunc(p.rows, func(a, b *row) int { return cmp.Compare(a.location, b.location) })
	}
}

// worldOfProcess returns a process's rank in the job and the number of processes. It returns false unless the job's
// launcher set the rank: then the process is named after it.
func (r *rows) worldOfProcess(p *process) (rank, size int, ok bool) {
	rank, ok = units.RankOf(p.name)
	return rank, r.size, ok && rank < r.size
}

// deviceNumber returns the number of a device in its process, from its name: 3 for "CUDA Device 3".
func deviceNumber(name string) (int, bool) {
	_, number, _ := strings.Cut(name, " Device ")
	number, _, _ = strings.Cut(number, " ")
	n, err := strconv.Atoi(number)
	return n, err == nil
}

// worldRank returns a location's index among the ranks; −1 if it is no rank.
func (r *rows) worldRank(l otf2.LocationRef) int {
	if i, ok := r.worldOf[l]; ok {
		return i
	}
	return -1
}

// clock converts an archive's times.
type clock otf2.ClockProperties

// since1970 converts a time to ns since 1970. It is as accurate as the clock definition's real time.
func (c *clock) since1970(t otf2.Timestamp) int64 {
	return int64(c.Realtime) + c.nanoseconds(int64(t)-int64(c.Offset))
}

// fromBegin converts a time to ns since the start of the archive.
func (c *clock) fromBegin(t otf2.Timestamp) int64 { return c.nanoseconds(int64(t) - int64(c.Offset)) }

// nanoseconds converts a duration from ticks to ns.
func (c *clock) nanoseconds(ticks int64) int64 {
	const second = 1_000_000_000
	if c.Resolution == second || c.Resolution == 0 {
		return ticks
	}
	negative := ticks < 0
	if negative {
		ticks = -ticks
	}
	high, low := bits.Mul64(uint64(ticks), second)
	n := int64(-1)
	if high < c.Resolution {
		q, _ := bits.Div64(high, low, c.Resolution)
		n = int64(q)
	}
	if negative {
		return -n
	}
	return n
}
