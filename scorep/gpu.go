// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// describeGPU adds what the driver reported about a GPU to its system tree node. Properties:
//
//	UUID, PCI         as CUDA or the driver reports them
//	NAME, MEMORY      product name; memory in bytes
//	NVML_INDEX        the driver's number: GPUs of the machine by PCI address
//	DRIVER            the driver's version
//	PCIE              current generation and width of the link: "gen 4 x16"
//	NVLINK            active links, equal ones together: "18 x 4.0, 26562 MB/s"
//	NVLINK_PEERS      the other ends, by PCI address: "6 x 0000:07:00.0 (switch)"
//	MIG               the part of a divided GPU: "GPU-…, GPU instance 1, compute instance 0"; "on" if it is divided
//	FOUND_BY          how the GPU was identified, if not by CUDA
func (d *definitions) describeGPU(node otf2.SystemTreeNodeRef, g *description.GPU) {
	d.property(node, "UUID", g.UUID)
	d.property(node, "PCI", g.PCI)
	f := g.Facts
	if f == nil {
		return
	}
	d.property(node, "NAME", f.Name)
	if f.Memory > 0 {
		d.property(node, "MEMORY", strconv.FormatUint(f.Memory, 10))
	}
	if f.Index >= 0 {
		d.property(node, "NVML_INDEX", strconv.Itoa(f.Index))
	}
	d.property(node, "DRIVER", f.Driver)
	if f.PCIeGeneration > 0 && f.PCIeWidth > 0 {
		d.property(node, "PCIE", fmt.Sprintf("gen %d x%d", f.PCIeGeneration, f.PCIeWidth))
	}
	var kinds, peers tally
	for _, l := range f.NVLinks {
		kind := []string{}
		if l.Version != "" {
			kind = append(kind, l.Version)
		}
		if l.Speed > 0 {
			kind = append(kind, fmt.Sprintf("%d MB/s", l.Speed))
		}
		kinds.add(strings.Join(kind, ", "))
		switch {
		case l.Peer != "" && l.Switch:
			peers.add(l.Peer + " (switch)")
		case l.Peer != "":
			peers.add(l.Peer)
		}
	}
	d.property(node, "NVLINK", kinds.String())
	d.property(node, "NVLINK_PEERS", peers.String())
	d.property(node, "MIG", migText(f))
	d.property(node, "FOUND_BY", f.Guess)
}

// identityOf returns the GPU's UUID, or "" if the GPU was guessed without the process's own CUDA. A guess does not
// prove that two processes use the same GPU.
func identityOf(g *description.GPU) string {
	if guessed(g) {
		return ""
	}
	return g.UUID
}

func guessed(g *description.GPU) bool { return g.Facts != nil && g.Facts.Guess != "" }

// divided reports whether the GPU is a MIG partition, so that other partitions share its PCI address.
func divided(g *description.GPU) bool { return g.Facts != nil && g.Facts.MIG != nil }

func migText(f *provenance.GPUFacts) string {
	if f.MIG == nil {
		if f.MIGMode {
			return "on"
		}
		return ""
	}
	var parts []string
	if f.MIG.Parent != "" {
		parts = append(parts, f.MIG.Parent)
	}
	if f.MIG.GPUInstance >= 0 {
		parts = append(parts, fmt.Sprintf("GPU instance %d", f.MIG.GPUInstance))
	}
	if f.MIG.ComputeInstance >= 0 {
		parts = append(parts, fmt.Sprintf("compute instance %d", f.MIG.ComputeInstance))
	}
	if len(parts) == 0 {
		return "part"
	}
	return strings.Join(parts, ", ")
}

// tally counts equal texts, in order of first appearance.
type tally struct {
	texts  []string
	counts []int
}

func (t *tally) add(s string) {
	i := slices.Index(t.texts, s)
	if i < 0 {
		i = len(t.texts)
		t.texts, t.counts = append(t.texts, s), append(t.counts, 0)
	}
	t.counts[i]++
}

// String returns "2 x this; 1 x that". For an empty text it has only the count.
func (t *tally) String() string {
	parts := make([]string, len(t.texts))
	for i, s := range t.texts {
		parts[i] = strings.TrimSuffix(fmt.Sprintf("%d x %s", t.counts[i], s), " x ")
	}
	return strings.Join(parts, "; ")
}
