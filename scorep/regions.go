// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"slices"

	"github.com/nccl-otf2/nccl-otf2/experiment"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// defineRegions defines every region once, whichever processes have it, and the groups they are in.
func (a *archive) defineRegions() {
	known := make(map[experiment.Region]otf2.RegionRef)
	grouped := make(map[string][]uint64)
	var order []string
	define := func(r experiment.Region) uint64 {
		ref, ok := known[r]
		if !ok {
			ref = a.from.region + otf2.RegionRef(len(a.Regions))
			known[r] = ref
			a.Regions = append(a.Regions, otf2.Region{
				Self: ref, Name: a.text(r.Name), CanonicalName: a.text(r.Canonical), Description: a.text(r.Description),
				Role: r.Role, Paradigm: r.Paradigm, SourceFile: otf2.UndefinedString,
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
	for _, p := range a.ordered() {
		global := make([]uint64, len(p.Shard.Regions))
		for i, r := range p.Shard.Regions {
			global[i] = define(r)
		}
		a.tables.add(p, otf2.MappingRegion, global)
		if a.into == nil || !a.into.marks(p) {
			continue
		}
		for i, r := range p.Shard.Regions {
			if a.into.forwarded(&r) {
				r.Name += forwardedMark
				global[i] = define(r)
			}
		}
		a.tables.marked[p] = otf2.OptimalMapping(otf2.MappingRegion, global)
	}
	slices.Sort(order)
	for _, name := range order {
		a.group(name, otf2.GroupTypeRegions, otf2.ParadigmUnknown, grouped[name])
	}
}

func (a *archive) commParadigm() otf2.Paradigm {
	if a.opts.Paradigm200 {
		return regions.ParadigmNCCL
	}
	return otf2.ParadigmMPI
}

func (a *archive) defineParadigms() {
	defer func() { // what the other archive has defined is not defined again
		a.Paradigms = slices.DeleteFunc(a.Paradigms, func(p otf2.ParadigmDef) bool {
			return a.into != nil && a.into.Archive.Defs.ParadigmDef(p.Paradigm) != nil
		})
	}()
	comm := a.commParadigm()
	a.Paradigms = append(a.Paradigms, otf2.ParadigmDef{Paradigm: comm, Name: a.text("NCCL"), Class: otf2.ParadigmClassProcess})
	a.ParadigmProperties = append(a.ParadigmProperties, otf2.ParadigmPropertyDef{
		Paradigm: comm, Property: otf2.ParadigmPropertyCommNameTemplate, Type: otf2.TypeString, Value: otf2.Value(a.text("ncclComm ${id}")),
	})
	if len(a.networks) > 0 {
		a.ParadigmProperties = append(a.ParadigmProperties, otf2.ParadigmPropertyDef{
			Paradigm: comm, Property: otf2.ParadigmPropertyRmaWinNameTemplate, Type: otf2.TypeString, Value: otf2.Value(a.text("ncclComm network ${id}")),
		})
	}
	for _, device := range []otf2.Paradigm{otf2.ParadigmCUDA, otf2.ParadigmHIP} {
		if slices.ContainsFunc(a.Regions, func(r otf2.Region) bool { return r.Paradigm == device }) {
			a.Paradigms = append(a.Paradigms, otf2.ParadigmDef{Paradigm: device, Name: a.text(device.String()), Class: otf2.ParadigmClassAccelerator})
		}
	}
	if slices.ContainsFunc(a.Regions, func(r otf2.Region) bool { return r.Paradigm == otf2.ParadigmUser }) {
		a.Paradigms = append(a.Paradigms, otf2.ParadigmDef{Paradigm: otf2.ParadigmUser, Name: a.text(regions.GroupApplication), Class: otf2.ParadigmClassProcess})
	}
}
