// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"ncclotf2/otf2"
	"ncclotf2/shard"
)

// operation is one member's part in a collective, or one end of a message, as the archive shows it.
type operation struct {
	function   string // NCCL's
	count      uint64
	dtype      string
	root       int   // −1 for rootless ones; the peer of messages
	begin, end int64 // CLOCK_MONOTONIC_RAW, ns; of its plan
	source     string
	plan       int      // number of the plan on its row: operations launched together have one
	ids        []uint64 // by which kernels name it, or that plan
	graph      bool
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
	properties map[string]string
	shards     int
}

const prefix = "NCCL_OTF2::"

// kernelRow begins the names of rows of CUDA streams: CUDA[device:stream].
const kernelRow = "CUDA["

var functions = map[otf2.CollectiveOp]string{
	otf2.CollectiveOpAllreduce: "AllReduce", otf2.CollectiveOpBcast: "Broadcast", otf2.CollectiveOpReduce: "Reduce",
	otf2.CollectiveOpAllgather: "AllGather", otf2.CollectiveOpReduceScatterBlock: "ReduceScatter",
	otf2.CollectiveOpAlltoall: "AlltoAll", otf2.CollectiveOpGather: "Gather", otf2.CollectiveOpScatter: "Scatter",
}

// processOf is the place of a location's process, which is its world rank: ids are number << 32 | place.
func processOf(l otf2.LocationRef) int { return int(uint32(l)) }

// readArchive reads the archive of an experiment directory to its end.
func readArchive(dir string) (*archive, error) {
	a, err := otf2.Open(filepath.Join(dir, "traces.otf2"), nil)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	r := &reader{archive: &archive{properties: make(map[string]string)}, defs: a.Defs, rows: make(map[otf2.LocationRef]*row)}
	if err := r.clock(dir); err != nil {
		return nil, err
	}
	for _, p := range a.Anchor.Properties {
		r.properties[p.Name] = p.Value
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
		if err := r.event(ev); err != nil {
			return nil, fmt.Errorf("location %d, time %d, %v: %w", ev.Location, ev.Time, ev.Kind, err)
		}
	}
	slices.SortStableFunc(r.comms, func(x, y *communicator) int { return cmp.Compare(x.begin(), y.begin()) })
	return r.archive, nil
}

// reader turns events into operations.
type reader struct {
	*archive
	defs   *otf2.Definitions
	rows   map[otf2.LocationRef]*row // also those of kernels
	origin int64                     // archive's time at which the raw clock read 0
}

// row is the state of one location.
type row struct {
	into     *[]*operation // nil: the row shows something else
	kernels  bool
	depth    int
	plans    int
	enter    otf2.Event // of the plan or kernel
	open     []*operation
	pending  *operation            // a blocking collective
	requests map[uint64]*operation // Recv and non-blocking collectives
}

// clock finds how the archive's time goes with the raw clock: readers add each process's offset to the one whose line
// begins first.
func (r *reader) clock(dir string) error {
	entries, err := shard.List(dir)
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
	var world []uint64
	for _, g := range r.defs.Groups {
		if g.Type == otf2.GroupTypeCommLocations {
			world = g.Members
		}
	}
	for _, d := range r.defs.Comms {
		g := r.defs.Group(d.Group)
		c := &communicator{name: r.defs.String(d.Name)}
		if strings.HasSuffix(c.name, " network") {
			continue
		}
		if g == nil || g.Type != otf2.GroupTypeCommGroup {
			return fmt.Errorf("communicator %q has no group of members", c.name)
		}
		c.rows = make([][]*operation, len(g.Members))
		for i, m := range g.Members {
			if m >= uint64(len(world)) {
				return fmt.Errorf("communicator %q has a member that is no location", c.name)
			}
			l := otf2.LocationRef(world[m])
			c.ranks = append(c.ranks, processOf(l))
			r.rows[l] = &row{into: &c.rows[i], requests: make(map[uint64]*operation)}
		}
		r.comms = append(r.comms, c)
	}
	for _, l := range r.defs.Locations {
		if r.rows[l.Self] == nil && strings.HasPrefix(r.defs.String(l.Name), kernelRow) {
			r.rows[l.Self] = &row{kernels: true}
		}
	}
	return nil
}

