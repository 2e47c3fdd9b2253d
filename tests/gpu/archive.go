// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/attribute"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// operation is one member's part in a collective, or one end of a message, as the archive shows it.
type operation struct {
	function   string // NCCL's
	count      uint64
	dtype      string
	root       int   // −1 for rootless ones; the peer of messages
	begin, end int64 // CLOCK_MONOTONIC_RAW, ns; of its plan
	source     string
	plan       int      // number of the launch on its row: operations launched together have one
	ids        []uint64 // by which kernels name it, or that plan
	graph      bool
	early      bool // its end is that of a part of its kernel
}

// communicator is one of the archive, without networks.
type communicator struct {
	name  string
	ranks []int          // world rank of each member
	rows  [][]*operation // of each member, in order
}

// begin is when its first operation began.
func (c *communicator) begin() int64 {
	first := int64(math.MaxInt64)
	for _, row := range c.rows {
		if len(row) > 0 {
			first = min(first, row[0].begin)
		}
	}
	return first
}

// kernel is one that ran on the GPU, as CUPTI saw it.
type kernel struct {
	name       string
	rank       int // world rank of its process
	begin, end int64
	launched   bool     // the archive names its launch
	ids        []uint64 // of the plan or operation that it carried out; none: the archive does not say
}

// archive is what is compared.
type archive struct {
	comms      []*communicator
	phases     []map[string]int // regions entered on the threads of each process, by name
	kernels    []kernel
	properties property.Properties
	shards     int
	sensors    map[string]*sensor
	memory     map[string]int // operations by the kind of memory of their send buffer; none where that was not recorded
}

// sensor is what one quantity of a GPU was, in its unit.
type sensor struct {
	values      int
	least, most float64
}

// kernelRow begins the names of rows of CUDA streams: CUDA[device:stream].
const kernelRow = "CUDA["

// processOf is the place of a location's process, which is its world rank: ids are number << 32 | place.
func processOf(l otf2.LocationRef) int { return int(uint32(l)) }

// readArchive reads the archive of an experiment directory to its end.
func readArchive(dir string) (*archive, error) {
	a, err := otf2.Open(filepath.Join(dir, "traces.otf2"), nil)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	r := &reader{archive: &archive{properties: property.Read(a.Anchor), sensors: make(map[string]*sensor),
		memory: make(map[string]int)}, defs: a.Defs, rows: make(map[otf2.LocationRef]*row),
		attributes: attribute.Find(a.Defs)}
	if err := r.clock(dir); err != nil {
		return nil, err
	}
	for _, g := range a.Defs.LocationGroups {
		if g.Type == otf2.LocationGroupTypeProcess {
			r.phases = append(r.phases, make(map[string]int))
		}
	}
	if err := r.communicators(); err != nil {
		return nil, err
	}
	for ev, err := range a.Events(nil) {
		if err != nil {
			return nil, err
		}
		r.event(ev)
	}
	if r.unended > 0 {
		return nil, fmt.Errorf("%d operations have not ended", r.unended)
	}
	slices.SortStableFunc(r.comms, func(x, y *communicator) int { return cmp.Compare(x.begin(), y.begin()) })
	return r.archive, nil
}

// reader takes what package facts finds in the events.
type reader struct {
	*archive
	defs       *otf2.Definitions
	attributes *attribute.Table
	events     *facts.Reader
	rows       map[otf2.LocationRef]*row // also those of kernels
	origin     int64                     // archive's time at which the raw clock read 0
	unended    int
}

// row is one location.
type row struct {
	into    *[]*operation // nil: the row shows something else
	kernels bool
	plans   int
	open    []*operation // of the launch, in the order in which they began
}

// clock finds how the archive's time goes with the raw clock: readers add each process's offset to the one whose line
// begins first.
func (r *reader) clock(dir string) error {
	entries, err := experiment.List(dir)
	if err != nil {
		return err
	}
	first := uint64(math.MaxUint64)
	for _, e := range entries {
		if e.Process == nil {
			return fmt.Errorf("shard %s: %v", e.Path, e.Err)
		}
		if c := e.Process.Clock; c.AnchorRaw < first {
			first, r.origin = c.AnchorRaw, int64(c.AnchorReal-c.AnchorRaw)
		}
	}
	if r.shards = len(entries); r.shards == 0 {
		return fmt.Errorf("%s has no shards", dir)
	}
	return nil
}

func (r *reader) raw(t otf2.Timestamp) int64 { return int64(t) - r.origin }

