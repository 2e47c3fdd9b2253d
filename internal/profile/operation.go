// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/lateness"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/timing"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions/sizeclass"
)

// addOperation keeps an operation until its launch ends. Operations outside of regions belong to no launch.
func (g *Aggregator) addOperation(o *facts.Operation) {
	if g.at.Kind == description.KindRank && o.Enter != facts.NoRegion {
		g.at.ops = append(g.at.ops, *o)
	}
}

// addSpeed counts an operation with a bandwidth, except in start-up as package facts defines it.
func (g *Aggregator) addSpeed(c *Cell, s *Stats, o *facts.Operation) {
	took := o.TimeOf()
	if o.StartUp || took <= 0 || !timing.HasBandwidth(o.Source, o.Grouped, o.Equal) {
		return
	}
	bus := float64(o.Size) * o.BusFactor(g.names.CommSize(o.Comm))
	c.Speeds.addOperation(o.Size, bus, took)
	s.Speeds.addOperation(o.Size, bus, took)
}

// addLaunch counts a launch; regions in it are part of it.
func (g *Aggregator) addLaunch(l *facts.Region) {
	if l.Depth > 0 {
		return
	}
	r := g.at
	took := uint64(l.End - l.Begin)
	root := g.tree.root(sourceTrees[l.Source])
	var node int32
	if l.Grouped() {
		node = g.addGroup(r, l, root, took)
	} else {
		node = g.addSingle(r, l, root, took)
	}
	g.sampleLead(r, node, l)
	r.ops = r.ops[:0]
}

// addSingle counts a launch of one operation.
func (g *Aggregator) addSingle(r *row, l *facts.Region, root int32, took uint64) (node int32) {
	known := len(r.ops) > 0
	if !known {
		r.ops = append(r.ops, g.operationOf(r, l))
	}
	o := &r.ops[0]
	node = g.leaf(root, o)
	c := r.cell(node)
	c.visit(took, 0, l.Unfinished)
	c.Sent += o.Sent
	c.Received += o.Received
	s := r.statsOf(o.Function, l.Source, false)
	s.Time.Add(took)
	s.Size.Add(o.Size)
	if known {
		g.addSpeed(c, s, o)
	}
	return node
}

// addGroup counts a launch of several operations.
func (g *Aggregator) addGroup(r *row, l *facts.Region, root int32, took uint64) (node int32) {
	title := g.region(l.Region).title
	node = g.tree.child(root, Launch, title, 0)
	r.cell(node).visit(took, 0, l.Unfinished)
	r.statsOf(title, l.Source, true).Time.Add(took)
	for i := range r.ops {
		o := &r.ops[i]
		c := r.cell(g.leaf(node, o))
		c.Visits++
		c.Sent += o.Sent
		c.Received += o.Received
		s := r.statsOf(o.Function, l.Source, true)
		s.Size.Add(o.Size)
		g.addSpeed(c, s, o)
	}
	return node
}

// sampleLead samples the first collective of a launch; the others have no times of their own.
func (g *Aggregator) sampleLead(r *row, node int32, l *facts.Region) {
	if !g.samples {
		return
	}
	for i := range r.ops {
		o := &r.ops[i]
		if o.Message || !o.Numbered {
			continue
		}
		root := int64(-1)
		if o.Root != otf2.CollectiveRootNone {
			root = int64(o.Root)
		}
		g.addSample(r, node, Sample{Function: o.Function, Ordinal: o.Ordinal, Root: root, Begin: uint64(l.Begin),
			End: uint64(l.End), Source: l.Source.String()})
		return
	}
}

// operationOf returns the operation of a launch without events of operations, as on a communicator of one rank, or
// where NCCL reported too little. It is derived from the launch's region.
func (g *Aggregator) operationOf(r *row, l *facts.Region) facts.Operation {
	return facts.Operation{Details: l.Details, Function: g.region(l.Region).Name, Message: true,
		Size: g.reader.AloneSize(l, r.Ranks)}
}

// leaf returns the call path of an operation: function, algorithm and protocol if known, class of sizes.
func (g *Aggregator) leaf(parent int32, o *facts.Operation) int32 {
	key := leafKey{parent, o.Function, o.Algo, o.Proto, o.Variant, sizeclass.IndexOf(o.Size)}
	if n, ok := g.leaves[key]; ok {
		return n
	}
	name := o.Function
	n := g.tree.child(parent, Operation, name, 0)
	if v := g.variant(o); v != "" {
		name += " " + v
		n = g.tree.child(n, Variant, name, 0)
	}
	n = g.tree.child(n, Size, name+" "+sizeclass.All[key.class].String(), 0)
	if len(g.leaves) < maxNodes {
		g.leaves[key] = n
	}
	return n
}

// variant returns how an operation was carried out: "RING/LL", a symmetric kernel, or how copy engines synchronize.
func (g *Aggregator) variant(o *facts.Operation) string {
	text := func(ref otf2.StringRef) string {
		if ref == otf2.UndefinedString {
			return ""
		}
		return g.names.String(ref)
	}
	algo, proto, variant := text(o.Algo), text(o.Proto), text(o.Variant)
	switch {
	case variant != "":
		return variant
	case algo != "" && proto != "":
		return algo + "/" + proto
	}
	return algo + proto
}

func (r *row) statsOf(function string, s facts.Source, grouped bool) *Stats {
	key := statsKey{function, s, grouped}
	st := keyed.EntryMade(r.stats, key, func() *Stats {
		return &Stats{Function: function, Source: s.String(), Grouped: grouped}
	})
	return st
}

// Place is an operation, or a launch of several, in the terms of an archive's analysis.
type Place struct {
	Location    otf2.LocationRef
	Region      otf2.RegionRef // of the launch
	Grouped     bool
	Source      facts.Source
	Function    string
	Algo, Proto otf2.StringRef
	Variant     otf2.StringRef
	Size        uint64 // as nccl-tests counts it
}

// Wait adds ns of waiting in an operation.
func (g *Aggregator) Wait(p *Place, kind lateness.WaitKind, ns uint64) {
	root := g.tree.root(sourceTrees[p.Source])
	var node int32
	if p.Grouped {
		node = g.tree.child(root, Launch, g.region(p.Region).title, 0)
	} else {
		node = g.leaf(root, &facts.Operation{Details: facts.Details{Algo: p.Algo, Proto: p.Proto, Variant: p.Variant},
			Function: p.Function, Size: p.Size})
	}
	g.row(p.Location).cell(node).Waits[kind] += ns
}

// SizeOrder orders siblings by class of sizes; it is 0 for nodes without a class.
func SizeOrder(n Node) int {
	if n.Kind != Size {
		return 0
	}
	for i, class := range sizeclass.All {
		if strings.HasSuffix(n.Name, " "+class.String()) {
			return i + 1
		}
	}
	return 0
}
