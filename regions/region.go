// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Regions and strings of a process, each defined once; and the names by which readers distinguish regions and rows.

// Names of the region groups; Vampir colors regions by them.
const (
	GroupAPI          = "NCCL API"
	GroupCollectives  = "NCCL collectives"
	GroupPointToPoint = "NCCL point-to-point"
	GroupEnqueue      = "NCCL enqueue"
	GroupNetwork      = "NCCL network"
	GroupKernel       = "NCCL kernel" // phases inside a kernel
	GroupProxy        = "NCCL proxy"  // what a proxy thread does beside transfers
	GroupApplication  = "Application" // the application's own phases
	GroupCUDAKernels  = "CUDA kernels"
	GroupCUDAMemory   = "CUDA memory"
	GroupCUDAWaits    = "CUDA synchronization"
	GroupEvents       = "NCCL events" // raw events
	GroupStates       = "NCCL states" // of raw events
)

// Names by which readers distinguish regions. Those of calls are "nccl" and NCCL's function, those of operations the
// function, or LaunchName.
const (
	NameCall         = "nccl" // prefix of the names of calls
	NameKernelLaunch = "ncclKernelLaunch"
	NameCUDAGraph    = "CUDA graph" // a run of a graph without kernels from CUPTI
	// Phases of the oldest transfer of a network's row, in order.
	NameSendGPUWait  = "Send GPU wait"  // until the GPU has the data ready
	NameSendPeerWait = "Send peer wait" // until the receiver is ready
	NameSendNetwork  = "Send network"   // until the network has sent it
	NameRecvNetwork  = "Recv network"   // until the data has arrived
	NameRecvFlush    = "Recv flush"     // until it is visible to the GPU
	NameRecvGPUWait  = "Recv GPU wait"  // until the GPU has taken it
	// Sums of the transfers of one operation with one rank.
	NameSendSums = "Send sums"
	NameRecvSums = "Recv sums"
	// Activities of a proxy thread besides transfers.
	NameProxyIdle   = "Proxy idle"
	nameProxyActive = "Proxy active"
	NameProxySleep  = "Proxy sleep"
	NameProxyAppend = "Proxy append"
)

// Parts of row names, by which readers recognize the purpose of a row.
const (
	EnqueueRow = "NCCL enqueue " // prefix
	SendRow    = " net send"     // suffix
	RecvRow    = " net recv"
	PXNRow     = "PXN " // begins them
	ChannelRow = " ch " // precedes the channel's number
	RankRow    = " rank "
	EventRow   = " event " // of raw events; behind it are the event's type, its channel, its direction and a number

	sendEvents  = " send" // directions of raw events
	recvEvents  = " recv"
	strayEvents = " stray" // states of events that are not open
)

// definitions collects the strings and regions of this process's events. A local id is an index into the slices of the
// shard's description.
type definitions struct {
	process  *description.Process
	paradigm otf2.Paradigm
	strings  map[string]otf2.StringRef
	regions  map[regionKey]otf2.RegionRef
	names    int // of the application
}

type regionKey struct {
	name, group string
	role        otf2.RegionRole
}

// FurtherNames stands for all names beyond maxNames.
const FurtherNames = "(further names)"

// maxNames bounds the regions that an application's phases and points make; further names share one.
const (
	maxNames = 8192
	noName   = "(unnamed)"
)

func newDefinitions(p *description.Process, paradigm otf2.Paradigm) *definitions {
	return &definitions{
		process:  p,
		paradigm: paradigm,
		strings:  make(map[string]otf2.StringRef),
		regions:  make(map[regionKey]otf2.RegionRef),
	}
}

func (d *definitions) stringRef(s string) otf2.StringRef {
	return keyed.EntryMade(d.strings, s, func() otf2.StringRef {
		d.process.Strings = append(d.process.Strings, s)
		return otf2.StringRef(len(d.process.Strings) - 1)
	})
}

func (d *definitions) regionRef(name, group string, role otf2.RegionRole) otf2.RegionRef {
	return keyed.EntryMade(d.regions, regionKey{name, group, role}, func() otf2.RegionRef {
		d.process.Regions = append(d.process.Regions, description.Region{
			Name: name, Canonical: name, Role: role, Paradigm: d.paradigmOf(group), Group: group,
		})
		return otf2.RegionRef(len(d.process.Regions) - 1)
	})
}

func (d *definitions) paradigmOf(group string) otf2.Paradigm {
	if group == GroupApplication {
		return otf2.ParadigmUser
	}
	return d.paradigm
}

// applicationRegion returns the region of a phase or point of the application.
func (d *definitions) applicationRegion(name string) otf2.RegionRef {
	name = cmp.Or(name, noName)
	key := regionKey{name, GroupApplication, otf2.RegionRoleCode}
	if _, known := d.regions[key]; !known {
		if d.names >= maxNames {
			name = FurtherNames
		}
		d.names++
	}
	return d.regionRef(name, key.group, key.role)
}