func (r *reader) communicators() error {
	comms := membership.Communicators(r.defs)
	r.events = facts.NewReader(facts.ArchiveNames(r.defs, comms), r.attributes)
	r.events.Keep, r.events.Operation, r.events.Leave, r.events.Enter = true, r.operation, r.launch, r.phase
	for _, d := range r.defs.Comms {
		c := comms[d.Self]
		if c == nil {
			continue
		}
		if c.Self {
			return fmt.Errorf("communicator %q has no group of members", c.Name)
		}
		one := &communicator{name: c.Name, rows: make([][]*operation, len(c.Members))}
		for i, l := range c.Members {
			one.ranks = append(one.ranks, processOf(l))
			r.rows[l] = &row{into: &one.rows[i]}
		}
		r.comms = append(r.comms, one)
	}
	for _, l := range r.defs.Locations {
		if r.rows[l.Self] == nil && strings.HasPrefix(r.defs.String(l.Name), kernelRow) {
			r.rows[l.Self] = &row{kernels: true}
		}
	}
	return nil
}

func (r *reader) event(ev *otf2.Event) {
	if ev.Kind == otf2.EventMetric {
		r.metric(ev.Metric())
	}
	if l := r.defs.Location(ev.Location); r.rows[ev.Location] != nil || l != nil &&
		l.Type == otf2.LocationTypeCPUThread {
		r.events.Event(ev)
	}
}

// metric takes the values of sensors: those of metrics that are a GPU's.
func (r *reader) metric(m otf2.Metric) {
	class := r.defs.MetricClass(m.Metric)
	if i := r.defs.MetricInstance(m.Metric); i != nil {
		class = r.defs.MetricClass(i.MetricClass)
	}
	for i := range min(m.Len(), len(class.Members)) {
		member := r.defs.MetricMember(class.Members[i])
		typ, bits := m.At(i)
		value := float64(bits)
		if typ == otf2.TypeDouble {
			value = math.Float64frombits(bits)
		}
		value *= math.Pow(float64(10), float64(member.Exponent))
		name := r.defs.String(member.Name)
		s := r.sensors[name]
		if s == nil {
			s = &sensor{least: value, most: value}
			r.sensors[name] = s
		}
		s.values, s.least, s.most = s.values+1, min(s.least, value), max(s.most, value)
	}
}

// phase counts the regions of threads.
func (r *reader) phase(l *facts.Region) {
	if p := processOf(l.Location); r.rows[l.Location] == nil && p < len(r.phases) {
		r.phases[p][r.events.Names.RegionName(l.Region)]++
	}
}

// launch takes a kernel, or the operations of a launch, which have its time.
func (r *reader) launch(l *facts.Region) {
	w := r.rows[l.Location]
	if l.Depth > 0 || w == nil {
		return
	}
	begin, end := r.raw(l.Begin), r.raw(l.End)
	if w.kernels {
		k := kernel{name: r.events.Names.RegionName(l.Region), rank: processOf(l.Location), begin: begin, end: end}
		for _, a := range l.Attributes {
			switch id, _ := r.attributes.Resolve(a.ID); id {
			case regions.AttrExternalID:
				k.launched = true
			case regions.AttrPlanID, regions.AttrParentID:
				k.ids = append(k.ids, a.Bits)
			}
		}
		r.kernels = append(r.kernels, k)
		return
	}
	w.plans++
	r.unended += l.Begun - l.Ended
	for _, o := range w.open {
		if o != nil {
			o.begin, o.end, o.plan = begin, end, w.plans
			*w.into = append(*w.into, o)
		}
	}
	w.open = w.open[:0]
}

func (r *reader) operation(f *facts.Operation) {
	w := r.rows[f.Location]
	if w.into == nil {
		return
	}
	o := &operation{
		function: f.Function, count: f.Count, source: f.Source.String(), graph: f.Graph, early: f.EndsEarly,
		root: f.Peer,
	}
	if f.Datatype != otf2.UndefinedString {
		o.dtype = r.defs.String(f.Datatype)
	}
	if !f.Message && f.Root != otf2.CollectiveRootNone {
		o.root = int(f.Root)
	}
	for _, a := range f.Attributes { // a launch of one has its operation's
		switch id, _ := r.attributes.Resolve(a.ID); id {
		case regions.AttrPlanID, regions.AttrEventID:
			o.ids = append(o.ids, a.Bits)
		case regions.AttrSendBuffClass:
			r.memory[r.defs.String(otf2.StringRef(a.Bits))]++
		}
	}
	for len(w.open) <= f.Index {
		w.open = append(w.open, nil)
	}
	w.open[f.Index] = o
}
