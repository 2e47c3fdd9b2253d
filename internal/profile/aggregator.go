// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/attribute"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/naming"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/regions/sizeclass"
)

// Names resolves the ids in events.
type Names interface {
	facts.Names
	RegionOf(otf2.RegionRef) Region
	LocationOf(otf2.LocationRef) Location
}

// Region is the definition of a region.
type Region struct {
	Name  string
	Group string // one of package regions; regions of other groups are not NCCL's
	Role  otf2.RegionRole
	// Paradigm of regions of other groups, as OTF2 names it.
	Paradigm otf2.Paradigm
}

// Location is the definition of a location.
type Location struct {
	Kind  description.LocationKind
	Ranks int // of the communicator that it is a rank of; 0: none
	Rank  int // in it
}

// Aggregator sums up events.
type Aggregator struct {
	names  Names
	reader *facts.Reader
	at     *row // whose event is being read
	tree   *tree
	rows   map[otf2.LocationRef]*row

	samples bool // keep samples of collectives
	strata  int
	retired int
	others  map[description.LocationKind]*row // shared by further retired locations

	regions []*region                  // by id; nil until first used
	further map[otf2.RegionRef]*region // of large ids
	steps   map[step]int32
	leaves  map[leafKey]int32
}

// region is a region with what its name implies.
type region struct {
	Region
	kind     Kind
	title    string // of its node
	nccl     bool   // a kernel of NCCL's
	sums     bool   // a record of sums, see Aggregator.sums
	paradigm string // of nodes of kind Other
	sizeNode string // prefix of the class of sizes of a call
}

// sourceTrees maps the source of an operation's times to its tree. Archives without TIMING_SOURCE have times of one
// kind.
var sourceTrees = [facts.NumSources]Kind{
	facts.SourceUnknown: Kernels, facts.SourceDuration: ByDuration, facts.SourceEnqueue: ByEnqueue,
	facts.SourceNetwork: ByNetwork, facts.SourceGPU: Kernels,
}

// step goes from a node into a region; class is the size class of a call, −1: none.
type step struct {
	from   int32
	region otf2.RegionRef
	class  int32
}

// row is the state of one location.
type row struct {
	Location
	base        int32 // above outermost regions of threads and networks
	cells       map[int32]*Cell
	transfers   *Cell // of networks, one of cells
	stats       map[statsKey]*Stats
	stack       []frame
	first, last uint64
	outer       uint64 // time in outermost regions
	covered     uint64 // until when outer is counted
	ended       bool
	others      uint64 // retired locations in it
	sampling    *sampling
	events      *facts.Row        // nil: its events repeat those of another row
	ops         []facts.Operation // of its open launch
}

type statsKey struct {
	function string
	source   facts.Source
	grouped  bool
}

// frame is an open region.
type frame struct {
	region  *region
	ref     otf2.RegionRef
	entered uint64 // see facts.Region
	linked  bool   // a kernel of a stream, linked to an operation
	class   int32  // of its size, −1: none
	begin   uint64
	inside  uint64 // time of regions inside
	covered uint64 // until when inside is counted: overlapping regions inside count once
	node    int32  // None: not counted
}

// leafKey is the call path of an operation below the node of a launch or tree.
type leafKey struct {
	parent               int32
	function             string
	algo, proto, variant otf2.StringRef
	class                int
}

// NewAggregator returns an empty aggregator. attributes is nil for events of a process.
func NewAggregator(names Names, attributes *attribute.Table) *Aggregator {
	g := &Aggregator{
		names: names, reader: facts.NewReader(names, attributes), tree: newTree(),
		rows: make(map[otf2.LocationRef]*row), others: make(map[description.LocationKind]*row),
		further: make(map[otf2.RegionRef]*region), steps: make(map[step]int32), leaves: make(map[leafKey]int32),
	}
	g.reader.Enter, g.reader.Leave, g.reader.Life = g.enterRegion, g.leaveRegion, g.endComm
	g.reader.Operation, g.reader.Put, g.reader.Sums = g.addOperation, g.addTransfer, g.addNetSums
	return g
}

