// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"cmp"
	"maps"
	"math"
	"math/big"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// model reads an archive as simply as can be, with everything in memory.
type model struct {
	d         *Data // for the numbers of rows and names
	rowOf     map[otf2.LocationRef]int
	attribute map[string]otf2.AttributeRef
	rows      []modelRow
	processes map[otf2.LocationGroupRef]*modelProcess
	instances []*modelInstance
	numbers   map[instanceKey]int // of instances
	members   map[otf2.CommRef][]uint64
}

type modelRow struct {
	process    *modelProcess
	regions    []*modelRegion
	open       []*modelRegion
	last       uint64
	transfers  []*modelTransfer
	puts       map[uint64]*modelTransfer
	operations []*modelOperation
}

// at is what is open at a depth.
func (row *modelRow) at(depth int) *modelRegion {
	for _, r := range row.open {
		if r.depth == depth {
			return r
		}
	}
	return nil
}

type modelProcess struct {
	host int
	ids  map[uint64]*modelRegion
}

// modelName is the name of what asked for something, and who had it at that time.
type modelName struct {
	id  uint64
	now *modelRegion
}

type modelRegion struct {
	row, depth         int
	start, end, region uint64
	ref, lost          uint64 // lost: its end, if it has none of its own
	notes              []uint64
	around, parent     *modelRegion
	names              []modelName
	kids               []*modelRegion
	waits              [][]uint64 // length, kind, rank, first
	asked              map[uint64][]uint64
	bar                uint64
}

type modelTransfer struct {
	start, length, to, bytes uint64
	notes                    []uint64
	names                    []modelName
}

type modelOperation struct {
	at                         *modelRegion
	event                      uint64
	instance                   int
	sent, received, root, size uint64
}

type modelInstance struct {
	kind     uint64
	function uint16
	comm     uint32
	ordinal  uint64
	whole    int
	parts    []modelPart
}

type modelPart struct {
	rank  uint64
	order int64 // among the parts
	at    *modelRegion
}

// expect is what the page of an archive should show. d is the archive as it was read: its rows and names are taken.
func expect(t fatals, a *otf2.Archive, d *Data) shown {
	m := &model{
		d: d, rowOf: make(map[otf2.LocationRef]int), attribute: make(map[string]otf2.AttributeRef),
		rows: make([]modelRow, len(d.rows)), processes: make(map[otf2.LocationGroupRef]*modelProcess),
		members: make(map[otf2.CommRef][]uint64),
		numbers: make(map[instanceKey]int),
	}
	for i, r := range d.rows {
		if r.bars == nil {
			continue
		}
		m.rowOf[r.location] = i
		group := processOf(a.Defs, r.group)
		if m.processes[group] == nil {
			host := r.parent
			for d.rows[host].parent >= 0 {
				host = d.rows[host].parent
			}
			m.processes[group] = &modelProcess{host, make(map[uint64]*modelRegion)}
		}
		m.rows[i].process, m.rows[i].puts = m.processes[group], make(map[uint64]*modelTransfer)
	}
	for _, at := range a.Defs.Attributes {
		m.attribute[a.Defs.String(at.Name)] = at.Self
	}
	for _, c := range a.Defs.Comms {
		if g := a.Defs.Group(c.Group); g != nil {
			m.members[c.Self] = g.Members
		}
	}
	for ev, err := range a.Events(nil) {
		if err == nil { // what is damaged is shown as far as it is whole
			m.event(ev)
		}
	}
	for i := range m.rows {
		for _, r := range m.rows[i].open {
			r.end = max(cmp.Or(r.lost, m.rows[i].last), r.start)
		}
	}
	if _, err := operations.Observe(a, &operations.Observer{Part: m.operation, Waited: m.wait}); err != nil {
		t.Fatalf("%v", err)
	}
	return m.shown()
}

