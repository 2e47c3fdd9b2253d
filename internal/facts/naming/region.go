// SPDX-License-Identifier: Apache-2.0

package naming

import (
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// RegionsOf lists the regions of a region group that are of one of the paradigms, with their names.
func RegionsOf(defs *otf2.Definitions, group string, paradigms ...otf2.Paradigm) map[otf2.RegionRef]string {
	all := make(map[otf2.RegionRef]string)
	for _, g := range defs.Groups {
		if g.Type != otf2.GroupTypeRegions || defs.String(g.Name) != group {
			continue
		}
		for _, m := range g.Members {
			if r := defs.Region(otf2.RegionRef(m)); r != nil && slices.Contains(paradigms, r.Paradigm) {
				all[r.Self] = defs.String(r.Name)
			}
		}
	}
	return all
}

// hostParadigms are those of NCCL's regions on threads; of earlier versions they were those of the GPU.
var hostParadigms = []otf2.Paradigm{otf2.ParadigmUser, otf2.ParadigmCUDA, otf2.ParadigmHIP}

// CallRegions returns the regions of NCCL API calls, with their names. A call that requests an operation has a count
// (Details.Counted); calls for groups, and functions that NCCL implements by sends and receives, have none. Operations
// refer to their call by its event (Details.Parent).
func CallRegions(defs *otf2.Definitions) map[otf2.RegionRef]string {
	return RegionsOf(defs, regions.GroupAPI, hostParadigms...)
}

// PhaseRegions lists the regions of phases that the application marked on its threads, with their names.
func PhaseRegions(defs *otf2.Definitions) map[otf2.RegionRef]string {
	return RegionsOf(defs, regions.GroupApplication, otf2.ParadigmUser)
}

// Numbered removes the number at the end of a name: phases whose names differ in it only are of one kind.
func Numbered(name string) (stem string, numbered bool) {
	stem = strings.TrimRight(name, "0123456789")
	return stem, len(stem) < len(name)
}

// IsNCCLKernel reports whether a kernel's name is one of NCCL's.
func IsNCCLKernel(name string) bool { return strings.HasPrefix(name, regions.NameCall) }

// NetPhase is the phase of the oldest transfer of a network's row.
type NetPhase uint8

// Phases of transfers, in the order in which they come.
const (
	NetSendGPU NetPhase = iota
	NetSendPeer
	NetSend
	NetRecv
	NetRecvFlush
	NetRecvGPU
	NumNetPhases
)

// NetPhaseNames are the names of the regions of phases.
var NetPhaseNames = [NumNetPhases]string{
	regions.NameSendGPUWait, regions.NameSendPeerWait, regions.NameSendNetwork, regions.NameRecvNetwork,
	regions.NameRecvFlush, regions.NameRecvGPUWait,
}

// Unsent reports whether data in this phase has not been handed to the network.
func (p NetPhase) Unsent() bool { return p == NetSendGPU || p == NetSendPeer }

// Arrived reports whether data in this phase has been received.
func (p NetPhase) Arrived() bool { return p == NetRecvFlush || p == NetRecvGPU }

// NetPhaseRegions returns the phases of the regions on networks' rows.
func NetPhaseRegions(defs *otf2.Definitions) map[otf2.RegionRef]NetPhase {
	all := make(map[otf2.RegionRef]NetPhase)
	for ref, name := range RegionsOf(defs, regions.GroupNetwork, hostParadigms...) {
		if i := slices.Index(NetPhaseNames[:], name); i >= 0 {
			all[ref] = NetPhase(i)
		}
	}
	return all
}

// SumNames are the names of regions that record sums.
var SumNames = []string{regions.NameSendSums, regions.NameRecvSums}

// IsNetSums reports whether a region name of the network group marks records of sums.
func IsNetSums(name string) bool { return slices.Contains(SumNames, name) }

// Name returns the name of the phase's regions.
func (p NetPhase) Name() string { return NetPhaseNames[p] }

// NetSumRegions returns the regions that record sums.
func NetSumRegions(defs *otf2.Definitions) map[otf2.RegionRef]bool {
	all := make(map[otf2.RegionRef]bool)
	for ref, name := range RegionsOf(defs, regions.GroupNetwork, hostParadigms...) {
		if IsNetSums(name) {
			all[ref] = true
		}
	}
	return all
}