// Event reads the next event of a location.
func (g *Aggregator) Event(ev *otf2.Event) { g.event(g.row(ev.Location), ev) }

func (g *Aggregator) event(r *row, ev *otf2.Event) {
	t := uint64(ev.Time)
	if r.first == 0 {
		r.first = t
	}
	r.last = max(r.last, t)
	if r.events != nil {
		g.at = r
		r.events.Event(ev)
	}
}

// endComm notes the end of a communicator.
func (g *Aggregator) endComm(_ *otf2.Event, _ otf2.CommRef, begins bool) {
	if !begins && g.at.Kind == description.KindRank {
		g.at.ended = true
	}
}

// shown are the kinds of locations whose events are summed up. Others repeat events of these, or have none that can be
// summed up.
var shown = []description.LocationKind{
	description.KindThread, description.KindEnqueue, description.KindRank, description.KindStream,
	description.KindNetSend, description.KindNetRecv,
}

// maxRetired is how many locations of destroyed communicators keep values of their own.
const maxRetired = 128

// Retire states that no more events of a location follow. Beyond maxRetired such locations, values go into one shared
// row per kind.
func (g *Aggregator) Retire(l otf2.LocationRef) {
	r := g.rows[l]
	if r == nil {
		return
	}
	if g.retired++; g.retired <= maxRetired {
		return
	}
	all := g.others[r.Kind]
	if all == nil {
		r.ended, r.others = true, 1
		g.others[r.Kind] = r
		return
	}
	all.others++
	for n, c := range r.cells {
		all.cell(n).Add(c)
	}
	for k, s := range r.stats {
		if all.stats[k] == nil {
			all.stats[k] = s
		} else {
			all.stats[k].Merge(s)
		}
	}
	if r.first != 0 && (all.first == 0 || r.first < all.first) {
		all.first = r.first
	}
	all.last = max(all.last, r.last)
	delete(g.rows, l)
	g.reader.Forget(l)
	*r = row{} // its writer still holds it
}

func (g *Aggregator) row(l otf2.LocationRef) *row {
	r := g.rows[l]
	if r == nil {
		r = &row{Location: g.names.LocationOf(l), cells: make(map[int32]*Cell), stats: make(map[statsKey]*Stats)}
		if slices.Contains(shown, r.Kind) {
			r.events = g.reader.Row(l)
		}
		switch r.Kind {
		case description.KindThread, description.KindEnqueue:
			r.base = g.tree.root(Host)
		case description.KindNetSend:
			r.base = g.tree.child(g.tree.root(Network), Direction, "send", 0)
		case description.KindNetRecv:
			r.base = g.tree.child(g.tree.root(Network), Direction, "receive", 0)
		}
		g.rows[l] = r
	}
	return r
}

func (r *row) cell(node int32) *Cell {
	return keyed.Entry(r.cells, node)
}

// region returns the region of an id.
func (g *Aggregator) region(ref otf2.RegionRef) *region {
	if int(ref) < len(g.regions) {
		if r := g.regions[ref]; r != nil {
			return r
		}
	} else if r := g.further[ref]; r != nil {
		return r
	}
	r := &region{Region: g.names.RegionOf(ref), kind: Other}
	r.title = r.Name
	switch r.Group {
	case regions.GroupEnqueue:
		r.kind = Call
	case regions.GroupApplication:
		r.kind = Phase
		if stem, numbered := naming.Numbered(r.Name); numbered {
			r.title = stem + "*"
		}
	case regions.GroupProxy:
		r.kind = Proxy
	case regions.GroupNetwork:
		r.kind = NetPhase
		r.sums = naming.IsNetSums(r.Name)
	case regions.GroupAPI:
		r.kind = Call
		r.sizeNode = r.Name
	}
	if regions.LaunchSize(r.Name) > 1 {
		r.title = regions.LaunchName
	}
	if r.kind == Other {
		r.paradigm = strings.ToLower(r.Paradigm.String())
	}
	r.nccl = naming.IsNCCLKernel(r.Name)
	const direct = 1 << 16
	if ref >= direct {
		g.further[ref] = r
		return r
	}
	for int(ref) >= len(g.regions) {
		g.regions = append(g.regions, nil)
	}
	g.regions[ref] = r
	return r
}