func (m *model) ns(ticks uint64) uint64 {
	t := new(big.Int).SetUint64(ticks)
	return t.Div(t.Mul(t, big.NewInt(1e9)), new(big.Int).SetUint64(cmp.Or(m.d.defs.Clock.Resolution, 1e9))).Uint64()
}

func (m *model) notes(ev *otf2.Event) (all []uint64) {
	for _, a := range ev.Attributes {
		all = append(all, uint64(a.ID), a.Bits)
	}
	return all
}

func (m *model) named(ev *otf2.Event, names ...string) uint64 {
	for _, name := range names {
		for _, a := range ev.Attributes {
			if ref, ok := m.attribute[name]; ok && a.ID == ref && a.Bits != 0 {
				return a.Bits
			}
		}
	}
	return 0
}

func (m *model) event(ev *otf2.Event) {
	at, ok := m.rowOf[ev.Location]
	if !ok {
		return
	}
	row := &m.rows[at]
	time := m.ns(uint64(ev.Time - min(ev.Time, m.d.origin)))
	row.last = time
	id := m.named(ev, regions.Attributes[regions.AttrEventID].Name)
	var names []modelName
	if asker := m.named(ev, regions.Attributes[regions.AttrParentID].Name,
		regions.Attributes[regions.AttrExternalID].Name); asker != 0 {
		names = []modelName{{asker, row.process.ids[asker]}}
	}
	var top *modelRegion
	if n := len(row.open); n > 0 {
		top = row.open[n-1]
	}
	switch ev.Kind {
	case otf2.EventEnter:
		region := slices.IndexFunc(m.d.defs.Regions, func(r otf2.Region) bool { return uint64(r.Self) == ev.Args[0] })
		if region < 0 {
			region = len(m.d.defs.Regions)
		}
		depth, around := 0, (*modelRegion)(nil)
		for above := row.at(0); depth < maxDepth && above != nil; above = row.at(depth) {
			depth, around = depth+1, above
		}
		if depth == maxDepth {
			around = top
		}
		r := &modelRegion{row: at, depth: depth, ref: ev.Args[0], start: time, region: uint64(region), around: around,
			names: names, notes: m.notes(ev), asked: make(map[uint64][]uint64)}
		row.regions, row.open = append(row.regions, r), append(row.open, r)
		if id != 0 {
			row.process.ids[id] = r
		}
	case otf2.EventLeave:
		for i := len(row.open) - 1; i >= 0; i-- {
			r := row.open[i]
			if r.ref != ev.Args[0] {
				continue
			}
			r.end = max(time, r.start)
			r.notes = append(r.notes, m.notes(ev)...)
			for _, in := range row.open[i+1:] {
				in.lost = cmp.Or(in.lost, max(time, 1))
			}
			row.open = slices.Delete(row.open, i, i+1)
			break
		}
	case otf2.EventNonBlockingCollectiveRequest, otf2.EventMpiIrecvRequest, otf2.EventMpiIsend:
		if top == nil || len(ev.Attributes) == 0 {
			return
		}
		if id != 0 {
			row.process.ids[id] = top
			top.asked[id] = m.notes(ev)
			for i := range names { // it can name itself, and then means nothing
				names[i].now = row.process.ids[names[i].id]
			}
		}
		if top.around == nil {
			top.names = append(top.names, names...)
		}
	case otf2.EventRmaPut:
		t := &modelTransfer{start: time, bytes: ev.Args[2], notes: m.notes(ev), names: names}
		for _, w := range m.d.defs.RmaWins {
			if members := m.members[w.Comm]; uint64(w.Self) == ev.Args[0] && ev.Args[1] < uint64(len(members)) {
				for _, g := range m.d.defs.Groups {
					if g.Type == otf2.GroupTypeCommLocations {
						t.to = uint64(m.rowOf[otf2.LocationRef(g.Members[members[ev.Args[1]]])]) + 1
					}
				}
			}
		}
		row.transfers = append(row.transfers, t)
		row.puts[ev.Args[3]] = t
	case otf2.EventRmaOpCompleteNonBlocking, otf2.EventRmaOpCompleteBlocking:
		if t := row.puts[ev.Args[1]]; t != nil {
			t.length = time - t.start + 1
			delete(row.puts, ev.Args[1])
		}
	}
}

