// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// defineRegions defines each region once, whichever processes use it, and the groups of regions.
func (d *definer) defineRegions() {
	known := make(map[description.Region]otf2.RegionRef)
	grouped := make(map[string][]uint64)
	var order []string
	define := func(r description.Region) uint64 {
		ref, ok := known[r]
		if !ok {
			ref = d.from.region + otf2.RegionRef(len(d.Regions))
			known[r] = ref
			d.Regions = append(d.Regions, otf2.Region{
				Self: ref, Name: d.text(r.Name), CanonicalName: d.text(r.Canonical), Description: d.text(r.Description),
				Role: r.Role, Paradigm: paradigmOf(&r), SourceFile: otf2.UndefinedString,
			})
			if r.Group != "" {
				if grouped[r.Group] == nil {
					order = append(order, r.Group)
				}
				grouped[r.Group] = append(grouped[r.Group], uint64(ref))
			}
		}
		return uint64(ref)
	}
	for _, p := range d.ordered() {
		global := make([]uint64, len(p.Shard.Regions))
		for i, r := range p.Shard.Regions {
			global[i] = define(r)
		}
		d.tables.add(p, otf2.MappingRegion, global)
		if !d.on.marksCallsOf(p) {
			continue
		}
		for i, r := range p.Shard.Regions {
			if d.on.isForwarded(&r) {
				r.Name += forwardedMark
				global[i] = define(r)
			}
		}
		d.tables.marked[p] = otf2.OptimalMapping(otf2.MappingRegion, global)
	}
	if calls := d.on.calls(); len(calls) > 0 {
		order = append(order, groupForwarded)
		for _, r := range calls {
			grouped[groupForwarded] = append(grouped[groupForwarded], uint64(r))
		}
	}
	slices.Sort(order)
	for _, name := range order {
		// as Score-P does; UNKNOWN is a paradigm of its own there
		d.group(name, otf2.GroupTypeRegions, otf2.ParadigmNone, grouped[name])
	}
}

// onThreads lists the groups of regions on threads: NCCL calls, and the work of NCCL's threads.
var onThreads = []string{
	regions.GroupAPI, regions.GroupEnqueue, regions.GroupNetwork, regions.GroupProxy, regions.GroupEvents,
	regions.GroupStates,
}

// paradigmOf returns the paradigm of a region. Regions on threads are USER, not CUDA or HIP, as Score-P also defines
// isForwarded calls.
func paradigmOf(r *description.Region) otf2.Paradigm {
	if slices.Contains(onThreads, r.Group) {
		return otf2.ParadigmUser
	}
	return r.Paradigm
}

func (d *definer) commParadigm() otf2.Paradigm {
	if d.ownParadigm {
		return regions.ParadigmNCCL
	}
	return otf2.ParadigmMPI
}

func (d *definer) defineParadigms() {
	defer func() { // omit what the base already defines
		d.Paradigms = slices.DeleteFunc(d.Paradigms, func(p otf2.ParadigmDef) bool {
			return d.on.paradigm(p.Paradigm)
		})
	}()
	comm := d.commParadigm()
	d.Paradigms = append(d.Paradigms, otf2.ParadigmDef{Paradigm: comm, Name: d.text("NCCL"),
		Class: otf2.ParadigmClassProcess})
	d.ParadigmProperties = append(d.ParadigmProperties, otf2.ParadigmPropertyDef{
		Paradigm: comm, Property: otf2.ParadigmPropertyCommNameTemplate, Type: otf2.TypeString,
		Value: otf2.Value(d.text("ncclComm ${id}")),
	})
	if len(d.networks.all) > 0 {
		d.ParadigmProperties = append(d.ParadigmProperties, otf2.ParadigmPropertyDef{
			Paradigm: comm, Property: otf2.ParadigmPropertyRmaWinNameTemplate, Type: otf2.TypeString,
			Value: otf2.Value(d.text("ncclComm network ${id}")),
		})
	}
	for _, device := range []otf2.Paradigm{otf2.ParadigmCUDA, otf2.ParadigmHIP} {
		if slices.ContainsFunc(d.Regions, func(r otf2.Region) bool { return r.Paradigm == device }) {
			d.Paradigms = append(d.Paradigms, otf2.ParadigmDef{Paradigm: device, Name: d.text(device.String()),
				Class: otf2.ParadigmClassAccelerator})
		}
	}
	if slices.ContainsFunc(d.Regions, func(r otf2.Region) bool { return r.Paradigm == otf2.ParadigmUser }) {
		d.Paradigms = append(d.Paradigms, otf2.ParadigmDef{Paradigm: otf2.ParadigmUser, Name: d.text("User"),
			Class: otf2.ParadigmClassProcess})
	}
}
