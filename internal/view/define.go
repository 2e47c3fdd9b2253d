// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// sourceMPI is the source file by which scout recognizes MPI's regions; without it they get no MPI metrics.
const sourceMPI = "MPI"

// Names of regions and communicators that are no operations. Score-P's tools recognize the first two by name.
const (
	nameInit     = "MPI_Init"
	nameFinalize = "MPI_Finalize"
	nameProgram  = "application"
	nameWaitall  = "MPI_Waitall"
	nameWorld    = "MPI_COMM_WORLD"
)

// style is how a region shows its operations: it is part of the name.
type style uint8

const (
	timed   style = iota
	untimed       // without wait states
	fused         // also without length
	numStyles
)

var styleSuffix = [numStyles]string{untimed: " (times not comparable)", fused: " (launched with the one before)"}

var styleText = [numStyles]string{
	untimed: "shown without wait states: not every member has a GPU time that can be compared",
	fused:   "launched by one kernel together with others: the first of them has the time",
}

// definitions writes the global definitions.
type definitions struct {
	w       *otf2.GlobalDefWriter
	strings map[string]otf2.StringRef

	regions  otf2.RegionRef
	groups   map[string]otf2.GroupRef // by members
	program  otf2.RegionRef
	init     otf2.RegionRef
	finalize otf2.RegionRef
	call     [len(functions)][numStyles]otf2.RegionRef
	made     [len(functions)][2]otf2.RegionRef // by direction: messages that NCCL made for a function
	waitall  [numStyles]otf2.RegionRef
	waits    [len(functions)]otf2.RegionRef // for such messages
}

func (d *definitions) text(s string) otf2.StringRef {
	return keyed.EntryMade(d.strings, s, func() otf2.StringRef {
		ref := otf2.StringRef(len(d.strings))
		_ = d.w.String(ref, s) // the writer keeps its first error until it is closed
		return ref
	})
}

func (d *definitions) region(name, canonical, description string, role otf2.RegionRole, paradigm otf2.Paradigm,
	file string) otf2.RegionRef {
	ref := d.regions
	d.regions++
	_ = d.w.Region(ref, d.text(name), d.text(canonical), d.text(description), role, paradigm, otf2.RegionFlagNone,
		d.text(file), 0, 0)
	return ref
}

func (d *definitions) mpi(name, canonical, description string, role otf2.RegionRole) otf2.RegionRef {
	return d.region(name, canonical, description, role, otf2.ParadigmMPI, sourceMPI)
}

func (d *definitions) defineRegions() {
	d.program = d.region(nameProgram, nameProgram, "outside NCCL", otf2.RegionRoleFunction, otf2.ParadigmUser, "")
	d.init = d.mpi(nameInit, nameInit, "begin of the view, at one time on all ranks", otf2.RegionRoleFunction)
	d.finalize = d.mpi(nameFinalize, nameFinalize, "end of the view, at one time on all ranks, but for a tick",
		otf2.RegionRoleFunction)
	for i := range functions {
		f := &functions[i]
		for s := range d.call[i] {
			d.call[i][s] = d.mpi("nccl"+f.Name+styleSuffix[s], f.canonical, styleText[s], f.Role)
		}
		if i < int(fnMessages) {
			of := "nccl" + f.Name
			for k, dir := range [2]string{"Send", "Recv"} {
				d.made[i][k] = d.mpi(of+" "+dir, functions[int(fnSend)+k].canonical, "message that NCCL made of "+of,
					otf2.RegionRolePoint2Point)
			}
			d.waits[i] = d.mpi(of+" kernel", nameWaitall, of+", which NCCL made of messages",
				otf2.RegionRolePoint2Point)
		}
	}
	for s := range d.waitall {
		d.waitall[s] = d.mpi("ncclSend/ncclRecv kernel"+styleSuffix[s], nameWaitall, "messages of one launch",
			otf2.RegionRolePoint2Point)
	}
}

func styleOf(p *part) style {
	switch {
	case p.is(flagFused):
		return fused
	case p.is(flagUntimed):
		return untimed
	}
	return timed
}