func (m *model) operation(p *operations.Part) {
	at, ok := m.rowOf[p.Location]
	if !ok || p.Enter == facts.NoRegion {
		return
	}
	r := m.rows[at].regions[p.Enter]
	in := &modelInstance{function: uint16(slices.Index(m.d.functions, p.Function)), ordinal: p.Ordinal,
		kind: analysis.BoolCount(p.Message()) | analysis.BoolCount(!p.Consistent)<<1}
	in.comm = uint32(max(slices.IndexFunc(m.d.comms, func(c communicator) bool { return c.ref == p.Comm }), 0))
	in.whole = len(m.d.comms[in.comm].members)
	key := instanceKey{comm: in.comm, function: in.function, src: -1, dst: -1, ordinal: p.Ordinal}
	one := modelPart{uint64(int32(p.Rank)), int64(p.Rank), r}
	if p.Message() {
		in.whole, key.function, key.src, key.dst, one.order = 2, math.MaxUint16, int32(p.Rank), int32(p.Peer), 0
		if p.Function == "Recv" {
			key.src, key.dst, one.order = key.dst, key.src, 1
		}
	}
	i, known := m.numbers[key]
	if !known || !p.Consistent || len(m.instances[i].parts) >= in.whole {
		i = len(m.instances)
		m.numbers[key] = i
		m.instances = append(m.instances, in)
	}
	m.instances[i].parts = append(m.instances[i].parts, one)
	m.rows[at].operations = append(m.rows[at].operations,
		&modelOperation{r, p.Event, i, p.Sent, p.Received, uint64(uint32(p.Root + 1)), p.Size})
}

func (m *model) wait(w *waits.Wait) {
	if at, ok := m.rowOf[w.Place.Location]; ok && w.Place.Enter != facts.NoRegion {
		r := m.rows[at].regions[w.Place.Enter]
		r.waits = append(r.waits, []uint64{m.ns(w.Waited), uint64(slices.Index(m.d.waitKinds, w.Kind)),
			uint64(max(w.For, 0)), analysis.BoolCount(w.StartUp)})
	}
}

// find is the region that a name means.
func (m *model) find(process *modelProcess, n modelName) *modelRegion {
	if n.now != nil {
		return n.now
	}
	if r := process.ids[n.id]; r != nil {
		return r
	}
	var found *modelRegion
	for _, p := range m.processes {
		if r := p.ids[n.id]; r != nil && p.host == process.host {
			if found != nil {
				return nil
			}
			found = r
		}
	}
	return found
}

