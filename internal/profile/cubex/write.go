// SPDX-License-Identifier: Apache-2.0

package cubex

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/cube"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/profile"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Names of the trees in profiles.
var treeNames = map[profile.Kind]string{
	profile.Host: "program", profile.Kernels: "KERNELS", profile.ByNetwork: "OPERATIONS BY NETWORK TIME",
	profile.ByDuration: "OPERATIONS BY LENGTH", profile.ByEnqueue: "OPERATIONS BY ENQUEUE TIME",
	profile.Network: "NETWORK",
	wholeJob:        "job",
}

// Paradigms of regions. Tools count calls and the work of NCCL's threads as those of a wrapped library, not as
// computation of the application.
const (
	paradigmNCCL = "libwrap:nccl"
	paradigmUser = "user"
	paradigmHIP  = "hip"
	moduleHIP    = "HIP_KERNEL"
)

// treeParadigms are the paradigms below the roots, except the host's. CUDA is for times of the GPU alone.
var treeParadigms = map[profile.Kind]string{
	profile.Host: cube.ParadigmMeasurement, profile.Kernels: cube.ParadigmCUDA, profile.ByNetwork: paradigmNCCL,
	profile.ByDuration: paradigmNCCL, profile.ByEnqueue: paradigmNCCL, profile.Network: paradigmNCCL,
	wholeJob: cube.ParadigmMeasurement,
}

// roles are Score-P's words for roles of regions; any other role is a function.
var roles = map[otf2.RegionRole]string{
	otf2.RegionRoleCollOne2All: "one2all", otf2.RegionRoleCollAll2One: "all2one", otf2.RegionRoleCollAll2All: "all2all",
	otf2.RegionRoleCollOther: "other collective", otf2.RegionRolePoint2Point: "point2point",
	otf2.RegionRoleDataTransfer: "rma",
}

// regionOf returns the region of a node.
func regionOf(n *node) cube.Region {
	r := cube.Region{Name: clean(n.Name), Role: cube.RoleFunction}
	if role, ok := roles[n.Role]; ok {
		r.Role = role
	}
	r.Name = cmp.Or(r.Name, "(unnamed)")
	if name, top := treeNames[n.Kind]; top {
		r.Name, r.Role, r.Paradigm = name, cube.RoleArtificial, treeParadigms[n.Kind]
		if n.Kind == profile.Host {
			r.Attributes = []cube.Attribute{{Key: cube.AttributeArguments, Value: "0"}}
		}
		return r
	}
	switch n.Kind {
	case profile.Phase:
		r.Paradigm, r.Role = paradigmUser, "phase"
	case profile.Other:
		r.Paradigm = n.Paradigm
	case profile.Call:
		r.Paradigm = paradigmNCCL
	case profile.Size:
		if r.Paradigm = treeParadigms[n.tree]; n.tree == profile.Host {
			r.Paradigm = paradigmNCCL
		}
	case profile.Operation, profile.Variant:
		r.Paradigm, r.Role = treeParadigms[n.tree], cube.RoleArtificial
	default:
		r.Paradigm = treeParadigms[n.tree]
	}
	if r.Paradigm == cube.ParadigmCUDA && r.Role != cube.RoleArtificial {
		r.Module = cube.ModuleKernel
	}
	return r
}

// region returns the region of a node in this profile.
func (p *Profile) region(n *node) cube.Region {
	r := regionOf(n)
	if p.hip && r.Paradigm == cube.ParadigmCUDA {
		r.Paradigm = paradigmHIP
		if r.Module != "" {
			r.Module = moduleHIP
		}
	}
	return r
}

// definitions returns all of the file except its values.
func (p *Profile) definitions() *cube.Definitions {
	d := &cube.Definitions{Nodes: p.system.nodes, Groups: p.system.groups, Locations: p.system.locations,
		Topologies: p.system.topologies}
	d.Attributes = append(d.Attributes, cube.Attribute{Key: cube.AttributeCreator, Value: clean(p.Creator)})
	d.Attributes = append(d.Attributes, p.properties...)
	if p.Folded > 0 {
		d.Attributes = append(d.Attributes, cube.Attribute{Key: property.FoldedNames.Key(),
			Value: fmt.Sprint(p.Folded)})
	}
	d.Attributes = append(d.Attributes, p.waitAttributes()...)
	for _, m := range p.metrics() {
		if !m.Kind.Derived() {
			d.AddMetric(m)
		}
	}
	type regionKey struct{ name, paradigm, role, module string }
	keyOf := func(r cube.Region) regionKey { return regionKey{r.Name, r.Paradigm, r.Role, r.Module} }
	known := make(map[regionKey]cube.RegionID)
	var all []cube.Region
	for _, n := range p.nodes {
		if r := p.region(n); known[keyOf(r)] == 0 {
			known[keyOf(r)] = 1
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(x, y cube.Region) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Paradigm, y.Paradigm), cmp.Compare(x.Role, y.Role),
			cmp.Compare(x.Module, y.Module))
	})
	for _, r := range all {
		known[keyOf(r)] = d.AddRegion(r)
	}
	for _, n := range p.nodes {
		d.AddCnode(cube.Cnode{Parent: cube.CnodeID(n.parent), Callee: known[keyOf(p.region(n))]})
	}
	return d
}

