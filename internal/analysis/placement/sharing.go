// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// SharedGPU is a GPU, or a part of one, on which several ranks of the world work at the same time.
type SharedGPU struct {
	Host string // host of the first of the ranks
	GPU  string // "CUDA Device 0"
	UUID string
	// Ranks are ranks of the world, ascending, at least two. Each shares a communicator with another one of them, so
	// they run at the same time and not one after the other.
	Ranks []int
}

// SharedGPUs finds GPUs that several of an archive's ranks share; ranks and of are the results of Ranks. It goes by
// the UUIDs that CUDA reported. GPUs that were guessed are never reported as shared, nor are divided ones (MIG) if it
// is unknown which part a rank has.
func SharedGPUs(defs *otf2.Definitions, comms map[otf2.CommRef]*membership.Communicator, ranks []Rank,
	of map[otf2.LocationRef]int) []SharedGPU {
	devices, repeated := devicesOf(defs, ranks)
	if !repeated {
		return nil
	}
	shared := make(map[deviceID]map[int]bool)
	for _, c := range comms {
		if c.Network || len(c.Members) < 2 {
			continue
		}
		first := make(map[deviceID]int) // first member on each GPU
		for _, l := range c.Members {
			rank, ok := of[l]
			if !ok || devices[rank].uuid == "" {
				continue
			}
			id := devices[rank]
			before, again := first[id]
			if !again {
				first[id] = rank
			} else if before != rank {
				on := keyed.Map(shared, id)
				on[before], on[rank] = true, true
			}
		}
	}
	all := make([]SharedGPU, 0, len(shared))
	for id, on := range shared {
		s := SharedGPU{UUID: id.uuid, Ranks: slices.Sorted(maps.Keys(on))}
		s.Host, s.GPU = ranks[s.Ranks[0]].Host, ranks[s.Ranks[0]].Gpu
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b SharedGPU) int { return cmp.Compare(a.Ranks[0], b.Ranks[0]) })
	return all
}

// deviceID identifies a GPU; uuid is "" if it is not certain.
type deviceID struct{ boot, uuid string }

// devicesOf returns the GPUs of ranks; repeated reports whether several ranks have the same one.
func devicesOf(defs *otf2.Definitions, ranks []Rank) (all []deviceID, repeated bool) {
	uuids, boots := reportedUUIDs(defs), bootsOf(defs)
	all, seen := make([]deviceID, len(ranks)), make(map[deviceID]bool)
	for i := range ranks {
		g := defs.LocationGroup(ranks[i].group)
		if g == nil || ranks[i].Gpu == "" || ranks[i].Absent {
			continue
		}
		n := defs.SystemTreeNode(g.SystemTreeParent)
		if n == nil || uuids[g.SystemTreeParent] == "" {
			continue
		}
		all[i] = deviceID{boots(n.Parent), uuids[g.SystemTreeParent]}
		repeated = repeated || seen[all[i]]
		seen[all[i]] = true
	}
	return all, repeated
}

// reportedUUIDs returns the UUIDs of devices that are certain.
func reportedUUIDs(defs *otf2.Definitions) map[otf2.SystemTreeNodeRef]string {
	uuids := make(map[otf2.SystemTreeNodeRef]string)
	uncertain := make(map[otf2.SystemTreeNodeRef]bool)
	for _, p := range defs.SystemTreeNodeProperties {
		if p.Type != otf2.TypeString {
			continue
		}
		switch value := NameOf(defs, otf2.StringRef(p.Value)); defs.String(p.Name) {
		case "UUID":
			uuids[p.Node] = value
		case "FOUND_BY":
			uncertain[p.Node] = true
		case "MIG":
			uncertain[p.Node] = uncertain[p.Node] || value == "on"
		}
	}
	maps.DeleteFunc(uuids, func(n otf2.SystemTreeNodeRef, uuid string) bool {
		return uuid == "" || uncertain[n] && !strings.HasPrefix(uuid, "MIG-")
	})
	return uuids
}

// bootsOf returns a function that identifies the machine of a node by its boot id. Containers on one machine have
// nodes of their own; nodes with the same boot id are one machine.
func bootsOf(defs *otf2.Definitions) func(otf2.SystemTreeNodeRef) string {
	boots := make(map[otf2.SystemTreeNodeRef]string)
	for _, p := range defs.SystemTreeNodeProperties {
		if p.Type == otf2.TypeString && defs.String(p.Name) == "BOOT_ID" {
			boots[p.Node] = NameOf(defs, otf2.StringRef(p.Value))
		}
	}
	return func(ref otf2.SystemTreeNodeRef) string {
		if boot := boots[ref]; boot != "" {
			return boot
		}
		if n := defs.SystemTreeNode(ref); n != nil {
			return defs.String(n.Name)
		}
		return ""
	}
}
