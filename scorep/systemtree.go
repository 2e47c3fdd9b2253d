// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// systemTree defines the tree machine > node > device, and holds the nodes of hosts and devices.
type systemTree struct {
	d       *definitions
	machine otf2.SystemTreeNodeRef
	nodes   map[string]otf2.SystemTreeNodeRef // by host and boot
	devices map[jobs.Device]otf2.SystemTreeNodeRef
	unknown otf2.SystemTreeNodeRef // node of the processes without data
}

func newSystemTree(d *definitions, w *jobs.World, on target) *systemTree {
	t := &systemTree{
		d:       d,
		nodes:   make(map[string]otf2.SystemTreeNodeRef),
		devices: make(map[jobs.Device]otf2.SystemTreeNodeRef),
		unknown: otf2.UndefinedSystemTreeNode,
	}
	on.defineSystemTree(t, w)
	for _, pl := range w.Places {
		if pl.Process != nil {
			t.host(pl.Process)
		}
	}
	if slices.ContainsFunc(w.Places, func(pl *jobs.Place) bool { return pl.Process == nil }) {
		t.unknown = d.node(units.UnknownHost, "node", t.machine, otf2.SystemTreeDomainSharedMemory)
	}
	t.gpus(w)
	return t
}

// host returns the node of the process's host. There is one per host name and boot, because containers and rebooted
// machines may share names.
func (t *systemTree) host(p *jobs.Process) otf2.SystemTreeNodeRef {
	return keyed.EntryMade(t.nodes, hostKey(p), func() otf2.SystemTreeNodeRef {
		node := t.d.node(p.Shard.Host, "node", t.machine, otf2.SystemTreeDomainSharedMemory)
		t.d.property(node, "BOOT_ID", p.Shard.BootID)
		return node
	})
}

// hostKey identifies a machine, or a container on it.
func hostKey(p *jobs.Process) string { return p.Shard.Host + "\x00" + p.Shard.BootID }

// gpus defines one node per GPU. GPUs of one machine with equal UUIDs are the same GPU, whichever process uses them.
// Device numbers do not identify a GPU (each process may see its own as 0), so equal names on a machine get the PCI
// address or UUID added.
func (t *systemTree) gpus(w *jobs.World) {
	type node struct {
		host    otf2.SystemTreeNodeRef
		name    string
		class   string
		shard   description.GPU
		devices []jobs.Device
	}
	type identity struct {
		host otf2.SystemTreeNodeRef
		uuid string
	}
	var all []*node
	known := make(map[identity]*node)
	for _, pl := range w.Places {
		if pl.Process == nil {
			continue
		}
		host := t.host(pl.Process)
		platform := regions.PlatformOf(pl.Process.Shard.Library)
		for _, g := range gpusOf(pl.Process) {
			dev := jobs.Device{Process: pl.Process, GPU: g.index}
			uuid := identityOf(&g.shard)
			if uuid != "" {
				if same := known[identity{host, uuid}]; same != nil {
					same.devices = append(same.devices, dev)
					same.shard.Facts = cmp.Or(same.shard.Facts, g.shard.Facts)
					continue
				}
			}
			one := &node{host: host, shard: g.shard, devices: []jobs.Device{dev},
				name: platform.DeviceName(g.shard.Device), class: platform.DeviceClass()}
			if g.shard.Device < 0 {
				one.name = "GPU of " + pl.Name
			}
			if uuid != "" {
				known[identity{host, uuid}] = one
			}
			all = append(all, one)
		}
	}
	type place struct {
		host otf2.SystemTreeNodeRef
		name string
	}
	count, seen := make(map[place]int), make(map[place]int)
	for _, g := range all {
		count[place{g.host, g.name}]++
	}
	for _, g := range all {
		key, name := place{g.host, g.name}, g.name
		seen[key]++
		switch {
		case count[key] == 1:
		case g.shard.PCI != "" && !guessed(&g.shard) && !divided(&g.shard):
			name += " (" + g.shard.PCI + ")"
		case identityOf(&g.shard) != "":
			name += " (" + g.shard.UUID + ")"
		case seen[key] > 1:
			name += fmt.Sprintf(" #%d", seen[key])
		}
		ref := t.d.node(name, g.class, g.host, otf2.SystemTreeDomainAcceleratorDevice)
		t.d.describeGPU(ref, &g.shard)
		for _, dev := range g.devices {
			t.devices[dev] = ref
		}
	}
}

// gpu is one of a process's GPUs: its index in the shard, and its description.
type gpu struct {
	index int
	shard description.GPU
}

// gpusOf returns the process's GPUs, sorted by device number. If the process ran on a GPU but describes none, it
// returns one unknown GPU.
func gpusOf(p *jobs.Process) []gpu {
	if len(p.Shard.GPUs) == 0 && slices.ContainsFunc(p.Shard.Locations, onGPU) {
		return []gpu{{shard: description.GPU{Device: -1}}}
	}
	all := make([]gpu, len(p.Shard.GPUs))
	for i, g := range p.Shard.GPUs {
		all[i] = gpu{i, g}
	}
	slices.SortStableFunc(all, func(a, b gpu) int { return cmp.Compare(a.shard.Device, b.shard.Device) })
	return all
}

func onGPU(l description.Location) bool { return l.Type == otf2.LocationTypeAcceleratorStream }

// gpuOfLocation returns the index of the GPU that a location is on: the location's own if it has one, otherwise its
// communicator rank's.
func gpuOfLocation(p *jobs.Process, l *description.Location) int {
	switch {
	case l.Kind == description.KindGPUMetrics:
		return max(0, gpuOfMetrics(p, l.Number))
	case l.Kind == description.KindStream && l.GPU >= 0 && l.GPU < len(p.Shard.GPUs):
		return l.GPU
	}
	return gpuOf(p, l.Comm)
}

// gpuOf returns the index of a communicator rank's GPU. For locations without a communicator, or if the GPU is unknown,
// it returns 0.
func gpuOf(p *jobs.Process, comm int) int {
	if comm >= 0 {
		if g := p.Shard.Comms[comm].GPU; g >= 0 && g < len(p.Shard.GPUs) {
			return g
		}
	}
	return 0
}