// metrics returns the profile's metrics, then the derived ones, which exist only in what report tools make of it:
// readers made for Score-P's profiles do not know these.
func (p *Profile) metrics() []cube.Metric {
	var all []cube.Metric
	ids := make(map[string]cube.MetricID)
	for i := range metrics {
		def := metrics[i].Metric
		switch {
		case p.Estimate == nil || !metrics[i].wait:
		case def.UniqueName == "nccl_late_sender" || def.UniqueName == "nccl_late_receiver":
			def.Description += " (not looked for in profile mode)"
		default:
			def.Description += " (estimated, see " + property.WaitStates.Key() + ")"
		}
		def.Parent = cube.None
		if above := metrics[i].above; above != "" {
			def.Parent = ids[above]
		}
		ids[def.UniqueName] = cube.MetricID(i)
		all = append(all, def)
	}
	return all
}

// waitAttributes states which wait states the profile has.
func (p *Profile) waitAttributes() []cube.Attribute {
	switch {
	case p.Estimate != nil:
		return []cube.Attribute{{Key: property.WaitStates.Key(), Value: p.Estimate.String()}}
	case p.WaitsKnown:
		return nil
	}
	return []cube.Attribute{{Key: property.WaitStates.Key(), Value: "not looked for"}}
}

// Write writes the profile to a file, whose name must end in .cubex. An older one is replaced once the new one is
// complete.
func (p *Profile) Write(path string, compress bool) error {
	if err := mayReplace(path); err != nil {
		return err
	}
	w, err := cube.Create(path, p.definitions(), &cube.Options{Compress: compress})
	if err != nil {
		return err
	}
	defer w.Abandon()
	spec, err := remapping(p.metrics())
	if err != nil {
		return err
	}
	if err := w.WriteFile(cube.RemappingFile, spec); err != nil {
		return err
	}
	for i := range metrics {
		m := &metrics[i]
		if m.Kind.Derived() {
			continue
		}
		if err := w.WriteMetric(cube.MetricID(i), func(c cube.CnodeID, row *cube.Row) error {
			m.setValues(p.nodes[c], row)
			return nil
		}); err != nil {
			return err
		}
	}
	return w.Close()
}

// setValues sets the values of a metric at a node.
func (m *metric) setValues(n *node, row *cube.Row) {
	if m.total {
		for _, s := range n.total {
			row.SetFloat64(s.location, inSeconds(s.ns))
		}
		return
	}
	if m.longest { // readers add up the value that stands for none: ±1.8e308 in tables
		for l := range row.Locations() {
			row.SetFloat64(cube.LocationID(l), 0)
		}
	}
	for _, c := range n.cells {
		switch {
		case m.longest:
			row.SetFloat64(c.location, inSeconds(c.Max))
		case m.count != nil:
			row.SetUint64(c.location, m.count(n, c.Cell))
		case m.seconds != nil:
			row.SetFloat64(c.location, inSeconds(m.seconds(n, c.Cell)))
		case m.number != nil:
			row.SetFloat64(c.location, m.number(c.Cell))
		}
	}
}

func inSeconds(ns uint64) float64 { return float64(ns) / 1e9 }

// mayReplace returns an error if the file at path is a profile of another tool.
func mayReplace(path string) error {
	there, err := cube.Open(path)
	if err != nil {
		return nil // there is no file, or it is not a profile
	}
	defer there.Close()
	ours := slices.ContainsFunc(there.Attributes, func(a cube.Attribute) bool {
		return a.Key == cube.AttributeCreator && strings.HasPrefix(a.Value, toolName)
	})
	if !ours {
		return fmt.Errorf("%s is a profile of another tool, which no result may replace: name another place", path)
	}
	return nil
}

// toolName starts the creator in profiles made by nccl-otf2.
const toolName = "nccl-otf2"