// callRegion is the region of a collective, or the one in which a message is posted.
func (d *definitions) callRegion(p *part, s style) otf2.RegionRef {
	if p.madeFor != fnNone && s == timed {
		return d.made[p.madeFor][p.fn-fnSend]
	}
	return d.call[p.fn][s]
}

// waitRegion is the region in which messages end.
func (d *definitions) waitRegion(p *part, s style) otf2.RegionRef {
	if p.madeFor != fnNone && s == timed {
		return d.waits[p.madeFor]
	}
	return d.waitall[s]
}

// defineSystem makes machine > node > one process per rank > its one location.
func (j *job) defineSystem(d *definitions) {
	machine := otf2.SystemTreeNodeRef(0)
	_ = d.w.SystemTreeNode(machine, d.text(j.machine()), d.text("machine"), otf2.UndefinedSystemTreeNode)
	nodes := make(map[string]otf2.SystemTreeNodeRef)
	for _, l := range j.locations {
		if _, ok := nodes[l.host]; !ok {
			nodes[l.host] = otf2.SystemTreeNodeRef(1 + len(nodes))
			_ = d.w.SystemTreeNode(nodes[l.host], d.text(cmp.Or(l.host, units.UnknownHost)), d.text("node"), machine)
			_ = d.w.SystemTreeNodeDomain(nodes[l.host], otf2.SystemTreeDomainSharedMemory)
		}
	}
	_ = d.w.SystemTreeNodeDomain(machine, otf2.SystemTreeDomainMachine)
	j.count.Hosts = len(nodes)
	for _, l := range j.locations {
		_ = d.w.LocationGroup(otf2.LocationGroupRef(l.id), d.text(l.name), otf2.LocationGroupTypeProcess, nodes[l.host],
			otf2.UndefinedLocationGroup)
	}
	for _, l := range j.locations {
		_ = d.w.Location(otf2.LocationRef(l.id), d.text("NCCL operations"), otf2.LocationTypeCPUThread, 0,
			otf2.LocationGroupRef(l.id))
	}
}

// machine is the name of the native archive's topmost node.
func (j *job) machine() string {
	for _, n := range j.archive.Defs.SystemTreeNodes {
		if n.Parent == otf2.UndefinedSystemTreeNode {
			return j.archive.Defs.String(n.Name)
		}
	}
	return "machine"
}

// defineComms defines the world and each communicator with operations in the view, reduced to the members that left
// data: scout creates every communicator anew, and all members must take part in all its operations.
func (j *job) defineComms(d *definitions) {
	_ = d.w.Paradigm(otf2.ParadigmMPI, d.text("NCCL"), otf2.ParadigmClassProcess)
	all := make([]uint64, len(j.locations))
	for i := range all {
		all[i] = uint64(i)
	}
	_ = d.w.Group(0, d.text(""), otf2.GroupTypeCommLocations, otf2.ParadigmMPI, otf2.GroupFlagNone, all)
	comms := otf2.CommRef(0)
	comm := func(name string, members []uint64) otf2.CommRef {
		var key []byte
		for _, m := range members {
			key = strconv.AppendUint(append(key, ' '), m, 36)
		}
		g := keyed.EntryMade(d.groups, string(key), func() otf2.GroupRef {
			ref := otf2.GroupRef(1 + len(d.groups))
			_ = d.w.Group(ref, d.text(""), otf2.GroupTypeCommGroup, otf2.ParadigmMPI, otf2.GroupFlagNone, members)
			return ref
		})
		ref := comms
		comms++
		_ = d.w.Comm(ref, d.text(name), g, otf2.UndefinedComm, otf2.CommFlagNone)
		return ref
	}
	comm(nameWorld, all)
	for _, c := range j.comms {
		c.used = len(c.present) > 1 && slices.ContainsFunc(
			c.present, func(r *row) bool { return r.unitAt(0).from < len(r.parts) })
		if !c.used {
			continue
		}
		members := make([]uint64, len(c.present))
		for i, r := range c.present {
			members[i] = uint64(r.location.id)
		}
		c.view = comm(c.name, members)
		j.count.Communicators++
	}
}
