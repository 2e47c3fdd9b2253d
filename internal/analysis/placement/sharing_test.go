// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// device describes a rank's GPU, host and communicator.
type device struct {
	host, boot, uuid, pci string
	facts                 *provenance.GPUFacts
	comm                  uint64
}

func TestSharedGPUs(t *testing.T) {
	guessed, divided := &provenance.GPUFacts{Guess: "ordinal"}, &provenance.GPUFacts{MIGMode: true}
	part := func(n int) *provenance.GPUFacts {
		return &provenance.GPUFacts{MIG: &provenance.MIG{Parent: "GPU-a", GPUInstance: n, ComputeInstance: 0}}
	}
	one := []placement.SharedGPU{{Host: "node0", GPU: "CUDA Device 0", UUID: "GPU-a", Ranks: []int{0, 1}}}
	for _, c := range []struct {
		name    string
		devices []device
		want    []placement.SharedGPU
	}{
		{"one UUID", []device{{uuid: "GPU-a"}, {uuid: "GPU-a"}, {uuid: "GPU-b"}}, one},
		{"two UUIDs", []device{{uuid: "GPU-a"}, {uuid: "GPU-b"}}, nil},
		{"nothing is known", []device{{}, {}}, nil},
		{"an address alone", []device{{pci: "0000:07:00.0"}, {pci: "0000:07:00.0"}}, nil},
		{"guesses", []device{{uuid: "GPU-a", facts: guessed}, {uuid: "GPU-a", facts: guessed}}, nil},
		{"a guess beside a report", []device{{uuid: "GPU-a"}, {uuid: "GPU-a", facts: guessed}}, nil},
		{"parts of a GPU", []device{{uuid: "MIG-a", facts: part(1)}, {uuid: "MIG-b", facts: part(2)}}, nil},
		{
			"one part of a GPU", []device{{uuid: "MIG-a", facts: part(1)}, {uuid: "MIG-a", facts: part(1)}},
			[]placement.SharedGPU{{Host: "node0", GPU: "CUDA Device 0", UUID: "MIG-a", Ranks: []int{0, 1}}},
		},
		{"parts that are not known", []device{{uuid: "GPU-a", facts: divided}, {uuid: "GPU-a", facts: divided}}, nil},
		{"machines that are not one", []device{{uuid: "GPU-a"}, {uuid: "GPU-a", host: "node1", boot: "boot1"}}, nil},
		{"containers on one machine", []device{{uuid: "GPU-a"}, {uuid: "GPU-a", host: "pod1"}}, one},
		{"no communicator in common", []device{{uuid: "GPU-a", comm: 1}, {uuid: "GPU-b", comm: 1},
			{uuid: "GPU-a", comm: 2}, {uuid: "GPU-b", comm: 2}}, nil},
		{
			"two GPUs", []device{{uuid: "GPU-a"}, {uuid: "GPU-a"}, {uuid: "GPU-b"}, {uuid: "GPU-b"}},
			append(one[:1:1], placement.SharedGPU{Host: "node0", GPU: "CUDA Device 0", UUID: "GPU-b",
				Ranks: []int{2, 3}}),
		},
	} {
		size := make(map[uint64]int)
		for _, d := range c.devices {
			size[d.comm]++
		}
		members := make(map[uint64]int)
		a := jobtest.Open(t, jobtest.Make(t, len(c.devices), len(c.devices), func(rank int, p *shardtest.Process) {
			d := c.devices[rank]
			if d.host != "" {
				p.Shard.Host = d.host
			}
			if d.boot != "" {
				p.Shard.BootID = d.boot
			}
			p.Shard.GPUs = []description.GPU{{UUID: d.uuid, PCI: d.pci, Facts: d.facts}}
			p.Comm(description.Comm{ID: 1 + d.comm, Name: "comm", NRanks: size[d.comm], Rank: members[d.comm],
				InitTime: shardtest.Epoch + 1_000_000})
			members[d.comm]++
		}))
		comms := membership.Communicators(a.Defs)
		ranks, of := placement.Ranks(a.Defs, comms)
		got := placement.SharedGPUs(a.Defs, comms, ranks, of)
		for i := range got {
			got[i].GPU, _, _ = strings.Cut(got[i].GPU, " (") // devices with the same number have a longer name
		}
		testkit.Equal(t, cmp.Diff(c.want, got, cmpopts.EquateEmpty()), "", "%s", c.name)
	}
}