// enterRegion opens a region.
func (g *Aggregator) enterRegion(l *facts.Region) {
	r := g.at
	switch r.Kind {
	case description.KindRank:
	default:
		f := frame{region: g.region(l.Region), ref: l.Region, entered: l.Entered, linked: l.Linked, class: -1,
			begin: uint64(l.Begin)}
		if f.region.sizeNode != "" && l.Counted && r.Kind != description.KindStream &&
			r.Kind != description.KindNetSend && r.Kind != description.KindNetRecv {
			if bytes := l.Count * g.reader.ElementSize(l.Datatype); bytes > 0 || l.Count == 0 {
				f.class = int32(sizeclass.IndexOf(bytes))
			}
		}
		r.stack = append(r.stack, f)
		g.placeFrame(r, len(r.stack)-1)
	}
}

// placeFrame gives an open region its node, below the node of the region around it.
func (g *Aggregator) placeFrame(r *row, at int) {
	f := &r.stack[at]
	f.node = None
	switch {
	case r.Kind == description.KindStream:
		if !f.region.nccl && !f.linked && at == 0 {
			f.node = g.tree.child(g.tree.root(Kernels), Kernel, f.region.title, f.region.Role)
		}
	case f.region.sums:
	case at > 0:
		f.node = g.childNode(r.stack[at-1].node, f.ref, f.region, f.class)
	default:
		f.node = g.childNode(r.base, f.ref, f.region, f.class)
	}
}

// leaveOpen counts an open region that ends. Regions that began inside it and are still open overlap it rather than
// being called by it: they continue beside it.
func (g *Aggregator) leaveOpen(l *facts.Region) {
	r, t := g.at, uint64(l.End)
	at := facts.IndexOpen(r.stack, l, func(f *frame) uint64 { return f.entered })
	f := r.stack[at]
	r.stack = slices.Delete(r.stack, at, at+1)
	for i := at; i < len(r.stack); i++ {
		g.placeFrame(r, i)
	}
	if f.node != None {
		r.cell(f.node).visit(t-min(f.begin, t), f.inside, l.Unfinished || l.Lost)
	}
	if at > 0 {
		r.stack[at-1].cover(f.begin, t)
	} else {
		r.cover(f.begin, t)
	}
}

// cover counts the time of a region inside, except what others have covered.
func (f *frame) cover(begin, end uint64) {
	f.inside += uncovered(begin, end, f.covered)
	f.covered = max(f.covered, end)
}

// cover counts the time of an outermost region in the same way.
func (r *row) cover(begin, end uint64) {
	r.outer += uncovered(begin, end, r.covered)
	r.covered = max(r.covered, end)
}

func uncovered(begin, end, covered uint64) uint64 {
	begin = max(begin, covered)
	return end - min(begin, end)
}

// leaveRegion closes a region.
func (g *Aggregator) leaveRegion(l *facts.Region) {
	if g.at.Kind == description.KindRank {
		g.addLaunch(l)
		return
	}
	g.leaveOpen(l)
}

// addNetSums adds transfers that were recorded as sums: their phases, and what was sent. Their longest phase is
// unknown.
func (g *Aggregator) addNetSums(s *facts.NetSums) {
	r := g.at
	for phase, n := range s.Phases {
		open := s.Unfinished && s.OpenPhase == naming.NetPhase(phase)
		if n == 0 && !open {
			continue
		}
		c := r.cell(g.tree.child(r.base, NetPhase, naming.NetPhase(phase).Name(), otf2.RegionRoleDataTransfer))
		c.Visits += n
		c.Time += s.Times[phase]
		if open {
			c.visit(s.OpenTime, 0, true)
		}
	}
	if s.Send && s.Transfers > 0 {
		g.countSent(r, s.Transfers, s.Bytes)
	}
}