func (r *reader) event(ev *otf2.Event) error {
	w := r.rows[ev.Location]
	switch {
	case w == nil:
		if l := r.defs.Location(ev.Location); ev.Kind == otf2.EventEnter && l != nil && l.Type == otf2.LocationTypeCPUThread {
			if p := processOf(l.Self); p < len(r.phases) {
				r.phases[p][r.region(ev)]++
			}
		}
		return nil
	case ev.Kind == otf2.EventEnter:
		if w.depth++; w.depth == 1 {
			w.enter = ev.Clone()
			w.open = nil
			w.plans++
		}
		return nil
	case ev.Kind == otf2.EventLeave:
		if w.depth--; w.depth == 0 {
			r.leave(w, ev)
		}
		return nil
	case w.into == nil:
		return nil
	}
	return r.operation(w, ev)
}

func (r *reader) region(ev *otf2.Event) string {
	if d := r.defs.Region(otf2.RegionRef(ev.Args[0])); d != nil {
		return r.defs.String(d.Name)
	}
	return ""
}

// attribute is the name of one.
func (r *reader) attribute(a otf2.AttributeValue) string {
	if d := r.defs.Attribute(a.ID); d != nil {
		return r.defs.String(d.Name)
	}
	return ""
}

func (r *reader) leave(w *row, ev *otf2.Event) {
	begin, end := r.raw(w.enter.Time), r.raw(ev.Time)
	if w.kernels {
		k := kernel{name: r.region(&w.enter), rank: processOf(ev.Location), begin: begin, end: end}
		for _, a := range w.enter.Attributes {
			switch r.attribute(a) {
			case "EXTERNAL_ID":
				k.launched = true
			case "PLAN_ID", "PARENT_ID":
				k.ids = append(k.ids, a.Bits)
			}
		}
		r.kernels = append(r.kernels, k)
		return
	}
	for _, o := range w.open {
		o.begin, o.end = begin, end
	}
	*w.into = append(*w.into, w.open...)
}

func (r *reader) operation(w *row, ev *otf2.Event) error {
	request := func(i int) (*operation, error) {
		o := w.requests[ev.Args[i]]
		if o == nil {
			return nil, fmt.Errorf("request %d is not open", ev.Args[i])
		}
		delete(w.requests, ev.Args[i])
		return o, nil
	}
	switch ev.Kind {
	case otf2.EventMpiCollectiveBegin:
		w.pending = r.begun(w, ev)
	case otf2.EventMpiCollectiveEnd:
		if w.pending == nil {
			return fmt.Errorf("no collective has begun")
		}
		w.pending.collective(ev)
		w.pending = nil
	case otf2.EventNonBlockingCollectiveRequest, otf2.EventMpiIrecvRequest:
		w.requests[ev.Args[0]] = r.begun(w, ev)
	case otf2.EventNonBlockingCollectiveComplete:
		o, err := request(5)
		if err != nil {
			return err
		}
		o.collective(ev)
	case otf2.EventMpiIrecv:
		o, err := request(4)
		if err != nil {
			return err
		}
		o.function, o.root = "Recv", int(ev.Args[0])
	case otf2.EventMpiIsend:
		o := r.begun(w, ev)
		o.function, o.root = "Send", int(ev.Args[0])
	}
	return nil
}

// begun adds an operation to the open plan. A plan of one has its operation's attributes.
func (r *reader) begun(w *row, ev *otf2.Event) *operation {
	o := &operation{plan: w.plans}
	for _, a := range slices.Concat(w.enter.Attributes, ev.Attributes) {
		switch r.attribute(a) {
		case "COUNT":
			o.count = a.Bits
		case "DATATYPE":
			o.dtype = r.defs.String(otf2.StringRef(a.Bits))
		case "TIMING_SOURCE":
			o.source = r.defs.String(otf2.StringRef(a.Bits))
		case "GRAPH":
			o.graph = a.Bits != 0
		case "PLAN_ID", "EVENT_ID":
			o.ids = append(o.ids, a.Bits)
		}
	}
	w.open = append(w.open, o)
	return o
}

func (o *operation) collective(ev *otf2.Event) {
	o.function, o.root = functions[otf2.CollectiveOp(ev.Args[0])], int(ev.Args[2])
	if uint32(ev.Args[2]) == otf2.CollectiveRootNone {
		o.root = -1
	}
}
