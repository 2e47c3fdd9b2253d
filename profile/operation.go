// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"math"
	"strings"

	"ncclotf2/otf2"
	"ncclotf2/regions"
)

// className is the name of a class of sizes.
func className(i int) string {
	c := regions.SizeClasses[i]
	switch {
	case c.To == math.MaxUint64:
		return fmt.Sprintf("%s and more", byteText(c.From))
	case c.From == 0:
		return "below " + byteText(c.To)
	}
	return byteText(c.From) + " to " + byteText(c.To)
}

func byteText(n uint64) string {
	unit := 0
	for n >= 1<<10 && n%(1<<10) == 0 {
		n >>= 10
		unit++
	}
	return fmt.Sprintf("%d %s", n, [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}[unit])
}

// rankEvent takes an event of a communicator rank: its launches, and the operations in them.
func (g *Aggregator) rankEvent(r *row, t uint64, ev *otf2.Event) {
	p := &r.plan
	switch ev.Kind {
	case otf2.EventEnter:
		region := g.region(otf2.RegionRef(ev.Args[0]))
		if len(r.stack) > 0 {
			r.stack = append(r.stack, frame{region: region, begin: t, node: None})
			return
		}
		*p = plan{details: g.read(ev, noDetails), begin: t, region: region, ops: p.ops[:0]}
		r.stack = append(r.stack, frame{region: region, begin: t, node: None, plan: true})
	case otf2.EventLeave:
		n := len(r.stack)
		if n == 0 {
			return
		}
		f := r.stack[n-1]
		r.stack = r.stack[:n-1]
		if f.plan { // phases of its kernel are part of it
			g.endPlan(r, t)
		}
	case otf2.EventMpiCollectiveEnd:
		e := ev.MpiCollectiveEnd()
		p.ops = append(p.ops, g.collective(g.read(ev, p.details), e.CollectiveOp, e.Communicator, e.Root, e.SizeSent, e.SizeReceived))
	case otf2.EventNonBlockingCollectiveRequest, otf2.EventMpiIrecvRequest:
		p.begun++
		r.open[ev.Args[0]] = request{details: g.read(ev, p.details)}
	case otf2.EventNonBlockingCollectiveComplete:
		e := ev.NonBlockingCollectiveComplete()
		if s, ok := r.open[e.RequestID]; ok {
			delete(r.open, e.RequestID)
			p.ops = append(p.ops, g.collective(g.read(ev, s.details), e.CollectiveOp, e.Communicator, e.Root, e.SizeSent, e.SizeReceived))
		}
	case otf2.EventMpiIsend:
		e := ev.MpiIsend()
		p.begun++
		r.open[e.RequestID] = request{g.read(ev, p.details), e.MsgLength, e.Communicator}
	case otf2.EventMpiIsendComplete:
		if s, ok := r.open[ev.Args[0]]; ok {
			delete(r.open, ev.Args[0])
			p.ops = append(p.ops, operation{details: g.read(ev, s.details), function: "Send", comm: s.comm, size: s.length, bus: float64(s.length), sent: s.length})
		}
	case otf2.EventMpiIrecv:
		e := ev.MpiIrecv()
		if s, ok := r.open[e.RequestID]; ok {
			delete(r.open, e.RequestID)
			p.ops = append(p.ops, operation{details: g.read(ev, s.details), function: "Recv", comm: e.Communicator, size: e.MsgLength, bus: float64(e.MsgLength), received: e.MsgLength})
		}
	case otf2.EventCommDestroy:
		r.ended = true
	}
	if len(r.stack) == 0 { // operations outside of regions belong to no launch
		p.ops = p.ops[:0]
	}
}

// collective describes a member's part of a collective. Without the elements' number and type its size is what it moves.
func (g *Aggregator) collective(d details, op otf2.CollectiveOp, comm otf2.CommRef, root uint32, sent, received uint64) operation {
	o := operation{details: d, function: op.String(), comm: comm, sent: sent, received: received, size: max(sent, received), collective: true, root: -1}
	if root != otf2.CollectiveRootNone {
		o.root = int64(root)
	}
	o.bus = float64(o.size)
	c := regions.CollectiveOf(op)
	if c == nil {
		return o
	}
	o.function = c.Name
	if element := g.elementSize(d.dtype); element > 0 && d.counted {
		n := g.names.CommSize(comm)
		o.size = c.Size(d.count*element, uint64(n))
		o.bus = float64(o.size) * c.BusFactor(float64(n))
	}
	return o
}