func (m *model) shown() (s shown) {
	texts := make(map[uint64]bool)
	look := func(notes []uint64) []uint64 {
		for i := 0; i < len(notes); i += 2 {
			for _, a := range m.d.attributes {
				if uint64(a.Self) == notes[i] && a.Type == otf2.TypeString {
					texts[notes[i+1]] = true
				}
			}
		}
		return notes
	}
	var lanes [][]*modelRegion
	bars := uint64(0)
	for at := range m.rows {
		var of [maxDepth + 1][]*modelRegion
		for _, r := range m.rows[at].regions {
			of[r.depth] = append(of[r.depth], r)
			r.parent = r.around
			for _, n := range r.names {
				if p := m.find(m.rows[at].process, n); p != nil && p != r {
					r.parent = p
					break
				}
			}
			if r.parent != nil {
				r.parent.kids = append(r.parent.kids, r)
			}
		}
		for _, l := range of {
			if len(l) > 0 {
				lanes = append(lanes, l)
			}
			for _, r := range l {
				r.bar = bars
				bars++
			}
		}
	}
	leaf := minLeaf
	for int(bars)/leaf > maxNodes {
		leaf *= 4
	}
	reference := func(r *modelRegion) uint64 {
		if r == nil {
			return 0
		}
		return r.bar + 1
	}
	for _, l := range lanes {
		end := uint64(0)
		sums := make(map[uint64][]uint64)
		for i, r := range l {
			if i%chunk == 0 {
				end = 0
			}
			from := max(r.start, end)
			end = from + r.end - r.start
			var longest []uint64
			waited := uint64(0)
			for _, w := range r.waits {
				if w[0] > waited {
					longest, waited = w[1:], w[0]
				}
			}
			bar := []uint64{uint64(r.row), uint64(r.depth), from, r.end - r.start, r.region, reference(r.parent),
				waited, uint64(len(r.kids))}
			for _, k := range r.kids {
				bar = append(bar, k.bar)
			}
			bar = append(bar, longest...)
			s.bars = append(s.bars, append(bar, look(r.notes)...))
			if sums[r.region] == nil {
				sums[r.region] = []uint64{r.region, 0, 0}
			}
			sums[r.region][1]++
			sums[r.region][2] += r.end - r.start
		}
		var sum []uint64
		for _, id := range slices.Sorted(maps.Keys(sums)) {
			sum = append(sum, sums[id]...)
		}
		s.sums = append(s.sums, sum)
		for some := range slices.Chunk(l, leaf) {
			s.nodes = append(s.nodes, modelNode(some))
		}
	}
	for at := range m.rows {
		row := &m.rows[at]
		for _, t := range row.transfers {
			var asker *modelRegion
			for _, n := range t.names {
				asker = m.find(row.process, n)
			}
			s.transfers = append(s.transfers, append(
				[]uint64{uint64(at), t.start, t.length, t.to, t.bytes, reference(asker)}, look(t.notes)...))
		}
		slices.SortStableFunc(row.operations, func(a, b *modelOperation) int { return cmp.Compare(a.at.bar, b.at.bar) })
		for _, o := range row.operations {
			s.operations = append(s.operations, append(
				[]uint64{uint64(at), o.at.bar, uint64(o.instance), o.sent, o.received, o.root, o.size},
				look(o.at.asked[o.event])...))
		}
		end := uint64(0)
		for some := range slices.Chunk(row.transfers, leaf) {
			for _, t := range some {
				end = max(end, t.start+max(t.length, 1)-1)
			}
			s.nodes = append(s.nodes, []uint64{some[0].start, end, 255, 0, 0})
		}
	}
	for _, in := range m.instances {
		slices.SortStableFunc(in.parts, func(a, b modelPart) int { return cmp.Compare(a.order, b.order) })
		one := []uint64{in.kind, uint64(in.comm), uint64(in.function), in.ordinal, uint64(in.whole)}
		for _, p := range in.parts {
			one = append(one, p.rank, p.at.bar)
		}
		s.instances = append(s.instances, one)
	}
	s.texts = slices.Sorted(maps.Keys(texts))
	return s
}

func modelNode(some []*modelRegion) []uint64 {
	var end, busy, waited, most, region uint64
	times := make(map[uint64]uint64)
	for _, r := range some {
		end = max(end, r.end)
		busy += r.end - r.start
		for _, w := range r.waits {
			waited += w[0]
		}
		times[r.region] += r.end - r.start + 1
	}
	for _, id := range slices.Sorted(maps.Keys(times)) {
		if times[id] > most {
			region, most = id, times[id]
		}
	}
	part := func(a, b uint64) uint64 {
		if b == 0 {
			return 255
		}
		return uint64(math.Round(min(255, 255*float64(a)/float64(b))))
	}
	whole := part(busy, end-some[0].start)
	if busy > 0 {
		whole = max(whole, 1)
	}
	return []uint64{some[0].start, end, whole, region, part(waited, max(busy, 1))}
}
