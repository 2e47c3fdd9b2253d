// SPDX-License-Identifier: Apache-2.0

package fakegpu

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
)

// Memory is an allocation or a release that the fake CUPTI reported.
type Memory struct {
	Operation int                `json:"memory"` // 1: allocated, 2: released; as CUPTI numbers them
	Kind      int                `json:"kind"`   // of memory, as CUPTI numbers them
	Address   descriptor.Pointer `json:"address"`
	Bytes     uint64             `json:"bytes"`
	Time      uint64             `json:"time"` // ns on CUPTI's clock
}

// Numbers of CUPTI's.
const (
	memoryAllocated, memoryReleased = 1, 2

	pageable, pinned, device, managed, deviceStatic, managedStatic = 1, 2, 3, 5, 6, 7
)

// memoryKinds are dealt out to the allocations of a process in turn; 0 is one that CUPTI does not tell of.
var memoryKinds = []int{device, managed, pinned, pageable, 0, managedStatic, deviceStatic}

// allocation is memory that buffers of a process lie in.
type allocation struct {
	begin, end uint64
	uses       []*replay.Event // operations, in order
}

// memory adds allocations that contain the buffers of all operations of a process, made before the first communicator
// works. One of them, if there is one that does not serve for a while, is released in between, and its address comes
// back as memory of another kind.
func (k *kernels) memory(process int) {
	if len(k.p.Contexts) == 0 {
		return
	}
	first := k.p.Contexts[0].Init
	reused := false
	for i, a := range k.allocations() {
		kind := memoryKinds[(i+process)%len(memoryKinds)]
		if kind == 0 {
			continue
		}
		k.allocate(first, memoryAllocated, kind, a)
		if reused {
			continue
		}
		if at := k.unused(a); at != nil {
			reused = true
			other := managed
			if kind == managed || kind == managedStatic {
				other = device
			}
			k.allocate(at, memoryReleased, kind, a)
			k.allocate(at, memoryAllocated, other, a)
		}
	}
}

func (k *kernels) allocate(at *replay.Call, operation, kind int, a *allocation) {
	k.add(at.Index, at.T, "memory %d %d %d %d %d", operation, kind, a.begin, a.end-a.begin, at.T+uint64(operation%2))
}

// allocations are the ranges of addresses that the buffers of operations cover; none touches another.
func (k *kernels) allocations() []*allocation {
	var all []*allocation
	use := func(e *replay.Event, at descriptor.Pointer, bytes uint64) {
		if at != 0 {
			all = append(all, &allocation{uint64(at), uint64(at) + max(bytes, 1), []*replay.Event{e}})
		}
	}
	for _, e := range k.p.Events {
		switch d := e.Descr.(type) {
		case *descriptor.Coll:
			bytes := d.Count * elementBytes(d.Datatype) * uint64(e.Context.NRanks)
			use(e, d.SendBuff, bytes)
			use(e, d.RecvBuff, bytes)
		case *descriptor.P2p:
			use(e, d.Buff, d.Count*elementBytes(d.Datatype))
		}
	}
	slices.SortStableFunc(all, func(a, b *allocation) int { return cmp.Compare(a.begin, b.begin) })
	var separate []*allocation
	for _, a := range all {
		if n := len(separate); n > 0 && a.begin < separate[n-1].end {
			separate[n-1].end = max(separate[n-1].end, a.end)
			separate[n-1].uses = append(separate[n-1].uses, a.uses...)
			continue
		}
		separate = append(separate, a)
	}
	return separate
}

// elementBytes is the size of an element by the number of bits in its type's name: ncclFloat32. What has none, or a
// format behind it (ncclFloat8e4m3), has one byte.
func elementBytes(datatype string) uint64 {
	bits := strings.TrimLeft(datatype, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	n, err := strconv.ParseUint(bits, 10, 8)
	if err != nil {
		return 1
	}
	return max(n/8, 1)
}

// unused is a call of the process at which all operations of an allocation so far have run, and there are others to
// come; nil if there is none.
func (k *kernels) unused(a *allocation) *replay.Call {
	for _, next := range a.uses {
		at := next.Start
		if root := next.Root(); root != nil {
			at = root.Start
		}
		if at.Index == 0 {
			continue
		}
		at = k.p.Calls[at.Index-1] // what is played behind a call is there when the next begins
		before, sound := 0, true
		for _, e := range a.uses {
			pl := k.planOf[e.Group]
			switch {
			case pl == nil:
				sound = false
			case max(pl.start, pl.end, pl.group.Start.T) < at.T:
				before++
			case min(pl.start, pl.group.Start.T) <= at.T:
				sound = false
			}
		}
		if sound && before > 0 && before < len(a.uses) {
			return at
		}
	}
	return nil
}