// endPlan counts a launch.
func (g *Aggregator) endPlan(r *row, t uint64) {
	p := &r.plan
	took := t - p.begin
	root := g.tree.root(sourceTrees[p.source])
	if !p.grouped() {
		o := p.only(g, r)
		node := g.leaf(root, &o)
		c := r.cell(node)
		c.visit(took, 0, p.unfinished)
		c.Sent += o.sent
		c.Received += o.received
		s := r.statsOf(o.function, p.source, false)
		s.Time.Add(took)
		s.Size.Add(o.size)
		if p.source != sourceEnqueue && took > 0 && len(p.ops) > 0 {
			c.Moved += o.size
			c.Bus += o.bus
			c.Busy += took
			s.Moved += o.size
			s.Bus += o.bus
			s.Busy += took
		}
		g.sampleLead(r, node, t)
		return
	}
	node := g.tree.child(root, Launch, p.region.title, 0)
	r.cell(node).visit(took, 0, p.unfinished)
	r.statsOf(p.region.title, p.source, true).Time.Add(took)
	for i := range p.ops {
		o := &p.ops[i]
		c := r.cell(g.leaf(node, o))
		c.Visits++
		c.Sent += o.sent
		c.Received += o.received
		r.statsOf(o.function, p.source, true).Size.Add(o.size)
	}
	g.sampleLead(r, node, t)
}

// sampleLead samples the first collective of a launch: the others have its times.
func (g *Aggregator) sampleLead(r *row, node int32, t uint64) {
	if !g.samples {
		return
	}
	for i := range r.plan.ops {
		if o := &r.plan.ops[i]; o.collective && o.numbered {
			g.sample(r, node, Sample{Function: o.function, Ordinal: o.ordinal, Root: o.root, Begin: r.plan.begin, End: t, Source: sourceNames[r.plan.source]})
			return
		}
	}
}

// grouped tells whether the launch is one of several operations, which have no times of their own.
func (p *plan) grouped() bool { return p.begun > 1 || len(p.ops) > 1 || !p.region.single }

// only is the operation of a launch of one. On communicators of one rank, and where NCCL did not tell enough, there are no events of
// it; then the region tells.
func (p *plan) only(g *Aggregator, r *row) operation {
	if len(p.ops) > 0 {
		return p.ops[0]
	}
	o := operation{details: p.details, function: p.region.Name}
	if element := g.elementSize(p.dtype); element > 0 && p.counted {
		o.size = p.count * element
		if c := regions.CollectiveNamed(o.function); c != nil {
			o.size = c.Size(o.size, uint64(max(r.Ranks, 1)))
		}
	}
	return o
}

// leaf is the call path of an operation: function, algorithm and protocol if they are known, class of sizes.
func (g *Aggregator) leaf(parent int32, o *operation) int32 {
	key := leafKey{parent, o.function, o.algo, o.proto, o.variant, regions.SizeClassOf(o.size)}
	if n, ok := g.leaves[key]; ok {
		return n
	}
	name := o.function
	n := g.tree.child(parent, Operation, name, 0)
	if v := g.variant(o); v != "" {
		name += " " + v
		n = g.tree.child(n, Variant, name, 0)
	}
	n = g.tree.child(n, Size, name+", "+className(key.class), 0)
	if len(g.leaves) < maxNodes {
		g.leaves[key] = n
	}
	return n
}

// variant says how an operation was carried out: "RING/LL", a symmetric kernel, or how copy engines synchronise.
func (g *Aggregator) variant(o *operation) string {
	text := func(ref otf2.StringRef) string {
		if ref == otf2.UndefinedString {
			return ""
		}
		return g.names.String(ref)
	}
	algo, proto, variant := text(o.algo), text(o.proto), text(o.variant)
	switch {
	case variant != "":
		return variant
	case algo != "" && proto != "":
		return algo + "/" + proto
	}
	return algo + proto
}

func (r *row) statsOf(function string, s source, grouped bool) *Stats {
	key := statsKey{function, s, grouped}
	st := r.stats[key]
	if st == nil {
		st = &Stats{Function: function, Source: sourceNames[s], Grouped: grouped}
		r.stats[key] = st
	}
	return st
}

// Place is an operation, or a launch of several, as an analysis of an archive knows it.
type Place struct {
	Location    otf2.LocationRef
	Region      otf2.RegionRef // of the launch
	Grouped     bool
	Source      string
	Function    string
	Algo, Proto otf2.StringRef
	Variant     otf2.StringRef
	Size        uint64 // as nccl-tests counts it
}

// Wait adds time that was waited in an operation.
func (g *Aggregator) Wait(p *Place, kind WaitKind, ns uint64) {
	s := sourceUnknown
	for i, name := range sourceNames {
		if name == p.Source {
			s = source(i)
		}
	}
	root := g.tree.root(sourceTrees[s])
	var node int32
	if p.Grouped {
		node = g.tree.child(root, Launch, g.region(p.Region).title, 0)
	} else {
		node = g.leaf(root, &operation{details: details{algo: p.Algo, proto: p.Proto, variant: p.Variant}, function: p.Function, size: p.Size})
	}
	g.row(p.Location).cell(node).Waits[kind] += ns
}

// SizeOrder is the place of a node among its siblings as far as its class of sizes says; 0 for nodes of no class.
func SizeOrder(n Node) int {
	if n.Kind != Size {
		return 0
	}
	for i := range regions.SizeClasses {
		if strings.HasSuffix(n.Name, ", "+className(i)) {
			return i + 1
		}
	}
	return 0
}

// ClassName is the name of the class of a size.
func ClassName(size uint64) string { return className(regions.SizeClassOf(size)) }
