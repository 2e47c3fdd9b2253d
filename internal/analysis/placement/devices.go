// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Device is a rank of the world and the GPU that it works on, as nccl-tests lists them before its tables. Fields
// unknown to the archive are "".
type Device struct {
	Rank int    `json:"rank"` // in the world
	Name string `json:"name"` // "Rank 3"
	PID  uint64 `json:"pid"`  // 0: unknown
	Host string `json:"host"`
	GPU  string `json:"gpu"` // "CUDA Device 0"
	PCI  string `json:"pci"`
	// Product is the GPU's model: "NVIDIA H200".
	Product string `json:"product"`
}

// Devices lists the ranks of an archive in world order, without ranks that have no data.
func Devices(defs *otf2.Definitions) []Device {
	ranks, _ := Ranks(defs, membership.Communicators(defs))
	pids := make(map[otf2.LocationGroupRef]uint64)
	for _, p := range defs.LocationGroupProperties {
		if defs.String(p.Name) == property.PID.Key() {
			pids[p.LocationGroup] = uint64(p.Value)
		}
	}
	type nodeProperty struct {
		node otf2.SystemTreeNodeRef
		name string
	}
	values := make(map[nodeProperty]string)
	for _, p := range defs.SystemTreeNodeProperties {
		if p.Type == otf2.TypeString {
			values[nodeProperty{p.Node, defs.String(p.Name)}] = NameOf(defs, otf2.StringRef(p.Value))
		}
	}
	all := make([]Device, 0, len(ranks))
	for i, r := range ranks {
		d := Device{Rank: i, Name: r.Name, PID: pids[r.Process], Host: r.Host, GPU: r.Gpu}
		if g := defs.LocationGroup(r.group); g != nil && r.Gpu != "" {
			d.PCI = values[nodeProperty{g.SystemTreeParent, "PCI"}]
			d.Product = values[nodeProperty{g.SystemTreeParent, "NAME"}]
		}
		all = append(all, d)
	}
	return slices.DeleteFunc(all, func(d Device) bool { return ranks[d.Rank].Absent })
}

// NameOf returns a string's text, "" if it is not defined.
func NameOf(defs *otf2.Definitions, ref otf2.StringRef) string {
	if ref == otf2.UndefinedString {
		return ""
	}
	if d := defs.StringDef(ref); d != nil {
		return d.Text
	}
	return ""
}