// addTransfer adds a transfer.
func (g *Aggregator) addTransfer(t *facts.Transfer) {
	r := g.at
	if r.Kind != description.KindNetSend && r.Kind != description.KindNetRecv {
		return
	}
	g.countSent(r, 1, t.Bytes)
}

// countSent counts transfers.
func (g *Aggregator) countSent(r *row, transfers, bytes uint64) {
	if r.transfers == nil {
		r.transfers = r.cell(g.tree.child(r.base, Transfer, "transfer", otf2.RegionRoleDataTransfer))
	}
	r.transfers.Visits += transfers
	r.transfers.Put += bytes
}

// childNode returns the node of a region entered from another node.
func (g *Aggregator) childNode(from int32, ref otf2.RegionRef, region *region, class int32) int32 {
	s := step{from, ref, class}
	if n, ok := g.steps[s]; ok {
		return n
	}
	n := g.tree.childOf(Node{Parent: from, Kind: region.kind, Name: region.title, Role: region.Role,
		Paradigm: region.paradigm})
	if class >= 0 {
		n = g.tree.child(n, Size, region.sizeNode+" "+sizeclass.All[class].String(), region.Role)
	}
	if len(g.steps) < maxNodes {
		g.steps[s] = n
	}
	return n
}

// Aggregate returns the sums so far. Open regions count up to the last event of their location, as unfinished.
func (g *Aggregator) Aggregate() *Aggregate {
	a := &Aggregate{Version: version, Folded: g.tree.folded}
	for l, r := range g.rows {
		a.Rows = append(a.Rows, g.snapshot(uint64(l), r))
	}
	slices.SortFunc(a.Rows, func(x, y Row) int { return cmp.Compare(x.Location, y.Location) })
	a.Nodes = slices.Clone(g.tree.nodes) // snapshots may have added some
	return a
}

func (g *Aggregator) snapshot(l uint64, r *row) Row {
	out := Row{Location: l, Kind: r.Kind, Ranks: r.Ranks, Rank: r.Rank, First: r.first, Last: r.last, Ended: r.ended,
		Others: r.others}
	cells := make(map[int32]Cell, len(r.cells)+1)
	for n, c := range r.cells {
		cells[n] = *c
	}
	outer, open := r.outer, slices.Clone(r.stack)
	for i := range open {
		if f := &open[i]; i > 0 {
			open[i-1].cover(f.begin, r.last)
		} else {
			outer += uncovered(f.begin, r.last, r.covered)
		}
	}
	for i := range open {
		if f := &open[i]; f.node != None {
			c := cells[f.node]
			c.visit(r.last-min(f.begin, r.last), f.inside, true)
			cells[f.node] = c
		}
	}
	if r.Kind == description.KindThread && r.last > r.first {
		n := g.tree.root(Host)
		c := cells[n]
		c.visit(r.last-r.first, outer, false)
		cells[n] = c
	}
	if r.sampling != nil && r.others == 0 {
		out.Strata, out.FirstSample = r.sampling.snapshot(), r.sampling.first
	}
	for n, c := range cells {
		out.Cells = append(out.Cells, CellAt{n, c})
	}
	slices.SortFunc(out.Cells, func(x, y CellAt) int { return cmp.Compare(x.Node, y.Node) })
	for _, s := range r.stats {
		out.Stats = append(out.Stats, *s)
	}
	slices.SortFunc(out.Stats, func(x, y Stats) int {
		return cmp.Or(cmp.Compare(x.Function, y.Function), cmp.Compare(x.Source, y.Source),
			boolCompare(x.Grouped, y.Grouped))
	})
	return out
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
